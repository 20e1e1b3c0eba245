"""Reads, checks and writes the fields of a scenario, such as numbers with units in TOML files."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
