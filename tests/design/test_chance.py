"""Runs that scatter: which values are solutions, and with which standard errors."""

import collections
import dataclasses
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vegasmodel as vm
from tests.design.scenes import SHORT, figure, mixed, scattering
from tests.helpers import MIXED
from vegasmodel.command_line.commands import run
from vegasmodel.engines.rounds import answers
from vegasmodel.results.scatter import MIN_RUNS
from vegasmodel.study import design, models, scatter, targets
from vegasmodel.study.search import tried


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


def test_solutions_that_may_be_one_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 3 and 5 packets the share may be the target, and at 4 it is hardly farther from it."""
    shares = {1: 0.4, 2: 0.35, 3: 0.303, 4: 0.306, 5: 0.298, 6: 0.25, 7: 0.2, 8: 0.1}
    monkeypatch.setattr(tried, "answered", scattering(shares))
    target = "share:vegas=0.3"
    found = vm.design(mixed(), "link.buffer", target, "rounds", between=(1, 8), verify=())
    (solution,) = found.solutions
    assert solution.value == 5.0
    assert solution.interval == (3.0, 5.0)
    assert "; the search found 2 solutions, 3 pkt and 5 pkt; they may be one: " in solution.note


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
        # no packet finds the buffer full, so phase effects are impossible
        mean, extra = runs.mean(axis=0), {"throughput_runs": runs, "overflowed": False}
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
    """Shares by buffer; the errors are wide at 3 packets alone, where the share comes near.

    Near the solution at 23 packets the errors also reach the target, which tells nothing new.
    """
    share = {1.0: 0.5, 3.0: 0.35, 10.0: 0.7, 22.0: 0.31, 23.0: 0.3, 24.0: 0.292, 60.0: 0.1}
    error = dict.fromkeys(share, 0.005) | {3.0: 0.03}
    # no packet finds the buffer full, so phase effects are impossible
    extra = {"overflowed": False}
    made = dataclasses.replace(vm.predict(mixed(SHORT), "minicycle"), extra=extra)

    def scan(found: tried.Tried) -> None:
        found.values = np.array(list(share))
        found.differences = np.array(list(share.values())) - 0.3
        found.predictions = dict.fromkeys(share, made)
        found.half_width_at = {buffer: 2.0 * error[buffer] for buffer in share}

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


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_equal_runs_have_no_error(n: int) -> None:
    """A standard error of 1e-17 would be only rounding."""
    for rates in np.random.default_rng(0).uniform(1.0, 200.0, (20, 2)):
        runs = {"throughput_runs": np.tile(rates, (n, 1)), "queue_runs": np.full((n, 1), rates[0])}
        found = vm.Prediction("rounds", mixed(), rates, queue_mean=rates[:1], extra=runs)
        for text in ("share:vegas=0.3", "delay=20ms"):
            assert scatter.standard_error(targets.read(text, mixed()), found) == 0.0


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
    model: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the result of ``design``, and in what the command prints of the same result."""
    base = vm.Scenario.from_toml(LOSSY + SHORT)
    p = vm.predict(base.replace({"flow.rtt": 0.05}), model)
    queues = np.asarray(p.extra["queue_runs"])
    assert queues.shape == (p.runs, 1)
    assert np.ptp(queues) > 0
    assert queues.mean(axis=0) == pytest.approx(p.queue_mean)
    wanted = float(queues.mean()) / 1080
    designs = []
    solve = design.design

    def kept(*arguments: Any, **options: Any) -> Any:
        designs.append(solve(*arguments, **options))
        return designs[-1]

    monkeypatch.setattr(design, "design", kept)
    (tmp_path / "s.toml").write_text(LOSSY + SHORT)
    line = ["design", str(tmp_path / "s.toml"), "--solve", "flow.rtt", "--verify", "none"]
    line += ["--for", f"delay={wanted!r}s", "--between", "45ms:55ms", "--model", model]
    assert run(line) == 0
    assert re.search(r" [mu]s ± [\d.]+ [mu]s", capsys.readouterr().out)
    (found,) = designs
    assert found.solutions
    assert all(each.achieved_se for each in found.solutions)


def test_without_a_solution_the_reason_has_the_nearest_value_and_its_noise() -> None:
    """The share jumps over 0.3 from one whole buffer to the next, and random waits blur it."""
    noisy = MIXED.replace('send_jitter = "0 s"\n', "")
    found = vm.design(vm.Scenario.from_toml(noisy), "link.buffer", "share:vegas=0.3", within=1e-4)
    assert found.status == "none"
    assert re.search(r"evaluated at \d+ values of link.buffer from 1 pkt to \d+ pkt", found.reason)
    assert "chance may hide a solution" in found.reason
    near = re.search(r"nearest is (0\.\d+) ± (0\.\d+) at (\d+) pkt", found.reason)
    share, error, buffer = map(float, near.groups())
    p = vm.predict(vm.Scenario.from_toml(noisy).replace({"link.buffer": buffer}), "rounds")
    assert figure("share:vegas", p) == pytest.approx(share, rel=1e-4)
    assert abs(share - 0.3) < 5 * error
    far = vm.design(vm.Scenario.from_toml(noisy), "link.buffer", "share:vegas=0.999")
    assert "nearest is 0." in far.reason
    assert "chance" not in far.reason
