"""Many questions of one scenario: maps over its fields (``sweep``), inverse problems (``design``).

``fields`` names a field of a scenario and puts values there; ``points`` answers a block of values
by any model, side by side.  ``design`` looks there for a target (``targets``).
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
