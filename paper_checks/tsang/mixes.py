"""Table 6 of Tsang and Chang, and section 4: many Vegas and Reno flows at a RED link.

Our copy of the paper lacks the numbers of the table, and does not state the network; we test what
the text says about the table.  Each part of the table, "6a" to "6d", has thresholds of Vegas and of
RED.  A mix is a part of the table with a number ``n`` of flows.  x or x2 is the delay of figure 1's
last link in ms, and sets the RTT.  The index is Jain's.
"""

import dataclasses
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np

from paper_checks.checks import Found, Record
from paper_checks.runs import Groups, Runs
from paper_checks.spread import difference_and_error, mean_beside_print
from paper_checks.tsang.scenes import BITS_PER_PACKET, base_rtt
from vegasmodel.metrics import Floats, standard_error
from vegasmodel.scenario import Red, Scenario, load

Pair = tuple[float, float]  # two thresholds in packets: alpha and beta, or RED's
Mix = tuple[str, int]  # a part of table 6, and the number of flows
PAPERS_RUNS = 7  # over which the paper averages
RUNS_OF_ONE_LAW = 28  # runs of one law: with 7 runs no law was clearly the fairer one
SIZES = (30, 100, 200)  # numbers of flows
SHARES = (0.3, 0.5, 0.7)  # parts of the flows that are Vegas
VEGAS_3, VEGAS_1_3 = (3.0, 3.0), (1.0, 3.0)  # alpha and beta, packets
RED_HIGH, RED_LOW = (54.0, 108.0), (5.0, 15.0)  # RED's lower and upper threshold, packets
# by part of table 6: thresholds of Vegas, thresholds of RED
TABLES: dict[str, tuple[Pair, Pair]] = {
    "6a": (VEGAS_3, RED_HIGH),
    "6b": (VEGAS_1_3, RED_HIGH),
    "6c": (VEGAS_3, RED_LOW),
    "6d": (VEGAS_1_3, RED_LOW),
}
# Section 3.4: part of table 6, number of flows, whether Vegas flows get more than Reno flows
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
    "ns-2 2.35 with RED's defaults of before April 2001. The network is missing from our copy of "
    "the paper. We take one link of 10 Mbit/s, which the printed goodputs imply, windows of at "
    "most 30 (section 3.1), a buffer of 250 packets and starts within 0.5 s, which we chose, and "
    "RTTs of "
)
RTT_TEXTS = {30: "71.2 ms", 1: "13.2 ms"}  # by x2 in ms: those of figure 1's two connections
RUN = f"{LINK}71.2 and of 13.2 ms, those of figure 1's two connections (x2 = 30 ms)."
RUN_ONE = (
    f"{LINK}71.2 ms (figure 1's longer connection at x2 = 30 ms); we did not try 13.2 ms, the RTT "
    "of its shorter connection."
)
LAWS = ("Vegas", "Reno")
NETWORK_GUESSED = (
    "The network is not in our copy of the paper, and these runs are of a network that we "
    "inferred. So this network may be the reason for a difference."
)
RED_DECIDES = (
    "The network is not in our copy of the paper, and RED's settings decide: the statement holds "
    "with ns-2's defaults of before April 2001, and not with those of 2.35."
)
WITH_NEWER_RED = "With RED's defaults of 2.35 (gentle_, weight from the link's rate)"


