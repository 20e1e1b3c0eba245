"""Explains each model: its equations, its assumptions, its source and its accuracy.

The function ``explain`` also explains congestion controls ("laws"), the keys of a scenario file,
and the names in results and printed tables (those in ``meanings.py``).

Each assumption has a name, such as ``fifo-queue``. A prediction lists the names of its model's
assumptions, and says for each whether the scenario meets it, if that is known.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from vegasmodel import laws
from vegasmodel.fields.rules import nearest
from vegasmodel.fields.units import FieldError
from vegasmodel.report.meanings import ASSUMPTIONS, COLUMNS, WORDS
from vegasmodel.scenario import Flow, Link, Run
from vegasmodel.stacks import STACKS
from vegasmodel.support.text_table import Text

__all__ = ["EXPLANATIONS", "Explanation", "explain", "keys", "law_facts", "models_with"]

_COMMON = (
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
    "no-random-loss",
)
_OF_SIMULATORS = ("settles-in-time", "sends-after-warm-up")
_OF_LAWS = ("whole-laws", "own-law-grows", "own-law-repairs", "whole-thresholds")
_REPAIR = {
    "scoreboard": "it knows all missing packets, and retransmits them in one round trip",
    "hole by hole": "it learns of one missing packet per round trip",
    "one hole": "it retransmits one packet; if more are missing, it waits for its timer",
    "slow start": "it begins slow start with a window of one packet",
}
_SLOW_START = {
    "until loss": "Its slow start ends at the first loss.",
    "gamma": "Its slow start ends at the first loss, or when it computes a backlog above `gamma`.",
    "none": "It starts without slow start.",
}
_OF_VEGAS = (
    "r_i: rate of flow i, x_i: over-estimate of its baseRTT,",
    "Delta: queueing delay, c: capacity",
)
_UNIT = re.compile(r",? (pkt/s|pkt|mbit/s|s|%)$")  # behind the name of a column
_CLOSED = "python -m paper_checks.models compares it with ns-2 on the papers' own scenarios"


def _meanings(*names: str) -> dict[str, str]:
    """The meanings of the assumptions with these names."""
    return {name: ASSUMPTIONS[name] for name in names}


def _without(*names: str) -> tuple[str, ...]:
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
            "Hypotheses, under the names that predictions use for them:",
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
                *_OF_VEGAS,
            ),
            _meanings(
                "infinite-buffer",
                "many-packets-queued",
                "queue-empties-at-start",
                "single-threshold",
                *_COMMON,
                "settles-in-time",
            ),
            "boutremans 3.1, equations (2) to (6)",
            _CLOSED,
        ),
        "bands": Explanation(
            "Vegas flows alone on one link: each flow's range of rates over all steady states",
            (
                "alpha_i / (Delta - x_i) <= r_i <= beta_i / (Delta - x_i)    (11)",
                "sum_i r_i = c",
                *_OF_VEGAS,
            ),
            _meanings(
                "infinite-buffer",
                "many-packets-queued",
                "quasi-static",
                "queue-empties-at-start",
                *_COMMON,
                "settles-in-time",
            ),
            "boutremans 4.1, equations (10) and (11)",
            _CLOSED,
        ),
        "arrivals": Explanation(
            "Vegas flows that join a link one after another and find a queue",
            (
                "x_i = Delta_{i-1}: the queueing delay that flow i finds",
                "Delta_i solves sum_{k <= i} b_k / (Delta_i - x_k) = c   (6)",
                "b_k: backlog of flow k, in packets. If alpha = beta, b_k = alpha_k. Otherwise:",
                "  flow i, which has just joined, has b_i = alpha_i;",
                "  an earlier flow keeps its window, so b_k grows with Delta_i, at most to beta_k",
            ),
            _meanings(
                "one-arrival-at-a-time",
                "quasi-static",
                "infinite-buffer",
                "many-packets-queued",
                *_COMMON,
                "settles-in-time",
            ),
            "boutremans 3.1.2, after Bonald 1998; solved exactly",
            _CLOSED,
        ),
        "arrivals-bonald": Explanation(
            "Bonald's closed form for flows that join a link one after another, as printed",
            (
                "x_i = (alpha / c) (i - 1) S_{i-1},  S_i = 1 + 1/2 + ... + 1/i",
                "r_i = c / (n S_n - (i - 1) S_{i-1}); the rates need not add up to c",
                "n: number of flows, alpha: threshold of all flows, c: capacity",
            ),
            _meanings(
                "one-arrival-at-a-time",
                "base-rtt-measured",
                "paper-equation",
                "rates-fill-the-link",
                "infinite-buffer",
                "single-threshold",
                *_COMMON,
                "settles-in-time",
            ),
            "boutremans 3.1.2, after Bonald 1998",
            _CLOSED,
        ),
        "minicycle": Explanation(
            "one Vegas beside one Reno flow at a drop-tail buffer",
            (
                "Both flows repeat a cycle from one loss to the next, in steps of a round",
                "trip (mini-cycles).",
                "Reno halves its window at the loss. Then the window grows by a packet a step.",
                "If Vegas, too, loses a packet, its window is multiplied by `decrease`.",
                "Vegas's window grows as fast as Reno's until its backlog reaches alpha, and",
                "shrinks while its backlog is above beta.",
                "The next loss comes when the windows together exceed c T + buffer packets.",
                "c: capacity, T: RTT without queueing",
            ),
            _meanings(
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
            "devendictis 2, derived anew (docs/errata.md)",
            _CLOSED,
        ),
        "red": Explanation(
            "Vegas and loss-based flows at a RED queue, from its mean length",
            (
                "sum_i r_i(q / c, p(q)) = c",
                "q: mean queue, p(q): RED's drop probability, c: capacity,",
                "r_i: rate of flow i at this queueing delay and loss probability",
                "At most one q solves the equation.",
            ),
            _meanings(
                "steady-queue",
                "stable-queue",
                "single-threshold",
                "paper-equation",
                "recovery-as-taken",
                "buffer-holds-bursts",
                *_without("fifo-queue", "window-not-limited", "one-ack-a-packet"),
                "settles-in-time",
            ),
            "mean-field fixed point; uniqueness proved in vegasmodel/equilibrium/red.py",
            "mean errors beside ns-2: if RED drops packets, 6 % of the mean queue and 9 % of the "
            "laws' rates; if RED marks them, 19 % and 26 % (python -m benchmarks.accuracy_red)",
        ),
        "random-loss": Explanation(
            "flows that share a link on which packets are lost at random",
            (
                "sum_i r_i(q / c, p) = c, or q = 0 if the flows leave the link idle",
                "q: mean queue, p: loss probability, c: capacity,",
                "r_i: rate of flow i at this queueing delay and loss probability, by a Markov",
                "chain for its window",
            ),
            _meanings(
                "losses-are-random-only",
                "mean-field",
                "windows-above-three",
                "whole-stack",
                "paper-equation",
                "short-ack-pauses",
                *_without("window-not-limited", "one-ack-a-packet", "no-random-loss"),
                "settles-in-time",
            ),
            "vegasmodel/equilibrium/loss_rounds.py, a Markov chain from loss to loss",
            "docs/accuracy.md; python -m benchmarks.accuracy_loss measures it",
        ),
        "rate-delay": Explanation(
            "the two classes of flows at a link with Rate-Delay services",
            (
                "S_R = c k n_R / (k n_R + n_D)                    (6)",
                "S_D = c n_D / (k n_R + n_D)                      (7)",
                "S_R, S_D: rates of the classes, n_R, n_D: numbers of their flows,",
                "k: rate of a flow of class R over that of a flow of class D, c: capacity",
                "Each flow gets an equal part of its class's rate.",
            ),
            _meanings(
                "proper-marking",
                "delay-buffer-large-enough",
                "windows-fill-the-link",
                "alike-in-class",
                "single-threshold",
                "base-rtt-is-the-rtt",
                *_without("fifo-queue"),
                "settles-in-time",
            ),
            "podlesny (5) to (7)",
            _CLOSED,
        ),
        "network": Explanation(
            "Vegas flows over several links, whose rates maximise a sum of utilities",
            (
                "maximise sum_i alpha_i ln r_i + x_i r_i   subject to A r <= c",
                "r_i: rate of flow i, x_i: over-estimate of its baseRTT,",
                "c: capacities of the links, A: which flow crosses which link",
                "The Lagrange multipliers of the links are their queueing delays. On the path",
                "of flow i they add up to alpha_i / r_i + x_i.",
            ),
            _meanings(
                "infinite-buffer",
                "many-packets-queued",
                "queue-empties-at-start",
                "single-threshold",
                *_COMMON,
                "settles-in-time",
            ),
            "Low, Peterson and Wang 2002, with over-estimates; solved by clarabel",
            "every answer carries a certificate of its optimality",
        ),
        "fluid": Explanation(
            "a simulator that integrates differential equations for windows on one link",
            (
                "dW_i/dt = m_i / (rtt_i + Delta)",
                "sum_i W_i / (rtt_i + Delta) = c, or Delta = 0 if there is no queue",
                "W_i: window of flow i, m_i: its change in a round trip by the flow's law",
                "(vegasmodel/laws), Delta: queueing delay, c: capacity",
                "With the variants ns2 and linux, Vegas decides once per round trip.",
            ),
            _meanings(
                "losses-end-growth",
                "ns2-passes-packets",
                "defaults-of-the-papers",
                "insensitive-to-starts",
                "enough-runs",
                "windows-fill-the-link",
                "packets-spread-evenly",
                "narrow-band",
                "many-packets-queued",
                "vegas-acks-undelayed",
                "fast-retransmit",
                "short-waits",
                "first-windows-fit",
                "own-law-grows-slowly",
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
            ),
            "docs/architecture.md, Two simulators; the laws of vegasmodel/laws",
            "docs/accuracy.md; mean errors beside ns-2 in random networks that had no part in its "
            "development, with senders that wait (send_jitter): 2.1 % for one Vegas and one "
            "loss-based flow, 5.3 % for 2 to 8 of them mixed, 10.2 % for 2 to 4 loss-based flows "
            "of different RTTs (python -m benchmarks.accuracy --model fluid --fresh 28112671)",
        ),
        "rounds": Explanation(
            "a simulator that moves groups of packets through the queues on their paths",
            (
                "There are no equations: what happens at senders, queues and receivers is",
                "simulated event by event. A packet that finds a queue full is lost. Vegas",
                "changes its window once per round trip, a loss-based flow when ACKs arrive.",
            ),
            _meanings(
                "no-forced-drops",
                "ns2-passes-packets",
                "packets-one-by-one",
                "every-ack-arrives",
                "losses-end-growth",
                "insensitive-to-starts",
                "enough-runs",
                "phase-effects",
                "base-rtt-above-propagation",
                *_OF_LAWS,
                *_OF_SIMULATORS,
            ),
            "docs/architecture.md, Two simulators; docs/ns2.md",
            "docs/accuracy.md; python -m benchmarks.accuracy measures it",
        ),
        "delayed": Explanation(
            "the equations of fluid with feedback delay; only for the command simulate",
            (
                "A_i(t) = max over v <= t of N_i(v) + W_i(v)                            (D3)",
                "W_i dW_i = m_i dN_i                                                    (D4)",
                "A_i: packets sent, N_i: packets whose fate the sender knows, W_i: window,",
                "m_i: change of the window in a round trip, by the law",
            ),
            _meanings(
                "whole-stack",
                "recovery-as-taken",
                "long-lived-flows",
                "no-delay-noise",
                "bottleneck-is-the-link",
                "no-queueing-of-acks",
                "no-forced-drops",
            ),
            "docs/architecture.md, Two simulators; vegasmodel/engines/delayed/feedback.py has all "
            "equations",
            "docs/architecture.md; python -m benchmarks.accuracy_feedback measures it",
        ),
    }
)
"""The explanation of every model, and of the simulator ``delayed``, by the model's name."""


