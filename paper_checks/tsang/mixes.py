"""Table 6 of Tsang and Chang, and section 4: many Vegas and Reno flows at a RED link.

The numbers of the table and the network are missing from our text; we test what the text says.
A mix is a number ``n`` of flows with a part of the table ("6a" to "6d"), which has the thresholds
of Vegas and of RED.  x or x2 is the delay of figure 1's last link in ms, and sets the RTT.  The
index is Jain's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np

from paper_checks.checks import Found, Record
from paper_checks.runs import Groups, Runs
from paper_checks.spread import apart, averaged
from paper_checks.tsang.scenes import BITS, base_rtt
from vegasmodel.metrics import Floats, standard_error
from vegasmodel.scenario import Red, Scenario, load

Pair = tuple[float, float]
PAPERS_RUNS = 7
MANY = 28  # runs of one law: 7 had not told the two apart
SIZES = (30, 100, 200)  # flows
SHARES = (0.3, 0.5, 0.7)  # of them Vegas
VEGAS_3, VEGAS_1_3 = (3.0, 3.0), (1.0, 3.0)
HIGH, LOW = (54.0, 108.0), (5.0, 15.0)
TABLES: dict[str, tuple[Pair, Pair]] = {
    "6a": (VEGAS_3, HIGH),
    "6b": (VEGAS_1_3, HIGH),
    "6c": (VEGAS_3, LOW),
    "6d": (VEGAS_1_3, LOW),
}
# Section 3.4: table, number of flows, whether Vegas wins
WINNERS = (
    ("6a", 30, False),
    ("6a", 100, True),
    ("6a", 200, True),
    ("6b", 30, False),
    ("6b", 100, False),
    ("6b", 200, True),
    ("6c", 30, True),
    ("6d", 100, True),
)
LINK = (
    "ns-2 2.35 with RED's defaults of before April 2001. The network is missing from our text: one "
    "link of 10 Mbit/s, which the printed goodputs imply, windows of at most 30 (section 3.1), a "
    "buffer of 250 packets and starts within 0.5 s, chosen by us, and RTTs of "
)
RTTS = {30: "71.2 ms", 1: "13.2 ms"}  # by x2 in ms: those of figure 1's two connections
RUN = f"{LINK}71.2 and of 13.2 ms, those of figure 1's two connections (x2 = 30 ms)."
RUN_ONE = (
    f"{LINK}71.2 ms (figure 1's longer connection at x2 = 30 ms); 13.2 ms, those of its shorter "
    "one, were not tried."
)
LAWS = ("Vegas", "Reno")
GUESSED = (
    "The network is not in our text, and these runs are of an inferred one, so that a difference "
    "may be the network's."
)
RED_DECIDES = (
    "The network is not in our text, and RED's settings decide: it holds with ns-2's defaults of "
    "before April 2001, and not with those of 2.35."
)
LATER = "With RED's defaults of 2.35 (gentle_, weight from the link's rate)"


@cache
def mix(n: int, share: float, thresholds: Pair, red: Pair, x: int = 30) -> Scenario:
    """``n`` flows, of which ``share`` are Vegas with ``thresholds``, at RED with the two ``red``.

    ``x``: delay of figure 1's last link, ms.
    """
    base = load(Path(__file__).with_name("mix.toml"))
    queue = Red(min_threshold=red[0], max_threshold=red[1])
    link = dataclasses.replace(base.links[0], queue=queue)
    vegas = round(n * share)
    rtt = base_rtt(x)
    alpha, beta = thresholds
    kinds = (
        dataclasses.replace(base.flows[0], count=max(vegas, 1), alpha=alpha, beta=beta, rtt=rtt),
        dataclasses.replace(base.flows[1], count=max(n - vegas, 1), rtt=rtt),
    )
    flows = tuple(flow for flow, k in zip(kinds, (vegas, n - vegas), strict=True) if k)
    name = (
        f"tsang-mix-{vegas}-vegas-{alpha:g}-{beta:g}-{n - vegas}-reno-"
        f"red-{red[0]:g}-{red[1]:g}-x-{x}-ms"
    )
    return dataclasses.replace(base, name=name, links=(link,), flows=flows)


MAY = "; with the low thresholds it says that Vegas 'may' get more"

# --- table 6 ---------------------------------------------------------------------------------


def _logs(found: Groups) -> Floats:
    """ln(Vegas/Reno) of each run."""
    return np.asarray(np.log(found.throughput[:, 0] / found.throughput[:, 1]))


def _cells(runs: Runs, n: int, table: str, x: int) -> tuple[Floats, str]:
    """``_logs``, mean over the shares of Vegas flows, and the table's cells as text."""
    logs, cells = [], []
    for share in SHARES:
        found = runs.groups(mix(n, share, *TABLES[table], x))
        logs.append(_logs(found))
        vegas, reno = BITS * found.mean
        cells.append(f"{100 * share:g} %: {found.jain.mean():.3f}, {vegas:.0f}, {reno:.0f}")
    text = f"Share of Vegas: index, bit/s of Vegas, of Reno: {'; '.join(cells)}."
    return np.asarray(np.mean(logs, axis=0)), text


