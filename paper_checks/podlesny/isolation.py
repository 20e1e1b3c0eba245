"""Runs Podlesny and Williamson's router (RD) in ns-3, at a fifth of the paper's scale, beside ns-2.

    python -m paper_checks.podlesny.isolation show     # the tables, from the stored runs
    python -m paper_checks.podlesny.isolation make     # runs what is not stored, with ns-3 and ns-2

A stored run is found by engine and fingerprint, so it never answers for another scenario.
"""

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from paper_checks.runs import Runs
from vegasmodel.metrics import Floats, standard_error
from vegasmodel.queues import Queue
from vegasmodel.scenario import DropTail, Red, Scenario, load
from vegasmodel.support.files import atomic_write

__all__ = ["RATIOS", "Stored", "dumbbell", "fairness", "pair", "stored"]

FOLDER = Path(__file__).parent
FILE = FOLDER.parent / "ns3.json"
RATIOS = (0.5, 1.0, 2.0, 3.0)  # NewReno flows for each Vegas flow
THRESHOLDS = ((1, 3), (2, 3), (2, 4))  # alpha, beta, packets
AT_FEW = THRESHOLDS[:2]  # those that we run with 2 NewReno flows
N_VEGAS = 20  # Vegas flows

Engine = Literal["ns2", "ns3"]
Discipline = Literal["rd", "red", "droptail"]
DISCIPLINES: tuple[Discipline, ...] = ("rd", "red", "droptail")

# The paper states no parameters of RED. These are the values that ns-2 chooses by default:
# thresholds for a target delay of 5 ms at 2500 pkt/s, and a weight with a time constant of one
# packet.
RED = Red(
    min_threshold=6.25,
    max_threshold=18.75,
    max_probability=0.1,
    weight=1 - float(np.exp(-1 / 2500)),
    ecn=True,
    gentle=True,
)


@cache
def dumbbell(ratio: float, kind: Discipline, alpha: int = 1, beta: int = 3) -> Scenario:
    """20 Vegas flows and ``ratio`` times as many NewReno flows at a queue of the kind ``kind``.

    ``alpha`` and ``beta`` are Vegas's thresholds in packets. There are five runs if the ratio is
    below 0.5, and else three.
    """
    base = load(FOLDER / "rd-ns3.toml")
    newreno, vegas = base.flows
    queues: dict[Discipline, Queue] = {
        "rd": base.links[0].queue,
        "red": RED,
        "droptail": DropTail(),
    }
    flows = (
        dataclasses.replace(newreno, count=round(ratio * N_VEGAS)),
        dataclasses.replace(vegas, alpha=float(alpha), beta=float(beta)),
    )
    changes = {"link.queue": queues[kind], "run.runs": 5 if ratio < 0.5 else 3}
    name = f"{base.name}-{kind}-{ratio:g}-alpha-{alpha}-beta-{beta}"
    return base.replace(changes, name=name, flows=flows)


@cache
def pair(alpha: int, beta: int, *, alone: bool) -> Scenario:
    """The scenario of one Vegas flow on figure 1's link, alone or beside one NewReno flow.

    ``alpha`` and ``beta`` are Vegas's thresholds in packets.
    """
    base = load(FOLDER / "figure1.toml")
    newreno, vegas = base.flows
    vegas = dataclasses.replace(vegas, alpha=float(alpha), beta=float(beta))
    name = f"{base.name}-{'alone' if alone else 'pair'}-alpha-{alpha}-beta-{beta}"
    return dataclasses.replace(base, name=name, flows=(vegas,) if alone else (newreno, vegas))


@dataclass(frozen=True, eq=False)
class Stored:
    """What a simulator measured.  A value of a group is the mean over its flows."""

    version: str  # of the simulator
    throughput: Floats  # [runs, groups] pkt/s of one flow
    loss_rate: Floats  # [groups] of the packets sent
    rtt_mean: Floats  # [groups] seconds; NaN where not recorded
    utilization: float  # of the link, 0 to 1
    queue: float  # mean number of waiting packets

    @property
    def index(self) -> tuple[float, float]:
        """Vegas's mean throughput over NewReno's: mean over the runs, and its standard error."""
        index = self.index_of_runs
        return float(index.mean()), float(standard_error(index))

    @property
    def index_of_runs(self) -> Floats:
        """Vegas's mean throughput over NewReno's in each run, [runs]."""
        newreno, vegas = self.throughput.T
        return np.asarray(vegas / newreno)


