"""Inverse problems: the value found for a field meets the target."""

from __future__ import annotations

import collections
import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vegasmodel as vm
from tests.helpers import MIXED
from vegasmodel.command_line.commands import run
from vegasmodel.engines.rounds import answers
from vegasmodel.fields.units import FieldError
from vegasmodel.metrics import Floats
from vegasmodel.scatter import MIN_RUNS
from vegasmodel.study import design, fields, models, points, ranges, scatter, targets
from vegasmodel.study.search import tried

FAR = """
[[flow]]
name = "far"
law = "vegas"
variant = "ns2"
rtt = "60 ms"
send_jitter = "0 s"
alpha = 3
beta = 3
"""
SHORT = '[run]\nduration = "60 s"\nwarmup = "20 s"\n'


def mixed(more: str = "") -> vm.Scenario:
    return vm.Scenario.from_toml(MIXED + more)


def figure(kind: str, p: vm.Prediction) -> float:
    """The target's value by its definition, computed without the code under test."""
    rates = np.asarray(p.throughput)
    assert p.queue_mean is not None
    assert p.utilization is not None
    return {
        "share:vegas": float(rates[0] / rates.sum()),
        "ratio:vegas/reno": float(rates[0] / rates[1]),
        "jain": float(rates.sum() ** 2 / (2 * (rates**2).sum())),
        "delay": float(p.queue_mean[0]) / p.scenario.links[0].capacity,
        "utilization": float(p.utilization[0]),
    }[kind]


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


@pytest.mark.parametrize(
    ("target", "at_least", "bound"),
    [("share:vegas>=0.3", True, 0.3), ("jain>=0.9", True, 0.9), ("delay<=0.01 s", False, 0.01)],
)
def test_the_values_that_meet_a_bound_form_intervals(
    target: str, at_least: bool, bound: float
) -> None:
    found = vm.design(mixed(), "link.buffer", target, "minicycle", between=(1, 60), verify=())
    assert found.reason is None
    assert 0 < len(found.intervals) < 3
    assert {end.value for end in found.solutions} == {
        end for each in found.intervals for end in (each.low, each.high)
    }
    for buffer in np.geomspace(1.0, 60.0, 300)[1:-1]:
        here = mixed().replace({"link.buffer": buffer})
        value = figure(found.target, vm.predict(here, "minicycle"))
        inside = any(each.low <= buffer <= each.high for each in found.intervals)
        assert inside == (value >= bound if at_least else value <= bound)


def test_an_interval_at_an_end_of_the_range_says_so() -> None:
    """Beyond the range nothing is known; beyond another end the bound is not met."""
    (low,) = vm.design(mixed(), "link.buffer", "delay<=5ms", "minicycle", verify=()).intervals
    (high,) = vm.design(mixed(), "link.buffer", "delay>=5ms", "minicycle", verify=()).intervals
    assert low.below is None
    assert high.above is None
    assert low.high == pytest.approx(high.low, rel=1e-5)
    everywhere = vm.design(mixed(), "link.buffer", "delay<=9s", "minicycle", verify=())
    assert (everywhere.status, everywhere.reason) == ("one", None)
    assert (everywhere.intervals[0].low, everywhere.intervals[0].high) == everywhere.scanned
    assert everywhere.where == "from 1 pkt (the range's end) to 260 pkt (the range's end)"
    nowhere = vm.design(mixed(), "link.buffer", "delay>=9s", "minicycle", verify=())
    assert (nowhere.status, nowhere.intervals, nowhere.solutions) == ("none", (), ())
    assert "delay goes from 0 s to" in (nowhere.reason or "")


def test_an_interval_ends_where_the_model_has_no_answer() -> None:
    """Vegas's alpha cannot exceed its beta."""
    base = mixed().replace({"flow.vegas.beta": 6.0})
    found = vm.design(base, "flow.vegas.alpha", "delay>=1ms", "minicycle", verify=())
    (one,) = found.intervals
    assert one.high <= 6.0
    assert one.above is not None
    assert one.above > 6.0


