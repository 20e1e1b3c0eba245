"""What a function of a law may read and call, and how Numba compiles it."""

import math
import random
import re
import types

import numpy as np
import pytest

import vegasmodel as vm
from tests.helpers import exact
from tests.laws.scenes import rates, scenario
from vegasmodel.fields.errors import FieldError
from vegasmodel.scenario import Link, Run, Scenario

TARGET = 0.0  # s; a test changes it, and these two
SETTINGS = types.ModuleType("settings")
SETTINGS.DELAY = 0.0
TARGETS = np.zeros(1)
STEPS: object = None  # a test sets it to what Numba cannot read


def test_the_decorator_without_its_name_says_how_to_write_it() -> None:
    with pytest.raises(
        vm.FieldError, match=r"'mine' is not allowed; .*@vm.register_law\(\"my-law\"\)"
    ):

        @vm.register_law
        def mine(f):
            return 1.0


@pytest.mark.parametrize("model", ["fluid", "rounds"])
@pytest.mark.parametrize("name", ["drift", "cut", "remember"])
def test_a_rule_with_a_branch_that_returns_nothing_is_refused(model, name):
    def halting(f):
        if f.window > 0.0 and f.rtt < 1e3:
            return 1.0
        return None

    vm.register_law("halting", **({"drift": lambda _: 1.0} | {name: halting}))
    found = vm.predict(scenario("halting", "reno", "ns2"), model)
    assert not found.applicable
    assert re.match(rf"law halting: {name}: .*each branch needs a return", found.reason)


@pytest.mark.parametrize("model", ["fluid", "rounds"])
@pytest.mark.parametrize("kept", ["global", "module", "array"])
def test_a_law_reads_a_number_outside_it_anew_in_each_run(model, kept, monkeypatch):
    """The law keeps so many seconds of queue; a notebook changes the number between runs."""

    def drift(f):
        return 1.0 if f.rtt - f.base_rtt < TARGET else -1.0

    def drift_by_module(f):
        return 1.0 if f.rtt - f.base_rtt < SETTINGS.DELAY else -1.0

    def drift_by_array(f):
        return 1.0 if f.rtt - f.base_rtt < TARGETS[0] else -1.0

    laws = {"global": drift, "module": drift_by_module, "array": drift_by_array}
    vm.register_law("target", laws[kept], delay_based=True)
    link = Link(1000.0, buffer=math.inf)
    case = Scenario((link,), (vm.Flow("target", 0.06),), run=Run(duration=60.0, warmup=20.0))
    for target in (0.005, 0.02):
        monkeypatch.setitem(globals(), "TARGET", target)
        monkeypatch.setattr(SETTINGS, "DELAY", target)
        TARGETS[0] = target
        mean = vm.predict(case, model).queue_mean
        assert mean[0] == pytest.approx(1000.0 * target, rel=0.02)  # within a packet or less


@pytest.mark.parametrize("model", ["fluid", "rounds"])
@pytest.mark.parametrize("drawn", [random.random, np.random.random])
def test_a_law_that_draws_makes_runs_differ_by_chance(model, drawn):
    """Nothing else is random here, so a law that draws no number needs one run only."""

    def steady(f):
        return 2.0 - 0.1 * f.backlog

    def early(f):
        return steady(f) if drawn() < 0.9 else -0.3 * f.window

    for drift, random_runs in ((steady, False), (early, True)):
        vm.register_law("own", drift, delay_based=True)
        flows = tuple(exact("own", 0.06, name=name, variant="ns2") for name in ("a", "b"))
        case = Scenario((Link(400.0),), flows, run=Run(duration=60.0, warmup=20.0))
        found = vm.predict(case, model)
        assert found.applicable
        assert case.by_chance == random_runs
        assert (found.throughput_se is not None) == random_runs


@pytest.mark.parametrize("model", ["fluid", "rounds"])
@pytest.mark.parametrize("drawn", [random.random, np.random.random])
def test_the_seed_of_the_scenario_determines_what_a_law_draws(model, drawn):
    """A law that backs off at random before the buffer is full, as PERT does."""

    def drift(f):
        return -0.3 * f.window if drawn() < 0.002 * f.backlog else 1.0

    vm.register_law("early", drift, delay_based=True)
    case = scenario("early", "reno", "ns2").replace({"run.duration": 60.0, "run.warmup": 20.0})
    first, again = (vm.predict(case, model).throughput for _ in range(2))
    other = vm.predict(case.replace({"run.seed": 2}), model).throughput
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


PAIR, ARRAY, WORD, SURE, TABLE = (0.5, "x"), np.array([0.25, 0.25]), "y", True, {"a": 1.0}


