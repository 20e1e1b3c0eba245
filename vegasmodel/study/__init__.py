"""Evaluates a model (closed form or simulator) often, for changed scenarios or random starts.

- ``sweep`` evaluates a model over a grid of values of the scenario's fields.
- ``design`` finds the values of a field that meet a target, by the search in ``search``.
- ``basins`` runs the scenario from many random starts, to find its different outcomes. A start is a
  choice of start times, initial windows and a seed. Runs with nearly the same throughputs have the
  same outcome.
- ``cycles`` finds the steady state to which each random start leads: constant windows, a periodic
  motion or, if there is neither, the averages over a long time.
- ``agreement`` tests whether two models lead to the same outcomes equally often.
- ``boundary`` finds at which values of two fields the equilibrium turns unstable.
- ``uncertainty`` computes how the throughputs depend on the fields, and how uncertain the ratios of
  throughputs are if the fields are known only with errors.

Other modules help these studies. ``fields`` finds a field of the scenario by its name. ``points``
makes copies of the scenario in which some fields have other values; each copy is called a point.
``models`` evaluates a model at many points. Where it can, ``together`` puts these points into
arrays and computes them in one call, which takes less time.
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
