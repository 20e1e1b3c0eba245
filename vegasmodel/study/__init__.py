"""Many questions of one scenario: maps (``sweep``), targets (``design``), sets (``basins``).

``fields`` names a field of a scenario and puts values there; ``points`` answers a block of values
by any model, side by side.  ``design`` looks there for a target (``targets``).
``basins`` asks from many ``starts``, and ``agreement`` compares two sources on that.
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
