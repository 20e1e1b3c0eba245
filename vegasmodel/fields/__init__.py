"""What the fields of a scenario may hold: quantities with units, rules for values, TOML files."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
