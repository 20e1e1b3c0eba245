"""Studies that evaluate a model many times for one scenario.

- ``sweep`` evaluates a model over a grid of values of the scenario's fields.
- ``design`` finds the value of a field that meets a target.
- ``basins`` runs the scenario from many random starts. Runs with nearly the same throughputs have
  the same outcome. A start is a choice of start times, first windows and a seed.
- ``cycles`` finds the steady state to which each random start leads: constant windows or a periodic
  motion. If neither is found, it takes averages.
- ``agreement`` tests whether two models lead to the same outcomes equally often.

The module ``fields`` finds a field of the scenario by its name. A point of a study is a copy of the
scenario, in which some fields have other values (``points``). The module ``models`` evaluates a
model at many points; ``together`` does so for all points at once, where that is possible.
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
