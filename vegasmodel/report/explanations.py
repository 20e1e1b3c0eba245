"""Explains each model: its equations, its assumptions, its source and its accuracy.

Each assumption has a name, such as ``fifo-queue``. A prediction lists the names of its model's
assumptions, and says for each whether the scenario meets it, if that is known.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from vegasmodel.report.meanings import ASSUMPTIONS

__all__ = ["EXPLANATIONS", "Explanation"]

_COMMON = (  # assumptions that most closed forms make
    "fifo-queue",
    "short-waits",
    "long-lived-flows",
    "all-flows-present",
    "fixed-starts",
    "no-delay-noise",
    "window-not-limited",
    "one-ack-a-packet",
    "bottleneck-is-the-link",
    "no-queueing-of-acks",
    "no-forced-drops",
    "defaults-of-the-papers",
    "backlogs-of-half-a-packet",
    "no-random-loss",
)
_OF_SIMULATORS = ("settles-in-time", "sends-after-warm-up")
_OF_LAWS = (  # assumptions of the simulators about laws, most of them about the user's own
    "whole-laws",
    "own-law-grows",
    "own-law-repairs",
    "own-law-returns-change",
    "whole-thresholds",
)
_OF_VEGAS = (  # what the symbols in equations of Vegas mean
    "r_i: rate of flow i, x_i: over-estimate of its baseRTT,",
    "Delta: queueing delay, c: capacity",
)
_COMPARED_WITH_NS2 = (
    "python -m paper_checks.models compares it with ns-2 on the papers' own scenarios"
)


def _meanings(*names: str) -> dict[str, str]:
    """The meanings of the assumptions with these names."""
    return {name: ASSUMPTIONS[name] for name in names}


def _without(*names: str) -> tuple[str, ...]:
    """The common assumptions of closed forms, without those of these names."""
    return tuple(name for name in _COMMON if name not in names)


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
            "Assumptions, under the names that predictions use for them:",
            *(f"  {name}: {text}." for name, text in self.hypotheses.items()),
            "",
            f"Source: {self.source}.",
            f"Accuracy: {self.accuracy}.",
        ]
        return "\n".join(lines)


EXPLANATIONS = MappingProxyType(
    {
        "equilibrium": Explanation(
            title="Vegas flows alone on one link, in their steady state",
            equations=(
                "baseRTT_i = rtt_i + x_i                          (2)",
                "sum_i alpha_i / (Delta - x_i) = c                (6)",
                "r_i = alpha_i / (Delta - x_i)                    (5)",
                *_OF_VEGAS,
            ),
            hypotheses=_meanings(
                "infinite-buffer",
                "many-packets-queued",
                "queue-empties-at-start",
                "single-threshold",
                *_COMMON,
                "settles-in-time",
            ),
            source="boutremans 3.1, equations (2) to (6)",
            accuracy=_COMPARED_WITH_NS2,
        ),
        "bands": Explanation(
            title=(
                "Vegas flows alone on one link: each flow's range of rates over all steady states"
            ),
            equations=(
                "alpha_i / (Delta - x_i) <= r_i <= beta_i / (Delta - x_i)    (11)",
                "sum_i r_i = c",
                *_OF_VEGAS,
            ),
            hypotheses=_meanings(
                "infinite-buffer",
                "many-packets-queued",
                "quasi-static",
                "queue-empties-at-start",
                *_COMMON,
                "settles-in-time",
            ),
            source="boutremans 4.1, equations (10) and (11)",
            accuracy=_COMPARED_WITH_NS2,
        ),
        "arrivals": Explanation(
            title="Vegas flows that join a link one after another and find a queue",
            equations=(
                "x_i = Delta_{i-1}: the queueing delay that flow i finds",
                "Delta_i solves sum_{k <= i} b_k / (Delta_i - x_k) = c   (6)",
                "b_k: backlog of flow k, in packets. If alpha = beta, b_k = alpha_k. Otherwise:",
                "  flow i, which has just joined, has b_i = alpha_i;",
                "  an earlier flow keeps its window, so b_k grows with Delta_i, at most to beta_k",
            ),
            hypotheses=_meanings(
                "one-arrival-at-a-time",
                "quasi-static",
                "infinite-buffer",
                "many-packets-queued",
                *_COMMON,
                "settles-in-time",
            ),
            source="boutremans 3.1.2, after Bonald 1998; solved exactly",
            accuracy=_COMPARED_WITH_NS2,
        ),
        "arrivals-bonald": Explanation(
            title="Bonald's closed form for flows that join a link one after another, as printed",
            equations=(
                "x_i = (alpha / c) (i - 1) S_{i-1},  S_i = 1 + 1/2 + ... + 1/i",
                "r_i = c / (n S_n - (i - 1) S_{i-1}); the rates need not add up to c",
                "n: number of flows, alpha: threshold of all flows, c: capacity",
            ),
            hypotheses=_meanings(
                "one-arrival-at-a-time",
                "base-rtt-measured",
                "paper-equation",
                "rates-fill-the-link",
                "infinite-buffer",
                "single-threshold",
                *_COMMON,
                "settles-in-time",
            ),
            source="boutremans 3.1.2, after Bonald 1998",
            accuracy=_COMPARED_WITH_NS2,
        ),
        "minicycle": Explanation(
            title="one Vegas beside one Reno flow at a drop-tail buffer",
            equations=(
                "Both flows repeat a cycle from one loss to the next, in steps of a round",
                "trip (mini-cycles).",
                "Reno halves its window at the loss. Then the window grows by a packet a step.",
                "If Vegas, too, loses a packet, its window is multiplied by `decrease`.",
                "Vegas's window grows as fast as Reno's until its backlog reaches alpha, and",
                "shrinks while its backlog is above beta.",
                "The next loss comes when the windows together exceed c T + buffer packets.",
                "c: capacity, T: RTT without queueing",
            ),
            hypotheses=_meanings(
                "receiver-window",
                "large-bandwidth-delay",
                "fast-retransmit",
                "empty-buffer-after-loss",
                "synchronised-losses",
                "only-growing-windows-lose",
                "one-cycle",
                "single-threshold",
                "one-source-of-each-kind",
                "base-rtt-is-the-rtt",
                "buffer-holds-bursts",
                "recovery-as-taken",
                "settles-in-time",
                *_COMMON,
            ),
            source="devendictis 2, derived anew (docs/errata.md)",
            accuracy=_COMPARED_WITH_NS2,
        ),
        "red": Explanation(
            title="Vegas and loss-based flows at a RED queue, from its mean length",
            equations=(
                "sum_i r_i(q / c, p(q)) = c",
                "q: mean queue, p(q): RED's drop probability, c: capacity,",
                "r_i: rate of flow i at this queueing delay and loss probability",
                "At most one q solves the equation.",
            ),
            hypotheses=_meanings(
                "steady-queue",
                "stable-queue",
                "average-within-thresholds",
                "single-threshold",
                "paper-equation",
                "recovery-as-taken",
                "buffer-holds-bursts",
                *_without("fifo-queue", "window-not-limited", "one-ack-a-packet"),
                "settles-in-time",
            ),
            source="mean-field fixed point; uniqueness proved in vegasmodel/equilibrium/red.py",
            accuracy=(
                "mean errors beside ns-2: if RED drops packets, 6 % of the mean queue and 9 % of "
                "the laws' rates; if RED marks them, 19 % and 26 % (python -m "
                "benchmarks.accuracy_red)"
            ),
        ),
        "random-loss": Explanation(
            title="flows that share a link on which packets are lost at random",
            equations=(
                "sum_i r_i(q / c, p) = c, or q = 0 if the flows leave the link idle",
                "q: mean queue, p: loss probability, c: capacity,",
                "r_i: rate of flow i at this queueing delay and loss probability, by a Markov",
                "chain for its window",
            ),
            hypotheses=_meanings(
                "losses-are-random-only",
                "mean-field",
                "windows-above-three",
                "whole-stack",
                "paper-equation",
                "short-ack-pauses",
                *_without("window-not-limited", "one-ack-a-packet", "no-random-loss"),
                "settles-in-time",
            ),
            source="vegasmodel/equilibrium/loss_rounds.py, a Markov chain from loss to loss",
            accuracy="docs/accuracy.md; python -m benchmarks.accuracy_loss measures it",
        ),
        "rate-delay": Explanation(
            title="the two classes of flows at a link with Rate-Delay services",
            equations=(
                "S_R = c k n_R / (k n_R + n_D)                    (6)",
                "S_D = c n_D / (k n_R + n_D)                      (7)",
                "S_R, S_D: rates of the classes, n_R, n_D: numbers of their flows,",
                "k: rate of a flow of class R over that of a flow of class D, c: capacity",
                "Each flow gets an equal part of its class's rate.",
            ),
            hypotheses=_meanings(
                "proper-marking",
                "delay-buffer-large-enough",
                "windows-fill-the-link",
                "alike-in-class",
                "single-threshold",
                "base-rtt-is-the-rtt",
                *_without("fifo-queue"),
                "settles-in-time",
            ),
            source="podlesny (5) to (7)",
            accuracy=_COMPARED_WITH_NS2,
        ),
        "network": Explanation(
            title="Vegas flows over several links, whose rates maximise a sum of utilities",
            equations=(
                "maximise sum_i alpha_i ln r_i + x_i r_i   subject to A r <= c",
                "r_i: rate of flow i, x_i: over-estimate of its baseRTT,",
                "c: capacities of the links, A: which flow crosses which link",
                "The Lagrange multipliers of the links are their queueing delays. On the path",
                "of flow i they add up to alpha_i / r_i + x_i.",
            ),
            hypotheses=_meanings(
                "infinite-buffer",
                "many-packets-queued",
                "queue-empties-at-start",
                "single-threshold",
                *_COMMON,
                "settles-in-time",
            ),
            source="Low, Peterson and Wang 2002, with over-estimates; solved by clarabel",
            accuracy="every answer carries a certificate of its optimality",
        ),
        "fluid": Explanation(
            title="a simulator that integrates differential equations for windows on one link",
            equations=(
                "dW_i/dt = m_i / (rtt_i + Delta)",
                "sum_i W_i / (rtt_i + Delta) = c, or Delta = 0 if there is no queue",
                "W_i: window of flow i, m_i: its change in a round trip by the flow's law",
                "(vegasmodel/laws), Delta: queueing delay, c: capacity",
                "With the variants ns2 and linux, Vegas decides once per round trip.",
            ),
            hypotheses=_meanings(
                "losses-end-growth",
                "ns2-passes-packets",
                "defaults-of-the-papers",
                "insensitive-to-starts",
                "enough-runs",
                "thresholds-reached",
                "windows-fill-the-link",
                "packets-spread-evenly",
                "narrow-band",
                "many-packets-queued",
                "vegas-acks-undelayed",
                "vegas-acts-in-time",
                "fast-retransmit",
                "short-waits",
                "first-windows-fit",
                "own-law-grows-slowly",
                "own-law-swings-little",
                "nobody-starves",
                "queue-empties-at-start",
                "base-rtt-above-propagation",
                "whole-stack",
                *_OF_LAWS,
                "buffer-holds-bursts",
                "recovery-as-taken",
                *_OF_SIMULATORS,
                "long-lived-flows",
                "no-delay-noise",
                "one-ack-a-packet",
                "bottleneck-is-the-link",
                "no-queueing-of-acks",
                "no-forced-drops",
                "backlogs-of-half-a-packet",
            ),
            source="docs/architecture.md, Two simulators; the laws of vegasmodel/laws",
            accuracy=(
                "docs/accuracy.md; mean errors beside ns-2 in random networks that hardly served "
                "to develop it, with senders that wait (send_jitter): 1.6 % for one Vegas and one "
                "loss-based flow, 5.9 % for 2 to 8 of them mixed, 10.4 % for 2 to 4 loss-based "
                "flows of different RTTs (python -m benchmarks.accuracy --model fluid --fresh "
                "28112671)"
            ),
        ),
        "rounds": Explanation(
            title="a simulator that moves groups of packets through the queues on their paths",
            equations=(
                "There are no equations: what happens at senders, queues and receivers is",
                "simulated event by event. A packet that finds a queue full is lost. Vegas",
                "changes its window once per round trip, a loss-based flow when ACKs arrive.",
            ),
            hypotheses=_meanings(
                "no-forced-drops",
                "ns2-passes-packets",
                "packets-one-by-one",
                "every-ack-arrives",
                "losses-end-growth",
                "insensitive-to-starts",
                "enough-runs",
                "thresholds-reached",
                "phase-effects",
                "base-rtt-above-propagation",
                "given-base-rtt-stays",
                *_OF_LAWS,
                *_OF_SIMULATORS,
            ),
            source="docs/architecture.md, Two simulators; docs/ns2.md",
            accuracy="docs/accuracy.md; python -m benchmarks.accuracy measures it",
        ),
        "delayed": Explanation(
            title="the equations of fluid with feedback delay; only for the command simulate",
            equations=(
                "A_i(t) = max over v <= t of N_i(v) + W_i(v)                            (D3)",
                "W_i dW_i = m_i dN_i                                                    (D4)",
                "A_i: packets sent, N_i: packets whose fate the sender knows, W_i: window,",
                "m_i: change of the window in a round trip, by the law",
            ),
            hypotheses=_meanings(
                "whole-stack",
                "recovery-as-taken",
                "long-lived-flows",
                "no-delay-noise",
                "bottleneck-is-the-link",
                "no-queueing-of-acks",
                "no-forced-drops",
            ),
            source=(
                "docs/architecture.md, Two simulators; vegasmodel/engines/delayed/feedback.py has "
                "all equations"
            ),
            accuracy="docs/architecture.md; python -m benchmarks.accuracy_feedback measures it",
        ),
    }
)
"""The explanation of every model, and of the simulator ``delayed``, by the model's name."""
