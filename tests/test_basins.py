"""Basins: closed forms or symmetry give the outcomes, and probability gives their shares."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vegasmodel as vm
from tests.helpers import pair
from vegasmodel.command_line.commands import run
from vegasmodel.fields.errors import FieldError
from vegasmodel.packets import ns2
from vegasmodel.study import models
from vegasmodel.study.agreement import agreement
from vegasmodel.study.basins import Basins, basins, grouped, sets
from vegasmodel.study.starts import Start, starts


def test_whole_windows_come_to_rest_where_the_closed_form_has_equilibria() -> None:
    found = basins(pair(), "rounds", starts=12, windows=(1, 12), tolerance=0.005)
    band = vm.equilibrium.bands.equilibria([1, 1], [3, 3], [0, 0], 250.0, 0.06, "ns2")
    _, rates, _ = band.windows()
    still = [each for each in found.outcomes if np.ptp([each.low, each.high], axis=0).max() < 0.2]
    assert len(still) >= 3  # the others alternate between neighbours
    for each in still:
        assert np.abs(rates - each.throughput).max(axis=1).min() < 0.01 * 125.0
    assert sum(each.starts for each in found.outcomes) == found.answered == 12
    assert [p.model for p, _ in sets(pair())] == ["bands"]


def test_a_flow_that_has_stopped_hides_no_outcome() -> None:
    """This flow has no throughput.  The two others keep 1 to 3 packets queued, as without it."""
    more = [*pair().flows, vm.Flow("vegas", "60 ms", name="gone", stop="5 s", send_jitter=0)]
    found = basins(vm.Scenario(pair().links, more, run=pair().run), "rounds", starts=4)
    assert sum(each.starts for each in found.outcomes) == found.answered == 4
    assert not found.throughput[:, 2].any()


def test_either_of_two_like_flows_is_the_later_one_half_of_the_time() -> None:
    """The later flow over-estimates its baseRTT; the random starts decide which flow is later."""
    case = pair("alpha = 2\nbeta = 2\nstart = { first = '0 s', every = '2 s' }")
    found = basins(case, "equilibrium", starts=100, order=True, phase=0.0)
    assert len(found.outcomes) == 2
    first, second = found.outcomes
    np.testing.assert_allclose(first.throughput, second.throughput[::-1])
    late = np.array([start.times[1] > start.times[0] for start in found.starts])
    assert np.array_equal(late, found.throughput[:, 1] > found.throughput[:, 0])
    assert abs(first.share - 0.5) < 4 * 0.05
    assert first.share_se == pytest.approx(0.05, rel=0.1)  # sqrt(1/4/100)
    assert first.interval[0] < 0.5 < first.interval[1] or abs(first.share - 0.5) > 0.098


@settings(deadline=None)  # the first call loads SciPy
@given(st.binary(min_size=1, max_size=12))
def test_outcomes_are_the_parts_that_hang_together(places: bytes) -> None:
    """Compared with a flood fill over all pairs; neighbouring lattice points differ by 1.

    Each byte gives a point. Hypothesis draws bytes faster than a list of pairs of integers. Such a
    list came too slowly if other processes used the processor.
    """
    points = np.array([divmod(byte, 16) for byte in places])
    rates = points + 100.0
    near = 1.5 / rates.mean()
    label = grouped(rates, near)
    linked = np.abs(rates[:, None] - rates).max(axis=2) < 1.5
    for _ in points:
        linked = linked @ linked
    assert np.array_equal(label[:, None] == label, linked)
    sizes = np.bincount(label)
    assert np.all(np.diff(sizes) <= 0)


def drawn(rng: np.random.Generator, chances: list[float], n: int) -> Basins:
    """An artificial model whose outcomes have these probabilities."""
    values = 100.0 + 40.0 * rng.choice(len(chances), n, p=chances)
    rates = np.stack([values, 300.0 - values], axis=-1)
    beginnings = tuple(Start((0.0, 0.0), (None, None), int(s)) for s in rng.integers(0, 2**31, n))
    return Basins(pair(), "x", 0.05, beginnings, rates, grouped(rates, 0.05), (), ())


def test_one_outcome_is_one() -> None:
    flows = [vm.Flow("vegas", 0.06, alpha=3, beta=3), vm.Flow("reno", 0.06)]
    one = vm.basins(vm.Scenario([vm.Link(1080.0, buffer=20)], flows), "minicycle", starts=3)
    assert repr(one) == "<Basins minicycle: 1 outcome, shares of starts 1>"


def test_the_line_of_a_result_without_outcomes_says_why() -> None:
    found = vm.basins(vm.Scenario([vm.Link(1000.0)], [vm.Flow("reno", 0.06)]), "red", starts=2)
    assert repr(found).startswith("<Basins red: no answer from any start, ")
    assert found.reasons[0] in repr(found)


def test_too_many_flows_for_random_starts_are_refused_at_once() -> None:
    """Each start is a scenario with a table [[flow]] for each flow, of which 300 are allowed."""
    many = vm.Scenario([vm.Link(1080.0, buffer=20)], [vm.Flow("reno", 0.06, count=301)])
    for study in (vm.basins, vm.limit_cycles):
        with pytest.raises(FieldError, match="flows: 301 is not allowed; at most 300 flows"):
            study(many, "fluid", starts=2)


def test_like_sources_are_told_apart_as_often_as_the_test_says() -> None:
    rng = np.random.default_rng(1)
    even, uneven = [0.5, 0.3, 0.2], [0.3, 0.5, 0.2]
    p = [agreement(drawn(rng, even, 200), drawn(rng, even, 200)).p for _ in range(60)]
    assert np.mean(np.array(p) < 0.05) < 0.15
    assert 0.25 < np.mean(np.array(p) < 0.5) < 0.75
    other = [agreement(drawn(rng, even, 200), drawn(rng, uneven, 200)).p for _ in range(10)]
    assert np.median(other) < 0.01


def test_many_rare_outcomes_do_not_tell_like_sources_apart() -> None:
    """Most starts lead to rare outcomes, which once were grouped for each model separately."""
    rng = np.random.default_rng(4)

    def scattered(shift: float) -> Basins:
        rates = rng.normal([190.0, 120.0], [60.0, 45.0], (200, 2)) + np.array([shift, 0.0])
        beginnings = tuple(
            Start((0.0, 0.0), (None, None), int(k)) for k in rng.integers(0, 2**31, 200)
        )
        return Basins(pair(), "x", 0.02, beginnings, rates, grouped(rates, 0.02), (), ())

    like = [agreement(scattered(0.0), scattered(0.0)).p for _ in range(40)]
    assert np.mean(np.array(like) < 0.05) < 0.15
    assert 0.25 < np.mean(np.array(like) < 0.5) < 0.75
    assert np.median([agreement(scattered(0.0), scattered(40.0)).p for _ in range(10)]) < 0.01


def test_equal_shares_agree_although_the_last_digits_of_rates_differ() -> None:
    """Two rare outcomes, merged with a common one: the same counts from both sources."""
    sizes, firsts = [172, 25, 2, 1], [50.0, 80.0, 110.0, 140.0]
    rates = np.repeat(np.stack([firsts, 200.0 - np.array(firsts)], axis=1), sizes, axis=0)
    beginnings = tuple(Start((0.0, 0.0), (None, None), k) for k in range(200))
    one, other = (
        Basins(pair(), "x", 0.02, beginnings, r, grouped(r, 0.02), (), ())
        for r in (rates, rates + np.array([1e-6, 0.0]))
    )
    assert agreement(one, other).p == pytest.approx(1.0)
    fewer = rates.copy()
    fewer[172:187] = rates[0]  # 15 of the 25 lead elsewhere
    moved = Basins(pair(), "x", 0.02, beginnings, fewer, grouped(fewer, 0.02), (), ())
    assert agreement(moved, other).p < 0.05


def test_a_rate_that_many_starts_share_is_not_divided() -> None:
    """A range in steps: three fifths of the starts have one rate, but for its last digits."""
    sizes, firsts = [20, 20, 120, 20, 20], 50.0 + 1.5 * np.arange(5)
    rates = np.repeat(np.stack([firsts, 200.0 - firsts], axis=1), sizes, axis=0)
    beginnings = tuple(Start((0.0, 0.0), (None, None), k) for k in range(200))

    def source(r: np.ndarray) -> Basins:
        return Basins(pair(), "x", 0.02, beginnings, r, grouped(r, 0.02), (), ())

    one, other = source(rates), source(rates + np.array([1e-6, 0.0]))
    assert len(np.unique(one.outcome)) == 1
    assert agreement(one, other).p == pytest.approx(1.0)
    moved = rates.copy()
    moved[40:70] = rates[0]  # a quarter of the 120 lead to the lowest rate
    assert agreement(source(moved), other).p < 0.01


def test_a_range_is_compared_along_itself() -> None:
    """Two models without gaps in their results, one of which has only the upper half."""
    rng = np.random.default_rng(2)
    made = []
    for low in (100.0, 150.0):
        values = rng.uniform(low, 200.0, 200)
        rates = np.stack([values, 300.0 - values], axis=-1)
        beginnings = tuple(Start((0.0, 0.0), (None, None), k) for k in range(200))
        made.append(Basins(pair(), "x", 0.05, beginnings, rates, grouped(rates, 0.05), (), ()))
    assert agreement(*made).p < 1e-6
    assert agreement(made[0], made[0]).alike == 1.0


def test_starts_are_the_same_again_and_keep_everything_else() -> None:
    case = pair("start = { first = '1 s', every = '2 s' }")
    many, few = (starts(case, 0.5, (1, 9), order=True).draw(case, n, 7) for n in (8, 3))
    assert many[:3] == few
    for start in many:
        begun = start.of(case)
        assert [m.name for m in begun.members] == [m.name for m in case.members]
        assert [m.rtt for m in begun.members] == [m.rtt for m in case.members]
        times = np.sort([m.start for m in begun.members])
        assert np.all((times >= [1, 3]) & (times <= [1.5, 3.5]))
        assert all(1 <= (g.initial_window or 0) <= 9 for g in begun.flows)
    assert {start.times[0] > 2 for start in many} == {True, False}
    known = pair("over_estimate = '0 s'")  # ns-2 chooses the window of such flows itself
    assert starts(known).draw(known, 1, 1)[0].windows == (None, None)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ("--starts 0", "--starts"),
        ("--phase 30s", "--phase"),
        ("--windows 5..2", "--windows"),
        ("--windows 5", "--windows"),
        ("--tolerance 0", "--tolerance"),
        ("--model minicicle", "--model"),
    ],
)
def test_bad_questions_are_one_line(
    more: str, field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.toml").write_text(pair().to_toml())
    assert run(["basins", str(tmp_path / "a.toml"), *more.split()]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert field in line


def test_an_engine_that_is_missing_is_missed_before_the_model_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.toml").write_text(pair().to_toml())
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(models, "predictions", lambda *_, **__: pytest.fail("it ran"))
    ns2.version.cache_clear()
    assert run(["basins", str(tmp_path / "a.toml"), "--against", "ns2"]) == 2
    assert "apt-get install ns2" in capsys.readouterr().err


def test_the_command_tells_of_outcomes_and_of_starts_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed = pair().to_toml() + '[[flow]]\nlaw = "reno"\nrtt = "60 ms"\n'
    (tmp_path / "a.toml").write_text(mixed)
    line = ["basins", str(tmp_path / "a.toml"), "--model", "minicycle", "--starts", "20"]
    assert (
        run([*line, "--json", "--windows", "1..6", "--phase", "0s", "--against", "minicycle"]) == 0
    )
    document = json.loads(capsys.readouterr().out)
    (closed,) = document["sets"]
    low, high = np.array([f["throughput_range_pps"] for f in closed["flows"]]).T
    rates = np.array([p["throughput_pps"] for p in document["points"]])
    assert np.all((rates >= low - 1e-9) & (rates <= high + 1e-9))
    assert len(document["outcomes"]) > 1
    assert document["against"]["agreement"]["same_start_same_outcome"] == 1.0
    for each in document["outcomes"]:  # Wilson (1927): |share - p| = z sqrt(p (1 - p) / n) at both
        ends = np.array(each["share_of_starts_interval"])
        z = 1.959963984540054
        off = z * np.sqrt(ends * (1 - ends) / 20)
        np.testing.assert_allclose(np.abs(each["share_of_starts"] - ends), off, atol=1e-9)
    assert run([*line, "--windows", "1..6", "--phase", "0s"]) == 0
    low, high = (100 * end for end in document["outcomes"][0]["share_of_starts_interval"])
    assert f"{low:.3g}..{high:.3g}" in capsys.readouterr().out
    assert run([*line[:2], "--model", "bands", "--starts", "2"]) == 0
    assert "No answer" in capsys.readouterr().out


def test_assumptions_that_do_not_hold_are_counted_over_the_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed = pair().to_toml() + '[[flow]]\nlaw = "reno"\nrtt = "60 ms"\n'
    (tmp_path / "a.toml").write_text(mixed)
    case = vm.load(tmp_path / "a.toml")
    found = basins(case, "minicycle", starts=6)
    wanted: dict[str, int] = {}
    for start in found.starts:
        for each in vm.predict(start.of(case), "minicycle").broken:
            wanted[each.name] = wanted.get(each.name, 0) + 1
    assert wanted
    assert dict(found.broken) == wanted
    line = ["basins", str(tmp_path / "a.toml"), "--model", "minicycle", "--starts", "6"]
    assert run([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["broken"] == wanted
    assert run(line) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for name, count in wanted.items():
        assert f"{name} does not hold at {count} of 6 starts" in shown
    names = ", ".join(each.name for each in vm.predict(case, "minicycle").broken)
    assert f"These assumptions behind the set do not hold: {names}." in shown.replace("- ", "-")


def test_the_command_says_how_many_starts_of_all_models_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[tuple[int, int]] = []

    @contextlib.contextmanager
    def meter(what: str) -> Iterator[Callable[[int, int], None]]:
        assert what == "starts"
        yield lambda done, total: said.append((done, total))

    monkeypatch.setattr("vegasmodel.study.meter.meter", meter)
    (tmp_path / "a.toml").write_text(pair().to_toml())
    line = ["basins", str(tmp_path / "a.toml"), "--starts", "3", "--against", "bands"]
    assert run(line) == 0
    assert said == [(done, 6) for done in range(7)]
    with pytest.raises(FieldError, match="progress"):
        basins(pair(), "bands", starts=2, progress=3)


@pytest.mark.parametrize(("columns", "left_out"), [("120", 2), ("80", 3)])
def test_flows_without_a_column_are_counted(
    columns: str,
    left_out: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A terminal of 80 columns has no room for the third flow."""
    monkeypatch.setenv("COLUMNS", columns)
    five = pair().replace({"flow.count": 5})
    (tmp_path / "a.toml").write_text(five.to_toml())
    line = ["basins", str(tmp_path / "a.toml"), "--model", "bands", "--starts", "3"]
    assert run(line) == 0
    out = capsys.readouterr().out
    assert f"{left_out} more flows are not in the table" in out
    assert "% of starts" in out
    assert "±" in out  # as in all tables


def test_nothing_is_compared_with_a_model_that_has_no_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed = pair().to_toml() + '[[flow]]\nlaw = "reno"\nrtt = "60 ms"\n'
    (tmp_path / "a.toml").write_text(mixed)
    line = ["basins", str(tmp_path / "a.toml"), "--starts", "10"]
    for one, other in (("minicycle", "bands"), ("bands", "minicycle"), ("bands", "bands")):
        assert run([*line, "--model", one, "--against", other, "--json"]) == 0
        said = json.loads(capsys.readouterr().out)["against"]["agreement"]
        assert said["p"] is said["chi_squared"] is said["same_start_same_outcome"] is None
    assert run([*line, "--model", "minicycle", "--against", "bands"]) == 0
    assert "not compared: no answer by bands" in " ".join(capsys.readouterr().out.split())