def explain(name: str) -> str:
    """The meaning of a name in a result, a table or a scenario file, as text.

    The name may be that of a model, a law or an assumption, of a column of printed tables, or of a
    key of a scenario file.  For example, ``explain("phase-effects")`` says when this assumption
    holds, and which models make it.  A part of the name of a column or a key is enough:
    ``explain("error")`` explains all columns with this word, and ``explain("jitter")`` the keys
    ``send_jitter`` and ``start_jitter``.  If no column or key has the word, a word of the name of
    an assumption is enough, too: ``explain("phase")`` explains ``phase-effects``.  A unit behind
    the name of a column may stay: ``explain("lost pkt")`` explains ``lost``.

    Raises ``FieldError``, which gives the nearest name, if there is no such name.
    """
    if not isinstance(name, str):
        raise FieldError("name", name, "a name, as text")
    if name in EXPLANATIONS:
        return Text(f"{name}: {EXPLANATIONS[name]}")
    if laws.known(name):
        return Text(_law(name))
    known = (*ASSUMPTIONS, *COLUMNS, *WORDS)
    word = name.lower() if name in known else _UNIT.sub("", name.lower())
    alike = [each for each in known if word in (each.lower(), *each.lower().split())]
    of_files = keys_like(word)
    called_so = any(key.partition(".")[2] == word for key in of_files)
    both = [*of_files, *alike] if called_so else [*alike, *of_files]
    found = [name] if name in known else both
    found = found or [each for each in ASSUMPTIONS if word in each.split("-")]
    if not found:
        ends = [key.partition(".")[2] for key in keys()]
        near = nearest(name, [*EXPLANATIONS, *laws.names(), *known, *ends])
        allowed = f"one of {', '.join(EXPLANATIONS)}, or the name of a law (a law of your own: "
        allowed += "register_law, --laws), of an assumption or of a key"
        raise FieldError("name", name, allowed + near)
    return Text("\n".join(map(_meaning, found)))