def test_an_interval_of_whole_numbers_ends_between_two_neighbours() -> None:
    base = mixed(SHORT)
    found = vm.design(base, "link.buffer", "share:vegas>=0.3", "rounds", between=(12, 60))
    (one,) = found.intervals
    assert (one.low, one.below, one.above) == (12.0, None, one.high + 1)
    for buffer, meets in ((one.high, True), (one.high + 1, False)):
        share = figure("share:vegas", vm.predict(base.replace({"link.buffer": buffer})))
        assert (share >= 0.3) == meets
    assert found.where.endswith(f"to {one.high:g} pkt (not at {one.high + 1:g} pkt)")


SCATTER = (-0.002, 0.0, 0.002)  # of a share, over three runs: the 95 % interval is 0.005 each way


def test_chance_does_not_split_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 3 packets the mean is just below the bound, and the interval of the runs contains it."""
    shares = {1: 0.4, 2: 0.31, 3: 0.299, 4: 0.301, 5: 0.29, 6: 0.2, 7: 0.1, 8: 0.1}

    def runs(asked: points.Points, *_: object) -> tuple[points.Figures, list[vm.Prediction]]:
        made = []
        for value in asked.columns[0]:
            each = [[1080 * (shares[value] + e), 1080 * (1 - shares[value] - e)] for e in SCATTER]
            base = mixed().replace({"link.buffer": float(value)})
            one = vm.predict(base, "minicycle")
            rates = np.array(each)
            made.append(
                dataclasses.replace(
                    one, throughput=rates.mean(axis=0), extra={"throughput_runs": rates}
                )
            )
        return points.collected(asked, made), made

    monkeypatch.setattr(tried, "answered", runs)
    found = vm.design(
        mixed(), "link.buffer", "share:vegas>=0.3", "rounds", between=(1, 8), verify=()
    )
    (one,) = found.intervals
    assert (one.low, one.high, one.above, one.unsure) == (1.0, 4.0, 5.0, 2)


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


def test_a_model_without_an_answer_says_why() -> None:
    found = vm.design(mixed(), "link.buffer", "share:vegas=0.3", "equilibrium", verify=())
    assert found.status == "none"
    assert "do not have the law reno" in str(found.reason)


def test_values_without_an_answer_are_told_beside_a_solution() -> None:
    """Above its beta no alpha is allowed; solutions there cannot be found."""
    apart = vm.Scenario.from_toml(MIXED.replace("beta = 3", "beta = 5"))
    found = vm.design(apart, "flow.vegas.alpha", "share:vegas=0.386", "minicycle", verify=())
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
    apart = vm.Scenario.from_toml(MIXED.replace("beta = 3", "beta = 5"))
    changed = fields.put(apart, {fields.find(apart, "flow.alpha"): 2.0})
    assert (changed.flows[0].alpha, changed.flows[0].beta) == (2.0, 5.0)
    with pytest.raises(
        FieldError, match="if beta = alpha in the scenario, a change of alpha changes both"
    ):
        fields.put(apart, {fields.find(apart, "flow.alpha"): 6.0})


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


def test_few_runs_far_from_the_target_and_all_near_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """If senders wait, few runs show on which side of the target a value is.

    The answer is that of all the runs that ``predict`` makes.
    """
    base = vm.Scenario.from_toml(MIXED.replace('send_jitter = "0 s"', "") + SHORT)
    runs: collections.Counter[float] = collections.Counter()

    def counting(scenario: vm.Scenario, **options: Any) -> Any:
        runs[scenario.links[0].buffer] += 1
        return run_once(scenario, **options)

    run_once = answers.run
    monkeypatch.setattr(answers, "run", counting)
    found = vm.design(base, "link.buffer", "share:vegas=0.3", "rounds", between=(12, 60))
    (solution,) = found.solutions
    assert min(runs.values()) == 2
    assert runs[solution.value] >= MIN_RUNS
    shares = {
        buffer: figure("share:vegas", vm.predict(base.replace({"link.buffer": buffer})))
        for buffer in (solution.value - 1, solution.value, solution.value + 1)
    }
    assert solution.achieved == pytest.approx(shares[solution.value], rel=1e-12)
    # the target is between two neighbours, and the solution is the nearer one; chance decides
    # whether a value farther away is nearer still
    here = shares.pop(solution.value) - 0.3
    others = [share - 0.3 for share in shares.values() if (share - 0.3) * here <= 0.0]
    assert others
    assert abs(here) <= min(map(abs, others))


def test_one_value_in_a_dip_is_one_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer crosses the target on both sides of it; the note names both."""

    def ask(_: object, x: Floats, *, whole: bool = False) -> Floats:
        return np.where(x == 3, -0.004, np.where(whole, 0.2, 0.21))

    monkeypatch.setattr(tried.Tried, "_ask", ask)
    (solution,) = vm.design(mixed(), "link.buffer", "share:vegas=0.3", "rounds").solutions
    assert solution.value == 3
    assert "at 2 pkt, above the target, to 0.296 at 3 pkt, below it and from" in solution.note


