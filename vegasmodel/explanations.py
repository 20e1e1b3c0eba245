"""Explains each model: its equations, its assumptions, its source and its accuracy.

``explain`` also explains the names that answers and tables show (``meanings``).

Each assumption has a name, such as ``fifo-queue``. A prediction lists the names of its model's
assumptions, and says for each whether the scenario meets it, if that is known.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from vegasmodel.fields.rules import nearest
from vegasmodel.fields.units import FieldError
from vegasmodel.meanings import ASSUMPTIONS, COLUMNS

__all__ = ["EXPLANATIONS", "Explanation", "explain", "models_with"]

_COMMON = {
    "fifo-queue": "one first-in-first-out queue, so all flows see one queueing delay",
    "long-lived-flows": "every flow has data for the whole time that counts",
    "all-flows-present": "every flow starts before the warm-up ends and none stops early",
    "fixed-starts": "start times are not random, or no flow measures its baseRTT",
    "no-delay-noise": "propagation delays are constant",
    "window-not-limited": "the receiver's window never holds a flow back",
    "one-ack-a-packet": "every packet is acknowledged by itself",
    "bottleneck-is-the-link": "access links are at least twice as fast as the bottleneck",
    "no-forced-drops": "no packet is dropped on purpose",
    "no-random-loss": "packets are lost at a full buffer only",
}
_ALONE = {
    "infinite-buffer": "the buffer has room for all packets that the flows keep queued",
    "single-threshold": "one backlog at which Vegas holds; else the middle of a range",
}
_SETTLES = {"settles-in-time": "windows reach the steady state within the warm-up"}
_WHOLE = {"whole-thresholds": "alpha and beta are whole numbers where backlogs are"}
_BURSTS = {"buffer-holds-bursts": "a buffer of 12 packets or more: bursts do not overflow it"}
_RECOVERY = {"recovery-as-taken": "a loss costs what the model says, whichever law recovers"}
_OF_LAWS = {
    "whole-laws": "the model has every mechanism of the flows' laws",
    "own-law-grows": "the window of a user-defined law grows beyond one packet",
}
_PAPER_EQUATION = (
    "Vegas computes its backlog as W (RTT - baseRTT)/RTT, as in the papers and ns-2; Linux "
    "divides by baseRTT"
)
_CLOSED = "python -m paper_checks.models compares it with ns-2 on the papers' own scenarios"


def _without(*names: str) -> dict[str, str]:
    return {name: said for name, said in _COMMON.items() if name not in names}


@dataclass(frozen=True)
class Explanation:
    """What the command ``explain`` prints about one model.

    ``hypotheses`` maps the name of each assumption to its meaning.  ``accuracy`` is the measured
    error, or names the command that measures it.
    """

    title: str
    equations: tuple[str, ...]
    hypotheses: dict[str, str]
    source: str
    accuracy: str

    def to_json(self) -> dict[str, Any]:
        """The explanation as plain Python types, for JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        """The explanation as text of several lines."""
        lines = [
            self.title,
            "",
            *(f"  {equation}" for equation in self.equations),
            "",
            "Hypotheses, by the names that an answer gives them:",
            *(f"  {name}: {said}." for name, said in self.hypotheses.items()),
            "",
            f"Source: {self.source}.",
            f"Accuracy: {self.accuracy}.",
        ]
        return "\n".join(lines)


