"""Branches of equilibria and their folds, against curves with known folds and against B_th."""

import math
from typing import Any

import numpy as np
import pytest

from vegasmodel.equilibrium import minicycle
from vegasmodel.equilibrium.continuation import follow
from vegasmodel.equilibrium.minicycle_folds import cycles
from vegasmodel.fields.errors import FieldError
from vegasmodel.status import Status


def test_a_cubic_turns_back_where_its_derivative_vanishes() -> None:
    branch = follow(lambda x, p: x**3 - x + p, [-1.5], 1.875, (-2.0, 2.0), rising=False)
    least, greatest = branch.folds
    assert least.parameter == pytest.approx(-2 / 27**0.5, rel=1e-12)
    assert greatest.parameter == pytest.approx(2 / 27**0.5, rel=1e-12)
    assert (least.greatest, greatest.greatest) == (False, True)
    assert abs(least.x[0]) == pytest.approx(3**-0.5, abs=1e-5)  # flat there: half of the digits
    assert branch.status == Status.LEFT_RANGE
    assert branch.residual.max() < 1e-11
    np.testing.assert_allclose(branch.parameter, branch.x[:, 0] - branch.x[:, 0] ** 3, atol=1e-11)


def test_several_unknowns_and_a_closed_curve() -> None:
    """A circle of radius 2 around p = 1 in a tilted plane."""

    def circle(x: Any, p: float) -> Any:
        return np.array([x[0] ** 2 + (p - 1.0) ** 2 - 4.0, (x[1] - 2.0 * x[0]) / 5.0])

    branch = follow(circle, [2.0, 4.0], 1.0, (-5.0, 5.0), scale=[1, 1, 1], step=0.2, most=90)
    assert branch.status == Status.POINTS_USED_UP  # it never leaves the range
    np.testing.assert_allclose([fold.parameter for fold in branch.folds], [3.0, -1.0], rtol=1e-9)
    np.testing.assert_allclose(branch.x[:, 1], 2.0 * branch.x[:, 0], atol=1e-9)


def test_what_has_no_branch_says_so() -> None:
    with pytest.raises(ValueError, match="no solution"):
        follow(lambda x, p: x**2 + 1.0 + p, [1.0], 0.0, (-0.5, 1.0))
    with pytest.raises(ValueError, match=r"^parameter: 2.0 is not allowed; from 0.0 to 1.0"):
        follow(lambda x, p: x - p, [1.0], 2.0, (0.0, 1.0))
    ending = follow(
        lambda x, p: x - (math.sqrt(0.5 - p) if p <= 0.5 else math.nan), [0.7], 0.0, (-1.0, 1.0)
    )
    assert ending.status == Status.LOST  # the curve ends at p = 0.5
    assert 0.49 < ending.parameter.max() < 0.51


@pytest.mark.parametrize(("slope", "status"), [(0.9, Status.LEFT_RANGE), (1.1, Status.LOST)])
def test_a_branch_turns_by_less_than_a_right_angle(slope: float, status: Status) -> None:
    """The tangents of x = slope |p| on both sides of the corner enclose twice atan(slope)."""
    branch = follow(
        lambda x, p: x - slope * abs(p), [slope], -1.0, (-1.0, 1.0),
        slopes=lambda _, p: np.array([[1.0, -math.copysign(slope, p)]]), scale=np.ones(2),
    )  # fmt: skip
    assert branch.status == status
    assert branch.parameter[-1] == pytest.approx(0.0 if status == Status.LOST else 1.0, abs=0.06)


def test_a_sharp_corner_without_given_derivatives_raises_no_error() -> None:
    """Finite differences show a fold at this corner, but p does not turn back there."""
    branch = follow(
        lambda x, p: x - 5.0 * abs(p), [5.0], -1.0, (-1.0, 1.0), scale=np.ones(2),
        step=0.0437, most=200,
    )  # fmt: skip
    assert branch.folds == ()
    assert branch.parameter[-1] == pytest.approx(0.0, abs=1e-6)


def test_a_branch_ends_where_it_has_no_derivatives() -> None:
    def slopes(x: Any, p: float) -> Any:
        return np.array([[1.0, -1.0]]) if p < 0.5 else np.full((1, 2), np.nan)

    branch = follow(lambda x, p: x - p, [0.0], 0.0, (0.0, 1.0), slopes=slopes)
    assert branch.status == Status.LOST
    assert branch.parameter[-1] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize(
    ("capacity", "rtt", "alpha", "decrease"),
    [(1080, 0.06, 3, 0.75), (250, 0.06, 2, 0.75), (1080, 0.06, 3, 0.5), (5000, 0.1, 6, 0.875)],
)
def test_the_folds_of_the_cycle_are_at_b_th(
    capacity: float, rtt: float, alpha: float, decrease: float
) -> None:
    found = cycles(capacity, rtt, alpha, decrease, buffers=(1.0, 4.0 * alpha), step=0.1)
    last, first = (minicycle.threshold(capacity, rtt, alpha, cut) for cut in (decrease, 1.0))
    np.testing.assert_allclose(found.folds, [last, first], rtol=1e-10)
    assert found.fold_residual.max() < 1e-11
    assert found.residual.max() < 1e-11
    assert found.status == Status.LEFT_RANGE


def test_the_ends_of_the_branch_are_the_two_cycles_of_the_model() -> None:
    """Below B_th each overflow cuts Vegas, with ``growing`` too; above B_th none does."""
    found = cycles(1080, 0.06, buffers=(1.0, 12.0), step=0.1)
    for part, losers in ((found.cut == 1.0, "growing"), (found.cut == 0.0, "reno")):
        v, r = minicycle.throughput(1080, 0.06, found.buffer[part], losers=losers)
        inner = slice(1, -1)
        np.testing.assert_allclose(found.vegas[part][inner], v[inner], rtol=1e-9)
        np.testing.assert_allclose(found.reno[part][inner], r[inner], rtol=1e-9)
    between = found.buffer[~found.attracts]
    assert between.size
    assert np.all((between > found.folds[1] - 1e-9) & (between < found.folds[0] + 1e-9))


def test_packet_stacks_answer_later_and_their_folds_are_where_the_regime_changes() -> None:
    """There is no closed form, so the test bisects on the regime of ``solve``."""
    found = cycles(1080, 0.06, buffers=(1.0, 20.0), variant="ns2", response=2.0, step=0.1)
    for fold, losers in zip(found.folds, ("growing", "reno"), strict=True):
        low, high = 3.5, 20.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            there = minicycle.solve(
                1080, 0.06, middle, losers=losers, variant="ns2", response=2.0
            )  # fmt: skip
            low, high = (middle, high) if str(there.regime) == "loss-limited" else (low, middle)
        assert fold == pytest.approx(low, rel=1e-10)


@pytest.mark.parametrize("buffers", [(10.0, 20.0), (20.0, 10.0), (1.0, math.inf)])
def test_buffers_without_the_cycle_that_is_followed_say_so(buffers: tuple[float, float]) -> None:
    assert minicycle.threshold(1080, 0.06, 3, 0.75) < 10.0
    with pytest.raises(FieldError, match="buffers"):
        cycles(1080, 0.06, buffers=buffers)


def test_no_cut_no_fold() -> None:
    with pytest.raises(FieldError, match="one cycle"):
        cycles(1080, 0.06, decrease=1.0)