def stored(engine: Engine, scenario: Scenario) -> Stored:
    """The stored run of ``scenario`` by the simulator ``engine``.

    Raises ``KeyError`` if there is none; ``make`` runs it.
    """
    entry = _file()[f"{engine} {scenario.fingerprint()}"]
    arrays = {key: np.array(entry[key], dtype=np.float64) for key in ("throughput", "loss_rate")}
    rtt = np.array(entry["rtt_mean"], dtype=np.float64)
    return Stored(
        entry["version"],
        **arrays,
        rtt_mean=rtt,
        utilization=entry["utilization"],
        queue=entry["queue"],
    )


def fairness(ratio: float, kind: Discipline = "rd", alpha: int = 1, beta: int = 3) -> Stored:
    """The stored results of ns-3 for ``dumbbell``, of which ``index`` is the relative fairness."""
    return stored("ns3", dumbbell(ratio, kind, alpha, beta))


def measure(engine: Engine, scenario: Scenario, processes: int = 2) -> dict[str, Any]:
    """Run the simulator ``engine``; return the entry for the file, with means over each group.

    ``processes`` runs are made at once.
    """
    from vegasmodel.packets import ns2, ns3

    simulator = ns3 if engine == "ns3" else ns2
    rtts = len(scenario.members) < 10  # recording the RTTs of many flows takes long
    found = simulator.run(scenario, processes=processes, rtts=rtts)
    assert found.loss_rate is not None
    assert found.rtt_mean is not None
    assert found.queue_mean is not None
    group = np.array([member.group for member in scenario.members])
    groups = [group == g for g, _ in enumerate(scenario.flows)]  # which flows belong to each
    runs = found.extra["throughput_runs"]
    return {
        "name": scenario.name,
        "version": found.extra["version"],
        "seed": scenario.run.seed,
        "throughput": [[_digits(row[flows].mean()) for flows in groups] for row in runs],
        "loss_rate": [_digits(found.loss_rate[flows].mean()) for flows in groups],
        "rtt_mean": [_digits(found.rtt_mean[flows].mean()) for flows in groups],
        "utilization": _digits(found.extra["busy_links"][0]),
        "queue": _digits(found.queue_mean[0]),
    }


def cases() -> Iterator[tuple[Engine, Scenario]]:
    """Every run that the tables of ``show`` need, as a simulator and a scenario."""
    for alpha, beta in THRESHOLDS:
        for alone in (True, False):
            yield "ns2", pair(alpha, beta, alone=alone)
            yield "ns3", pair(alpha, beta, alone=alone)
    for ratio in RATIOS:
        for kind in DISCIPLINES:
            yield "ns3", dumbbell(ratio, kind)
    for alpha, beta in AT_FEW:
        yield "ns3", dumbbell(0.1, "rd", alpha, beta)


def make(processes: int) -> None:
    """Make the runs that are not stored, and drop stored runs that no table uses.

    ``processes`` runs of a scenario go on at the same time. Each result is stored at once: if the
    command is killed, it loses at most one run.
    """
    wanted = {
        f"{engine} {scenario.fingerprint()}": (engine, scenario) for engine, scenario in cases()
    }
    entries = {key: entry for key, entry in _file().items() if key in wanted}
    for key, (engine, scenario) in wanted.items():
        if key not in entries:
            entries[key] = measure(engine, scenario, processes)
            lines = ",\n".join(f'"{k}": {json.dumps(entries[k])}' for k in wanted if k in entries)
            with atomic_write(FILE) as part:
                part.write_text(f'{{"schema": 1, "runs": {{\n{lines}\n}}}}\n', encoding="ascii")
            sys.stderr.write(f"{engine} {scenario.name}\n")


