"""What the fields of a scenario and of a command may hold: units, rules, TOML files."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
