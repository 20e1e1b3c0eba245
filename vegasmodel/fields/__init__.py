"""Reads and checks the fields of a scenario: quantities with units, other rules, and TOML files."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
