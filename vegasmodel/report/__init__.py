"""Reports to the user: makes tables of results with notes, and explains models and results."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