@functools.cache
def keys() -> dict[str, str]:
    """The meaning of each key of a link, a flow and the run, by names such as ``flow.rtt``.

    The meanings are those that ``help`` prints about ``Link``, ``Flow`` and ``Run``.
    """
    found = {}
    for part, of in (("link", Link), ("flow", Flow), ("run", Run)):
        entries = re.split(r"^- ", inspect.getdoc(of) or "", flags=re.MULTILINE)[1:]
        for entry in entries:
            names, _, said = " ".join(entry.split("\n\n")[0].split()).partition(": ")
            for name in re.findall(r"\w+", names):
                in_file = "class" if name == "service" else name
                found[f"{part}.{in_file}"] = said.replace("``", "`").rstrip(".")
    return found


def keys_like(word: str) -> list[str]:
    """The names of the keys called ``word``; if there is none, those of which ``word`` is a part.

    For example, ``window`` is a part of ``max_window``.
    """
    ends = {key: (key, key.partition(".")[2]) for key in keys()}
    same = [key for key, names in ends.items() if word in names]
    return same or [key for key, (_, end) in ends.items() if word in end.split("_")]


def models_with(name: str) -> list[str]:
    """The names of the models that make the assumption ``name``."""
    return [model for model, known in EXPLANATIONS.items() if name in known.hypotheses]


