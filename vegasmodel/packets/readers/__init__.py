"""Readers of foreign traces, one format a file; each has ``read(source) -> Trace``."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
