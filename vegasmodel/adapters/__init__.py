"""Adapters: each turns a scenario into one model's prediction, and says what the model assumes."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
