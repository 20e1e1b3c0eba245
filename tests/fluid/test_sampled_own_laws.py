"""Laws of the user in the sampled form of ``fluid``: their TCP gives them slow start and timers."""

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.engines.fluid.senders import senders
from vegasmodel.scenario import Flow, Link, Run, Scenario


def _one_packet(_: vm.Source) -> float:
    return 1.0


@pytest.mark.parametrize("slow_start", ["until loss", "gamma", "none"])
@pytest.mark.parametrize(
    ("capacity", "buffer", "rtt", "rivals"),
    [(500.0, 20.0, 0.06, ()), (500.0, 30.0, 0.1, ("reno",)), (200.0, 12.0, 0.15, ("vegas",))],
)
def test_a_law_that_begins_again_from_one_packet_grows_as_in_rounds(
    slow_start: str, capacity: float, buffer: float, rtt: float, rivals: tuple[str, ...],
) -> None:  # fmt: skip
    """The law decides once a round trip; slow start ends at ssthresh, between two decisions."""
    vm.register_law(
        "restarts", _one_packet, once_a_round=True, recovery="slow start", slow_start=slow_start
    )
    flows = tuple(Flow(law, rtt, variant="ns2") for law in ("restarts", *rivals))
    times = Run(duration=100.0, warmup=30.0, runs=20, start_jitter=0.5)
    case = Scenario((Link(capacity, buffer=buffer),), flows, run=times)
    found, other = (vm.predict(case, model).throughput for model in ("fluid", "rounds"))
    np.testing.assert_allclose(found, other, atol=0.12 * np.mean(other))


def test_only_vegas_has_a_slow_start_and_a_fine_timer_of_its_own() -> None:
    vm.register_law("other", _one_packet, once_a_round=True, delay_based=True)
    flows = tuple(Flow(law, 0.1, variant="ns2") for law in ("other", "vegas", "reno"))
    made = senders(Scenario((Link(1000.0, buffer=20.0),), flows))
    assert (
        made["decides_slow_start"].tolist() == made["fine_timer"].tolist() == [False, True, False]
    )
    assert made["ends_at_gamma"].tolist() == [True, False, False]
