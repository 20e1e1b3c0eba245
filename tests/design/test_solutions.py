"""The values that ``design`` finds meet the target, and without one it says why."""

import dataclasses
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vegasmodel as vm
from tests.design.scenes import SHORT, figure, mixed
from tests.helpers import MIXED
from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.study import fields, models, points, ranges
from vegasmodel.study.search import tried

TARGETS = {
    "share:vegas": st.floats(0.02, 0.9),
    "ratio:vegas/reno": st.floats(0.02, 8.0),
    "jain": st.floats(0.5, 1.0),
    "delay": st.floats(1e-4, 0.2),
    "utilization": st.floats(0.5, 1.0),
}

FIELDS = ("link.buffer", "flow.vegas.alpha", "flow.rtt", "link.capacity", "flow.vegas.decrease")


@settings(max_examples=15, deadline=None, derandomize=True)
@given(data=st.data())
def test_answers_put_back_meet_the_target(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(TARGETS)))
    wanted, solve = data.draw(TARGETS[kind]), data.draw(st.sampled_from(FIELDS))
    variant = data.draw(st.sampled_from(["paper", "ns2", "linux"]))
    base = mixed()
    base = dataclasses.replace(
        base, flows=(dataclasses.replace(base.flows[0], variant=variant), base.flows[1])
    )
    text = f"{kind}={wanted!r}" + (" s" if kind == "delay" else "")
    found = vm.design(base, solve, text, "minicycle", verify=())
    assert (found.status == "none") == (found.reason is not None)
    assert found.status == ("none", "one", "several")[min(len(found.solutions), 2)]
    for solution in found.solutions:
        again = figure(kind, vm.predict(solution.scenario, "minicycle"))
        assert again == pytest.approx(solution.achieved, rel=1e-9)
        field = fields.find(base, solve)
        assert field.of(solution.scenario) == solution.value
        if solution.exact:
            assert again == pytest.approx(wanted, rel=2e-6)
        else:
            assert solution.note
            assert again == pytest.approx(wanted, rel=0.05)


def test_none_means_none() -> None:
    """A finer grid than that of the search finds no solution either."""
    found = vm.design(mixed(), "link.buffer", "share:vegas=0.75", "minicycle", verify=())
    assert found.status == "none"
    field = fields.find(mixed(), "link.buffer")
    asked = points.Points(mixed(), (field,), (np.linspace(1.0, 260.0, 4001),))
    shares = models.answers(asked, "minicycle").group_share[:, 0]
    assert shares.max() < 0.75
    assert f"{shares.max():.2g}" in str(found.reason)


def test_several_are_all_listed() -> None:
    """There is a solution on either side of the buffer at which both flows get the same."""
    found = vm.design(mixed(), "link.buffer", "jain=0.95", "minicycle", verify=())
    assert found.status == "several"
    equal = vm.design(mixed(), "link.buffer", "ratio:vegas/reno=1", "minicycle", verify=())
    low, high = (solution.value for solution in found.solutions)
    assert low < equal.solutions[0].value < high


def test_a_target_that_is_only_touched() -> None:
    """Jain's index is never above 1, so the error does not change its sign at this target."""
    found = vm.design(mixed(), "link.buffer", "jain=1", "minicycle", verify=())
    equal = vm.design(mixed(), "link.buffer", "ratio:vegas/reno=1", "minicycle", verify=())
    (solution,) = found.solutions
    assert solution.exact
    assert solution.value == pytest.approx(equal.solutions[0].value, rel=1e-3)


def test_an_answer_that_jumps_past_the_target_is_no_solution() -> None:
    """At B_th the mini-cycle's regime changes; no buffer gives a value inside the jump."""
    field = fields.find(mixed(), "link.buffer")
    grid = np.linspace(1.0, 260.0, 20001)
    asked = points.Points(mixed(), (field,), (grid,))
    shares = models.answers(asked, "minicycle").group_share[:, 0]
    step = int(np.argmax(np.abs(np.diff(shares))))
    low, high = sorted(shares[step : step + 2])
    assert high - low > 0.05, "the case has a jump"
    target = f"share:vegas={float(low + high) / 2!r}"
    found = vm.design(mixed(), "link.buffer", target, "minicycle", verify=(), within=0.01)
    near = [s for s in found.solutions if grid[step] <= s.value <= grid[step + 1]]
    assert near == []
    assert "jumps" in " ".join([str(found.reason), *found.notes])


