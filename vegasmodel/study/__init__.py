"""Studies of one scenario that need many answers of a model.

- ``sweep`` evaluates a model over a grid of values of the scenario's fields.
- ``design`` finds the value of a field that meets a target (``targets``).
- ``basins`` starts the scenario in many ways (``starts``) and counts the different outcomes.
- ``cycles`` counts the different steady states.
- ``agreement`` tests whether two models or simulators have the same outcomes.

Two modules serve all of them: ``fields`` finds a field of the scenario by its name and sets it, and
``points`` evaluates a model at many points.
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
