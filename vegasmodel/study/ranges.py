"""Chooses the range of values in which ``design`` searches: the user's range, or a default one.

``design`` searches for values of a scenario's field, such as a buffer, that meet a target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from vegasmodel.fields.errors import FieldError
from vegasmodel.fields.rules import Integer, listed
from vegasmodel.metrics import Floats
from vegasmodel.scenario import Scenario
from vegasmodel.study.fields import Field

__all__ = ["Range", "of_field", "other_threshold"]

# A buffer is searched up to LEAST_TOP packets, or up to PRODUCTS bandwidth-delay products if that
# is more.
LEAST_TOP = 100.0
PRODUCTS = 4.0
# Other positive values are searched from the scenario's value divided by FACTOR to FACTOR times it.
FACTOR = 20.0
# Fields with a fixed range: its two ends, and whether the values tried have equal ratios (else they
# have equal differences).
FIXED_RANGES = {
    "loss": (1e-5, 0.5, True),
    "decrease": (0.02, 1.0, False),
    "delay_buffer": (0.01, 0.99, False),
    "max_probability": (1e-3, 1.0, True),
    "weight": (1e-5, 1.0, True),
    "k": (1e-2, 1e2, True),
}


@dataclass(frozen=True)
class Range:
    """A range from ``low`` to ``high``.

    Values are spread over it in equal steps or, if ``log``, with equal ratios.
    """

    low: float  # both ends in the unit of the field
    high: float
    log: bool

    def values(self, n: int, whole: bool) -> Floats:
        """``n`` values from ``low`` to ``high``, in equal steps or, if ``log``, with equal ratios.

        If ``whole``, the values are rounded, and equal ones are dropped, so there may be fewer than
        ``n``.
        """
        spread = np.geomspace if self.log else np.linspace
        values = spread(self.low, self.high, n)
        values[0], values[-1] = self.low, self.high
        return self.rounded(values, whole)

    def rounded(self, values: Floats, whole: bool) -> Floats:
        """Clip the values to the range, sort them and drop repeated ones.

        If ``whole``, they are rounded to whole numbers first.
        """
        if whole:
            return np.unique(np.clip(np.rint(values), math.ceil(self.low), math.floor(self.high)))
        return np.unique(np.clip(values, self.low, self.high))


def of_field(scenario: Scenario, field: Field, between: tuple[float, float] | None = None) -> Range:
    """The range in which ``design`` searches for the field's value: ``between``, or a default.

    ``between`` holds the two ends in the field's unit. If its lower end is positive and its upper
    end is more than ten times as large, the search first tries values with equal ratios. Otherwise
    it first tries values with equal differences.

    Raises ``FieldError`` if ``between`` is not a valid range, or if it is missing and the field has
    no default range.
    """
    if between is not None:
        if len(listed(between, "between", "two numbers")) != 2:
            raise FieldError("between", between, "two numbers, (LOW, HIGH)")
        for end in between:
            field.check(end)
        low, high = map(float, between)
        if not low < high < math.inf:
            raise FieldError(
                "between", f"{low:g}:{high:g}", "two finite numbers, LOW:HIGH, the lower end first"
            )
        return Range(low, high, low > 0 and high > 10 * low)
    return _default_range(scenario, field)


def other_threshold(scenario: Scenario, field: Field) -> float | None:
    """The largest allowed value if ``field`` is an alpha, or the smallest if it is a beta.

    In a group of flows alpha must not be above beta. If the group has alpha = beta, a change of its
    alpha also changes its beta, so such a group gives no largest alpha. The result is ``None`` if
    all values are allowed, and for other fields.
    """
    flows = [scenario.flows[i] for i in field.indices]
    if field.key == "alpha":
        return min((flow.beta for flow in flows if not flow.one_threshold), default=None)
    return max(flow.alpha for flow in flows) if field.key == "beta" else None


def _thresholds(scenario: Scenario, field: Field, present: float) -> Range:
    """The default range of a threshold of Vegas flows: alpha, beta or gamma, in packets.

    ``present`` is its value in the scenario. The range goes from 0.25 packets to 64 packets. For
    large values it goes from ``present / FACTOR`` to ``4 * present``.

    But alpha may not exceed beta. So the range of an alpha ends at beta, unless beta changes with
    alpha (``other_threshold``). The range of a beta does not begin below alpha.
    """
    # Values are tried with equal ratios. With a large threshold, too many of them would be far too
    # small if the range still began at a quarter of a packet.
    low = 0.25 if present < 5.0 else present / FACTOR
    high = max(64.0, 4.0 * present)
    other = other_threshold(scenario, field)
    if other is not None and field.key == "alpha":
        high = min(high, other)
        if low >= high:  # beta is at most 0.25 packets
            low = high / FACTOR
    elif other is not None:
        low = max(low, other)
    return Range(low, high, log=True)


def _default_range(scenario: Scenario, field: Field) -> Range:
    """The range in which a field is searched if the user gives none.

    Raises ``FieldError`` if the scenario's own value of the field does not suggest a range.
    """
    given = field.of(scenario)
    finite = isinstance(given, (int, float)) and math.isfinite(given)
    longest = max(member.rtt for member in scenario.members)
    least = min(member.rtt for member in scenario.members)
    product = max(link.capacity for link in scenario.links) * longest  # bandwidth times delay
    present = float(given) if finite else 0.0
    if field.key in FIXED_RANGES:
        return Range(*FIXED_RANGES[field.key])
    if field.key == "buffer" or field.queue:  # buffers, and RED's thresholds
        return Range(1.0, math.ceil(max(LEAST_TOP, PRODUCTS * product, 2.0 * present)), log=True)
    if field.key in ("alpha", "beta", "gamma"):
        return _thresholds(scenario, field, present)
    if field.key in ("max_window", "initial_window"):
        return Range(1.0, math.ceil(max(LEAST_TOP, PRODUCTS * product)), log=True)
    if field.key == "over_estimate":
        return Range(0.0, 2.0 * least, log=False)
    if field.key == "delay":
        return Range(0.0, 0.5 * least, log=False)
    if field.key == "start":
        return Range(0.0, scenario.run.warmup, log=False)
    if isinstance(field.plain, Integer):
        return Range(max(field.plain.low, 1), max(100, 4 * int(present)), log=True)
    if not present > 0:
        wrong, allowed = "gives no range to search", "give one with between, as LOW:HIGH"
        raise FieldError(field.name, given, allowed, wrong=wrong)
    rule = field.plain
    return Range(max(present / FACTOR, rule.low), min(present * FACTOR, rule.high), log=True)
