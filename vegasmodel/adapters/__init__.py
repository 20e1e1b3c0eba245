"""Evaluates models for a scenario: most modules evaluate one closed form or one simulator.

A scenario describes links, flows and the length of a run. The result has the throughputs, and says
which assumptions of the model hold in this scenario.
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
