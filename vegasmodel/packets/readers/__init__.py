"""Readers of traces from other tools: one module per file format, each with a function ``read``."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
