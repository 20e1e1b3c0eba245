"""Reports to the user: tables and notes for results, explanations of models and of words."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
