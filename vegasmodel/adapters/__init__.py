"""Adapters: each evaluates one model for a scenario, and lists the assumptions of that model.

A scenario describes links, flows and the length of a run.
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
