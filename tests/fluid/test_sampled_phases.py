"""Which flow loses at a full buffer if RTTs differ: ``fluid`` beside ns-2."""

from __future__ import annotations

import numpy as np
import pytest

from vegasmodel.engines.fluid.run import run
from vegasmodel.scenario import Flow, Link, Run, Scenario


@pytest.mark.parametrize(
    ("wait", "measured"), [(0.0, (416.0, 635.0)), (0.0005, (709.0, 343.0))], ids=["exact", "waits"]
)
def test_waits_of_half_a_millisecond_turn_the_winner_as_in_ns2(
    wait: float, measured: tuple[float, float]
) -> None:
    """SACK at 43 and 99 ms (docs/accuracy.md, exact senders): ns-2's packets per second."""
    flows = tuple(
        Flow("sack", rtt, name=f"rtt {rtt}", variant="ns2", send_jitter=wait)
        for rtt in (0.043, 0.099)
    )
    times = Run(300.0, 100.0, runs=5, start_jitter=0.5)
    rates = run(Scenario((Link(1065.0, buffer=45.0),), flows, run=times)).throughput
    assert np.argmax(rates) == np.argmax(measured)