@cache
def mix(n: int, share: float, thresholds: Pair, red: Pair, x: int = 30) -> Scenario:
    """``n`` flows at a RED queue: the part ``share`` of them is Vegas, the others are Reno.

    ``thresholds``: alpha and beta; ``red``: RED's lower and upper threshold; ``x``: delay of figure
    1's last link, ms, which sets the RTT.
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
    # a law without flows is left out: a scenario takes no count of 0
    flows = tuple(flow for flow, k in zip(kinds, (vegas, n - vegas), strict=True) if k)
    name = (
        f"tsang-mix-{vegas}-vegas-{alpha:g}-{beta:g}-{n - vegas}-reno-"
        f"red-{red[0]:g}-{red[1]:g}-x-{x}-ms"
    )
    return dataclasses.replace(base, name=name, links=(link,), flows=flows)


# --- table 6 ---------------------------------------------------------------------------------

MAY = "; with RED's low thresholds the text says that Vegas 'may' get more"


def _log_ratios(found: Groups) -> Floats:
    """ln(rate of a Vegas flow/rate of a Reno flow) of each run of ``found``."""
    vegas, reno = found.throughput.T  # [group, run]
    return np.asarray(np.log(vegas / reno))


def _log_ratios_and_row(runs: Runs, n: int, table: str, x: int) -> tuple[Floats, str]:
    """The logarithm of the ratio Vegas/Reno in each run, and a row of table 6 as text.

    The logarithm (``_log_ratios``) is a mean over ``SHARES``, the parts of the flows that are
    Vegas.  ``n`` is the number of flows, ``table`` the part of table 6, and ``x`` sets the RTT.
    """
    logs, cells = [], []  # for each of SHARES
    for share in SHARES:
        found = runs.groups(mix(n, share, *TABLES[table], x))
        logs.append(_log_ratios(found))
        vegas, reno = BITS_PER_PACKET * found.mean
        cells.append(f"{100 * share:g} %: {found.jain.mean():.3f}, {vegas:.0f}, {reno:.0f}")
    text = f"Share of Vegas: index, bit/s of Vegas, of Reno: {'; '.join(cells)}."
    return np.asarray(np.mean(logs, axis=0)), text


def _log_ratios_with_newer_red(runs: Runs, n: int, table: str, x: int) -> Floats:
    """``_log_ratios`` with RED's defaults of ns-2 2.35; half of the flows are Vegas.

    All other runs have older defaults, those of before April 2001.
    """
    return _log_ratios(runs.groups_automatic(mix(n, 0.5, *TABLES[table], x)))


def _factor(logs: Floats) -> str:
    """The geometric mean of ratios, and its uncertainty as a factor, as text.

    ``logs`` are the logarithms of the ratios, one for each run.  The factor is that of two standard
    errors of the mean logarithm.
    """
    error = standard_error(logs)
    return f"{np.exp(logs.mean()):.3f}, within a factor of {np.exp(2 * error):.3f}"


def clear(leads: Floats, names: tuple[str, str]) -> str:
    """The one of the two ``names`` that leads by more than two standard errors, or "neither".

    ``leads`` has for each run by how much the first one leads the second.
    """
    mean, error = float(leads.mean()), float(standard_error(leads))
    if abs(mean) <= 2 * error:
        return "neither"
    return names[0] if mean > 0 else names[1]


def _winner(n: int, table: str, printed: str, runs: Runs) -> Found:
    """The law whose flows get more, in a part ``table`` of table 6 with ``n`` flows.

    ``printed`` is the law whose flows get more by the paper.  Our copy of the paper states neither
    the RTTs nor RED's settings.  So the result is undecided unless ``printed`` leads with each of
    two RTTs and each of two settings of RED.
    """
    leaders, texts = [], []  # for each RTT
    for x, rtt in RTT_TEXTS.items():
        logs, cells = _log_ratios_and_row(runs, n, table, x)
        leaders.append(clear(logs, LAWS))
        texts.append(
            f"RTTs of {rtt}: {leaders[-1]} leads, Vegas over Reno {_factor(logs)}. {cells}"
        )
    undecided = ""
    if set(leaders) != {printed}:
        undecided = NETWORK_GUESSED
        if len(set(leaders)) > 1:
            undecided += " Here the RTT decides."
    else:
        later = {rtt: _log_ratios_with_newer_red(runs, n, table, x) for x, rtt in RTT_TEXTS.items()}
        ratios = "; ".join(f"RTTs of {rtt} {_factor(logs)}" for rtt, logs in later.items())
        texts.append(f"{WITH_NEWER_RED} and half of the flows Vegas: {ratios}.")
        if {clear(logs, LAWS) for logs in later.values()} != {printed}:
            undecided = RED_DECIDES
    return Found(leaders[0], detail=" ".join(texts), undecided=undecided)


# Of the mixes of WINNERS, the pairs that differ in one quantity alone
PAIRS: dict[str, tuple[tuple[Mix, Mix], ...]] = {
    "the RED thresholds": ((("6a", 30), ("6c", 30)), (("6b", 100), ("6d", 100))),
    "alpha and beta": tuple((("6a", n), ("6b", n)) for n in SIZES),
    "the flows": tuple(
        ((table, few), (table, many))
        for table in ("6a", "6b")
        for few, many in ((30, 100), (30, 200), (100, 200))
    ),
}


def _ratio_differs(runs: Runs, one: Mix, other: Mix) -> tuple[bool, str]:
    """Whether the ratio Vegas/Reno differs between two mixes with each RTT, and by how much.

    A mix is a part of table 6, such as "6a", and a number of flows.  The second value is a text: by
    which factor the ratio differs with each RTT.
    """
    differ, parts = [], []  # for each RTT: whether the ratios differ, and a text
    for x in RTT_TEXTS:
        logs = [_log_ratios_and_row(runs, n, table, x)[0] for table, n in (one, other)]
        difference, error = difference_and_error(*logs)
        differ.append(abs(difference) > 2 * error)
        parts.append(f"{np.exp(difference):.2f} (within a factor of {np.exp(2 * error):.2f})")
    (table, n), (other_table, m) = one, other
    return all(differ), f"{table} with {n} over {other_table} with {m} flows {' and '.join(parts)}"


def _each_quantity_counts(runs: Runs) -> Found:
    """Whether RED's thresholds, alpha and beta, and the flows each change the ratio Vegas/Reno.

    A mix is a part of table 6, such as "6a", with a number of flows.  For each of these three
    quantities we compare pairs of mixes that differ in it alone.  The ratio must differ clearly in
    some pair.  The result's detail has the first such pair of each quantity, or all its pairs if
    there is none.
    """
    rows, shown = [], []
    for what, pairs in PAIRS.items():  # the quantity, and its pairs of mixes
        found = [_ratio_differs(runs, *pair) for pair in pairs]
        moved = [text for differs, text in found if differs]
        shown.append(bool(moved))
        texts = moved[:1] or [text for _, text in found]
        rows.append(f"{what} ({len(moved)} of {len(found)} pairs): {'; '.join(texts)}")
    return Found(all(shown), detail=f"Changed by {'; by '.join(rows)}.", missing=NETWORK_GUESSED)


def _one_of_two_rtts(
    statistic: Callable[[Runs, int], Floats], printed: float, unit: float, runs: Runs
) -> Found:
    """The mean of ``statistic`` for 200 flows, 10 % of them Vegas, with one of two RTTs.

    Our copy of the paper does not state the RTT.  So we compute the mean with both RTTs, and
    take the one that is further from the printed value: if it agrees, the other one does, too.
    ``statistic`` has the arguments runs and x, which sets the RTT, and returns a value for each
    run.  ``unit`` is that of the last printed digit.
    """
    values = {x: statistic(runs, x) for x in RTT_TEXTS}
    x = max(values, key=lambda k: abs(values[k].mean() - printed))
    text = ", ".join(f"{values[k].mean():.5g} with RTTs of {rtt}" for k, rtt in RTT_TEXTS.items())
    found = mean_beside_print(
        values[x], printed=printed, unit=unit, detail=f"{text}.", of=PAPERS_RUNS
    )
    return dataclasses.replace(found, missing=NETWORK_GUESSED)


def _index(runs: Runs, x: int) -> Floats:
    """Jain's index of each run for 200 flows, 10 % of them Vegas; ``x`` sets the RTT."""
    return runs.groups(mix(n=200, share=0.1, thresholds=VEGAS_3, red=RED_HIGH, x=x)).jain


