"""Many questions about one scenario: maps (``sweep``), targets (``design``), outcomes (``basins``).

``sweep`` computes a model over a grid of the scenario's fields.  ``design`` finds the value of a
field that meets a target (``targets``).  ``basins`` starts one scenario in many ways (``starts``)
and counts the outcomes, ``cycles`` the steady states; ``agreement`` compares two models or
simulators on outcomes.  All of them use ``fields``, which finds a field by its name and sets it,
and ``points``, which asks a model at many points.
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
