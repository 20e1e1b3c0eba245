"""Runs the commands ``equilibrium``, ``arrivals`` and ``rd``, which compute the rates of flows.

They need no scenario file, because options give the capacity and the properties of the flows:

- ``equilibrium`` is for a link that only Vegas flows use. The option ``--over-estimate`` gives by
  how much each flow over-estimates its propagation delay.
- ``arrivals`` is for a link on which Vegas flows start one after another. It computes by how much
  each flow over-estimates its propagation delay.
- ``rd`` is for a link with Rate-Delay services (Podlesny and Williamson), which has a queue for a
  high rate and another for a low delay.

An option with one value per flow takes a list with commas (``--alpha 3,1``). A single value of
``--alpha`` or ``--rtt`` holds for all flows. The command ``equilibrium`` takes the number of flows
from the length of the list ``--over-estimate``, or from that of ``--alpha`` if the option
``--over-estimate`` is not given. ``rd`` takes one alpha for all Vegas flows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from vegasmodel import stacks
from vegasmodel.command_line import inputs
from vegasmodel.fields import checked, rules
from vegasmodel.fields.errors import MISSING, FieldError
from vegasmodel.fields.units import format_time, parse
from vegasmodel.metrics import Floats
from vegasmodel.status import Status
from vegasmodel.support.json_numbers import all_finite, finite

if TYPE_CHECKING:
    from vegasmodel.equilibrium import Equilibrium

NUMBER_OF_VALUES = "values are not allowed"  # the error message has the number of values before it
_OF_RATE_DELAY = {  # what the command ``rd`` prints, by its name in the JSON document
    "service_rate_R_pps": "service rate of R (6), pkt/s",
    "service_rate_D_pps": "service rate of D (7), pkt/s",
    "flow_rate_R_pps": "one flow of R, pkt/s",
    "flow_rate_D_pps": "one flow of D, pkt/s",
    "buffer_R_pkt": "buffer of R, pkt",
    "buffer_D_pkt": "buffer of D, pkt",
    "delay_bound_s": "longest queueing delay in D, s",
    "loss_onset_flows": "D loses packets from this many flows on",
}


class Unsolved(Exception):  # noqa: N818 - an outcome, not bad input
    """Raised if the solver of a command finds no solution, although the input is right."""


@click.command()
@inputs.capacity
@inputs.alpha
@click.option(
    "--over-estimate",
    help="baseRTT - rtt of each flow; the list has one value per flow. Default: 0 s for each "
    "flow; there are then as many flows as alphas, or two flows if there is one alpha.",
)
@click.option("--rtt", help="RTT with empty queues; variant linux needs it.")
@inputs.variant
@inputs.packet_size
@inputs.as_json
def equilibrium(
    capacity: str,
    alpha: str,
    over_estimate: str | None,
    rtt: str | None,
    variant: str,
    packet_size: str,
    json: bool,
) -> None:
    """Vegas flows alone on one link: queueing delay and rates.

    These are the values of the steady state.  The equations are (3) to (6) of Boutremans and
    Le Boudec.  With the variants ns2 and linux there are many steady states; the ranges of the
    rates in them are then printed, too.

    Example: vegasmodel equilibrium --capacity 250pkt/s --alpha 3 --over-estimate 0ms,16.2ms
    """
    import numpy as np

    from vegasmodel import equilibrium as forms
    from vegasmodel.report import console
    from vegasmodel.scenario import Flow

    checked.of(Flow, "variant").check(variant, "--variant")
    c, _ = parse_capacity(capacity, packet_size)
    thresholds = values(alpha, "alpha", "--alpha")
    if over_estimate is None:
        x = np.zeros(thresholds.size if thresholds.size > 1 else 2)
    else:
        x = values(over_estimate, "over_estimate", "--over-estimate")
    thresholds = spread(thresholds, x.size, "--alpha")
    rtts = None
    if rtt is not None:
        rtts = spread(values(rtt, "rtt", "--rtt"), x.size, "--rtt")
    elif stacks.find(variant).backlog_over_base:
        text = 'a time such as "80 ms" is needed: variant linux divides by the baseRTT'
        raise FieldError("--rtt", None, text, wrong=MISSING)
    state = forms.solve(thresholds, x, c, rtt=rtts, variant=variant)
    delay = float(state.delay)
    failure = _failure(int(state.status))
    ranges = _ranges(thresholds, x, c, rtts, variant) if not failure else {}
    if json:
        console.print_json(
            {
                "capacity_pps": c,
                "variant": variant,
                **ranges,
                "queueing_delay_s": finite(delay),
                "queue_pkt": finite(delay * c),
                "rates_pps": all_finite(state.rates),
                "residual": finite(float(state.residual)),
                "status": f"failed: {failure}" if failure else "converged",
            }
        )
    if failure:
        raise Unsolved(f"the solver of the steady state failed: {failure}")
    if not json:
        _print_equilibrium(state, thresholds, x, c, variant, ranges)


def _print_equilibrium(
    state: Equilibrium, alpha: Floats, x: Floats, c: float, variant: str, ranges: dict[str, Any]
) -> None:
    """Print a table of the flows' rates, and sentences on the queueing delay.

    ``alpha`` is in packets, the over-estimates ``x`` in s, ``c`` in pkt/s. ``ranges`` are those
    that ``_ranges`` returns.
    """
    import numpy as np

    from vegasmodel.report import console

    delay = float(state.delay)
    rows = [
        [str(i + 1), console.number(a), format_time(over), console.number(r, 6), f"{r / c:.4f}"]
        for i, (a, over, r) in enumerate(zip(alpha, x, np.asarray(state.rates), strict=True))
    ]
    columns = ["flow", "alpha", "over-estimate", "pkt/s", "share"]
    lines = [
        f"Queueing delay {format_time(delay)}, {delay * c:.4g} packets. "
        f"Relative residual {float(state.residual):.1e}; converged."
    ]
    if ranges and ranges["rates_range_pps"] is None:
        lines.append(
            f"With the variant {variant} and these alphas a window may rest without a packet in "
            "the queue. So there are many equilibria, but nothing determines the least queue."
        )
    elif ranges:
        columns.append("range, pkt/s")
        for row, ends in zip(rows, ranges["rates_range_pps"], strict=True):
            row.append(" to ".join(map(console.number, ends)))
        low, high = ranges["queueing_delay_range_s"]
        lines.append(
            f"With the variant {variant} Vegas counts its backlog in whole packets, so its window "
            "rests at a range of backlogs even if alpha = beta. This is one of many equilibria, in "
            "which each backlog is alpha. In the others the queueing delay is from "
            f"{format_time(low)} to {format_time(high)}."
        )
    console.console().print(console.stacked(columns, rows))
    console.paragraphs(lines)


def _ranges(alpha: Floats, x: Floats, c: float, rtt: Floats | None, variant: str) -> dict[str, Any]:
    """The ranges of rates and queueing delay over all equilibria; empty if there is only one.

    The command takes one threshold per flow, alpha = beta. In the variant ``paper`` there is then
    only one equilibrium. In the others Vegas counts its backlog in whole packets. So a window rests
    at any backlog in a certain range, and each choice of backlogs in these ranges is an
    equilibrium.

    The ranges are ``None`` if every flow's window may rest at a backlog of 0. Windows may then rest
    although they do not fill the link, so no equation determines the least queueing delay and the
    least rates.

    ``alpha`` is in packets, ``c`` in pkt/s. The flow's propagation delay ``rtt`` and its
    over-estimate ``x`` of this delay are in s.
    """
    from vegasmodel.equilibrium import bands

    if stacks.find(variant).real_numbers:
        return {}
    least, _ = stacks.dead_zone(alpha, alpha, variant)  # backlogs at which windows rest
    if not least.any():
        return {"queueing_delay_range_s": None, "rates_range_pps": None}
    found = bands.equilibria(alpha, alpha, x, c, rtt=rtt, variant=variant)
    return {
        "queueing_delay_range_s": list(found.delay_range),
        "rates_range_pps": [
            [float(end) for end in ends] for ends in zip(*found.rate_range, strict=True)
        ],
    }


@click.command()
@click.option("--n", type=inputs.WHOLE, default=20, help="Number of Vegas flows.")
@click.option("--capacity", default="125pkt/s", help=inputs.CAPACITY)
@inputs.alpha
@inputs.packet_size
@inputs.as_json
def arrivals(
    n: int,
    capacity: str,
    alpha: str,
    packet_size: str,
    json: bool,
) -> None:
    """Rates of Vegas flows that arrive one after another.

    Each flow mistakes the queueing delay at its start for propagation delay.  So it over-estimates
    its baseRTT by a time x.  Prints each flow's x and rate, computed exactly for one arrival after
    another.  If all flows have the same alpha, also prints x and rate by Bonald's closed form,
    whose rates need not add up to the capacity.

    Example: vegasmodel arrivals --n 20 --capacity 125pkt/s --alpha 3
    """
    import numpy as np

    from vegasmodel.equilibrium import arrivals as forms
    from vegasmodel.fields.rules import Integer
    from vegasmodel.report import console

    Integer(1, 100_000).check(n, "--n")
    c, _ = parse_capacity(capacity, packet_size)
    thresholds = spread(values(alpha, "alpha", "--alpha"), n, "--alpha")
    exact = forms.arrive(thresholds, c)
    one_alpha = bool(np.all(thresholds == thresholds[0]))
    x_bonald, bonald = (
        forms.bonald(n, float(thresholds[0]), c) if one_alpha else (np.full(n, np.nan),) * 2
    )
    failure = _failure(int(exact.status))
    if json:
        console.print_json(
            {
                "capacity_pps": c,
                "exact": _x_and_rates(exact.x, exact.rates),
                "bonald": _x_and_rates(x_bonald, bonald) if one_alpha else None,
                "status": f"failed: {failure}" if failure else "converged",
            }
        )
    if failure:
        raise Unsolved(f"the recursion of arrivals failed: {failure}")
    if json:
        return
    shown_flows = np.arange(n) if n <= 40 else np.r_[0:20, n - 20 : n]  # of many flows, both ends
    rows = [
        [
            str(i + 1),
            format_time(float(exact.x[i])),
            console.number(float(exact.rates[i])),
            format_time(float(x_bonald[i])) if one_alpha else "-",
            console.number(float(bonald[i])),
        ]
        for i in shown_flows
    ]
    totals = [console.number(float(rates.sum()), 6) for rates in (exact.rates, bonald)]
    rows.append(["sum", "", totals[0], "", totals[1]])
    out = console.console()
    columns = ["arrival", "x exact", "pkt/s exact", "x Bonald", "pkt/s Bonald"]
    out.print(console.stacked(columns, rows))


@click.command()
@click.option(
    "rate", "--rate-flows", "--rate", type=inputs.NUMBER, required=True,
    help="Number of flows of class R (loss-based).",
)  # fmt: skip
@click.option(
    "delay", "--delay-flows", "--delay", type=inputs.NUMBER, required=True,
    help="Number of flows of class D (Vegas).",
)  # fmt: skip
@inputs.capacity
@click.option(
    "--k",
    type=inputs.NUMBER,
    default=1.0,
    help="Wanted ratio: rate of an R flow / rate of a D flow.",
)
@click.option("--buffer", default="inf", help="Packets that both queues together can hold.")
@click.option("--delay-buffer", default="10 %", help="The D queue's part of the buffer.")
@inputs.alpha
@inputs.packet_size
@inputs.as_json
def rd(
    rate: float,
    delay: float,
    capacity: str,
    k: float,
    buffer: str,
    delay_buffer: str,
    alpha: str,
    packet_size: str,
    json: bool,
) -> None:
    """Rate-Delay services: rates of flows, longest queueing delay.

    A link has one queue for loss-based flows (class R) and one for Vegas flows (class D).  The
    equations are (5) to (7) of Podlesny and Williamson.

    Example: vegasmodel rd --rate-flows 100 --delay-flows 90 --capacity 100Mbit/s
    """
    import numpy as np

    from vegasmodel.equilibrium import rate_delay as forms
    from vegasmodel.report import console
    from vegasmodel.scenario import Link, RateDelay

    _check_numbers(rate, delay)
    checked.of(RateDelay, "k").check(k, "--k")
    c, size = parse_capacity(capacity, packet_size)
    buffer_packets = checked.of(Link, "buffer").packets(buffer, "--buffer", size, c, math.nan)
    delay_part = parse(delay_buffer, "fraction", field="--delay-buffer", high=1.0)
    (one_alpha,) = spread(values(alpha, "alpha", "--alpha"), 1, "--alpha")
    S_R, S_D = forms.service_rates(rate, delay, c, k)
    per_rate, per_delay = forms.flow_rates(rate, delay, c, k)
    B_R, B_D = forms.split_buffer(buffer_packets, delay_part)
    figures: dict[str, Any] = {
        "service_rate_R_pps": S_R,
        "service_rate_D_pps": S_D,
        "flow_rate_R_pps": per_rate,
        "flow_rate_D_pps": per_delay,
        "buffer_R_pkt": B_R,
        "buffer_D_pkt": B_D,
        "delay_bound_s": forms.delay_bound(B_D, S_D),
        "loss_onset_flows": forms.loss_onset(B_D, one_alpha),
    }
    plain = {name: finite(float(value)) for name, value in figures.items()}
    notes = []
    if rate == 0.0:
        notes.append("Class R has no flows, so there is no rate of one flow (-).")
    if delay == 0.0:
        figures["delay_bound_s"] = math.nan
        notes.append(
            "Class D has no flows, so there is neither a rate of one flow nor a delay (-)."
        )
    elif B_D < 1.0:
        notes.append(
            "The buffer's part for D is at most half a packet, so queue D takes no packet. The "
            "flows of D then get nothing, and not the rate above."
        )
    if json:
        note = " ".join(notes) or None
        console.print_json({"capacity_pps": c, "k": k, **plain, "note": note})
        return
    infinite = {name for name, value in figures.items() if np.isposinf(value)}
    rows = [
        [label, "infinite" if name in infinite else console.number(plain[name], 6)]
        for name, label in _OF_RATE_DELAY.items()
    ]
    console.console().print(console.table(["Rate-Delay services", ""], rows))
    console.paragraphs(notes)


def _check_numbers(rate: float, delay: float) -> None:
    """Raise ``FieldError`` for numbers of flows that a Rate-Delay link cannot have.

    ``rate`` and ``delay`` are the numbers of flows of the rate class and of the delay class.
    """
    for name, value in (("--rate-flows", rate), ("--delay-flows", delay)):
        rules.Quantity("fraction", high=1e9).check(value, name)  # "fraction": it has no unit
        if value % 1.0:
            raise FieldError(name, value, "a whole number of flows")
    if rate + delay == 0:
        raise FieldError("--rate-flows", rate, "more than 0 where --delay-flows is 0")


def parse_capacity(capacity: str, packet_size: str) -> tuple[float, float]:
    """Read the options ``--capacity`` and ``--packet-size``.

    Returns the capacity in packets of this size per second, and the size in bytes.
    """
    from vegasmodel.scenario import Link, Scenario

    size = checked.of(Scenario, "packet_size").read(packet_size, "--packet-size", 1.0)
    return checked.of(Link, "capacity").read(capacity, "--capacity", size), size


def values(text: str, field: str, option: str) -> Any:
    """Read the numbers of a command-line option, separated by commas, as an array.

    Each number must be allowed for the key ``field`` of a flow in a scenario file. Otherwise
    ``FieldError`` is raised. If the option has several numbers, the error counts them from 1, as
    the command's tables count the flows: ``--alpha, value 3``.
    """
    import numpy as np

    from vegasmodel.scenario import Flow

    parts = text.split(",")
    if len(parts) > 100_000:
        raise FieldError(option, len(parts), "at most 100000 values", wrong=NUMBER_OF_VALUES)
    rule = checked.of(Flow, field)
    read = getattr(rule, "plain", rule).read  # a command line has only plain values
    several = len(parts) > 1
    places = [f"{option}, value {i}" if several else option for i in range(1, len(parts) + 1)]
    return np.array([read(part, place, 1.0) for part, place in zip(parts, places, strict=True)])


def spread(array: Any, n: int, option: str) -> Any:
    """An array with one value for each of ``n`` flows; a single value is repeated.

    If there are neither 1 nor ``n`` values, ``FieldError`` is raised. The error names the
    command-line option ``option``.
    """
    import numpy as np

    if array.size not in (1, n):
        allowed = f"one value, or one for each of the {n} flows" if n > 1 else "one value"
        raise FieldError(option, array.size, allowed, wrong=NUMBER_OF_VALUES)
    return np.broadcast_to(array, (n,)).copy()


def _failure(status: int) -> str | None:
    """Why a solver has no solution; ``None`` if it has one."""
    return None if status == Status.DONE else Status(status).reason


def _x_and_rates(x: Any, rates: Any) -> dict[str, Any]:
    """The over-estimates ``x`` (s) and the rates (pkt/s) for the JSON document."""
    return {"over_estimates_s": all_finite(x), "rates_pps": all_finite(rates)}