def test_a_figure_that_does_not_depend_on_the_field() -> None:
    found = vm.design(mixed(), "flow.vegas.decrease", "jain=0.99", "minicycle", verify=())
    assert found.status == "none"
    assert "does not depend" in str(found.reason)


def test_rounding_errors_do_not_count_as_turns() -> None:
    """The share is the same at all packet sizes, except for its last digits.

    The search tried thousands of values around each of these rounding errors.
    """
    found = vm.design(mixed(), "packet_size", "share:vegas=0.45", "minicycle", verify=())
    assert "does not depend" in str(found.reason)
    assert found.tried < 100


def test_a_very_large_target_is_no_reason_for_a_warning() -> None:
    found = vm.design(mixed(), "link.buffer", "ratio:vegas/reno=1e300", "minicycle", verify=())
    assert found.status == "none"


def test_a_model_without_an_answer_says_why() -> None:
    found = vm.design(mixed(), "link.buffer", "share:vegas=0.3", "equilibrium", verify=())
    assert found.status == "none"
    assert "do not have the law reno" in str(found.reason)


def test_values_without_an_answer_are_told_beside_a_solution() -> None:
    """Above its beta no alpha is allowed; solutions there cannot be found."""
    apart = vm.Scenario.from_toml(MIXED.replace("beta = 3", "beta = 5"))
    found = vm.design(
        apart, "flow.vegas.alpha", "share:vegas=0.386", "minicycle", between=(0.25, 64.0), verify=()
    )
    assert all(each.value <= 5 for each in found.solutions)
    assert found.solutions
    (note,) = [each for each in found.notes if "has no answer at" in each]
    assert re.search(r"no answer at \d+ of \d+ values: .*beta", note)
    whole = vm.design(mixed(), "flow.vegas.alpha", "share:vegas=0.386", "minicycle", verify=())
    assert whole.solutions
    assert not [each for each in whole.notes if "has no answer at" in each]


def test_one_threshold_stays_one() -> None:
    """If alpha = beta, a change of alpha changes beta; if they differ, it does not."""
    found = vm.design(mixed(), "flow.vegas.alpha", "share:vegas=0.5", "minicycle", verify=())
    (solution,) = found.solutions
    flow = solution.scenario.flows[0]
    assert flow.alpha == flow.beta == solution.value
    assert "the beta of vegas changes with its alpha" in found.notes
    assert not fields.find(mixed(), "flow.vegas.beta").moves_beta(mixed())
    apart = vm.Scenario.from_toml(MIXED.replace("beta = 3", "beta = 5"))
    changed = fields.put(apart, {fields.find(apart, "flow.alpha"): 2.0})
    assert (changed.flows[0].alpha, changed.flows[0].beta) == (2.0, 5.0)
    with pytest.raises(
        FieldError, match="if beta = alpha in the scenario, a change of alpha changes both"
    ):
        fields.put(apart, {fields.find(apart, "flow.alpha"): 6.0})
    assert not fields.find(apart, "flow.alpha").moves_beta(apart)
    with pytest.raises(FieldError, match=r"if .* has alpha = beta, the field alpha changes both"):
        vm.design(mixed(), "flow.vegas.alpha,flow.vegas.beta", "jain=0.9", "minicycle")


