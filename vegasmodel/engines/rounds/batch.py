"""Simulates many scenarios with the simulator ``rounds`` at once, on several threads."""

from __future__ import annotations

import os
from collections.abc import Sequence

from vegasmodel.engines.rounds.answers import answer
from vegasmodel.engines.rounds.run import MAX_PARTS
from vegasmodel.fields import kinds
from vegasmodel.fields.rules import MAX_RUNS, Integer
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario
from vegasmodel.support.progress import counting
from vegasmodel.support.threads import pool


@kinds.checked
def run(
    scenarios: Sequence[Scenario],
    *,
    parts: int | None = None,
    runs: int | None = None,
    threads: int | None = None,
) -> tuple[Prediction, ...]:
    """Simulate several scenarios on several threads; returns their predictions in the same order.

    ``answers.answer`` makes each prediction, with the arguments ``parts`` and ``runs``. The results
    do not depend on the number of ``threads`` (default: one per core), because each run has its own
    random numbers and shares no data. If the simulator cannot simulate a scenario, or if a run of
    it fails, its prediction is ``Prediction.not_applicable`` with the reason. The predictions for
    the other scenarios are not affected. Raises ``ValueError`` for ``parts``, ``runs`` or
    ``threads`` below 1.
    """
    for name, value, most in (
        ("parts", parts, MAX_PARTS),
        ("runs", runs, MAX_RUNS),
        ("threads", threads, MAX_RUNS),
    ):
        if value is not None:
            Integer(1, most).check(value, name)

    def one(scenario: Scenario) -> Prediction:
        """The prediction for one scenario; not applicable if a run of it fails."""
        try:
            found = answer(scenario, parts=parts, runs=runs)
            count.done += 1
        except (ValueError, ArithmeticError, MemoryError) as error:
            return Prediction.not_applicable("rounds", scenario, f"the run failed: {error}")
        if found.applicable and found.extra["status"] != "done":
            reason = f"the run ended early: {found.extra['status']}"
            return Prediction.not_applicable("rounds", scenario, reason)
        return found

    with counting(len(scenarios)) as count, pool(threads or os.cpu_count() or 1) as several:
        return tuple(several.map(one, scenarios))
