"""Searches for the values of a field with which a model meets a target; ``design`` uses it.

The target is a wanted value of a quantity, such as a flow's share. The model predicts this quantity
for many values of the field. If the quantity crosses the target between two neighbouring values,
the search narrows the interval. The search ends at a value that meets the target, or at a jump
across the target.

The quantity may also come nearer to the target and move away again. It may then reach the target
between the values tried, so more values are tried there. (With ns-2 and ns-3 none are added,
because each value takes a long run.)

If the quantity crosses the target twice between two neighbouring values, the search may miss both
crossings.

The quantity may be random: a mean over a few runs. Then a value of the field also counts as a
solution if the quantity is within a tolerance of the target (``within``), and its 95 % confidence
interval contains the target. The search does not go on near such a value, because chance alone
would decide where the quantity crosses the target. Two such values are two solutions if the
quantity clearly moves away from the target between them. Otherwise they count as one solution.

The modules are

- ``tried``: the values tried, and the model's quantity at each;
- ``sides``: which of these values meet the target, and between which the quantity crosses it;
- ``scan``: which values are tried;
- ``outcome``: the solutions among them, or the intervals that meet a bound;
- ``texts``: what the user is told about the search.
"""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
