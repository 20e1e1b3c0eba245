"""Evaluates models (closed forms and simulators) for a scenario.

A scenario describes links, flows and the length of a run. The result is a ``Prediction`` with the
flows' throughputs. The ``Prediction`` also says which assumptions of the model hold in this
scenario. Most modules of this folder evaluate one model each.
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