def show() -> None:
    """Print four tables of stored results.

    The first three have the relative fairness, or index, and Vegas's loss with many flows: by the
    queue, with few NewReno flows, and with reverse flows. The last one is about one Vegas flow.
    """
    from vegasmodel.report import console

    out = console.console()
    rows = []
    for ratio in RATIOS:
        for kind in DISCIPLINES:
            found = fairness(ratio, kind)
            rows.append([f"{ratio:g}", kind, *_row(found)])
    title = (
        f"Relative fairness, ns-3 {fairness(1.0).version}, alpha 1, beta 3, {N_VEGAS} Vegas flows"
    )
    heads = ["index", "Vegas loss, %", "load", "queue, pkt"]
    out.print(console.table(["NewReno : Vegas", "queue", *heads], rows, title))
    rows = []
    for alpha, beta in AT_FEW:
        found = fairness(0.1, "rd", alpha, beta)
        rows.append([f"{alpha}, {beta}", *_row(found), f"{found.index_of_runs.min():.2f}"])
    out.print(
        console.table(
            ["alpha, beta", *heads, "least"], rows, "RD at NewReno : Vegas = 0.1, 5 seeds"
        )
    )
    out.print(_two_way())
    out.print(_pairs())


def _row(found: Stored) -> list[str]:
    """Cells of a table: index, Vegas's loss, use of the link, waiting packets."""
    mean, error = found.index
    loss = f"{100 * found.loss_rate[1]:.3g}"
    return [f"{mean:.3f} ± {error:.3f}", loss, f"{found.utilization:.3f}", f"{found.queue:.1f}"]


def _two_way() -> Any:
    """The table of runs that have as many reverse as forward flows, as in the paper.

    The records are judged by these runs.
    """
    from paper_checks.podlesny.experiments import RATIOS_IN_NS3, index
    from paper_checks.podlesny.router import dumbbell as both_ways
    from vegasmodel.report import console

    runs, rows = Runs(), []
    for ratio in RATIOS_IN_NS3["NewReno"]:
        scenario = both_ways(round(ratio * N_VEGAS), N_VEGAS)
        cells = [
            f"{found.mean():.3f} ± {standard_error(found):.3f}"
            for found in (index(runs, scenario, with_router=True), index(runs, scenario))
        ]
        losses = (f"{100 * rate:.2f}" for rate in runs.with_router(scenario).loss_rate[:2])
        rows.append([f"{ratio:g}", cells[0], *losses, cells[1]])
    heads = ["index, ns-3", "NewReno loss, %", "Vegas loss, %", "index, CBQ in ns-2"]
    return console.table(["NewReno : Vegas", *heads], rows, "RD with as many flows back")


def _pairs() -> Any:
    """The table of one Vegas flow, alone or beside one NewReno flow, in ns-2 and in ns-3."""
    from vegasmodel.report import console

    engines: dict[str, Engine] = {"ns-2": "ns2", "ns-3": "ns3"}
    rows = []
    for alpha, beta in THRESHOLDS:
        for alone in (True, False):
            for name, engine in engines.items():
                found = stored(engine, pair(alpha, beta, alone=alone))
                rates = dict.fromkeys(f"{rate:.1f}" for rate in sorted(found.throughput[:, -1]))
                what = "alone" if alone else "beside NewReno"
                rows.append(
                    [f"{alpha}, {beta}", what, name, ", ".join(rates), f"{found.queue:.1f}"]
                )
    heads = ["alpha, beta", "one Vegas flow", "by", "pkt/s in the runs", "queue"]
    title = "Figure 1's link, drop-tail: 250 pkt/s, 62 pkt, 100 ms"
    return console.table(heads, rows, title)


@cache
def _file() -> dict[str, Any]:
    """The stored runs; empty if there is no file."""
    if not FILE.exists():
        return {}
    runs: dict[str, Any] = json.loads(FILE.read_text(encoding="ascii"))["runs"]
    return runs


def _digits(value: float) -> float | None:
    """The value with nine digits for the file; ``None`` stands for NaN."""
    return None if np.isnan(value) else float(f"{float(value):.9g}")


def main(arguments: Sequence[str]) -> int:
    """Show the table of the stored runs, or make these runs; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m paper_checks.podlesny.isolation")
    parser.add_argument("what", choices=("show", "make"))
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    try:
        if options.what == "make":
            make(options.processes)
        else:
            show()
    except (ValueError, RuntimeError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
