"""Says which keys have no effect at any point of a study, such as the ``alpha`` of a Reno flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vegasmodel.fields.errors import FieldError
from vegasmodel.report.notes import without_effect
from vegasmodel.scenario import Scenario

__all__ = ["sentences"]


def sentences(scenario: Scenario, points: Sequence[Mapping[str, Any]]) -> list[str]:
    """What ``predict`` says about keys without effect at each of ``points``.

    A point maps the names of varied fields, such as ``flow.reno.alpha``, to their values. The
    caller gives two points of a study: the one with the least values of all fields, and the one
    with the greatest. A sentence is returned only if ``predict`` says it at both. It is then true
    of all points between them, too. For example, the buffer and a threshold decide whether a key of
    RED has an effect. A sentence about such a key contains both numbers. So if the sentences are
    equal at both points, neither number varies.

    A point whose values are not allowed together is left out. If the congestion control varies, the
    result is empty, because it decides which keys have an effect.
    """
    if any(name.endswith(".law") for point in points for name in point):
        return []
    said = []
    for point in points:
        try:
            said.append(without_effect(scenario.replace(point)))
        except FieldError:
            continue
    return [text for text in said[0] if all(text in each for each in said)] if said else []
