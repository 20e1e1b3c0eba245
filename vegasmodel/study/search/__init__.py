"""Searches for the values of a scenario's field at which a model meets a target, for ``design``.

The target is a wanted value of a quantity, such as a flow's share, or a bound: the least or the
largest value wanted. The model predicts this quantity for many values of the field. If the quantity
crosses the target between two neighbouring values, the search narrows the interval. The search ends
at a value that meets the target, or at a jump across the target.

From one value tried to the next, the quantity may also come nearer to the target and then move away
again, without a crossing. It may still reach the target between these values, so the search tries
more values there. (With ns-2 and ns-3 it tries no more, because each value takes a long run.) Even
so, the search may miss two crossings that both lie between two neighbouring values.

The quantity may be random: a mean over a few runs. Then a value of the field also counts as a
solution if the quantity is within a tolerance of the target (``within``), and its 95 % confidence
interval contains the target. The search does not go on near such a value, because chance alone
would decide where the quantity crosses the target. Two such values are two solutions if the
quantity clearly moves away from the target between them. Otherwise they count as one solution.

The modules are

- ``tried``: the values tried, and the model's quantity at each;
- ``sides``: which of these values meet the target, and between which the quantity crosses it;
- ``scan``: which values are tried;
- ``outcome``: which of these values are solutions, or which intervals of the field meet a bound;
- ``texts``: what the user is told about the search.
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
