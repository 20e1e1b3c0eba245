"""The rounds engine against runs of the Linux kernel whose starts are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vegasmodel.fluid import answer
from vegasmodel.fluid.rounds import run
from vegasmodel.packets import reference
from vegasmodel.scenario import Flow, Link, Run, Scenario, load

ROOT = Path(__file__).parents[2]


def test_shares_of_vegas_against_reno_with_known_starts() -> None:
    """Buffers of 5 to 60.  The five beyond the bar: buffers of 5 to 20 at 2 and 4 Mbit/s."""
    errors = []
    for scenario in reference.stored(reference.FOLDER / "linux"):
        if scenario.run.start_jitter > 0 or {g.law for g in scenario.flows} == {"vegas"}:
            continue
        found, model = reference.lookup(scenario), answer(scenario)
        assert found is not None
        measured, modelled = (np.asarray(one.throughput) for one in (found, model))
        errors.append(abs(modelled[0] / modelled.sum() - measured[0] / measured.sum()))
    assert len(errors) == 122
    assert np.median(errors) < 0.001
    assert np.mean(errors) < 0.01
    assert np.sum(np.array(errors) > 0.05) <= 5


@pytest.mark.parametrize("name", ["vegas_vegas_2M_40ms_a10b10", "vegas_vegas_2M_320ms_a3b3"])
def test_two_vegas_with_the_kernels_own_initial_window(name: str) -> None:
    """With 2 packets instead of 10 the shares are 0.755 and 0.618: test_rounds_protocols."""
    scenario = load(ROOT / "paper_checks" / "linux" / f"{name}.toml")
    found, model = reference.lookup(scenario), answer(scenario)
    assert found is not None
    measured, modelled = (np.asarray(one.throughput) for one in (found, model))
    assert modelled / modelled.sum() == pytest.approx(measured / measured.sum(), abs=0.02)
    assert model.base_rtt == pytest.approx(found.base_rtt, abs=1e-3)


def test_a_syn_that_meets_a_full_buffer_is_sent_again_after_a_second() -> None:
    """RFC 6298.  A window of 17 keeps 10 packets on the way and 7 in a system that holds 7."""
    holder = Flow("reno", 0.04, name="holder", max_window=17.0, variant="linux", stop=10.5)
    late = Flow("reno", 0.04, name="late", start=10.001, variant="linux")
    for buffer, begins in ((6.0, 11.0), (8.0, 10.05)):
        scenario = Scenario((Link(250.0, buffer=buffer),), (holder, late), run=Run(12.0, 0.0))
        out = run(scenario, samples=1201)
        sent = out.per_flow[:, 1, 1]
        assert out.times[np.argmax(sent > 0)] == pytest.approx(begins, abs=0.06)


def test_the_handshake_takes_a_place_in_the_buffer() -> None:
    """8 packets are there when its ACK takes one of the 2 places left: 1 of 10 data gets in.

    A window of 17 less the 9 packets of 4 ms that are on their way for 36 ms.
    """
    holder = Flow("reno", 0.04, name="holder", max_window=17.0, variant="linux")
    late = Flow("reno", 0.04, name="late", start=10.001, variant="linux")
    scenario = Scenario((Link(250.0, buffer=9.0),), (holder, late), run=Run(10.12, 0.0))
    assert run(scenario).flows["lost"].tolist() == [0.0, 9.0]


@pytest.mark.parametrize("buffer", [5.0, 20.0, 45.0])
def test_which_of_two_acks_due_at_once_is_first_does_not_hang_on_who_started_first(
    buffer: float,
) -> None:
    """RTTs that are whole multiples of the service time: the kernel's shares are 0.55 to 0.83."""
    shares = []
    for starts in ((0.0, 1.0), (1.0, 0.0)):
        flows = [
            Flow("reno", rtt, start=start, name=f"{rtt}", variant="linux")
            for rtt, start in zip((0.04, 0.08), starts, strict=True)
        ]
        scenario = Scenario((Link(250.0, buffer=buffer),), tuple(flows), run=Run(140.0, 40.0))
        rates = answer(scenario).throughput
        assert rates is not None
        shares.append(rates[0] / rates.sum())
    assert shares[0] == pytest.approx(shares[1], abs=0.15)
    assert min(shares) > 0.4
    assert max(shares) < 0.85
