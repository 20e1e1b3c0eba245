"""The rounds engine against runs of the Linux kernel whose starts are known."""

from __future__ import annotations

import numpy as np
import pytest

from vegasmodel.fluid import answer
from vegasmodel.fluid.rounds import run
from vegasmodel.packets import reference
from vegasmodel.scenario import Flow, Link, Run, Scenario


def test_shares_of_vegas_against_reno_that_came_long_before_or_after() -> None:
    """Buffers of 5 to 60; the two beyond the bar are 4 Mbit/s with 5 and 10 packets."""
    errors = []
    for scenario in reference.stored(reference.FOLDER / "linux"):
        if scenario.run.start_jitter > 0 or "_then_" not in scenario.name:
            continue
        found, model = reference.lookup(scenario), answer(scenario)
        assert found is not None
        measured, modelled = (np.asarray(one.throughput) for one in (found, model))
        errors.append(abs(modelled[0] / modelled.sum() - measured[0] / measured.sum()))
    assert len(errors) == 32
    assert np.mean(errors) < 0.015
    assert np.sum(np.array(errors) > 0.05) <= 2


def test_a_syn_that_meets_a_full_buffer_is_sent_again_after_a_second() -> None:
    """RFC 6298.  A window of 17 keeps 10 packets on the way and 7 in a system that holds 7."""
    holder = Flow("reno", 0.04, name="holder", max_window=17.0, variant="linux", stop=10.5)
    late = Flow("reno", 0.04, name="late", start=10.001, variant="linux")
    for buffer, begins in ((6.0, 11.0), (8.0, 10.05)):
        scenario = Scenario((Link(250.0, buffer=buffer),), (holder, late), run=Run(12.0, 0.0))
        out = run(scenario, samples=1201)
        sent = out.per_flow[:, 1, 1]
        assert out.times[np.argmax(sent > 0)] == pytest.approx(begins, abs=0.06)
