"""Conclusions of the papers that we tested; each finding has a module here and a page in the docs.

``python -m paper_checks.findings [NAME ...] [--live]`` writes ``docs/findings/NAME.md`` and the
picture beside it.  Every number of a page is computed here, from the stored runs of ns-2 or, with
``--live``, from new ones.
"""

import importlib

from paper_checks.findings.page import Page
from paper_checks.runs import Runs

__all__ = ["NAMES", "page"]

NAMES = ("arrival_order", "few_newreno", "least_alpha", "long_delays", "send_jitter", "who_loses")


def page(name: str, runs: Runs) -> Page:
    """The page of a finding.  Raises ``NoRun`` if a stored run is missing."""
    made: Page = importlib.import_module(f"paper_checks.findings.{name}").page(runs)
    return made
