"""What the fields of a scenario may hold: units, rules, and TOML files."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
