"""Defines ``LimitCycle``, which ``limit_cycle`` returns: the steady state of a simulator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from vegasmodel.fields.rules import Integer
from vegasmodel.fields.units import format_number, format_time
from vegasmodel.metrics import Floats, with_error
from vegasmodel.results.writers import entry
from vegasmodel.scenario.parts import MAX_FLOWS
from vegasmodel.support.html_table import html_table
from vegasmodel.support.json_numbers import finite


@dataclass(frozen=True, eq=False)
class LimitCycle:
    """The steady state of a scenario: a fixed point or a periodic motion.

    If neither was found, means such as ``throughput`` are taken over a long run.  Only the flows
    that are active at the end of the scenario's run take part in the steady state.

    An array with one entry per flow has the flows in the order of ``names``.

    - ``kind``: "fixed point", "periodic" or "neither found".
    - ``period``: s; 0 at a fixed point, NaN if neither was found.
    - ``overflows``: if the result is from the continuous equations of ``fluid``, how often the
      buffer overflows in one period.  In all other results, how often a window falls in one period.
      0 without a period.
    - ``throughput``: [n_flows] packets per second, mean over the period.
    - ``spread``: [n_flows] standard error of ``throughput``, packets per second, if neither a fixed
      point nor a periodic motion was found; otherwise 0.  It follows from the differences between
      parts of the run.  If the motion is random, it is at least the standard deviation between the
      throughputs of equal flows, because these must be equal in the long run.  It is too small if
      rates change more slowly than the run lasts and no equal flows show it.  It also does not
      cover the differences between steady states: ``limit_cycles`` tries other starts.
    - ``window``: [n_flows] packets, mean over time.
    - ``rtt_mean``: [n_flows] mean round-trip time over the packets, s.
    - ``base_rtt``: [n_flows] the flow's baseRTT, s: the least round-trip time that it has seen, or
      the value that the scenario gives.  It is NaN for loss-based flows.
    - ``queue_mean``: packets that wait.
    - ``losses``: [n_flows] in one period: in ``rounds`` the number of lost packets, in ``fluid``
      the number of times that a loss cuts the window.  0 at a fixed point; NaN if neither a period
      nor a fixed point was found.
    - ``multipliers``: Floquet multipliers, complex numbers, the largest modulus first. These are
      the factors by which small disturbances of the windows change in one period, from just after
      an overflow of the buffer on. At a fixed point they are the factors in one round trip of the
      flow with the longest RTT. If all moduli are below 1, the motion is stable. The array is empty
      if they were not computed. They are all NaN if disturbances in opposite directions have
      different effects. For example, Vegas with alpha < beta keeps its window in a range of
      backlogs. At an end of this range, a disturbance that moves the window into the range lasts.
      After one that moves it out of the range, the window returns.
    - ``residual``: the greatest change of a window or a queue, in packets, after one period (in
      ``rounds``: after two).  It is 0 if the motion repeats itself exactly.  At a fixed point it is
      the greatest change of a window after one round trip.
    - ``status``: "done", also if neither was found; or why there is no result.  Without a result
      all numbers but ``overflows`` are NaN.
    - ``names``: of the flows.
    - ``hint``: if neither was found, what may help to find a periodic motion.  Otherwise it is
      empty, and also if the motion cannot repeat itself because it depends on chance.
    """

    kind: str
    period: float
    overflows: int
    throughput: Floats
    spread: Floats
    window: Floats
    rtt_mean: Floats
    base_rtt: Floats
    queue_mean: float
    losses: Floats
    multipliers: np.ndarray
    residual: float
    status: str
    names: tuple[str, ...] = ()  # ``limit_cycle`` fills in this and the next
    hint: str = ""

    def __repr__(self) -> str:
        """One line: the kind, the period, and the throughputs of up to six flows.

        If there is no result, the line gives only the reason.
        """
        if self.status != "done":
            return f"<LimitCycle: no answer, {self.status}>"
        each = zip(self.names, self.throughput, self.spread, strict=False)
        rates = [f"{name} {with_error(rate, error)} pkt/s" for name, rate, error in each]
        more = ["..."] if len(rates) > 6 else []
        hint = f"; {self.hint}" if self.hint else ""
        return f"<LimitCycle {self._kind}: {', '.join([*rates[:6], *more])}{hint}>"

    @property
    def _kind(self) -> str:
        """What was found, in words."""
        if self.kind == "neither found":
            return "neither a fixed point nor a periodic motion found; means"
        return self.kind + (f" of {format_time(self.period)}" if self.kind == "periodic" else "")

    def _repr_html_(self) -> str:
        """A table with a row for each flow, for notebooks."""
        if self.status != "done":
            return html_table(f"no answer, {self.status}", [], [])
        title = "; ".join(filter(None, [self._kind, self.hint]))
        each = zip(
            self.names, self.throughput, self.spread, self.window, self.rtt_mean, strict=False
        )
        rows = [
            [name, with_error(rate, error), format_number(window), format_time(rtt)]
            for name, rate, error, window, rtt in each
        ]
        return html_table(title, ["flow", "pkt/s", "window, pkt", "mean RTT"], rows)

    def to_json(self) -> dict[str, Any]:
        """The steady state as plain data: lists, numbers and texts.

        The unit of a number is at the end of its key. An unknown value is ``None``. Each Floquet
        multiplier (``multipliers``) is a list of its real and its imaginary part.
        """
        columns = {
            "throughput_pps": self.throughput,
            "throughput_se_pps": self.spread,
            "window_pkt": self.window,
            "rtt_mean_s": self.rtt_mean,
            "base_rtt_s": self.base_rtt,
            "losses": self.losses,
        }
        return {
            "kind": self.kind,
            "period_s": finite(self.period),
            "overflows": self.overflows,
            "flows": [
                {"name": name, **{key: entry(values, i) for key, values in columns.items()}}
                for i, name in enumerate(self.names)
            ],
            "queue_mean_pkt": finite(self.queue_mean),
            "multipliers": [[finite(value.real), finite(value.imag)] for value in self.multipliers],
            "residual_pkt": finite(self.residual),
            "status": self.status,
            "hint": self.hint,
        }

    @classmethod
    def failed(cls, n: int, status: str) -> LimitCycle:
        """The result for ``n`` flows if the search has failed; the text ``status`` says why.

        Its numbers are NaN, except ``overflows``, which is 0.  It has no multipliers.
        """
        Integer(0, MAX_FLOWS).check(n, "n")
        unknown = np.full(n, np.nan)
        return cls(
            kind="neither found",
            period=math.nan,
            overflows=0,
            throughput=unknown,
            spread=unknown,
            window=unknown,
            rtt_mean=unknown,
            base_rtt=unknown,
            queue_mean=math.nan,
            losses=unknown,
            multipliers=np.empty(0),
            residual=math.nan,
            status=status,
        )