EXPLANATIONS = MappingProxyType(
    {
        "equilibrium": Explanation(
            "Vegas flows alone on one link, in their steady state",
            (
                "baseRTT_i = rtt_i + x_i                          (2)",
                "sum_i alpha_i / (Delta - x_i) = c                (6)",
                "r_i = alpha_i / (Delta - x_i)                    (5)",
                "Delta: queueing delay, x_i: over-estimate, c: capacity, r_i: rate",
            ),
            _ALONE | _COMMON | _SETTLES,
            "boutremans 3.1, equations (2) to (6)",
            _CLOSED,
        ),
        "bands": Explanation(
            "all steady states of Vegas where alpha < beta: a set, each flow with a range",
            (
                "alpha_i / (Delta - x_i) <= r_i <= beta_i / (Delta - x_i)    (11)",
                "sum_i r_i = c",
            ),
            {"infinite-buffer": _ALONE["infinite-buffer"]} | _COMMON | _SETTLES,
            "boutremans 4.1, equations (10) and (11)",
            _CLOSED,
        ),
        "arrivals": Explanation(
            "Vegas flows that join one after the other and take the queue for propagation",
            (
                "x_i = Delta_{i-1}: the queueing delay that flow i finds",
                "Delta_i solves sum_{k <= i} alpha_k / (Delta_i - x_k) = c   (6)",
            ),
            {
                "one-arrival-at-a-time": "no two flows start at the same time",
                "quasi-static": "earlier flows can shrink their windows as fast as a new one grows",
            }
            | {"infinite-buffer": _ALONE["infinite-buffer"]}
            | _COMMON
            | _SETTLES,
            "boutremans 3.1.2, after Bonald 1998; solved exactly",
            _CLOSED,
        ),
        "arrivals-bonald": Explanation(
            "Bonald's closed form of the same, as it is printed",
            (
                "x_i = (alpha / c) (i - 1) S_{i-1},  S_i = 1 + 1/2 + ... + 1/i",
                "r_i = c / (n S_n - (i - 1) S_{i-1}); they need not add up to c",
            ),
            {
                "one-arrival-at-a-time": "no two flows start at the same time",
                "base-rtt-measured": "each Vegas flow measures its baseRTT; it is not given",
                "paper-equation": _PAPER_EQUATION,
                "rates-fill-the-link": "the rates by this formula add up to the capacity; "
                "they seldom do",
            }
            | _ALONE
            | _COMMON,
            "boutremans 3.1.2, after Bonald 1998",
            _CLOSED,
        ),
        "minicycle": Explanation(
            "one Vegas beside one Reno flow at a drop-tail buffer",
            (
                "both go through one cycle from loss to loss, in mini-cycles of one window each",
                "Reno: window halved at the loss, then one packet more each mini-cycle",
                "Vegas: window times `decrease` at the loss, then one more each mini-cycle",
                "until its backlog reaches its threshold, then it gives way",
                "the loss comes when c T + buffer packets are in flight",
            ),
            {
                "receiver-window": "no receiver's window is reached",
                "large-bandwidth-delay": "the bandwidth-delay product exceeds the buffer",
                "fast-retransmit": "losses are recovered without a timeout",
                "empty-buffer-after-loss": "the buffer runs empty after a loss",
                "synchronised-losses": "both flows lose when the buffer overflows (paper)",
                "one-cycle": "there is no second steady cycle, in which Vegas loses nothing",
                "single-threshold": "alpha = beta, as in the paper; the equations do not need it",
                "one-source-of-each-kind": "one Vegas and one loss-based flow",
                "base-rtt-is-the-rtt": "Vegas knows its true base RTT",
            }
            | _BURSTS
            | _RECOVERY
            | _SETTLES
            | _COMMON,
            "devendictis 2, derived anew (docs/errata.md)",
            _CLOSED,
        ),
        "red": Explanation(
            "Vegas and loss-based flows under RED: the fixed point of the mean queue",
            (
                "sum_i r_i(q / c, p(q)) = c",
                "q: mean queue, p(q): RED's probability, r_i: each law's rate; at most one root",
            ),
            {
                "steady-queue": "RED's loss does not jump at the queue that the model finds",
                "stable-queue": "the loop about the fixed point is stable under feedback delay",
                "single-threshold": "one backlog at which Vegas holds; else the middle of a range",
                "paper-equation": _PAPER_EQUATION,
            }
            | _RECOVERY
            | _without("fifo-queue", "window-not-limited", "one-ack-a-packet"),
            "mean-field fixed point; uniqueness proved in vegasmodel/equilibrium/red.py",
            "mean errors beside ns-2: if RED drops packets, 6 % of the mean queue and 9 % of the "
            "laws' rates; if RED marks them, 19 % and 26 % (python -m benchmarks.accuracy_red)",
        ),
        "random-loss": Explanation(
            "flows that share a link which loses packets at random",
            (
                "r_i = the law's rate at loss probability p, RTT_i + q / c (square root, PFTK)",
                "q = 0 where the flows leave the link idle, else sum_i r_i = c",
            ),
            {
                "losses-are-random-only": "the buffer never overflows",
                "mean-field": "the link has one flow; if there are several, each sees only the "
                "mean queue that the others cause",
                "windows-above-three": "a loss brings three duplicate ACKs, so few cost a timeout",
                "paper-equation": _PAPER_EQUATION,
            }
            | _without("window-not-limited", "one-ack-a-packet", "no-random-loss"),
            "Mathis 1997; Padhye, Firoiu, Towsley and Kurose 1998; rounds between losses",
            _CLOSED,
        ),
        "rate-delay": Explanation(
            "Rate-Delay services: two queues behind one link",
            (
                "S_R = c k n_R / (k n_R + n_D)                    (6)",
                "S_D = c n_D / (k n_R + n_D)                      (7)",
                "each flow gets an equal part of its class's rate",
            ),
            {
                "proper-marking": "loss-based flows are in class R, Vegas in class D",
                "delay-buffer-large-enough": "the D queue holds what its flows keep queued",
            }
            | _without("fifo-queue"),
            "podlesny (5) to (7)",
            _CLOSED,
        ),
        "network": Explanation(
            "Vegas flows over several links, as the maximum of a sum of utilities",
            (
                "maximise sum_i alpha_i ln r_i + x_i r_i   subject to A r <= c",
                "q_i = alpha_i / r_i + x_i: the queueing delays are the links' prices",
            ),
            {"no-queueing-of-acks": "ACKs meet no queue"} | _ALONE | _COMMON | _SETTLES,
            "Low, Peterson and Wang 2002, with over-estimates; solved by clarabel",
            "every answer carries a certificate of its optimality",
        ),
        "fluid": Explanation(
            "differential equations of windows over one self-clocked link",
            (
                "dW_i/dt = drift of the law (vegasmodel/laws), once a round trip in ns2, linux",
                "sum_i W_i / (rtt_i + Delta) = c while packets queue; Delta = 0 before",
            ),
            {
                "losses-end-growth": "no loss-based window grows for ever for lack of losses",
                "defaults-of-the-papers": "ns-2's defaults are those of the papers' "
                "years, 1999 to 2001",
                "insensitive-to-starts": "the answer does not depend on when flows start and "
                "which packets are lost",
                "enough-runs": "more runs would not move the mean",
                "windows-fill-the-link": "the link seldom idles, so trains of packets hardly meet",
                "fast-retransmit": "random losses seldom lead to a timeout",
                "short-waits": "a sender waits for a tenth of its RTT at most before it sends",
                "first-windows-fit": "the link and its buffer hold the first windows of all flows",
                "base-rtt-above-propagation": "no timeout leaves Vegas a baseRTT that is too small",
                "whole-stack": "the model has every mechanism of the flows' TCP implementation",
            }
            | _OF_LAWS
            | _WHOLE
            | _BURSTS
            | _RECOVERY
            | _SETTLES
            | {k: _COMMON[k] for k in ("long-lived-flows", "no-delay-noise")}
            | {k: _COMMON[k] for k in ("bottleneck-is-the-link", "no-forced-drops")},
            "docs/architecture.md, Two simulators; the laws of vegasmodel/laws",
            "python -m benchmarks.accuracy --model fluid compares it with ns-2",
        ),
        "rounds": Explanation(
            "trains of packets through the queues on each flow's way, event by event",
            (
                "a window's decisions once a round trip, on whole packets; no closed equation",
                "queues serve c packets a second and lose what finds them full",
            ),
            {
                "bottleneck-is-the-link": _COMMON["bottleneck-is-the-link"],
                "no-forced-drops": _COMMON["no-forced-drops"],
                "packets-one-by-one": "near losses each packet is simulated by itself",
                "every-ack-arrives": "no ACK is lost",
                "losses-end-growth": "no loss-based window grows for ever for lack of losses",
                "insensitive-to-starts": "the answer does not hang on how the starts fall",
                "enough-runs": "more runs would not move the mean",
                "phase-effects": "senders that wait at random and exact ones get the same",
                "base-rtt-above-propagation": "no timeout leaves Vegas a baseRTT that is too small",
            }
            | _OF_LAWS
            | _WHOLE
            | _SETTLES,
            "docs/architecture.md, Two simulators; docs/ns2.md",
            "docs/accuracy.md; python -m benchmarks.accuracy measures it",
        ),
    }
)
"""The explanation of every model, by the model's name."""


