"""Helpers for the rest of the package that have nothing to do with TCP.

They deal with files, child processes, signals, compiled code, progress and optional packages.
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