def _goodput(group: int, runs: Runs, x: int) -> Floats:
    """Goodput of one of 200 flows, 10 % of them Vegas, in each run, bit/s.

    ``group`` 0 is Vegas, 1 is Reno; ``x`` sets the RTT.
    """
    found = runs.groups(mix(n=200, share=0.1, thresholds=VEGAS_3, red=RED_HIGH, x=x))
    return np.asarray(BITS_PER_PACKET * found.throughput[:, group])


def _many_drops(runs: Runs) -> Found:
    """Whether 50 Vegas and 50 Reno flows lose many packets at RED's low thresholds.

    With each RTT it must be more than 10 % of them, and more than at the high thresholds.
    """
    losses = {
        x: [
            float(
                runs.groups(
                    mix(n=100, share=0.5, thresholds=VEGAS_3, red=red, x=x)
                ).loss_rate.mean()
            )
            for red in (RED_LOW, RED_HIGH)
        ]
        for x in RTT_TEXTS
    }
    text = ", ".join(
        f"{100 * low:.1f} % with RTTs of {RTT_TEXTS[x]} (RED 54/108 {100 * high:.1f} %)"
        for x, (low, high) in losses.items()
    )
    return Found(
        all(low > max(0.1, high) for low, high in losses.values()),
        detail=f"Lost: {text}.",
        missing=NETWORK_GUESSED,
    )


