"""One scenario in, one prediction out: which closed form applies, and what it assumes."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
