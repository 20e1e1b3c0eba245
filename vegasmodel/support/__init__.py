"""Services for the rest of the package.

They deal with files, child processes, signals, compiled code, progress and optional packages.
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
