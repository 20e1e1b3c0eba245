"""Reads, checks and writes the fields of a scenario, such as a link's capacity in Mbit/s."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
