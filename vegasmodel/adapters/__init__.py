"""Adapters: each turns a scenario into one model's prediction and lists the model's assumptions."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
