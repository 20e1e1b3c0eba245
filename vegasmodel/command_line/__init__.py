"""Defines the commands of ``vegasmodel``: they read arguments, call the package, print results."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
