"""Reads traces of other tools. Each file format has a module with a function ``read``."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