@pytest.mark.parametrize("scattered", [True, False])
def test_a_solution_whose_runs_scatter_is_doubtful(
    monkeypatch: pytest.MonkeyPatch, *, scattered: bool
) -> None:
    """Shares of two runs around the target: at 0.25 and 0.35 they scatter too much, at 0.3 not."""
    shares = np.array([0.25, 0.35] if scattered else [0.3, 0.3])
    asked: list[tuple[str, int]] = []

    def made(scenarios: list[vm.Scenario], model: str, *_: object, **__: object) -> Any:
        asked.extend((model, each.run.times) for each in scenarios)
        runs = 1000.0 * np.stack([shares, 1.0 - shares], axis=1)
        mean, extra = runs.mean(axis=0), {"throughput_runs": runs}
        error = runs.std(axis=0, ddof=1) / math.sqrt(2.0)
        return [
            vm.Prediction(model, each, mean, throughput_se=error, extra=extra) for each in scenarios
        ]

    monkeypatch.setattr(models, "predictions", made)
    monkeypatch.setattr(models, "ready", lambda *_: None)
    base, share = mixed(), "share:vegas=0.3"
    found = vm.design(base, "link.buffer", share, between=(3, 4), verify=("ns2",))
    (solution,) = found.solutions
    assert solution.achieved == pytest.approx(0.3)
    # the standard deviation of 0.25 and 0.35 is 0.1/sqrt(2), over sqrt(2)
    assert solution.achieved_se == pytest.approx(0.05 if scattered else 0.0, abs=1e-12)
    assert solution.verified_se["ns2"] == pytest.approx(solution.achieved_se)
    assert ("doubtful" in solution.note) == scattered
    assert asked[-1] == ("ns2", 2), "ns-2 runs as often as rounds did"


