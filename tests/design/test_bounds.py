"""The values that meet a bound, such as ``share:vegas>=0.3``, form intervals."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import vegasmodel as vm
from tests.design.scenes import SHORT, figure, mixed, scattering
from tests.helpers import MIXED
from vegasmodel.command_line.commands import run
from vegasmodel.study import design as study
from vegasmodel.study import points
from vegasmodel.study.search import tried


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
    asked = base, "flow.vegas.alpha", "delay>=1ms", "minicycle"
    found = vm.design(*asked, verify=(), between=(0.25, 20.0))
    (one,) = found.intervals
    assert one.high <= 6.0
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


def test_chance_does_not_split_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 3 packets the mean is just below the bound, and the interval of the runs contains it."""
    shares = {1: 0.4, 2: 0.31, 3: 0.299, 4: 0.301, 5: 0.29, 6: 0.2, 7: 0.1, 8: 0.1}

    monkeypatch.setattr(tried, "answered", scattering(shares))
    found = vm.design(
        mixed(), "link.buffer", "share:vegas>=0.3", "rounds", between=(1, 8), verify=()
    )
    (one,) = found.intervals
    assert (one.low, one.high, one.above, one.unsure) == (1.0, 4.0, 5.0, 2)


def test_a_low_load_at_a_solution_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Vegas gets 30 % of what is delivered, but with 2 packets that is little of the capacity."""
    shares = {1: 0.2, 2: 0.3, 3: 0.2, 4: 0.2, 5: 0.3, 6: 0.2, 7: 0.1, 8: 0.1}
    loads = {1: 0.02, 2: 0.04, 3: 0.5, 4: 0.7, 5: 0.9, 6: 0.95, 7: 0.99, 8: 0.98}
    monkeypatch.setattr(tried, "answered", scattering(shares, loads))
    (tmp_path / "mixed.toml").write_text(MIXED)
    line = ["design", str(tmp_path / "mixed.toml"), "--solve", "link.buffer", "--for"]
    line += ["share:vegas>=0.25", "--between", "1pkt:8pkt", "--verify", "none"]
    assert run([*line, "--json"]) == 0
    low, high = json.loads(capsys.readouterr().out)["solutions"]
    assert (low["value"], high["value"]) == (2.0, 5.0)
    assert [low["utilization"], high["utilization"]] == pytest.approx([0.04, 0.9], rel=1e-9)
    assert "the load of the link is low: 0.04 here, but 0.99 at 7 pkt" in low["note"]
    assert "load" not in (high["note"] or "")
    assert run(line) == 0
    out = capsys.readouterr().out
    assert re.search(r"link.buffer +rounds +load", out)
    assert re.search(r"2 pkt +0.3 \S+ \S+ +0.04 ", out)


@pytest.mark.parametrize(
    ("bound", "found", "check", "rejected"),
    [("<=0.31", 0.3, 0.9, True), ("<=0.31", 0.3, 0.5, False), (">=0.29", 0.3, 0.9, False)],
)
def test_an_end_at_which_a_check_disagrees_by_more_than_the_target_is_no_solution(
    bound: str, found: float, check: float, rejected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By ``fluid`` the share is 0.3 with 1 and 4 to 6 packets; with 1 the check differs by far.

    If the check meets the bound, too, the value is a solution.
    """
    other = 0.1 if bound.startswith(">") else 0.5
    shares = dict.fromkeys(range(1, 9), other) | dict.fromkeys((1, 4, 5, 6), found)
    checks = {1: check, 4: 0.35, 6: 0.3}
    given = {"fluid": scattering(shares), "rounds": scattering(checks)}

    def answered(asked: points.Points, model: str, *more: object) -> object:
        return given[model](asked, model, *more)

    monkeypatch.setattr(tried, "answered", answered)
    monkeypatch.setattr(study, "answered", answered)
    asked = "link.buffer", f"share:vegas{bound}", "fluid"
    base = mixed().replace({"flow.variant": "ns2"})
    made = vm.design(base, *asked, between=(1, 8), verify="rounds")
    assert [each.value for each in made.rejected] == ([1.0] if rejected else [])
    assert [each.value for each in made.solutions] == ([] if rejected else [1.0]) + [4.0, 6.0]
    assert [each.low for each in made.intervals] == ([] if rejected else [1.0]) + [4.0]
    if rejected:
        assert made.rejected[0].rejected_by == ("rounds",)
        said = "1 pkt is no solution: rounds disagrees with fluid: 0.9, not 0.3"
        assert said in made.rejections[0]
        assert said in made.table()
