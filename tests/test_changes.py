"""Changes of a scenario: each value is set once, whatever the order and the names."""

from typing import Any

import numpy as np
import pytest

import vegasmodel as vm

BASE = vm.Scenario(
    [vm.Link(1000.0, buffer=20.0)],
    [vm.Flow("vegas", 0.05, alpha=3.0, beta=3.0), vm.Flow("reno", 0.05)],
    run=vm.Run(duration=30.0),
)


@pytest.mark.parametrize("changes", [{1: 2}, {True: 1}, "link.buffer", [("link.buffer", 3)], 0])
def test_changes_of_a_scenario_map_text_to_values(changes: Any) -> None:
    with pytest.raises(vm.FieldError, match=r"^changes: "):
        BASE.replace(changes)


def test_replace_keeps_alpha_equal_to_beta_as_sweep_does() -> None:
    """A change of alpha alone was refused: "at least alpha"."""
    for key in ("flow.vegas.alpha", "flow.alpha"):
        changed = BASE.replace({key: 5.0})
        assert (changed.flows[0].alpha, changed.flows[0].beta) == (5.0, 5.0)
        assert changed.flows[1] == BASE.flows[1]  # Reno has no thresholds
        point = vm.sweep(BASE, {key: [5.0]}, "minicycle").throughput.values[0]
        assert np.array_equal(point, np.asarray(vm.predict(changed, "minicycle").throughput))
    apart = BASE.replace({"flow.vegas.beta": 4.0})
    assert apart.replace({"flow.vegas.alpha": 2.0}).flows[0].beta == 4.0
    said = r"^flow.beta: '4 pkt' .* at least alpha, 9 pkt; if beta = alpha"
    with pytest.raises(vm.FieldError, match=said):
        apart.replace({"flow.vegas.alpha": 9.0})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"flow.vegas.beta": 2.0}, r"^flow.beta: '2 pkt' is not allowed; at least alpha, 3 pkt$"),
        (
            {"flow.vegas.alpha": 9.0, "flow.vegas.beta": 4.0},
            r"^flow.beta: '4 pkt' is not allowed; at least alpha, 9 pkt$",
        ),
        ({"flow.vegas.alpha": 4.0, "flow.vegas.rtt": -1.0}, r"^flow.rtt: -1.0 is not allowed"),
    ],
)
def test_alpha_is_blamed_only_for_a_beta_that_nobody_changed(
    changes: dict[str, float], said: str
) -> None:
    with pytest.raises(vm.FieldError, match=said) as raised:
        BASE.replace(changes)
    assert "a change of alpha changes both" not in str(raised.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"flow.rtt": 0.1, "flow.vegas.rtt": 0.2},
        {"link.buffer": 5.0, "link.bottleneck.buffer": 9.0},
        {"flow.vegas.alpha": 7.0, "flow.vegas.beta": 8.0},
        {"flow.alpha": 7.0, "flow.vegas.beta": 8.0},
        {"run.duration": 5.0, "run.warmup": 4.0},
    ],
)
def test_the_order_of_changes_does_not_matter(changes: dict[str, float]) -> None:
    other = dict(reversed(changes.items()))
    assert BASE.replace(changes).to_toml() == BASE.replace(other).to_toml()


def test_a_change_of_one_group_comes_before_that_of_all() -> None:
    changed = BASE.replace({"flow.vegas.rtt": 0.2, "flow.rtt": 0.1})
    assert [group.rtt for group in changed.flows] == [0.2, 0.1]


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"link.queue": vm.Red(1.0, 2.0), "link.queue.weight": 0.01}, {}),
        ({"link": [vm.Link(5.0)], "link.buffer": 3.0}, {}),
        ({"run.seed": 3}, {"run": vm.Run(duration=9.0)}),
        ({"name": "a"}, {"name": "b"}),
    ],
)
def test_one_value_is_not_set_twice(changes: dict[str, Any], fields: dict[str, Any]) -> None:
    """The one or the other was lost, or the error was Python's own."""
    base = BASE.replace({"link.queue": vm.Red(5.0, 15.0)})
    for given in (changes, dict(reversed(changes.items()))):
        with pytest.raises(vm.FieldError, match=r"^changes: .* is given twice; .* sets it, too"):
            base.replace(given, **fields)


def test_a_change_may_be_a_table_as_in_a_file() -> None:
    """A queue of another discipline was refused: its keys were taken for those of the old queue."""
    changed = BASE.replace({"link.queue": {"discipline": "rd", "k": 2.0}})
    assert changed.links[0].queue == vm.RateDelay(2.0)


@pytest.mark.parametrize("other", ["link.bottleneck.buffer", "link.buffer"])
def test_a_sweep_takes_each_key_once_whatever_its_name(other: str) -> None:
    """The last values won, and the coordinates of the other name were wrong."""
    with pytest.raises(vm.FieldError, match=r"is given twice; it sets the same key as link.buffer"):
        vm.sweep(BASE, ["link.buffer=5,10", f"{other}=5,10"], "minicycle")


def test_one_error_does_not_count_twice_under_two_names() -> None:
    for first, second in (("rtt", "flow.rtt"), ("link.capacity", "capacity")):
        with pytest.raises(vm.FieldError, match=rf"'{second}' is given twice; .* as {first}"):
            vm.uncertainty(BASE, "minicycle", {first: "5 %", second: "5 %"})
    # an error of all RTTs and one of a single RTT are two errors
    both = vm.uncertainty(BASE, "minicycle", {"rtt": "5 %", "flow.reno.rtt": "5 %"})
    assert len(both.fields) == 2