def test_a_place_where_chance_may_hide_a_solution_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shares (y) by buffer; the errors are wide at 3 packets alone, where the share comes near.

    Near the solution at 23 packets the errors also reach the target, which tells nothing new.
    """
    share = {1.0: 0.5, 3.0: 0.35, 10.0: 0.7, 22.0: 0.31, 23.0: 0.3, 24.0: 0.292, 60.0: 0.1}
    error = dict.fromkeys(share, 0.005) | {3.0: 0.03}
    made = vm.predict(mixed(SHORT), "minicycle")

    def scan(values: tried.Tried) -> None:
        values.x = np.array(list(share))
        values.y = np.array(list(share.values())) - 0.3
        values.made = dict.fromkeys(share, made)
        values.halves = {buffer: 2.0 * error[buffer] for buffer in share}

    monkeypatch.setattr(design, "scan", scan)
    found = vm.design(mixed(SHORT), "link.buffer", "share:vegas=0.3", verify=())
    assert [each.value for each in found.solutions] == [23.0]
    (note,) = [each for each in found.notes if "chance may hide a solution" in each]
    assert "at 3 pkt" in note
    assert found.tried == 7
    (tmp_path / "s.toml").write_text(MIXED + SHORT)
    line = ["design", str(tmp_path / "s.toml"), "--solve", "link.buffer", "--verify", "none"]
    assert run([*line, "--for", "share:vegas=0.3"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "evaluated at 7 values of link.buffer from 1 pkt to" in out
    assert "--between LOW:HIGH searches a narrower range" in out


@pytest.mark.parametrize("counted", [False, True])
def test_the_error_of_a_figure_is_that_of_its_linear_form(*, counted: bool) -> None:
    """If runs scatter little, the derivatives give the error of a value (the delta method).

    Simulators also count the packets that were ``delivered``.
    """
    rng = np.random.default_rng(3)
    runs = np.array([300.0, 700.0]) + rng.multivariate_normal([0, 0], [[9, -4], [-4, 16]], 400)
    a, b = mean = runs.mean(axis=0)
    packets = 400.0 * mean if counted else None
    found = vm.Prediction(
        "rounds", mixed(), mean, delivered=packets, extra={"throughput_runs": runs}
    )
    slopes = {
        "share:vegas=0.3": np.array([b, -a]) / (a + b) ** 2,
        "ratio:vegas/reno=1": np.array([1 / b, -a / b**2]),
        "utilization=0.9": np.array([1, 1]) / 1080,
    }
    for text, slope in slopes.items():
        variance = slope @ np.cov(runs.T) @ slope / len(runs)
        error = scatter.standard_error(targets.read(text, mixed()), found)
        assert error == pytest.approx(math.sqrt(variance), rel=0.01)
    delay = targets.read("delay=20ms", mixed())
    assert scatter.standard_error(delay, found) is None
    queues = rng.normal(20.0, 3.0, (400, 1))
    known = dataclasses.replace(found, extra={**found.extra, "queue_runs": queues})
    error = queues.std(ddof=1) / math.sqrt(400) / 1080
    assert scatter.standard_error(delay, known) == pytest.approx(error, rel=1e-9)


LOSSY = """
[[link]]
capacity = "1080 pkt/s"
buffer = "30 pkt"
loss = 0.003
[[flow]]
law = "vegas"
variant = "ns2"
rtt = "80 ms"
alpha = 3
beta = 3
[[flow]]
law = "reno"
rtt = "60 ms"
"""


def test_chance_does_not_make_a_solution_of_each_crossing() -> None:
    """Random losses blur the answers of ``fluid``, so they cross a target again and again.

    Each crossing was a solution: dozens of them, some called exact, and none with an error.
    """
    base = vm.Scenario.from_toml(LOSSY)
    found = vm.design(base, "flow.rtt", "utilization=0.9", "fluid", verify=())
    assert 1 <= len(found.solutions) <= 3
    assert found.tried < 120
    for each in found.solutions:
        p = vm.predict(each.scenario, "fluid")
        rates = np.asarray(p.extra["throughput_runs"])
        error = rates.sum(axis=1).std(ddof=1) / math.sqrt(len(rates)) / 1080
        assert each.achieved_se == pytest.approx(error, rel=1e-6)
        assert each.achieved == pytest.approx(0.9, abs=0.05 * 0.9)
        assert "scatter" in each.note or "95 %" in each.note


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_a_delay_has_the_error_of_the_queues_of_the_runs(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = vm.Scenario.from_toml(LOSSY + SHORT)
    p = vm.predict(base.replace({"flow.rtt": 0.05}), model)
    queues = np.asarray(p.extra["queue_runs"])
    assert queues.shape == (p.runs, 1)
    assert np.ptp(queues) > 0
    assert queues.mean(axis=0) == pytest.approx(p.queue_mean)
    wanted = float(queues.mean()) / 1080
    found = vm.design(
        base, "flow.rtt", f"delay={wanted!r} s", model, verify=(), between=(0.045, 0.055)
    )
    assert found.solutions
    assert all(each.achieved_se for each in found.solutions)
    (tmp_path / "s.toml").write_text(LOSSY + SHORT)
    line = ["design", str(tmp_path / "s.toml"), "--solve", "flow.rtt", "--verify", "none"]
    line += ["--for", f"delay={wanted!r}s", "--between", "45ms:55ms", "--model", model]
    assert run(line) == 0
    assert re.search(r" [mu]s ± [\d.]+ [mu]s", capsys.readouterr().out)


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


@pytest.mark.parametrize(
    ("solve", "target", "says"),
    [
        ("link.bufer", "jain=0.9", "did you mean 'link.buffer'"),
        ("flow.vega.alpha", "jain=0.9", "did you mean 'flow.vegas.alpha'"),
        ("link.queue.k", "jain=0.9", "link.buffer"),
        ("flow.vegas.law", "jain=0.9", "a number"),
        ("link.buffer", "share:vega=0.3", "did you mean 'vegas'"),
        ("link.buffer", "share:vegas+ren=0.3", "did you mean 'reno'"),
        ("link.buffer", "share:law:vega=0.3", "laws of this scenario: reno, vegas; did you mean"),
        ("link.buffer", "share:vegas=1.3", "at most 1"),
        ("link.buffer", "ratio:vegas=1", "ratio:a/b"),
        ("link.buffer", "jane=1", "did you mean 'jain'"),
        ("link.buffer", "delay=20", "a unit is needed"),
        ("link.buffer", "jain", "'jain' lacks =VALUE; jain=0.95"),
        ("link.buffer", "share:vegas", "'share:vegas' lacks =VALUE; share:GROUP=0.3"),
        ("link.buffer", "share:vegas>0.3", "lacks =VALUE.*>= or <= in place of ="),
        ("link.buffer", "share:vega>=0.3", "did you mean 'vegas'"),
        ("link.buffer", "share:vegas<>=0.3", "one of the groups of this scenario: vegas, reno"),
    ],
)
def test_bad_questions(solve: str, target: str, says: str) -> None:
    with pytest.raises(FieldError, match=says):
        vm.design(mixed(), solve, target, "minicycle")


@pytest.mark.parametrize("whom", ["law:vegas", "vegas+far", "law:vegas+far"])
def test_a_share_of_several_groups(whom: str) -> None:
    base = mixed(FAR)
    (one,) = vm.design(base, "link.buffer", "share:reno=0.6", "minicycle", verify=()).solutions
    found = vm.design(base, "link.buffer", f"share:{whom}=0.4", "minicycle", verify=())
    assert found.target == f"share:{whom}"
    assert not [note for note in found.notes if "not counted" in note]
    assert [each.value for each in found.solutions] == pytest.approx([one.value], rel=1e-5)


def test_a_ratio_of_several_groups() -> None:
    """It divides the mean throughput of a flow on one side by that on the other."""
    base = mixed(FAR).replace({"flow.far.count": 3, "flow.far.rtt": "90 ms"})
    p = vm.predict(base.replace({"link.buffer": 25}), "fluid")
    rates = np.asarray(p.throughput)  # vegas, reno, three of far
    wanted = {
        "law:vegas/law:reno": rates[[0, 2, 3, 4]].mean() / rates[1],
        "vegas+far/reno": rates[[0, 2, 3, 4]].mean() / rates[1],
        "far/vegas+reno": rates[2:].mean() / rates[:2].mean(),
    }
    field = fields.find(base, "link.buffer")
    figures = models.answers(points.Points(base, (field,), (np.array([25.0]),)), "fluid")
    counts = points.Points(base, (fields.find(base, "flow.far.count"),), (np.array([1, 3]),))
    several = models.answers(counts, "fluid")
    alone = np.asarray(vm.predict(base.replace({"flow.far.count": 1}), "fluid").throughput)
    for whom, value in wanted.items():
        aim = targets.read(f"ratio:{whom}={float(value)!r}", base)
        assert aim.of(figures, base)[0] == pytest.approx(value, rel=1e-9)
        assert not aim.notes(base)
    aim = targets.read("ratio:law:vegas/reno=1", base)
    assert aim.of(several, base)[0] == pytest.approx(alone[[0, 2]].mean() / alone[1], rel=1e-9)


@pytest.mark.parametrize(
    ("whom", "said"),
    [
        ("law:vegas/vegas", "different groups on the two sides; vegas would be on both"),
        ("law:vega/reno", "laws of this scenario: reno, vegas; did you mean 'vegas'"),
        ("vegas/ren", "ratio:a/b=VALUE with one of the groups .* did you mean 'reno'"),
    ],
)
def test_a_ratio_of_wrong_groups(whom: str, said: str) -> None:
    with pytest.raises(FieldError, match=said):
        targets.read(f"ratio:{whom}=1", mixed(FAR))


def test_a_group_that_has_the_name_of_a_law_is_noted() -> None:
    """The flow ``far`` is a Vegas flow, too: the user may have meant both."""
    for text, said in (
        ("share:vegas=0.2", "share:law:vegas has all"),
        ("ratio:vegas/reno=1", "; law:vegas has all"),
    ):
        found = vm.design(mixed(FAR), "link.buffer", text, "minicycle", verify=())
        (note,) = [each for each in found.notes if "not counted: far" in each]
        assert said in note
        alone = vm.design(mixed(), "link.buffer", text, "minicycle", verify=())
        assert not [each for each in alone.notes if "not counted" in each]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mixed.toml"
    file.write_text(MIXED)
    line = ["design", str(file), "--solve", "link.buffer", "--for", "share:vegas=0.3"]
    line += ["--model", "minicycle", "--verify", "none"]
    assert run([*line, "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert err == ""
    assert (document["schema"], document["status"], document["reason"]) == (1, "one", None)
    (solution,) = document["solutions"]
    assert solution["unit"] == "pkt"
    assert solution["achieved"] == pytest.approx(0.3, rel=1e-6)
    assert solution["verified"] == {}
    assert run(line) == 0
    out, _ = capsys.readouterr()
    assert "link.buffer" in out
    assert max(map(len, out.splitlines())) <= 100
    line[5] = "share:vegas>=0.3"
    assert run([*line, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["sense"], document["wanted"]) == (">=", 0.3)
    assert document["intervals"] == [
        {"low": 1.0, "high": pytest.approx(18.6992, rel=1e-4), "below": None, "unsure": 0}
        | {"above": document["intervals"][0]["above"]}
    ]
    assert run(line) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "meets the target from 1 pkt (the range's end) to 18.6992 pkt." in out
    assert run([*line[:-4], "--model", "minicycle", "--verify", "none", "--between", "5"]) == 2
    assert run([*line[:4], "--for", "jain=2"]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_assumptions_that_do_not_hold_at_a_solution_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A closed form of a drop-tail queue for a RED queue: ``rounds`` gives another share."""
    red = 'queue = { discipline = "red", min_threshold = "5 pkt", max_threshold = "15 pkt" }'
    text = MIXED.replace("[[flow]]", f"{red}\n[[flow]]", 1)
    (tmp_path / "red.toml").write_text(text)
    line = ["design", str(tmp_path / "red.toml"), "--solve", "link.buffer", "--for"]
    line += ["share:vegas=0.2", "--model", "minicycle"]
    assert run([*line, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (solution,) = document["solutions"]
    made = vm.Scenario.from_toml(text).replace({"link.buffer": solution["value"]})
    broken = sorted(each.name for each in vm.predict(made, "minicycle").broken)
    assert "fifo-queue" in broken
    assert solution["broken"] == broken
    assert any(", ".join(broken) in note for note in document["notes"])
    assert abs(solution["verified"]["rounds"] - 0.2) > 0.02
    assert "rounds disagrees with minicycle" in solution["note"]
    assert run([*line, "--verify", "none"]) == 0
    assert "assumptions of minicycle do not hold" in " ".join(capsys.readouterr().out.split())


def test_a_delay_is_of_the_link_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    links = (
        '[[link]]\nname = "a"\ncapacity = "5000 pkt/s"\nbuffer = "20 pkt"\n[[link]]\nname = "b"\n'
    )
    text = MIXED.replace("[[link]]\n", links) + SHORT
    (tmp_path / "two.toml").write_text(text)
    line = ["design", str(tmp_path / "two.toml"), "--solve", "link.b.buffer", "--verify", "none"]
    line += ["--between", "5pkt:60pkt", "--within", "0.2", "--json"]
    assert run([*line, "--for", "delay:b=20ms"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["target"], document["target_unit"]) == ("delay:b", "s")
    solution = document["solutions"][0]
    made = vm.Scenario.from_toml(text).replace({"link.b.buffer": solution["value"]})
    queue = vm.predict(made, "rounds").queue_mean
    assert queue is not None
    assert queue[1] / made.links[1].capacity == pytest.approx(0.02, rel=0.2)
    assert run([*line, "--for", "delay=20ms"]) == 0
    assert "delay:a goes from" in str(json.loads(capsys.readouterr().out)["reason"])
    assert run([*line, "--for", "utilization:c=0.9"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "utilization:LINK=VALUE with a link of this scenario: a, b" in said


def test_ranges_are_ranges() -> None:
    base = mixed()
    for name in ("link.buffer", "flow.vegas.count", "link.loss", "run.duration"):
        span = ranges.of_field(base, fields.find(base, name))
        assert 0 <= span.low < span.high < math.inf
    with pytest.raises(FieldError, match="lower end first"):
        ranges.of_field(base, fields.find(base, "link.buffer"), (9.0, 3.0))
    assert ranges.Range(1.4, 5.6, log=False).values(50, whole=True).tolist() == [2, 3, 4, 5]
    with pytest.raises(FieldError, match=r"^between: '1.4:1.6' .* a range with a whole number"):
        vm.design(base, "link.buffer", "share:vegas=0.3", "rounds", between=(1.4, 1.6))


def test_without_a_solution_the_reason_has_the_nearest_value_and_its_noise() -> None:
    """The share jumps over 0.3 from one whole buffer to the next, and random waits blur it."""
    noisy = MIXED.replace('send_jitter = "0 s"\n', "")
    found = vm.design(vm.Scenario.from_toml(noisy), "link.buffer", "share:vegas=0.3", within=1e-4)
    assert found.reason is not None
    assert found.status == "none"
    assert re.search(r"evaluated at \d+ values of link.buffer from 1 pkt to \d+ pkt", found.reason)
    assert "chance may hide a solution" in found.reason
    near = re.search(r"nearest is (0\.\d+) ± (0\.\d+) at (\d+) pkt", found.reason)
    assert near is not None
    share, error, buffer = map(float, near.groups())
    p = vm.predict(vm.Scenario.from_toml(noisy).replace({"link.buffer": buffer}), "rounds")
    assert figure("share:vegas", p) == pytest.approx(share, rel=1e-4)
    assert abs(share - 0.3) < 5 * error
    far = vm.design(vm.Scenario.from_toml(noisy), "link.buffer", "share:vegas=0.999")
    assert far.reason is not None
    assert "nearest is 0." in far.reason
    assert "chance" not in far.reason


def test_a_delay_has_its_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.toml"
    path.write_text(MIXED)
    asked = ["design", str(path), "--solve", "link.buffer", "--for", "delay=10ms"]
    assert run([*asked, "--model", "fluid", "--verify", "none"]) == 0
    out = capsys.readouterr().out
    assert re.search(r" pkt +(9|10)(\.\d+)? ms", out)
    assert run([*asked, "--model", "fluid", "--verify", "none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["target_unit"] == "s"


def test_a_solution_with_phase_effects_says_so() -> None:
    """Of two SACK flows that never wait, the buffer to the packet decides which one loses."""
    flows = [vm.Flow("sack", rtt, name=rtt[:2], send_jitter=0.0) for rtt in ("43 ms", "99 ms")]
    scenario = vm.Scenario([vm.Link("1065 pkt/s", buffer=45)], flows, run=vm.Run("100 s", "30 s"))
    found = vm.design(scenario, "link.buffer", "share:43=0.54", between=(43.0, 47.0), verify=())
    assert found.solutions
    assert all("phase-effects" in each.broken for each in found.solutions)
    assert any("phase-effects" in note for note in found.notes)
    plain = vm.design(vm.Scenario.from_toml(MIXED), "link.buffer", "share:vegas=0.3", verify=())
    assert plain.solutions
    assert not any("phase-effects" in each.broken for each in plain.solutions)