def law_facts(name: str) -> dict[str, Any]:
    """What the command ``explain`` prints with ``--json`` about a congestion control law.

    ``says`` is the docstring of the law's function ``drift``, and ``where`` is that function's
    place in a file; both are ``None`` if unknown.  The other keys are fields of ``laws.Law``.
    ``decrease`` is the factor by which a loss multiplies the window, as the variant ``paper`` has
    it by default.  It is ``None`` if the law's function ``cut`` gives the window after a loss
    instead.
    """
    law = laws.find(name)
    code = inspect.unwrap(law.drift).__code__ if inspect.isfunction(law.drift) else None
    return {
        "law": name,
        "says": inspect.getdoc(law.drift),
        "where": code and f"{code.co_filename}, line {code.co_firstlineno}",
        "decrease": None if law.cut else law.decrease,
        "slow_start": law.slow_start,
        "recovery": law.recovery,
    }


def _law(name: str) -> str:
    """The facts about a law as text of several lines."""
    known, law = law_facts(name), laws.find(name)
    loss = f"is {law.decrease:g} times the window before the loss"
    if law.keeps_backlog:
        loss += f" ({', '.join(f'{stack.name}: {stack.decrease:g}' for stack in STACKS.values())})"
    loss += "; the key `decrease` of a [[flow]] sets another factor"
    if law.cut is not None:
        loss = "is what its function `cut` returns"
    lines = [
        f"{name}: a law of congestion control",
        "",
        *([f"Its function drift: {' '.join(known['says'].split())}"] if known["says"] else []),
        f"After a loss the window {loss}.",
        _SLOW_START[law.slow_start],
        f"Repair of losses: {_REPAIR[law.recovery]}.",
        *([f"Equations: {known['where']}."] if known["where"] else []),
    ]
    return "\n".join(lines)


def _meaning(name: str) -> str:
    """The meaning of a column, a word, a key or an assumption, as text.

    For an assumption the text also names the models that make it.
    """
    plain = COLUMNS.get(name) or WORDS.get(name)
    if plain is not None:
        return f"{name}: {plain}."
    if name in keys():
        part, _, key = name.partition(".")
        table = "[run]" if part == "run" else f"[[{part}]]"
        return f"{key}, in the table {table} of a scenario file: {keys()[name]}."
    of = models_with(name)
    made = f"\nA hypothesis of {', '.join(of)}." if of else ""
    return f"{name}: it holds if {ASSUMPTIONS[name]}.{made}"
