"""Services around the models: files, child processes, signals, compiled code, optional packages."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
