"""Sets of steady states, whose number is known from closed forms and from whole windows."""

import dataclasses
import json

import numpy as np
import pytest

import vegasmodel as vm
from tests.helpers import exact, pair
from vegasmodel.scenario import Link, Run, Scenario

C, T = 1080.0, 0.06


def mixed(buffer: float) -> Scenario:
    flows = (exact("vegas", T, alpha=3.0, beta=3.0, decrease=0.75), exact("reno", T))
    return Scenario((Link(C, buffer=buffer),), flows, run=Run(duration=300.0, warmup=100.0))


def test_between_the_folds_vegas_is_cut_in_one_cycle_and_not_in_the_other() -> None:
    B = 3.4
    upper, lower = vm.equilibrium.minicycle_folds.cycles(C, T, buffers=(1.0, 12.0)).folds
    assert lower < B < upper
    found = vm.limit_cycles(mixed(B), starts=40)
    assert found.answered == 40
    cut, whole = found.distinct
    assert (cut.kind, whole.kind) == ("periodic", "periodic")
    assert (cut.losses.tolist(), whole.losses.tolist()) == ([1.0, 1.0], [0.0, 1.0])
    assert np.abs([*cut.multipliers, *whole.multipliers]).max() < 1.0
    both = np.array(vm.equilibrium.minicycle.throughput(C, T, B, alpha=3.0, decrease=0.75))
    np.testing.assert_allclose(cut.throughput, both, rtol=0.005)
    shares = np.array([each.share for each in found.outcomes])
    assert shares.sum() == 1.0
    se = [each.share_se for each in found.outcomes]
    np.testing.assert_allclose(se, np.sqrt(shares * (1.0 - shares) / 40))
    again = vm.limit_cycle(found.starts[found.outcomes[1].example].of(mixed(B)))
    assert again.period == whole.period


@pytest.mark.parametrize("buffer", [10.0, 20.0])
def test_above_the_folds_every_start_leads_to_one_cycle(buffer: float) -> None:
    found = vm.limit_cycles(mixed(buffer), starts=20)
    (each,) = found.outcomes
    assert (each.starts, each.share, each.share_se) == (20, 1.0, 0.0)
    assert found.distinct[0].losses.tolist() == [0.0, 1.0]
    assert np.ptp([each.low, each.high], axis=0).max() < 1e-6 * C


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_one_source_has_one_cycle(model: str) -> None:
    alone = Scenario((Link(250.0, buffer=20.0),), (exact("reno", T),), run=Run(300.0, 100.0))
    found = vm.limit_cycles(alone, model, starts=5)
    (each,), (cycle,) = found.outcomes, found.distinct
    assert (cycle.kind, each.share) == ("periodic", 1.0)
    assert cycle.period == pytest.approx(vm.limit_cycle(alone, model).period, rel=1e-3)


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_chance_makes_no_steady_states(model: str) -> None:
    """With random losses all starts have the same mean, known from a short run to a tenth."""
    flows = (exact("vegas", T), exact("reno", T))
    lossy = Scenario((Link(500.0, buffer=20.0, loss=0.001),), flows, run=Run(100.0, 20.0))
    found = vm.limit_cycles(lossy, model, starts=8, longest=300.0)
    (each,) = found.outcomes
    assert found.distinct[0].kind == "neither found"
    assert each.high[0] - each.low[0] > found.tolerance * each.throughput.mean()


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_whole_windows_rest_where_the_closed_form_has_equilibria(model: str) -> None:
    found = vm.limit_cycles(pair(), model, starts=20, windows=(1, 12), tolerance=0.005)
    assert len(found.outcomes) >= 5
    assert sum(each.starts for each in found.outcomes) == 20
    for cycle in found.distinct:
        assert cycle.kind == "fixed point"
        x = cycle.base_rtt - 0.06  # the later one may have met a queue
        band = vm.equilibrium.bands.equilibria([1, 1], [3, 3], x, 250.0, 0.06, "ns2")
        _, rates, _ = band.windows()
        assert np.abs(rates - cycle.throughput).max(axis=1).min() < 0.01 * 125.0


def test_a_cycle_just_at_its_end_has_no_multipliers() -> None:
    """A loss cuts Vegas if its window is slightly smaller, and not if it is slightly larger."""
    start = vm.limit_cycles(mixed(3.5), starts=1).starts[0].of(mixed(3.5))
    found = vm.limit_cycle(start)
    assert (found.kind, found.losses.tolist()) == ("periodic", [1.0, 1.0])
    assert np.isnan(found.multipliers).all()
    nearby = vm.limit_cycles(mixed(3.55), starts=10)
    assert [cycle.losses[0] for cycle in nearby.distinct] == [0.0]


def test_starts_without_an_answer_say_why() -> None:
    found = vm.limit_cycles(mixed(2.5), starts=12, windows=(60, 90))
    assert found.answered == (found.outcome >= 0).sum() < 12
    assert found.reasons == ("the buffer overflows although no window can shrink further",)
    assert [cycle is None for cycle in found.cycles] == (found.outcome < 0).tolist()


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"starts": 0}, "^starts: 0"),
        ({"tolerance": 1.0}, "^tolerance: 1.0"),
        ({"model": "x"}, "model"),
    ],
)
def test_bad_questions(wrong: dict[str, object], field: str) -> None:
    with pytest.raises(vm.FieldError, match=field):
        vm.limit_cycles(mixed(20.0), **wrong)


