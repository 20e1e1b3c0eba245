"""What the package needs of the machine: files, child processes, signals, compiled code, extras."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
