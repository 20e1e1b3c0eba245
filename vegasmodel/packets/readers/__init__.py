"""Readers of traces from other tools, one file per format; each has ``read(source) -> Trace``."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