def test_a_steady_state_has_the_names_of_its_flows() -> None:
    flows = [vm.Flow("vegas", 0.08, name="v", count=2), vm.Flow("reno", 0.08)]
    case = vm.Scenario([vm.Link(1080.0, buffer=20.0)], flows)
    for model in ("fluid", "rounds"):
        found = vm.limit_cycle(case, model, longest=300.0)
        assert list(found.names) == [member.name for member in case.members]
        kind = found.kind.replace(" found", " a fixed point nor a periodic motion found; means")
        assert repr(found).startswith(f"<LimitCycle {kind}")
        assert f"reno {found.throughput[2]:.4g}" in repr(found)
    failed = vm.LimitCycle.failed(2, "it did not converge")
    assert repr(failed) == "<LimitCycle: no answer, it did not converge>"


def test_a_notebook_shows_a_steady_state_as_a_table() -> None:
    failed = vm.LimitCycle.failed(2, "it did not converge")
    assert "no answer, it did not converge" in failed._repr_html_()
    numbers = {"throughput": [400.0, 600.0], "window": [30.5, 50.5], "rtt_mean": [0.09, 0.1]}
    found = dataclasses.replace(
        failed, kind="periodic", period=2.5, status="done", names=("a<b", "reno"), **numbers
    )
    page = found._repr_html_()
    assert ">periodic of 2.5 s<" in page
    for cell in ("a&lt;b", "400", "600", "30.5", "90 ms", "100 ms"):
        assert f">{cell}</td>" in page


def test_a_steady_state_as_plain_data() -> None:
    flows = [vm.Flow("vegas", 0.08, name="v"), vm.Flow("reno", 0.08)]
    case = vm.Scenario([vm.Link(1080.0, buffer=20.0)], flows)
    found = vm.limit_cycle(case, longest=300.0)
    data = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert [flow["name"] for flow in data["flows"]] == ["v", "reno"]
    assert [flow["throughput_pps"] for flow in data["flows"]] == found.throughput.tolist()
    assert data["period_s"] == found.period
    assert data["flows"][1]["base_rtt_s"] is None  # of Vegas only
    known = [complex(*parts) for parts in data["multipliers"]]
    np.testing.assert_array_equal(known, found.multipliers)
    several = vm.limit_cycles(case, starts=3, longest=300.0)
    data = json.loads(json.dumps(several.to_json(), allow_nan=False))
    assert sum(cycle["outcome"]["starts"] for cycle in data["cycles"]) == data["answered"] == 3
    failed = json.dumps(vm.LimitCycle.failed(2, "no").to_json(), allow_nan=False)
    assert json.loads(failed)["status"] == "no"


@pytest.mark.parametrize("start_jitter", [0.0, 0.5])
def test_where_random_waits_hide_a_cycle_the_line_says_what_shows_it(start_jitter: float) -> None:
    """Random starts do not hide it: the search draws them once."""
    flows = [vm.Flow("vegas", 0.06, alpha=3, beta=3, variant="ns2"), vm.Flow("reno", 0.06)]
    case = vm.Scenario([vm.Link(1080.0, buffer=20.0)], flows, run=vm.Run(start_jitter=start_jitter))
    found = vm.limit_cycle(case, "fluid")
    assert found.kind == "neither found"
    assert found.hint
    assert found.to_json()["hint"] == found.hint
    assert repr(found).startswith(
        "<LimitCycle neither a fixed point nor a periodic motion found; means: vegas "
    )
    assert repr(found).endswith('; without random waits, send_jitter = "0 s", it may repeat>')
    repeats = vm.limit_cycle(case.replace({"flow.send_jitter": 0.0}), "fluid")
    assert repeats.kind == "periodic"
    assert repeats.hint == ""
    assert "send_jitter" not in repr(repeats)


def test_the_hint_does_not_advise_to_leave_out_waits_that_no_sender_makes() -> None:
    """The continuous equations jump between the two drifts of this law, and find no period."""
    vm.register_law("to-and-fro", lambda f: 1.0 if f.backlog < 3 else -1.0, delay_based=True)
    case = vm.Scenario([vm.Link(1500.0, buffer=150.0)], [vm.Flow("to-and-fro", 0.05)])
    for jitter, more in (("1 ms", ' and send_jitter = "0 s"'), ("0 s", "")):
        found = vm.limit_cycle(case.replace({"flow.send_jitter": jitter}), "fluid", longest=200.0)
        assert found.kind == "neither found"
        assert found.hint == f'with model = "rounds"{more} it may repeat'


def test_where_a_search_was_too_short_the_line_says_what_lengthens_it() -> None:
    flows = [vm.Flow("vegas", 0.06, alpha=3, beta=3, variant="ns2"), vm.Flow("reno", 0.06)]
    case = vm.Scenario([vm.Link(1080.0, buffer=20.0)], flows)
    quiet = case.replace({"flow.send_jitter": 0.0})
    short = vm.limit_cycle(quiet, "fluid", longest=50.0)
    assert short.kind == "neither found"
    assert "longest" in short.hint
    assert vm.limit_cycle(quiet, "fluid").kind == "periodic"
    lossy = vm.limit_cycle(case.replace({"link.loss": 0.01}), "fluid", longest=50.0)
    assert (lossy.kind, lossy.hint) == ("neither found", "")
