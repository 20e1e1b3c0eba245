"""The commands of ``vegasmodel``: they read arguments, call the package and print results."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