def explain(name: str) -> str:
    """What a name means, as text: that of a model, of an assumption or of a column of a table.

    For example, ``explain("phase-effects")`` says when this assumption holds, and which models make
    it.  A word of such a name is enough: ``explain("nrmse")`` explains all columns with this word.

    Raises ``FieldError``, which gives the nearest name, if there is no such name.
    """
    if not isinstance(name, str):
        raise FieldError("name", name, "a name, as text")
    if name in EXPLANATIONS:
        return f"{name}: {EXPLANATIONS[name]}"
    known = (*ASSUMPTIONS, *COLUMNS)
    word = name.lower()
    alike = [each for each in known if word in (each.lower(), *each.lower().split())]
    found = [name] if name in known else alike
    if not found:
        near = nearest(name, [*EXPLANATIONS, *known])
        allowed = f"one of {', '.join(EXPLANATIONS)}, or an assumption's name{near}"
        raise FieldError("name", name, allowed)
    return "\n".join(map(_meaning, found))


def models_with(name: str) -> dict[str, str]:
    """The models that make the assumption ``name``, and what it means for each."""
    return {
        model: known.hypotheses[name]
        for model, known in EXPLANATIONS.items()
        if name in known.hypotheses
    }


def _meaning(name: str) -> str:
    """The meaning of an assumption, with the models that make it, or of a table's column."""
    if name in COLUMNS:
        return f"{name}: {COLUMNS[name]}."
    of = models_with(name)
    made = f"\nA hypothesis of {', '.join(of)}." if of else ""
    return f"{name}: it holds if {ASSUMPTIONS[name]}.{made}"