def test_the_kinds_of_global_variables_that_a_law_can_read(monkeypatch):
    """As the page on own laws lists them: numbers, truth values, texts, tuples and arrays."""
    vm.register_law("mixed", lambda f: (PAIR[0] + ARRAY[0] + ARRAY[1]) * (SURE and WORD == "y"))
    case = scenario("mixed", "reno", "ns2")
    found = vm.predict(case, "fluid").throughput
    np.testing.assert_array_equal(found, rates("own-reno", "reno", "ns2"))
    monkeypatch.setitem(globals(), "ARRAY", np.array([0.01, 0.01]))
    assert vm.predict(case, "fluid").throughput[0] < found[0]
    vm.register_law("keyed", lambda f: TABLE["a"])
    assert "TABLE" in vm.predict(scenario("keyed", "reno"), "fluid").reason


def twice(x):
    return 2.0 * TARGET * x


def over_and_over(x, n):
    return twice(x) if n == 0 else over_and_over(x, n - 1)


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_a_law_calls_functions_of_its_file(model, monkeypatch):
    """Among them: one inside another function, one that calls itself, one of NumPy."""

    def inner(x):
        return np.minimum(over_and_over(x, 3), 1e3)

    monkeypatch.setitem(globals(), "TARGET", 0.5)
    vm.register_law("plain", lambda f: 1.0 / f.window + 0.5)
    vm.register_law("helped", lambda f: inner(1.0 / f.window) + 0.5)
    answers = [
        vm.predict(scenario(law, "reno", "ns2"), model).throughput for law in ("plain", "helped")
    ]
    assert answers[0].tolist() == answers[1].tolist()
    monkeypatch.setitem(globals(), "TARGET", 0.05)  # of a function that a function calls
    less = vm.predict(scenario("helped", "reno", "ns2"), model).throughput
    assert less[0] < answers[0][0]


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_a_comparison_is_the_number_one_or_zero(model):
    """Numba's and Python's ``True`` is 1, and so is NumPy's."""
    vm.register_law("number", lambda f: 1.0 if f.window > 1.0 else 0.0)
    vm.register_law("compared", lambda f: f.window > 1.0)
    answers = [vm.predict(scenario(law, "reno"), model) for law in ("number", "compared")]
    np.testing.assert_array_equal(answers[1].throughput, answers[0].throughput)


def test_numba_says_in_one_line_what_it_cannot_compile():
    table = {"a": object()}
    vm.register_law("objects", lambda f: f.rtt if table else 0.0)
    with pytest.raises(
        FieldError, match=r"^law objects: drift: .* cannot be compiled by Numba; "
    ) as told:
        vm.simulate(scenario("objects", "reno"), "fluid")
    assert "\n" not in str(told.value)
    assert vm.predict(scenario("objects", "reno"), "fluid").reason == str(told.value)
    assert told.value.__suppress_context__, "Numba's own error is long"


LATEST = 0.0


def _stores(f) -> float:
    global LATEST  # noqa: PLW0603  # what a user may try, and Numba does not compile
    LATEST = f.window
    return LATEST


def _opens(f) -> float:
    with open("/dev/null") as _:  # noqa: PTH123  # what a user may try, and Numba does not compile
        pass
    return 1.0


def _excepts(f) -> float:
    try:
        return 1.0 / f.backlog
    except ZeroDivisionError:
        return 1.0


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            _excepts,
            "it cannot catch this exception; compiled code raises none for a division by zero, so "
            "test the divisor first",
        ),
        (
            _stores,
            "it cannot store a global variable; a law keeps numbers by `state` and `update` of "
            "register_law",
        ),
        (_opens, "The 'with (context manager) as (variable):' construct is not supported"),
    ],
)
def test_the_reason_does_not_end_with_words_for_developers_of_numba(rule, said):
    """Numba adds "Raised from None" or "Raised from FILE (LINE)", also after a full stop."""
    vm.register_law("odd", rule)
    reason = vm.predict(scenario("odd", "reno"), "fluid").reason
    assert reason.startswith("law odd: drift: ")
    assert f" cannot be compiled by Numba; {said} (test_rules.py, line " in reason


@pytest.mark.parametrize("steps", [[1.0, 2.0], {0: 1.0}])
@pytest.mark.parametrize("place", ["global", "closure"])
def test_a_variable_that_no_compiled_function_can_read_is_named(steps, place, monkeypatch):
    """Numba's sentence about a list was cut in the middle."""
    monkeypatch.setitem(globals(), "STEPS", steps)
    law = f"steps-{place}"
    vm.register_law(law, (lambda _: STEPS[0]) if place == "global" else lambda _: steps[0])
    found = vm.predict(scenario(law, "reno"), "fluid")
    name = "STEPS" if place == "global" else "steps"
    assert f"the variable '{name}' outside the function must be a number, a truth" in found.reason
