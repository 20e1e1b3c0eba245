"""Simulates scenarios of the papers with ns-2 and ns-3, and stores the results.

A record compares one item of a paper, such as a cell of "table 1", with our result.  A finding is a
conclusion of a paper that we tested (``paper_checks.findings``).  Both read the stored results.

``python -m paper_checks.record`` makes the runs that records and findings need and that are not
stored yet.  With ``--again`` it makes all of them anew.  Stored runs that nothing needs any more
are dropped.

``python -m paper_checks.record KEY ITEM ...`` simulates the scenarios of these items of the paper
KEY again.  It prints the measurements and whether each item agrees with them, and stores nothing.
"""

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from paper_checks import PAPERS, findings, records, summary
from paper_checks.checks import judge
from paper_checks.runs import FILE, Runs
from paper_checks.scenes import matching
from vegasmodel.metrics import Floats

__all__ = ["measure", "store"]


def store(*, again: bool) -> None:
    """Make the runs that all records and findings need, and write them to ``reference.json``.

    Runs that are stored already are not made again; with ``again``, all runs are made anew.
    """
    runs = Runs(live=again, keep=True)
    # judging a record, or writing a finding's page, requests the runs that it needs from ``runs``
    for paper in PAPERS:
        for record in records(paper):
            judge(paper, record, runs)
        sys.stderr.write(f"{paper}: {len(runs.used)} runs so far\n")
    for name in findings.NAMES:
        findings.page(name, runs)
    runs.save()
    sys.stderr.write(f"wrote {FILE.name}\n")


def measure(paper: str, items: Sequence[str]) -> None:
    """Simulate the scenarios that the records ``items`` need, and print what comes out.

    First come the flows' throughputs and losses in each scenario, then each record's verdict.
    """
    runs = Runs(live=True)
    checks = [judge(paper, record, runs).to_json() for record in matching(paper, items)]
    for key, scenario in runs.scenarios.items():
        entry = runs.used.get(key)
        if entry is None:
            continue
        names = [member.name for member in scenario.members]
        if len(names) != len(entry["loss_rate"]):  # the results are by groups of flows
            names = [flow.name for flow in scenario.flows]
        rates = np.mean(np.array(entry["throughput"], dtype=np.float64), axis=0)
        losses = 100 * np.array(entry["loss_rate"], dtype=np.float64)
        sys.stdout.write(f"{scenario.name} ({scenario.run.times} runs)\n")
        sys.stdout.write(_lines(names, rates, losses))
    summary.print_checks(checks)


def _lines(names: Sequence[str], rates: Floats, losses: Floats) -> str:
    """A line for each flow or group, with its rate and its loss rate in percent."""
    return "".join(
        f"  {name}: {rate:.3f} pkt/s, loss {loss:.3f} %\n"
        for name, rate, loss in zip(names, rates, losses, strict=True)
    )


def main(arguments: Sequence[str]) -> int:
    """Store the missing runs, or measure the items of a paper; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m paper_checks.record", description=__doc__)
    parser.add_argument("key", nargs="?", choices=PAPERS)
    parser.add_argument("item", nargs="*")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args(arguments)
    try:
        if options.key is None:
            store(again=options.again)
        else:
            measure(options.key, options.item)
    except (ValueError, RuntimeError) as error:  # an unknown item; ns-2 missing or failed
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
