"""What stands in the fields of a scenario and of a command: units, rules, files of tables."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