def _later(runs: Runs, n: int, table: str, x: int) -> Floats:
    """``_logs`` with RED's defaults of ns-2 2.35 if half of the flows are Vegas."""
    return _logs(runs.groups_automatic(mix(n, 0.5, *TABLES[table], x)))


def _factor(logs: Floats) -> str:
    """The mean ratio and the factor that two standard errors make, as text.

    ``logs`` are the logarithms of the ratios.
    """
    error = standard_error(logs)
    return f"{np.exp(logs.mean()):.3f}, within a factor of {np.exp(2 * error):.3f}"


def clear(gaps: Floats, names: tuple[str, str]) -> str:
    """The law that leads by more than two standard errors, or "neither".

    ``gaps`` are differences between the laws, positive where the first of ``names`` leads.
    """
    mean, error = float(gaps.mean()), float(standard_error(gaps))
    if abs(mean) <= 2 * error:
        return "neither"
    return names[0] if mean > 0 else names[1]


def _winner(n: int, table: str, printed: str, runs: Runs) -> Found:
    """The law whose flows get more.

    The result is undecided unless ``printed`` leads with both RTTs and both settings of RED.
    """
    leaders, texts = [], []
    for x, rtt in RTTS.items():
        logs, cells = _cells(runs, n, table, x)
        leaders.append(clear(logs, LAWS))
        texts.append(
            f"RTTs of {rtt}: {leaders[-1]} leads, Vegas over Reno {_factor(logs)}. {cells}"
        )
    undecided = ""
    if set(leaders) != {printed}:
        undecided = GUESSED if len(set(leaders)) == 1 else f"{GUESSED} Here the RTT decides."
    else:
        later = {rtt: _later(runs, n, table, x) for x, rtt in RTTS.items()}
        ratios = "; ".join(f"RTTs of {rtt} {_factor(logs)}" for rtt, logs in later.items())
        texts.append(f"{LATER} and half of the flows Vegas: {ratios}.")
        if {clear(logs, LAWS) for logs in later.values()} != {printed}:
            undecided = RED_DECIDES
    return Found(leaders[0], detail=" ".join(texts), undecided=undecided)


# Pairs of mixes that differ in one quantity alone, of those that ran with both RTTs
PAIRS: dict[str, tuple[tuple[tuple[str, int], tuple[str, int]], ...]] = {
    "the RED thresholds": ((("6a", 30), ("6c", 30)), (("6b", 100), ("6d", 100))),
    "alpha and beta": tuple((("6a", n), ("6b", n)) for n in SIZES),
    "the flows": tuple(
        ((table, few), (table, many))
        for table in ("6a", "6b")
        for few, many in ((30, 100), (30, 200), (100, 200))
    ),
}


def _moved(runs: Runs, one: tuple[str, int], other: tuple[str, int]) -> tuple[bool, str]:
    """Whether the ratio Vegas/Reno differs between two mixes with each RTT, and by how much."""
    differ, parts = [], []
    for x in RTTS:
        logs = [_cells(runs, n, table, x)[0] for table, n in (one, other)]
        gap, error = apart(*logs)
        differ.append(abs(gap) > 2 * error)
        parts.append(f"{np.exp(gap):.2f} (within a factor of {np.exp(2 * error):.2f})")
    (table, n), (other_table, m) = one, other
    return all(differ), f"{table} with {n} over {other_table} with {m} flows {' and '.join(parts)}"


def _depends(runs: Runs) -> Found:
    """Whether for each quantity of ``PAIRS`` some pair of mixes shows its influence.

    The note has the first such pair of each, or all pairs if there is none.
    """
    rows, shown = [], []
    for what, pairs in PAIRS.items():
        found = [_moved(runs, *pair) for pair in pairs]
        clear_ones = [text for moved, text in found if moved]
        shown.append(bool(clear_ones))
        texts = clear_ones[:1] or [text for _, text in found]
        rows.append(f"{what} ({len(clear_ones)} of {len(found)} pairs): {'; '.join(texts)}")
    return Found(all(shown), detail=f"Moved by {'; by '.join(rows)}.", missing=GUESSED)


