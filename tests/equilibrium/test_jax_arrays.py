"""Closed forms return JAX arrays for JAX arrays, and NumPy arrays for all else."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vegasmodel.equilibrium import (
    arrivals,
    minicycle,
    phase_plane,
    random_loss,
    rate_delay,
    red,
    sensitivity,
)

X, C = [[0.0, 0.001], [0.002, 0.0]], [100.0, 200.0]
CASES = [
    (minicycle.throughput, ([1080.0, 500.0], 0.08, 20.0)),
    (minicycle.solve, ([1080.0, 500.0], 0.08, 20.0)),
    (minicycle.first_window, ([1080.0, 500.0], 0.08, 20.0)),
    (minicycle.window_alone, ([1080.0, 500.0], 0.08, 3.0)),
    (minicycle.threshold, ([1080.0, 500.0], 0.08, 3.0, 0.75)),
    (rate_delay.service_rates, ([10.0, 0.0], 20.0, 1000.0)),
    (rate_delay.volume_ratio, ([10.0, 5.0], 20.0)),
    (rate_delay.flow_rates, ([10.0, 5.0], 20.0, 1000.0)),
    (rate_delay.relative_fairness, ([3.0, 5.0], [2.0, 2.0], 10.0, 20.0)),
    (rate_delay.split_buffer, ([100.0, 50.0],)),
    (rate_delay.delay_bound, ([100.0, 50.0], 10.0)),
    (rate_delay.loss_onset, ([100.0, 50.0], 3.0)),
    (sensitivity.own, ([1.0, 2.0], X, C)),
    (sensitivity.cross, ([1.0, 2.0], X, C)),
    (sensitivity.delay, ([1.0, 2.0], X, C)),
    (arrivals.arrive, ([1.0, 2.0, 3.0], 100.0)),
    (phase_plane.reckoned, ([5.0, 6.0], 0.0, 100.0, 0.05)),
    (phase_plane.drift, ([5.0, 6.0], 1.0, 3.0, 0.0, 100.0, 0.05)),
    (random_loss.square_root, ([0.01, 0.02], 0.1)),
    (random_loss.pftk, ([0.01, 0.02], 0.1, 0.5)),
    (random_loss.coarse_timeout, ([0.01, 0.02],)),
    (red.effective, ([0.01, 0.02],)),
]
NAMES = [f"{f.__module__.rpartition('.')[2]}.{f.__name__}" for f, _ in CASES]


def parts(result: Any) -> list[Any]:
    """The arrays of a result, of whatever form."""
    if isinstance(result, tuple):
        return [part for one in result for part in parts(one)]
    if dataclasses.is_dataclass(result):
        return [part for f in dataclasses.fields(result) for part in parts(getattr(result, f.name))]
    return [] if result is None else [result]


def numeric(part: Any) -> bool:
    return bool(np.asarray(part).dtype.kind in "fib")


@pytest.mark.parametrize(("function", "arguments"), CASES, ids=NAMES)
def test_the_kind_of_array_is_kept(function: Any, arguments: tuple[Any, ...]) -> None:
    plain = parts(function(*arguments))
    assert not any(isinstance(part, jax.Array) for part in plain)
    with jax.enable_x64(True):
        first, *others = arguments
        found = parts(function(jnp.asarray(first), *others))
        assert len(found) == len(plain)
        for part, expected in zip(found, plain, strict=True):
            assert isinstance(part, jax.Array) is numeric(expected)
            np.testing.assert_array_equal(np.asarray(part), np.asarray(expected))


def test_a_call_that_jax_traces_is_refused_in_one_line() -> None:
    with (
        jax.enable_x64(True),
        pytest.raises(ValueError, match=r"^threshold computes with NumPy.* outside jit") as error,
    ):
        jax.jit(lambda capacity: minicycle.threshold(capacity, 0.08, 3.0, 0.75))(1080.0)
    assert "\n" not in str(error.value)


def test_jax_arrays_need_64_bits() -> None:
    assert not jax.config.jax_enable_x64
    with pytest.raises(ValueError, match="64-bit floats"):
        rate_delay.delay_bound(jnp.asarray([100.0]), 10.0)
