"""The commands: what they ask for, and what they hand on; no science."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