def _tenth(
    statistic: Callable[[Runs, int], Floats], printed: float, unit: float, runs: Runs
) -> Found:
    """The result for 200 flows, 10 % of them Vegas, with the RTT whose result is further off.

    If this result agrees with the printed value, so does the other.  ``statistic`` computes it in
    each run, ``unit`` is that of the last printed digit.
    """
    values = {x: statistic(runs, x) for x in RTTS}
    x = max(values, key=lambda k: abs(values[k].mean() - printed))
    text = ", ".join(f"{values[k].mean():.5g} with RTTs of {rtt}" for k, rtt in RTTS.items())
    found = averaged(values[x], printed, unit, f"{text}.", of=PAPERS_RUNS)
    return dataclasses.replace(found, missing=GUESSED)


def _index(runs: Runs, x: int) -> Floats:
    return runs.groups(mix(200, 0.1, VEGAS_3, HIGH, x)).jain


def _goodput(group: int, runs: Runs, x: int) -> Floats:
    found = runs.groups(mix(200, 0.1, VEGAS_3, HIGH, x))
    return np.asarray(BITS * found.throughput[:, group])


def _many_drops(runs: Runs) -> Found:
    """Whether 50 Vegas and 50 Reno flows lose over 10 % at RED's low thresholds, less at the high.

    It must hold with both RTTs.
    """
    losses = {
        x: [
            float(runs.groups(mix(100, 0.5, VEGAS_3, red, x)).loss_rate.mean())
            for red in (LOW, HIGH)
        ]
        for x in RTTS
    }
    text = ", ".join(
        f"{100 * low:.1f} % with RTTs of {RTTS[x]} (RED 54/108 {100 * high:.1f} %)"
        for x, (low, high) in losses.items()
    )
    return Found(
        all(low > max(0.1, high) for low, high in losses.values()),
        detail=f"Lost: {text}.",
        missing=GUESSED,
    )


def table_6() -> list[Record]:
    """The records of table 6: the law that gets more, and the one cell that the text quotes."""
    found = [
        Record(
            f"table {table}, {n} flows: {'Vegas' if vegas else 'Reno'} gets more",
            "table",
            "Vegas" if vegas else "Reno",
            partial(_winner, n, table, "Vegas" if vegas else "Reno"),
            note="Goodput of one flow, mean of the logarithms over the shares of Vegas, 30, 50 and "
            f"70 %, 7 runs each, as printed; who leads by less than two standard errors does not. "
            f"The words are the text's, for the table's numbers are missing"
            f"{MAY if TABLES[table][1] == LOW else ''}. {RUN}",
        )
        for table, n, vegas in WINNERS
    ]
    spread = (
        "Tolerance: rounding of the print and two standard errors of the difference of two means, "
        "but at most 10 %."
    )
    quoted: tuple[tuple[str, Callable[[Runs, int], Floats], float, float], ...] = (
        ("index", _index, 0.919, 0.001),
        ("goodput of Vegas", partial(_goodput, 0), 67306.0, 1.0),
        ("goodput of Reno", partial(_goodput, 1), 47123.0, 1.0),
    )
    found += [
        Record(
            f"table 6a, 10 % of 200 flows: {name}",
            "table",
            printed,
            partial(_tenth, statistic, printed, unit),
            note=f"{RUN} Mean of 7 runs with the RTT that is further off. {spread}",
        )
        for name, statistic, printed, unit in quoted
    ]
    return [
        *found,
        Record(
            "section 3.4, many packets are dropped with RED 5/15 and 100 connections",
            "claim",
            True,
            _many_drops,
            note="Vegas-3, 50 %: read as more than a tenth of the packets, a number of ours, "
            f"and as more than with 54/108. {RUN}",
        ),
        Record(
            "abstract, fairness of Reno and Vegas depends on RED, the flows, alpha and beta",
            "claim",
            True,
            _depends,
            note="Read as: of each of the three, some two mixes that differ in it alone have "
            "ratios of Vegas's goodput to Reno's that differ by more than two standard errors with "
            "either RTT, whichever way: the text names none. Of 7 runs, the means over the shares "
            f"as above; the ratios' quotients with RTTs of 71.2 and of 13.2 ms. {RUN}",
        ),
    ]


# --- section 4 -------------------------------------------------------------------------------


def _alone(runs: Runs, n: int, vegas: bool, x: int) -> Floats:
    """Index of each of ``MANY`` runs of ``n`` flows of one law: Vegas if ``vegas``, else Reno."""
    scenario = mix(n, float(vegas), VEGAS_3, HIGH, x)
    many = dataclasses.replace(scenario.run, runs=MANY)
    return runs.groups(dataclasses.replace(scenario, run=many)).jain


