"""Evaluates models (closed forms, simulators) for a scenario; most modules evaluate one model.

A scenario describes links, flows and the length of a run. The result is a ``Prediction`` with the
flows' throughputs. It also says which assumptions of the model hold in this scenario.
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
