"""Metrics computed by hand, and those of a comparison."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import vegasmodel as vm
from tests.helpers import scenario
from vegasmodel import comparison, metrics, plots, same_case
from vegasmodel.fields.errors import FieldError
from vegasmodel.results.prediction import Prediction

POSITIVE = st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=20)


def test_students_t_quantiles() -> None:
    """SciPy computes them in another way: from the incomplete beta function."""
    for tests in (1, 2, 39, 5000):
        freedoms = [*range(1, 14), 40, 401, 9999]
        found = [metrics.student_t(freedom, tests) for freedom in freedoms]
        expected = [stats.t.isf(0.025 / tests, freedom) for freedom in freedoms]
        np.testing.assert_allclose(found, expected, rtol=1e-10)
        beyond = [metrics.student_quantile(freedom, 0.05 / tests) for freedom in freedoms]
        np.testing.assert_allclose(beyond, expected, rtol=1e-10)
    assert math.isnan(metrics.student_t(0))


def test_jain_of_tsang_section_1() -> None:
    # k of n equal shares: k/n; 2/3 of a link of two: 0.9
    assert metrics.jain([1, 1, 0, 0, 0]) == pytest.approx(0.4)
    assert metrics.jain([2, 1]) == pytest.approx(0.9)
    assert math.isnan(metrics.jain([0, 0]))
    # a flow without a throughput is left out, one that gets nothing is not
    sets = [[1.0, 1.0, math.nan], [2.0, 1.0, math.nan], [1.0, 1.0, 0.0]]
    assert metrics.jains(sets) == pytest.approx([1.0, 0.9, 2 / 3])


def test_a_flow_that_is_never_active_delivers_nothing_unless_nobody_is() -> None:
    rates = [[1.0, math.nan, 3.0], [math.nan] * 3, [0.0, 2.0, 5.0]]
    found = metrics.delivered(rates)
    np.testing.assert_array_equal(found, [[1.0, 0.0, 3.0], [math.nan] * 3, [0.0, 2.0, 5.0]])


def test_runs_that_differ_by_rounding_have_no_standard_error() -> None:
    """Of 1, 2 and 3 it is 1/sqrt(3); the next number after 0.1 is 0.1 but for rounding."""
    rates = np.array([[1.0, 0.1, math.nan], [2.0, np.nextafter(0.1, 1.0), 1.0], [3.0, 0.1, 1.0]])
    found = metrics.standard_error(rates)
    assert found[:2].tolist() == pytest.approx([1.0 / math.sqrt(3.0), 0.0], abs=0.0, rel=1e-12)
    assert math.isnan(found[2])


def test_percent_has_two_digits_and_no_exponent() -> None:
    parts = (0.0, 0.000321, 0.0321, 0.996, 2.14, 123.4)
    texts = ["0 %", "0.032 %", "3.2 %", "100 %", "210 %", "12000 %"]
    assert [metrics.percent(part) for part in parts] == texts


@settings(max_examples=100, derandomize=True, deadline=None)
@given(POSITIVE)
def test_jain_is_a_share(rates: list[float]) -> None:
    index = metrics.jain(rates)
    assert 1 / len(rates) - 1e-12 <= index <= 1 + 1e-12


def test_errors_by_hand() -> None:
    assert metrics.nrmse([2.0, 4.0], [1.0, 3.0]) == pytest.approx(0.5)
    assert metrics.nrmse([1.0], [0.0]) is None
    ratios = metrics.group_ratios({"a": 2.0, "b": 1.0, "c": 0.0})
    assert ratios["a/b"] == 2.0
    assert ratios["a/c"] is None
    error = metrics.log_ratio_error({"a/b": 1.0, "b/a": 1.0}, {"a/b": 2.0, "b/a": 0.5})
    assert error == pytest.approx(math.log(0.5))
    # the rounding of 1/x does not choose the sign
    pair = metrics.group_ratios({"a": 300.4, "b": 754.7})
    found = metrics.log_ratio_error(pair, metrics.group_ratios({"a": 350.3, "b": 669.8}))
    assert found == pytest.approx(math.log(300.4 / 754.7 * 669.8 / 350.3))
    assert metrics.log_ratio_error({}, {"a/b": 1.0}) is None
    three = metrics.group_ratios({"a": 1.0, "b": 1.0, "c": 3.0})
    even = metrics.group_ratios({"a": 1.0, "b": 2.0, "c": 1.0})
    assert metrics.worst_ratio(even, three) == ("b/c", pytest.approx(math.log(6.0)))


def test_comparison_against_a_measurement(tmp_path: Path) -> None:
    s = scenario({"law": "vegas", "count": 2, "alpha": 3, "beta": 3})
    measured = Prediction(
        "ns2", s, np.array([500.0, 580.0]), base_rtt=np.array([0.082, 0.084]), queue_mean=None
    )
    model = vm.predict(s, "equilibrium")
    result = comparison.Comparison(s, measured, (model,))
    errors = result.to_json()["errors"]["equilibrium"]
    assert errors["throughput_nrmse"] == pytest.approx(40 / 540)  # 540 each against 500 and 580
    assert errors["ratio"] is None  # one group
    assert errors["base_rtt"] == pytest.approx(math.sqrt((2**2 + 4**2) / 2) / 3)  # 0 for 2, 4 ms
    assert result.best_error() == pytest.approx(40 / 540)
    assert "equilibrium" in result.table()
    plots.save(result.plot(), tmp_path / "p.svg")
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")


def test_nothing_is_left_of_a_picture_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(path: Path, data: memoryview) -> None:
        path.write_text("half")
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(OSError, match="disk full"):
        plots.save(plots.figure(), tmp_path / "p.png")
    assert list(tmp_path.iterdir()) == []


def test_a_comparison_has_the_least_error_and_the_base_rtts_of_vegas_only() -> None:
    """Vegas's baseRTT is 2 ms too large; that of Reno, which has none, would be 50 ms off."""
    s = scenario({"law": "vegas"}, {"law": "reno"})
    rates, bases = np.array([500.0, 580.0]), np.array([0.084, 0.080])
    measured = Prediction("ns2", s, rates, base_rtt=bases)
    models = tuple(
        Prediction(name, s, rates + error, base_rtt=np.array([0.086, 0.130]))
        for name, error in (("worse", 54.0), ("better", 27.0), ("worst", 108.0))
    )
    found = comparison.Comparison(s, measured, models)
    assert found.best_error() == pytest.approx(27.0 / 540.0)
    assert found.errors["worse"]["base_rtt"] == pytest.approx(2.0 / 4.0)
    none = Prediction.not_applicable("none", s, "no")
    assert comparison.Comparison(s, measured, (none,)).best_error() is None