def _fairer(n: int, rtts: tuple[int, ...], runs: Runs) -> Found:
    """The law whose index is higher by more than two standard errors of the difference, if any.

    The result is that with the first of ``rtts``, given by x2 in ms; undecided if they differ.
    """
    leaders, texts = [], []
    for x in rtts:
        found = {name: _alone(runs, n, name == "Vegas", x) for name in LAWS}
        gap, error = apart(found["Vegas"], found["Reno"])
        own = "; ".join(
            f"{name} {index.mean():.4f} ({index.min():.3f} to {index.max():.3f})"
            for name, index in found.items()
        )
        leaders.append("neither" if abs(gap) <= 2 * error else "Vegas" if gap > 0 else "Reno")
        texts.append(f"{RTTS[x]}: {own}; two standard errors {2 * error:.4f}.")
    missing = NEITHER if "neither" in leaders else GUESSED
    undecided = f"{GUESSED} Here the RTT decides." if len(set(leaders)) > 1 else ""
    detail = f"Index with RTTs of {' '.join(texts)}"
    return Found(leaders[0], detail=detail, missing=missing, undecided=undecided)


NEITHER = "The runs do not decide: neither leads by two standard errors."


def _stabler(runs: Runs) -> Found:
    """Whether Reno's index has a smaller standard deviation than Vegas's with both RTTs.

    Undecided if, with one of the RTTs, the logarithms of the standard deviations differ by at most
    two standard errors.
    """
    error = 2 * np.sqrt(2 / (2 * (MANY - 1)))
    ratios, texts = [], []
    for x, rtt in RTTS.items():
        reno, vegas = (float(_alone(runs, 100, vegas, x).std(ddof=1)) for vegas in (False, True))
        ratios.append(reno / vegas)
        texts.append(
            f"with RTTs of {rtt} Reno {reno:.4f}, Vegas {vegas:.4f}, ratio {ratios[-1]:.2f}"
        )
    text = (
        f"Standard deviation of the index: {'; '.join(texts)}, over 28 runs each; two standard "
        f"errors of the ratio are a factor of {np.exp(error):.2f}."
    )
    alike = any(abs(np.log(ratio)) <= error for ratio in ratios)
    undecided = (
        "The runs do not decide: neither is clearly the more stable with both RTTs."
        if alike
        else ""
    )
    return Found(max(ratios) < 1, detail=text, missing=GUESSED, undecided=undecided)


def _higher(runs: Runs) -> Found:
    """Whether RED's high thresholds raise ln(index), for 30 and for 100 Vegas flows alone."""
    holds, rows = [], []
    for x, rtt in RTTS.items():
        gains = [
            apart(*(np.log(runs.groups(mix(n, 1.0, VEGAS_3, red, x)).jain) for red in (HIGH, LOW)))
            for n in (30, 100)
        ]
        holds += [gain > 2 * error for gain, error in gains]
        both = ", ".join(f"{100 * gain:.1f} +- {200 * error:.1f}" for gain, error in gains)
        rows.append(f"with RTTs of {rtt} {both}")
    return Found(
        all(holds),
        detail=f"Percent at 30 and 100 flows, with two standard errors: {'; '.join(rows)}.",
        missing=GUESSED,
    )


def one_law() -> list[Record]:
    """The records of section 4's statements on many flows of a single law."""
    how = "Vegas-3, RED 54/108, 28 runs."
    note = f"{how} {RUN}"
    first = "With 7 runs, as in table 6, and 71.2 ms, tried first, neither index led."
    return [
        Record(
            "section 4, many flows: Reno alone is fairer than Vegas alone",
            "claim",
            "Reno",
            partial(_fairer, 100, tuple(RTTS)),
            note=f"100 flows; who leads by less than two standard errors does not. {first} {note}",
        ),
        Record(
            "section 4, many flows: Reno's fairness is more stable",
            "claim",
            True,
            _stabler,
            note=f"100 flows, over the runs. {note}",
        ),
        Record(
            "section 4, Vegas is fairer while flows times delta stay under RED's lower threshold",
            "claim",
            "Vegas",
            partial(_fairer, 10, (30,)),
            note="10 flows, 30 packets; who leads by less than two standard errors does not. "
            f"{first} {how} {RUN_ONE}",
        ),
        Record(
            "section 4, Vegas alone is fairer with higher RED thresholds",
            "claim",
            True,
            _higher,
            note="Vegas-3, RED 54/108 against 5/15, 7 runs; read as by more than two standard "
            f"errors. {RUN}",
        ),
        Record(
            "section 4, that gain diminishes when there are many flows",
            "claim",
            True,
            blocked="The text says 'large enough' and no number. 30 and 100 flows are run; the "
            "record before has the gains. A gain that grows from 30 to 100 flows does not "
            "contradict the text, as 'large enough' may be more.",
        ),
    ]


RECORDS = (*table_6(), *one_law())