def table_6() -> list[Record]:
    """The records of table 6: Vegas and Reno flows share a RED link.

    Our copy of the paper lacks the numbers of the table. Its text says which law's flows get more
    in eight cases (``WINNERS``), and quotes the three numbers of one cell. The table has four
    parts, "6a" to "6d". Each part sets alpha and beta of Vegas, and the thresholds of RED. A case
    is one part of the table, with one number of flows.
    """
    found = [
        Record(
            f"table {table}, {n} flows: {'Vegas' if vegas else 'Reno'} gets more",
            printed="Vegas" if vegas else "Reno",
            compute=partial(_winner, n, table, "Vegas" if vegas else "Reno"),
            note="The goodput of a Vegas flow is divided by that of a Reno flow. In the paper 30, "
            "50 or 70 % of the flows are Vegas, with 7 runs each, and so in ours. We take the "
            "geometric mean of the ratios of the three. A law leads only if it leads by more than "
            "two standard errors. Our copy of the paper lacks the table's numbers, so printed is "
            f"what the text says{MAY if TABLES[table][1] == RED_LOW else ''}. {RUN}",
        )
        for table, n, vegas in WINNERS
    ]
    spread = (
        "Tolerance: rounding of the print and two standard errors of the difference between our "
        "mean and the paper's, which is of 7 runs, too, but at most 10 %."
    )
    quoted: tuple[tuple[str, Callable[[Runs, int], Floats], float, float], ...] = (
        ("index", _index, 0.919, 0.001),
        ("goodput of Vegas", partial(_goodput, 0), 67306.0, 1.0),
        ("goodput of Reno", partial(_goodput, 1), 47123.0, 1.0),
    )
    found += [
        Record(
            f"table 6a, 10 % of 200 flows: {name}",
            printed=printed,
            compute=partial(_one_of_two_rtts, statistic, printed, unit),
            note=f"{RUN} Computed: mean of 7 runs with one of the two RTTs, the one with which "
            f"the mean is further from the print. {spread}",
        )
        for name, statistic, printed, unit in quoted
    ]
    return [
        *found,
        Record(
            "section 3.4, many packets are dropped with RED 5/15 and 100 connections",
            compute=_many_drops,
            note="Half of the flows Vegas, alpha = beta = 3. Read as: more than a tenth of the "
            f"packets, a number that we chose, and more than with RED 54/108. {RUN}",
        ),
        Record(
            "abstract, fairness of Reno and Vegas depends on RED, the flows, alpha and beta",
            compute=_each_quantity_counts,
            note="Read as: for each of the three there are two mixes that differ in it alone, and "
            "whose ratios of Vegas's goodput to Reno's differ by more than two standard errors "
            "with both RTTs. Either mix may have the larger ratio, since the text does not say "
            "which. Means over 7 runs and over the shares of Vegas, as above. The note has the "
            f"quotient of both ratios, with RTTs of 71.2 and of 13.2 ms. {RUN}",
        ),
    ]


# --- section 4 -------------------------------------------------------------------------------


def _alone(runs: Runs, n: int, vegas: bool, x: int) -> Floats:
    """Jain's index of each of many runs of ``n`` flows of one law: Vegas if ``vegas``, else Reno.

    There are ``RUNS_OF_ONE_LAW`` runs.  ``x`` sets the RTT (``mix``).
    """
    scenario = mix(n, float(vegas), VEGAS_3, RED_HIGH, x)
    return runs.groups(scenario.replace({"run.runs": RUNS_OF_ONE_LAW})).jain


def _fairer(n: int, rtts: tuple[int, ...], runs: Runs) -> Found:
    """The law whose flows alone have the higher Jain's index, or "neither".

    The index must be higher by more than two standard errors.  ``n`` is the number of flows, and
    ``rtts`` has the values of x2, in ms, that set the RTTs.  The result is undecided if it is not
    the same with all of them.
    """
    leaders, texts = [], []  # for each RTT
    for x in rtts:
        found = {name: _alone(runs, n, name == "Vegas", x) for name in LAWS}
        lead, error = difference_and_error(found["Vegas"], found["Reno"])
        both = "; ".join(
            f"{name} {index.mean():.4f} ({index.min():.3f} to {index.max():.3f})"
            for name, index in found.items()
        )
        leaders.append("neither" if abs(lead) <= 2 * error else "Vegas" if lead > 0 else "Reno")
        texts.append(f"{RTT_TEXTS[x]}: {both}; two standard errors {2 * error:.4f}.")
    missing = NEITHER_LEADS if "neither" in leaders else NETWORK_GUESSED
    undecided = f"{NETWORK_GUESSED} Here the RTT decides." if len(set(leaders)) > 1 else ""
    detail = f"Index with RTTs of {' '.join(texts)}"
    return Found(leaders[0], detail=detail, missing=missing, undecided=undecided)


NEITHER_LEADS = "The runs do not decide: neither law leads by two standard errors."


