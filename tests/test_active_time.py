"""When flows are active: their order by start, and which part of the measured time they use."""

import numpy as np

import vegasmodel as vm
from vegasmodel.scenario.active_time import active_part, by_start, silent

LINK = vm.Link(1000.0)


def test_flows_that_start_at_once_keep_the_order_of_the_file() -> None:
    """There are 60, because NumPy's default sort keeps the order of a few equal numbers, too."""
    flows = [vm.Flow("vegas", 0.1, f"v{i}", start=float(i % 2)) for i in range(60)]
    order = by_start(vm.Scenario([LINK], flows, run=vm.Run(duration=10.0, warmup=2.0)))
    assert order.tolist() == [*range(0, 60, 2), *range(1, 60, 2)]


def test_the_part_of_the_measured_time_in_which_a_flow_is_active() -> None:
    """The measured time is from 20 to 100 s. A flow of finite size may have sent all before."""
    times = {"whole": (0, 100), "late": (60, 100), "early": (0, 40), "gone": (5, 15)}
    flows = [vm.Flow("reno", 0.1, name, start=t, stop=end) for name, (t, end) in times.items()]
    flows.append(vm.Flow("reno", 0.1, "small", size=9.0))
    case = vm.Scenario([LINK], flows, run=vm.Run(duration=100.0, warmup=20.0))
    np.testing.assert_array_equal(active_part(case), (1.0, 0.5, 0.25, 0.0, 1.0))
    assert silent(case).tolist() == [False, False, False, True, True]
