"""Computes how TCP Vegas and TCP Reno share a drop-tail link, by the mini-cycle model.

This is the model of De Vendictis and Baiocchi, "Modeling a mixed TCP Vegas and TCP Reno scenario"
(2002). The model follows the windows through a cycle, from one overflow of the buffer to the next.
A mini-cycle is one RTT. At the overflow Reno halves its window. Then Reno adds one packet per
mini-cycle. Vegas multiplies its window by ``decrease`` at the overflow. Then the window grows like
Reno's, until Vegas's backlog reaches its lower threshold. Reno goes on filling the queue, so
Vegas's backlog rises. When the backlog reaches the upper threshold, Vegas's window begins to
shrink. (With the argument ``losers`` of `solve`, the user may choose that Vegas does not lose a
packet at every overflow.)

The function `throughput` has two forms. ``form="derived"``, the default, uses equations that we
derived anew from the paper's premises (`minicycle_derived`). They also cover several Vegas sources,
several Reno sources, and alpha < beta. ``form="printed"`` uses the formulas as the paper prints
them (`minicycle_printed`).

``buffer`` counts the packets that wait, without the packet in transmission. The drop-tail limit L
of ns-2 includes the packet in transmission. So a run of ns-2 with the limit L corresponds to
``buffer = L - 1``.

If the buffer is larger than a size B_th, which the function `threshold` computes, Vegas stops
growing before the overflow. In ns-2 Vegas reacts to the queue about two mini-cycles late, so it
stops in time only if the buffer is a few packets larger than B_th. Just above B_th the model can be
far off, because one packet more or less in the queue changes Vegas's window by many packets.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from vegasmodel.equilibrium import minicycle_derived as derived
from vegasmodel.equilibrium import minicycle_printed as printed
from vegasmodel.equilibrium import minicycle_start
from vegasmodel.equilibrium._checks import VARIANTS, broadcast, numbers, ordered, positive, word
from vegasmodel.equilibrium._jax_arrays import same_kind
from vegasmodel.equilibrium.minicycle_cycle import Cycle, cycle_of
from vegasmodel.equilibrium.minicycle_hypotheses import Setting, with_details
from vegasmodel.equilibrium.minicycle_start import INITIAL
from vegasmodel.fields import kinds
from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.stacks import Variant, dead_zone, find

__all__ = [
    "INITIAL",
    "PHASES",
    "Cycle",
    "first_window",
    "forgotten_after",
    "hypotheses",
    "solve",
    "threshold",
    "throughput",
    "window_alone",
]

Form = Literal["derived", "printed"]
Losers = Literal["both", "reno", "growing"]

PHASES = derived.PHASES  # the names of the phases of a cycle, in their order
RESIDUAL = 1e-9  # greatest ``residual`` of a cycle that counts as solved


@same_kind
@kinds.checked
@broadcast
def throughput(
    capacity: npt.ArrayLike,
    rtt: npt.ArrayLike,
    buffer: npt.ArrayLike,
    alpha: npt.ArrayLike = 3.0,
    decrease: npt.ArrayLike = 0.75,
    *,
    beta: npt.ArrayLike | None = None,
    form: Form = "derived",
    losers: Losers = "both",
    variant: Variant = "paper",
    response: npt.ArrayLike = 0.0,
    n_vegas: npt.ArrayLike = 1,
    n_reno: npt.ArrayLike = 1,
    start: npt.ArrayLike | None = None,
) -> tuple[Floats, Floats]:
    """Throughputs of one Vegas and of one Reno flow, pkt/s: ``(vegas, reno)``.

    They are averages over a cycle from one loss to the next. ``form`` chooses between the equations
    that we derived ("derived") and those that De Vendictis and Baiocchi print ("printed").

    The flows share a link of ``capacity`` pkt/s with a buffer of ``buffer`` packets. Their RTT in
    the empty network is ``rtt``, in s. Vegas's thresholds ``alpha`` and ``beta`` (default: alpha)
    are in packets, and a loss multiplies its window by ``decrease``, in (0, 1]. There are
    ``n_vegas`` Vegas and ``n_reno`` Reno flows. Arrays broadcast. `solve` explains the choices of
    four more arguments:

    - ``losers``: which flows lose packets at an overflow, "both", "reno" or "growing".
    - ``variant``: the TCP implementation whose Vegas is meant, "paper", "ns2" or "linux".
    - ``response``: the number of round trips by which Vegas's window lags behind the queue.
    - ``start``: a Vegas flow's window after the first overflow, packets.

    The result is NaN if no cycle is found, for example if the buffer is infinite. With
    ``form="printed"`` it is also NaN if the buffer exceeds mu T (``capacity`` times ``rtt``).

    ``form="printed"`` ignores ``response`` and ``start``. It raises ``FieldError`` if ``beta`` is
    given, and unless ``losers``, ``variant``, ``n_vegas`` and ``n_reno`` have their defaults.
    Arguments out of range raise ``FieldError``.
    """
    word("form", form, ("derived", "printed"))
    if form == "printed":
        for name, value, allowed, is_default in (
            ("losers", losers, "'both'", losers == "both"),
            ("variant", variant, "'paper'", find(variant).real_numbers),
            ("beta", beta, "None", beta is None),
            ("n_vegas", n_vegas, "1", np.all(np.asarray(n_vegas) == 1)),
            ("n_reno", n_reno, "1", np.all(np.asarray(n_reno) == 1)),
        ):
            if not is_default:
                raise FieldError(name, value, f"with form='printed' only {allowed}")
        C, T, B, A, _, cut, *_ = _inputs(
            capacity, rtt, buffer=buffer, alpha=alpha, beta=None, decrease=decrease
        )
        return printed.throughput(C, T, B, A, cut)
    c = solve(
        capacity, rtt, buffer, alpha, decrease,
        beta=beta, losers=losers, variant=variant, response=response,
        n_vegas=n_vegas, n_reno=n_reno, start=start,
    )  # fmt: skip
    return c.vegas[()], c.reno[()]  # numbers give numbers


@same_kind
@kinds.checked
@broadcast
@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # absurd arguments give NaN
def solve(
    capacity: npt.ArrayLike,
    rtt: npt.ArrayLike,
    buffer: npt.ArrayLike,
    alpha: npt.ArrayLike = 3.0,
    decrease: npt.ArrayLike = 0.75,
    *,
    beta: npt.ArrayLike | None = None,
    losers: Losers = "both",
    variant: Variant = "paper",
    response: npt.ArrayLike = 0.0,
    n_vegas: npt.ArrayLike = 1,
    n_reno: npt.ArrayLike = 1,
    start: npt.ArrayLike | None = None,
) -> Cycle:
    """The whole cycle from one loss to the next, by the equations of `minicycle_derived`.

    We derived these equations from the hypotheses of De Vendictis and Baiocchi (2002); some of the
    printed ones are wrong. The function ``throughput`` uses them if its argument ``form`` is
    "derived".

    ``capacity`` is in pkt/s and ``rtt``, the paper's T, in s. ``buffer``, ``alpha`` and ``beta``
    (default: alpha) are in packets. A loss multiplies Vegas's window by ``decrease``, the paper's
    lambda, in (0, 1]. ``n_vegas`` and ``n_reno`` are the numbers of sources. All sources have the
    same RTT, and all sources of a law have the same window.

    ``losers`` says who loses packets when the buffer overflows.

    - "both": every source loses a packet. This is hypothesis 5 of De Vendictis and Baiocchi.
    - "reno": only Reno loses. Vegas's window is never cut, so ``decrease`` has no effect.
    - "growing": every source whose window still grows loses a packet. With a small buffer these are
      Vegas and Reno, with a large one Reno alone. At the buffer size that separates the two cases,
      the throughputs change abruptly. For some buffers near this size both cycles are possible; the
      result is then the one in which Vegas and Reno lose.

    ``variant`` decides at which backlog Vegas grows, holds or shrinks its window.

    - "paper": it grows below alpha, holds between alpha and beta, and shrinks above beta.
    - "ns2": the two limits are alpha - 1/2 and beta + 1/2, because ns-2 rounds the backlog.
    - "linux": the two limits are alpha and beta + 1, because Linux truncates the backlog. In
      Linux the backlog is W (RTT - baseRTT)/baseRTT, where W is the window. With "paper" and "ns2"
      it is W (RTT - baseRTT)/RTT.

    With "ns2" and "linux" Vegas never shrinks below two packets.

    ``response`` is the number of mini-cycles (round trips) by which Vegas's window lags behind the
    queue. It is 0 in the paper and about 2 in ns-2 and Linux. It decides only whether Vegas still
    grows when the loss comes.

    ``start`` is the window of one Vegas source after the first overflow, in packets (default:
    `first_window`). It matters only if Vegas's window is never cut and stops growing. Then there is
    a range of steady windows, and the result is the cycle whose window is nearest to ``start``. The
    fields ``vegas_range`` and ``reno_range`` give the throughputs over the whole range.

    The result's field ``regime`` tells where Vegas's backlog is at the loss.

    - "loss-limited": below the lower limit, so Vegas still grows (appendix A of the paper).
    - "hold": between the two limits.
    - "equilibrium": at the upper limit.
    - "lagging": above the upper limit. There are more Reno than Vegas sources, and they fill the
      queue faster than Vegas can shrink.
    - "least-window": above the upper limit, but Vegas's window cannot shrink further.

    If the buffer is infinite or no cycle is found, the ``status`` is UNDEFINED. The numbers are
    then NaN, and ``regime`` and ``queue_empties`` mean nothing. Raises ``FieldError`` for arguments
    out of range.
    """
    C, T, B, alpha, beta, cut, n_V, n_R, lag = _inputs(
        capacity, rtt, buffer, alpha, beta, decrease, n_vegas, n_reno, response
    )
    word("losers", losers, ("both", "reno", "growing"))
    word("variant", variant, VARIANTS)
    finite = np.isfinite(B)
    M, B = C * T, np.where(finite, B, 1.0)  # 1 stands in for infinity; the results become NaN
    lower, upper = minicycle_start.edges(alpha, beta, variant, n_V, M)
    uncut = np.ones_like(C)  # factor of a window that loses nothing
    cut = uncut if losers == "reno" else cut
    grows = derived.still_grows(M, B, cut, n_V, n_R, lower, lag)
    if losers == "growing":
        cut = np.where(grows, cut, uncut)
    floor = n_V * minicycle_start.LEAST_WINDOW[variant]
    path = derived.Path(M, B, lower, upper, cut, n_V, n_R, floor, grows)
    # the least and the greatest sum of the Vegas windows at the loss
    low, high = derived.final_windows(path)
    has_range = finite & (low < high)  # there is a range of steady cycles
    window = low
    if np.any(has_range):
        if start is None:
            start = first_window(
                capacity, rtt, np.where(finite, buffer, 1.0), alpha, decrease, beta=beta,
                variant=variant, n_vegas=n_vegas, n_reno=n_reno,
            )  # fmt: skip
        window = np.clip(n_V * positive("start", start), low, high)
    sums = derived.cycle(path, window)
    sums_at_ends = (
        [derived.cycle(path, V) for V in (low, high)] if np.any(has_range) else [sums, sums]
    )
    solved = finite
    for each in (sums, *sums_at_ends):
        solved = solved & (each.residual <= RESIDUAL)
    loses = grows if losers == "growing" else np.full_like(grows, losers == "both")
    return cycle_of(path, sums, sums_at_ends, C, solved, loses)


def _inputs(
    capacity: npt.ArrayLike,
    rtt: npt.ArrayLike,
    buffer: npt.ArrayLike,
    alpha: npt.ArrayLike,
    beta: npt.ArrayLike | None,
    decrease: npt.ArrayLike,
    n_vegas: npt.ArrayLike = 1,
    n_reno: npt.ArrayLike = 1,
    response: npt.ArrayLike = 0.0,
) -> list[Floats]:
    """Check arguments of ``solve``; returns them in the order given, as arrays of one shape."""
    beta = alpha if beta is None else beta
    arrays = np.broadcast_arrays(
        positive("capacity", capacity),
        positive("rtt", rtt),
        numbers("buffer", buffer, infinite=True),
        positive("alpha", alpha),
        positive("beta", beta),
        numbers("decrease", decrease, high=1.0, above=True),
        numbers("n_vegas", n_vegas, 1.0),
        numbers("n_reno", n_reno, 1.0),
        numbers("response", response),
    )
    ordered(*arrays[3:5])
    return [np.array(x) for x in arrays]


@same_kind
@broadcast
def first_window(
    capacity: npt.ArrayLike,
    rtt: npt.ArrayLike,
    buffer: npt.ArrayLike,
    alpha: npt.ArrayLike = 3.0,
    decrease: npt.ArrayLike = 0.75,
    *,
    beta: npt.ArrayLike | None = None,
    gamma: npt.ArrayLike = 1.0,
    variant: Variant = "paper",
    initial: npt.ArrayLike | None = None,
    n_vegas: npt.ArrayLike = 1,
    n_reno: npt.ArrayLike = 1,
) -> Floats:
    """Window of one Vegas source after the first overflow, packets, if all sources start together.

    At the start the network is empty, and every source is in slow start with ``initial`` packets.
    By default this is 1 packet, and 2 with the variants "ns2" and "linux". Vegas leaves slow start
    when its backlog exceeds ``gamma`` packets (see `minicycle_start`).

    The link has ``capacity`` pkt/s and a finite ``buffer``, in packets. ``rtt`` is the RTT in the
    empty network, in s. Vegas's thresholds ``alpha`` and ``beta`` (default: alpha) are in packets,
    and a loss multiplies its window by ``decrease``. There are ``n_vegas`` Vegas and ``n_reno``
    Reno sources. Arguments broadcast, and raise ``FieldError`` if they are out of range.
    """
    C, T, B, alpha, beta, cut, n_V, n_R, _ = _inputs(
        capacity, rtt, numbers("buffer", buffer), alpha, beta, decrease, n_vegas, n_reno
    )
    word("variant", variant, VARIANTS)
    first = minicycle_start.INITIAL[variant] if initial is None else initial
    gammas, firsts, _ = np.broadcast_arrays(positive("gamma", gamma), positive("initial", first), C)
    return minicycle_start.window(C * T, B, alpha, beta, cut, n_V, n_R, gammas, firsts, variant)


@same_kind
@broadcast
def window_alone(
    capacity: npt.ArrayLike,
    rtt: npt.ArrayLike,
    alpha: npt.ArrayLike,
    *,
    variant: Variant = "paper",
    n_vegas: npt.ArrayLike = 1,
) -> Floats:
    """Steady window, packets, of one of ``n_vegas`` Vegas sources that have a link to themselves.

    The windows add up to V = mu T + q, where mu T is the bandwidth-delay product and q the queue.
    Each source's backlog is at its lower limit: alpha, or alpha - 1/2 in ns-2. Let A be this limit
    times ``n_vegas``.

    With the variants "paper" and "ns2" the computed backlogs add up to the queue, so q = A. Linux
    divides by baseRTT when it computes the backlog, so there V q/(mu T) = A. ``capacity`` is in
    pkt/s, ``rtt`` (the RTT in the empty network) in s, and ``alpha`` in packets. Arguments
    broadcast, and raise ``FieldError`` if they are out of range.
    """
    word("variant", variant, VARIANTS)
    M = positive("capacity", capacity) * positive("rtt", rtt)
    low, _ = dead_zone(positive("alpha", alpha), alpha, variant)
    n = numbers("n_vegas", n_vegas, 1.0)
    A, M = np.broadcast_arrays(n * low, M)
    q = derived.positive_root(np.ones_like(M), M, A * M) if find(variant).backlog_over_base else A
    return np.asarray((M + q) / n)


@same_kind
@broadcast
def threshold(
    capacity: npt.ArrayLike, rtt: npt.ArrayLike, alpha: npt.ArrayLike, decrease: npt.ArrayLike
) -> Floats:
    """The buffer B_th in packets: in a smaller buffer Vegas still grows at every overflow.

    B_th holds for one Vegas and one Reno flow in the variant "paper". It is the positive root B of

        (mu T + B + 1)/(3 - 2 lambda) = alpha (mu T + B)/B.

    mu T is the bandwidth-delay product, ``capacity`` times ``rtt``. lambda is ``decrease``, the
    factor of Vegas's window at a loss. The left side is Vegas's window at the overflow if it grows
    until then (appendix A of De Vendictis and Baiocchi). The right side is its window at the
    backlog alpha with a full buffer. The paper's approximation of B_th is alpha (3 - 2 lambda).
    Arguments broadcast, and raise ``FieldError`` if they are out of range.
    """
    C, T, _, A, _, cut, *_ = _inputs(
        capacity, rtt, buffer=0.0, alpha=alpha, beta=None, decrease=decrease
    )
    # with k = alpha (3 - 2 lambda): B^2 + (mu T + 1 - k) B - k mu T = 0
    k = A * (3 - 2 * cut)
    return derived.positive_root(np.ones_like(k), C * T + 1 - k, k * C * T)


@kinds.checked
def forgotten_after(
    decrease: float, n_vegas: int = 1, n_reno: int = 1, part: float = 0.01
) -> float:
    """Number of cycles in which a change of the first window shrinks to the fraction ``part``.

    The cycles go from one loss to the next. Assume that all windows grow until each loss, and that
    all sources lose a packet. Let V be the sum of the Vegas windows at a loss, and V' the sum at
    the next loss. With n_V Vegas and n_R Reno sources,

        V' = lambda V + n_V (M + B + 1 - lambda V - (M + B + 1 - V)/2)/(n_V + n_R).

    M is the bandwidth-delay product, B the buffer, and lambda (``decrease``) the factor of Vegas's
    window at a loss; n_V is ``n_vegas``, and n_R is ``n_reno``. By this equation, each cycle
    multiplies a change of V by (n_R lambda + n_V/2)/(n_V + n_R). Arguments out of range raise
    ``FieldError``.
    """
    cut = float(numbers("decrease", decrease, high=1.0, above=True))
    n_V, n_R = float(numbers("n_vegas", n_vegas, 1.0)), float(numbers("n_reno", n_reno, 1.0))
    fraction = float(numbers("part", part, high=1.0, above=True, below=True))
    return float(np.log(fraction) / np.log((n_R * cut + n_V / 2) / (n_V + n_R)))


@kinds.checked
def hypotheses(
    capacity: float,
    rtt: float,
    buffer: float,
    alpha: float = 3.0,
    decrease: float = 0.75,
    *,
    max_window: float = np.inf,
    beta: float | None = None,
    losers: Losers = "both",
    variant: Variant = "paper",
    response: float = 0.0,
    n_vegas: int = 1,
    n_reno: int = 1,
    start: float | None = None,
) -> tuple[tuple[str, bool, str], ...]:
    """Which hypotheses of De Vendictis and Baiocchi hold, each as (name, holds, detail).

    The paper's hypotheses 1 to 5 are:

    - "receiver-window" (1): The receiver limits no window.
    - "large-bandwidth-delay" (2): The bandwidth-delay product mu T exceeds the buffer B.
    - "fast-retransmit" (3): A loss is repaired without a timeout.
    - "empty-buffer-after-loss" (4): The queue is empty after a loss.
    - "synchronised-losses" (5): At an overflow all flows lose a packet. It does not hold if Vegas
      no longer grows at the overflow. It is in the result only if ``losers`` is "both", because the
      other choices do not assume it.

    The paper also assumes that alpha equals beta ("single-threshold"). The form "derived" of the
    model needs neither this nor hypotheses 2 and 4.

    We add the hypothesis "one-cycle": there is no second steady cycle, in which Vegas loses no
    packet. A second cycle is possible only if in the first one Vegas grows and loses packets at
    every overflow. Suppose that one of these overflows does not cut Vegas's window. The window
    grows on, and the backlog may reach alpha before the next overflow. From then on Vegas loses no
    packet. The backlog can reach alpha in time only if alpha is small enough. The test is this: let
    the queue be B + 1 packets, and each Vegas flow's backlog alpha. Let V be the sum of the Vegas
    windows then. At an overflow all windows add up to mu T + B + 1. So a second cycle is possible,
    and "one-cycle" does not hold, if V is less than this.

    All hypotheses are tested for one set of arguments. ``max_window`` is the receiver's window, in
    packets. ``capacity`` is in pkt/s and ``rtt`` in s; ``buffer``, ``alpha`` and ``beta`` (default:
    alpha) are in packets. A loss multiplies Vegas's window by ``decrease``. There are ``n_vegas``
    Vegas and ``n_reno`` Reno sources. `solve` explains ``losers``, ``variant``, ``response`` and
    ``start``. Arguments out of range raise ``FieldError``.
    """
    c = solve(
        capacity, rtt, buffer, alpha, decrease,
        beta=beta, losers=losers, variant=variant, response=response,
        n_vegas=n_vegas, n_reno=n_reno, start=start,
    )  # fmt: skip
    numbers("max_window", max_window, above=True, infinite=True)
    C, T, B, alphas, betas, _, n_V, n_R, _ = _inputs(
        capacity, rtt, buffer, alpha, beta, decrease, n_vegas, n_reno
    )
    return with_details(
        c, Setting(C * T, B, alphas, betas, n_V, n_R, variant, max_window, losers == "both")
    )
