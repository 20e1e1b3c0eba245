"""Defines results: what a model predicts for a scenario, or what a measurement of it shows."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
