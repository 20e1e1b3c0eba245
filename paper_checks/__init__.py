"""The five papers as executable records: each equation, table, figure and claim is one record.

A record compares a value that its paper prints with the value that we compute.  ``run`` does so for
all records in seconds, because it reads stored runs of ns-2 and ns-3; ``run(live=True)`` runs both
simulators again.  Each paper has a package, named by the paper's key:

- ``tsang``: Tsang and Chang, "Throughput fairness of TCP Vegas";
- ``boutremans``: Boutremans and Le Boudec, "A note on the fairness of TCP Vegas" (2000);
- ``evaluation``: an evaluation of Reno, SACK and Vegas with ns-2;
- ``devendictis``: De Vendictis and Baiocchi, "Modeling a mixed TCP Vegas and TCP Reno scenario"
  (2002);
- ``podlesny``: Podlesny and Williamson on NewReno and Vegas with Rate-Delay services.

Scenario files lie beside the records that use them.
"""

import importlib
from collections.abc import Iterable

from paper_checks.checks import Check, Record, judge
from paper_checks.runs import Runs

__all__ = ["PAPERS", "Check", "records", "run"]

PAPERS = ("tsang", "boutremans", "evaluation", "devendictis", "podlesny")


def records(paper: str) -> tuple[Record, ...]:
    """The records of the paper with the key ``paper``; ``ValueError`` if there is no such paper."""
    if paper not in PAPERS:
        raise ValueError(f"paper {paper!r}: one of {', '.join(PAPERS)}")
    module = importlib.import_module(f"paper_checks.{paper}")
    found: tuple[Record, ...] = module.RECORDS
    return found


def run(keys: Iterable[str] | None = None, live: bool = False) -> list[Check]:
    """Run the checks of the papers ``keys``, in this order; by default of all five papers.

    With ``live``, ns-2 and ns-3 run again instead of reading their stored results.  Where ns-3 is
    not installed, the records that need it are then blocked.  Raises ``ValueError`` for an unknown
    key, and with ``live`` ``vegasmodel.packets.ns2.EngineMissing`` if ns-2 is not installed.
    """
    wanted = PAPERS if keys is None else tuple(keys)
    runs = Runs(live=live)
    todo = [(paper, record) for paper in wanted for record in records(paper)]
    return [judge(paper, record, runs) for paper, record in todo]