def test_whole_packets_by_rounds() -> None:
    """``rounds`` needs whole buffers; the nearest whole number is the answer, with a note."""
    base = mixed(SHORT)
    found = vm.design(base, "link.buffer", "share:vegas=0.3", "rounds", between=(10, 40))
    (solution,) = found.solutions
    assert solution.value == round(solution.value)

    def share(buffer: float) -> float:
        made = fields.put(base, {fields.find(base, "link.buffer"): buffer})
        return figure("share:vegas", vm.predict(made, "rounds"))

    here = abs(share(solution.value) - 0.3)
    assert here <= min(abs(share(solution.value + step) - 0.3) for step in (-1, 1))
    assert not solution.exact
    ends = re.search(
        r"no whole number meets it exactly: share:vegas goes from \S+ at (\d+) pkt, (above|below) "
        r"the target, to \S+ at (\d+) pkt, (above|below) it",
        solution.note,
    )
    assert ends, "the note gives the whole numbers on both sides of the target"
    for buffer, side in ((ends[1], ends[2]), (ends[3], ends[4])):
        assert (share(float(buffer)) > 0.3) == (side == "above")
    assert {ends[2], ends[4]} == {"above", "below"}
    assert int(ends[3]) - int(ends[1]) == 1


def test_a_number_of_flows_is_verified() -> None:
    """A number of flows is a whole number also for the models that verify a solution."""
    asked = "flow.reno.count", "share:vegas>=0.2", "minicycle"
    found = vm.design(mixed(), *asked, verify="fluid", between=(1, 8))
    assert found.solutions
    for each in found.solutions:
        there = mixed().replace({"flow.reno.count": int(each.value)})
        expected = vm.predict(there, "fluid").shares["vegas"]
        assert each.verified["fluid"] == pytest.approx(expected, rel=1e-12)  # the sum's order


