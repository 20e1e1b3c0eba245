"""Studies that evaluate a model many times for one scenario.

- ``sweep`` evaluates a model over a grid of values of the scenario's fields.
- ``design`` finds the value of a field that meets a target.
- ``basins`` runs the scenario from many random starts, and finds the different outcomes. A start is
  a choice of start times, first windows and a seed.
- ``cycles`` finds the different steady states, also from many random starts.
- ``agreement`` tests whether two models lead to the same outcomes equally often.

The module ``fields`` finds a field of the scenario by its name. The module ``points`` evaluates a
model for many copies of the scenario, in which some fields have other values.
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
