"""Evaluates each model (a closed form or a simulator) for a scenario, in a module of its own.

A scenario describes links, flows and the length of a run. The result also says which assumptions of
the model hold in this scenario.
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