def test_one_value_in_a_dip_is_one_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer crosses the target on both sides of it; the note names both."""

    def evaluate_new(_: object, x: Floats, *, all_runs: bool = False) -> Floats:
        return np.where(x == 3, -0.004, np.where(all_runs, 0.2, 0.21))

    monkeypatch.setattr(tried.Tried, "_evaluate_new", evaluate_new)
    (solution,) = vm.design(mixed(), "link.buffer", "share:vegas=0.3", "rounds").solutions
    assert solution.value == 3
    assert "at 2 pkt, above the target, to 0.296 at 3 pkt, below it and from" in solution.note


@pytest.mark.ns2
def test_the_engineers_question_is_right_by_ns2() -> None:
    """The buffer that gives Vegas 30 %, within a packet of that by ns-2."""
    base = mixed(SHORT)
    found = vm.design(base, "link.buffer", "share:vegas=0.3", "rounds", between=(10, 40))
    asked = points.Points(base, (fields.find(base, "link.buffer"),), (np.arange(15.0, 27.0),))
    shares = models.answers(asked, "ns2").group_share[:, 0]
    measured = 15.0 + float(np.argmin(np.abs(shares - 0.3)))
    assert abs(found.solutions[0].value - measured) <= 1


@pytest.mark.ns2
@pytest.mark.parametrize(("variant", "said"), [("paper", 1), ("ns2", 0)])
def test_a_check_by_another_vegas_says_so(variant: str, said: int) -> None:
    base = mixed(SHORT).replace({"flow.vegas.variant": variant})
    found = vm.design(base, "link.buffer", "share:vegas=0.3", "minicycle", verify=("ns2",))
    assert found.solutions
    assert sum("same-vegas does not hold" in note for note in found.notes) == said


@pytest.mark.parametrize(("key", "low", "high"), [("alpha", 0.25, 4.0), ("beta", 2.0, 64.0)])
def test_a_threshold_is_searched_up_to_the_other_and_a_text_says_so(
    key: str, low: float, high: float
) -> None:
    """Values of alpha above beta were tried, too, and had no answer: 6 of 10."""
    base = mixed().replace({"flow.vegas.alpha": 2.0, "flow.vegas.beta": 4.0})
    found = vm.design(base, f"flow.vegas.{key}", "share:vegas=0.99", "fluid", verify=())
    assert found.scanned == (low, high)
    assert not found.solutions
    assert "no answer" not in found.reason
    assert "to vary both, write alpha = beta into the file, and solve for alpha" in found.reason


def test_alpha_is_searched_beyond_an_equal_beta_and_below_every_other() -> None:
    base = mixed()
    names = ("flow.vegas.alpha", "flow.alpha")
    spans = [ranges.of_field(base, fields.find(base, name)) for name in names]
    assert [span.high for span in spans] == [64.0, 64.0]
    others = (dataclasses.replace(base.flows[0], alpha=100.0, beta=100.0), vm.Flow("vegas", 0.06))
    both = dataclasses.replace(base, flows=(others[0], dataclasses.replace(others[1], name="b")))
    span = ranges.of_field(both, fields.find(both, "flow.alpha"))
    assert 0 < span.low < span.high == 3.0


def test_ranges_are_ranges() -> None:
    base = mixed()
    for name in ("link.buffer", "flow.vegas.count", "link.loss", "run.duration"):
        span = ranges.of_field(base, fields.find(base, name))
        assert 0 <= span.low < span.high < math.inf
    with pytest.raises(FieldError, match="lower end first"):
        ranges.of_field(base, fields.find(base, "link.buffer"), (9.0, 3.0))
    with pytest.raises(FieldError, match=r"^flow.vegas.stop: None gives no range .*; give one"):
        ranges.of_field(base, fields.find(base, "flow.vegas.stop"), None)
    assert ranges.Range(1.4, 5.6, log=False).values(50, whole=True).tolist() == [2, 3, 4, 5]
    with pytest.raises(FieldError, match=r"^between: '1.4:1.6' .* a range with a whole number"):
        vm.design(base, "link.buffer", "share:vegas=0.3", "rounds", between=(1.4, 1.6))


def test_a_solution_with_phase_effects_says_so() -> None:
    """Of two SACK flows that never wait, the buffer to the packet decides which one loses."""
    flows = [vm.Flow("sack", rtt, name=rtt[:2], send_jitter=0.0) for rtt in ("43 ms", "99 ms")]
    scenario = vm.Scenario([vm.Link("1065 pkt/s", buffer=45)], flows, run=vm.Run("100 s", "30 s"))
    found = vm.design(scenario, "link.buffer", "share:43=0.54", between=(43.0, 47.0), verify=())
    assert found.solutions
    assert all("phase-effects" in each.broken for each in found.solutions)
    assert any("phase-effects" in note for note in found.notes)
    newreno = vm.Scenario.from_toml(MIXED.replace('"reno"', '"newreno"'))
    plain = vm.design(newreno, "link.buffer", "share:vegas=0.3", verify=())
    assert plain.solutions
    assert not any("phase-effects" in each.broken for each in plain.solutions)


def test_a_value_without_the_quantity_of_the_target_has_that_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No flow has a share of nothing: a stand-in for a model delivers no packet below 15."""

    def nothing_below_15(
        asked: points.Points, *_: object
    ) -> tuple[points.Figures, list[vm.Prediction]]:
        made = []
        for value in asked.columns[0]:
            one = vm.predict(mixed().replace({"link.buffer": float(value)}), "minicycle")
            rates = one.throughput if value >= 15.0 else np.zeros(2)
            made.append(dataclasses.replace(one, throughput=rates))
        return points.collected(asked, made), made

    monkeypatch.setattr(tried, "answered", nothing_below_15)
    found = vm.design(
        mixed(), "link.buffer", "share:vegas=0.3", "minicycle", between=(10, 40), verify=()
    )
    (solution,) = found.solutions
    assert solution.value == pytest.approx(18.7, abs=0.1)
    assert "values: its prediction has no share:vegas" in str(found.table())


@pytest.mark.parametrize(("within", "values"), [(0.1, []), (0.12, [2.0])])
def test_a_jump_past_a_target_is_a_solution_only_near_enough_to_it(
    within: float, values: list[float]
) -> None:
    """Beside 4 Vegas flows, one Reno flow has 0.2 of a Rate-Delay link and two have 1/3.

    From 0.3 this is farther than 10 % of 0.3, and nearer than 12 %.
    """
    flows = [vm.Flow("reno", 0.1), vm.Flow("vegas", 0.1, count=4)]
    case = vm.Scenario([vm.Link(1000.0, buffer=200, queue=vm.RateDelay())], flows)
    found = vm.design(
        case, "flow.reno.count", "share:reno=0.3", "rate-delay", verify=(), within=within
    )
    assert [each.value for each in found.solutions] == values
    if values:
        assert found.solutions[0].achieved == pytest.approx(1.0 / 3.0)
