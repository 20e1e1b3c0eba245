"""Studies of one scenario that need many answers of a model.

- ``sweep`` evaluates a model over a grid of values of the scenario's fields.
- ``design`` finds the value of a field that meets a target (``targets``).
- ``basins`` runs the scenario from many random start times and first windows (``starts``), and
  finds the different outcomes.
- ``cycles`` finds the different steady states in the same way.
- ``agreement`` tests whether two models or simulators have the same outcomes.

All of these use two further modules. ``fields`` finds a field of the scenario by its name and sets
it. ``points`` evaluates a model at many points, which are copies of the scenario with other values.
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