def _reno_more_stable(runs: Runs) -> Found:
    """Whether Reno's index has a smaller standard deviation over the runs than Vegas's.

    It must be so with both RTTs.  The result is undecided if the two standard deviations are equal
    within chance with one of the RTTs: if their logarithms differ by at most two standard errors.
    """
    # ln of a standard deviation over n runs has the variance 1/(2 (n - 1)), the difference of two
    # such logarithms twice that
    two_errors = 2 * np.sqrt(2 / (2 * (RUNS_OF_ONE_LAW - 1)))
    ratios, texts = [], []  # for each RTT: Reno's standard deviation over Vegas's, and a text
    for x, rtt in RTT_TEXTS.items():
        reno, vegas = (float(_alone(runs, 100, vegas, x).std(ddof=1)) for vegas in (False, True))
        ratios.append(reno / vegas)
        texts.append(
            f"with RTTs of {rtt} Reno {reno:.4f}, Vegas {vegas:.4f}, ratio {ratios[-1]:.2f}"
        )
    text = (
        f"Standard deviation of the index: {'; '.join(texts)}, over 28 runs each; two standard "
        f"errors of the ratio are a factor of {np.exp(two_errors):.2f}."
    )
    alike = any(abs(np.log(ratio)) <= two_errors for ratio in ratios)
    undecided = (
        "The runs do not decide: neither law's index is clearly the more stable with both RTTs."
        if alike
        else ""
    )
    return Found(max(ratios) < 1, detail=text, missing=NETWORK_GUESSED, undecided=undecided)


def _fairer_with_high_thresholds(runs: Runs) -> Found:
    """Whether RED's high thresholds raise the index, for 30 and for 100 Vegas flows alone.

    ln(index) must rise by more than two standard errors with each RTT.
    """
    holds, rows = [], []  # for each RTT and number of flows: whether it holds; for each RTT: a text
    for x, rtt in RTT_TEXTS.items():
        gains = [
            difference_and_error(
                *(
                    np.log(runs.groups(mix(n=n, share=1.0, thresholds=VEGAS_3, red=red, x=x)).jain)
                    for red in (RED_HIGH, RED_LOW)
                )
            )
            for n in (30, 100)
        ]
        holds += [gain > 2 * error for gain, error in gains]
        both = ", ".join(f"{100 * gain:.1f} +- {200 * error:.1f}" for gain, error in gains)
        rows.append(f"with RTTs of {rtt} {both}")
    return Found(
        all(holds),
        detail="By how many percent the index rises at 30 and at 100 flows, +- two standard "
        f"errors: {'; '.join(rows)}.",
        missing=NETWORK_GUESSED,
    )


def one_law() -> list[Record]:
    """The records of section 4's statements on many flows of a single law at a RED link.

    Fairness is Jain's index of the flows' rates. Vegas-3 has alpha = beta = 3, which the paper
    calls delta. RED 54/108 has its thresholds at 54 and 108 packets. In the notes, names in
    capitals such as ``RUN`` stand for texts that several records share.
    """
    how = "Vegas-3, RED 54/108, 28 runs."
    note = f"{how} {RUN}"
    first = (
        "A law leads only if it leads by more than two standard errors. We first tried 7 runs, as "
        "in table 6, with RTTs of 71.2 ms: neither law led."
    )
    return [
        Record(
            "section 4, many flows: Reno alone is fairer than Vegas alone",
            printed="Reno",
            compute=partial(_fairer, 100, tuple(RTT_TEXTS)),
            note=f"100 flows. {first} {note}",
        ),
        Record(
            "section 4, many flows: Reno's fairness is more stable",
            compute=_reno_more_stable,
            note=f"100 flows, over the runs. {note}",
        ),
        Record(
            "section 4, Vegas is fairer while flows times delta stay under RED's lower threshold",
            printed="Vegas",
            compute=partial(_fairer, 10, (30,)),
            note="10 flows, so flows times delta is 30 packets, and RED's lower threshold 54. "
            f"{first} {how} {RUN_ONE}",
        ),
        Record(
            "section 4, Vegas alone is fairer with higher RED thresholds",
            compute=_fairer_with_high_thresholds,
            note="Vegas-3, RED 54/108 against 5/15, 7 runs; read as by more than two standard "
            f"errors. {RUN}",
        ),
        Record(
            "section 4, that gain diminishes when there are many flows",
            blocked="The text says that the number of flows is 'large enough', and does not state "
            "it. The record before has the gains at 30 and 100 flows. A gain that grows from 30 to "
            "100 flows does not contradict the text, as 'large enough' may mean more flows.",
        ),
    ]


RECORDS = (*table_6(), *one_law())