def test_the_error_of_base_rtt_is_over_the_flows_that_have_one_in_both() -> None:
    """Errors of 3 and 1 ms: the root mean square is sqrt(5) ms; the excess measured is 4 ms."""
    s = scenario({"law": "vegas", "count": 3, "alpha": 3, "beta": 3})
    rates = np.full(3, 360.0)
    measured = Prediction("ns2", s, rates, base_rtt=np.array([0.084, 0.084, math.nan]))
    model = Prediction("m", s, rates, base_rtt=np.array([0.087, 0.083, 0.099]))
    found = comparison.Comparison(s, measured, (model,))
    assert found.errors["m"]["base_rtt"] == pytest.approx(math.sqrt(5.0) / 4.0)
    assert found._base_rtt_error("m") == pytest.approx(math.sqrt(5.0) / 1000.0, abs=1e-9)


def test_the_measured_vegas_is_that_of_the_models_only_if_all_flows_have_it() -> None:
    """Linux ran; a model that follows Linux for one flow and ns-2 for the other differs."""
    for other, holds in (("linux", True), ("ns2", False)):
        s = scenario(
            {"law": "vegas", "variant": "linux", "name": "a"},
            {"law": "vegas", "variant": other, "name": "b"},
        )
        (note,) = same_case.vegas_of(s, "linux")
        assert note.holds is holds


def test_a_drift_is_one_way_and_large_enough() -> None:
    up = np.linspace(1.0, 2.0, 8)
    then_rests = np.minimum(up, 1.5)
    swings = 1.5 + 0.5 * np.cos(np.arange(8.0))
    tiny = 1.0 + 1e-9 * up
    means = np.stack([up, up[::-1], then_rests, swings, tiny, np.ones(8)], axis=1)
    assert list(metrics.drift(means, 0.005)) == [True, True, True, False, False, False]
    with pytest.raises(FieldError, match="two or more blocks"):
        metrics.drift(means[:1], 0.005)
