"""Laws that keep numbers of their own: when they change, who sees them, and what is refused."""

import ctypes
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vegasmodel as vm
from tests.laws.scenes import by_rounds, rates, scenario
from vegasmodel import laws
from vegasmodel.engines.outside import address, raise_faults
from vegasmodel.fields.errors import FieldError
from vegasmodel.laws import digests

MODELS = ["rounds", "fluid"]


def next_draw(k: float, x: float) -> tuple[float, float]:
    """One step of a little generator, which visits the numbers 1 to 10 in a mixed order."""
    return k + 1.0, (7.0 * x) % 11.0


def growth(k: float, x: float) -> float:
    return x if k % 4.0 == 1.0 else 0.0


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("variant", ["ns2", "linux"])
def test_a_law_decides_once_a_round_trip_after_its_numbers_have_changed(model, variant):
    """A plain loop says at which windows the flow rests: first new numbers, then the decision."""

    @vm.register_law(
        "drawn",
        state={"k": 0.0, "x": 1.0},
        update=lambda f: next_draw(f.k, f.x),
        once_a_round=True,
        slow_start="none",
    )
    def drawn(f):
        return growth(f.k, f.x)

    k, x, window, rests = 0.0, 1.0, 20.0, []
    for _ in range(60):
        k, x = next_draw(k, x)
        window += growth(k, x)
        if k % 4.0 == 3.0:  # the window has been the same for a round trip
            rests.append(window)
    flow = vm.Flow("drawn", 0.1, variant=variant, initial_window=20.0, send_jitter=0.0)
    case = vm.Scenario([vm.Link(5000.0)], [flow], run=vm.Run(duration=6.5, warmup=1.0))
    # from the middle of the first rest on, four round trips between two rests
    samples = vm.simulate(case, model, samples=651)
    found = np.interp(0.35 + 0.4 * np.arange(15), samples.time, samples.window[:, 0])
    np.testing.assert_allclose(found, rests, atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("variant", ["ns2", "linux"])
def test_a_cut_sees_what_the_law_has_kept_at_this_loss(model, variant):
    vm.register_law(
        "marks",
        lambda f: 1.0 if f.mark == 3.0 else 0.0,
        state={"mark": 3.0},
        remember=lambda f: 12.0,
        cut=lambda f: f.mark,
    )
    flow = vm.Flow("marks", 0.1, variant=variant, send_jitter=0.0)
    case = vm.Scenario([vm.Link(500.0, buffer=20)], [flow], run=vm.Run(duration=30.0, warmup=10.0))
    assert vm.simulate(case, model).window.values[-1, 0] == pytest.approx(12.0, abs=0.1)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("variant", ["ns2", "linux"])
def test_update_counts_the_round_trips_of_slow_start(model, variant):
    """The window doubles from 2 packets until it exceeds the 800 that link and buffer hold.

    The loss is noticed at the end of this round trip or of the next one. ``cut`` then returns how
    many round trips ``update`` has counted.
    """
    window, trips = 2.0, 0
    while window <= 800.0:
        window, trips = 2.0 * window, trips + 1
    vm.register_law(
        "trips",
        lambda f: 0.0,
        state={"n": 0.0, "at_loss": 0.0},
        update=lambda f: (f.n + 1.0, f.at_loss),
        remember=lambda f: (f.n, f.n if f.at_loss == 0.0 else f.at_loss),
        cut=lambda f: f.at_loss,
    )
    flow = vm.Flow("trips", 0.1, variant=variant, initial_window=2.0, send_jitter=0.0)
    case = vm.Scenario([vm.Link(5000.0, buffer=300)], [flow], run=vm.Run(30.0, 10.0))
    assert trips - 0.1 <= vm.simulate(case, model).window.values[-1, 0] <= trips + 1.1


def reno_part(window, memory, trips):
    return 0.5 * (memory + trips if memory > 0 else window)


@pytest.mark.parametrize("variant", ["paper", "ns2", "linux"])
def test_a_number_kept_at_losses_does_what_memory_does(variant):
    vm.register_law(
        "by-memory",
        lambda f: 1.0 + 0.01 * (f.window - f.memory),
        remember=lambda f: reno_part(f.window, f.memory, f.round_trips),
    )
    vm.register_law(
        "by-state",
        lambda f: 1.0 + 0.01 * (f.window - f.half),
        state={"half": 0.0},
        remember=lambda f: reno_part(f.window, f.half, f.round_trips),
    )
    for ask in (rates, by_rounds):
        np.testing.assert_array_equal(
            ask("by-state", "own-reno", variant), ask("by-memory", "own-reno", variant)
        )


@pytest.mark.parametrize("variant", ["ns2", "linux"])
def test_a_decision_that_update_stores_is_the_decision_of_drift(variant):
    def decision(f):
        return 1.0 if f.backlog < f.alpha else (-1.0 if f.backlog > f.beta else 0.0)

    vm.register_law("direct", decision, once_a_round=True, delay_based=True)
    vm.register_law(
        "stored",
        lambda f: f.change,
        state={"change": 0.0},
        update=decision,
        once_a_round=True,
        delay_based=True,
    )
    for ask in (rates, by_rounds):
        np.testing.assert_array_equal(
            ask("stored", "own-reno", variant), ask("direct", "own-reno", variant)
        )


def register_copa(name, faster=True):
    """Copa in its default mode (Arun and Balakrishnan, NSDI 2018, section 2.1), with delta 1/2.

    Each ACK moves the window up or down by velocity/(delta window). Once per round trip the sender
    looks whether its window has grown or shrunk. If it moves in the same direction for the third
    time, the velocity doubles; if the direction changes, the velocity becomes 1.
    """
    delta = 0.5

    def update(f):
        direction = 1.0 if f.window > f.before else -1.0
        same_for = f.same_for + 1.0 if direction == f.direction else 0.0
        velocity = min(2.0 * f.velocity, f.window) if faster and same_for >= 3.0 else 1.0
        return f.window, direction, same_for, velocity

    def drift(f):
        queued = f.window / f.rtt * (f.rtt - f.base_rtt)
        return (1.0 if queued * delta <= 1.0 else -1.0) * f.velocity / delta

    first = {"before": 0.0, "direction": 0.0, "same_for": 0.0, "velocity": 1.0}
    vm.register_law(name, drift, state=first, update=update, delay_based=True, slow_start="none")


@pytest.mark.parametrize("model", MODELS)
def test_the_velocity_of_copa_doubles_each_round_trip(model):
    """From 10 packets to 500 it takes as long as a plain loop says: 245 round trips without it.

    The link is so fast that no packet waits.
    """
    velocity, window, trips = 1.0, 10.0, 0
    while window < 500.0:
        trips += 1
        velocity = min(2.0 * velocity, window) if trips > 4 else 1.0
        window += 2.0 * velocity
    for name, expected in (("copa", trips), ("copa-slow", 245)):
        register_copa(name, faster=name == "copa")
        flow = vm.Flow(name, 0.1, variant="ns2", initial_window=10.0, send_jitter=0.0)
        case = vm.Scenario([vm.Link(1e6)], [flow], run=vm.Run(duration=40.0, warmup=20.0))
        samples = vm.simulate(case, model, samples=4001)
        grown = (samples.window[:, 0].values >= 500.0).argmax()
        assert samples.time.values[grown] / 0.1 == pytest.approx(expected, rel=0.02, abs=1.0)


@pytest.mark.parametrize("model", MODELS)
def test_copa_keeps_a_short_queue_and_fills_the_link(model):
    """Its queue oscillates between empty and 2.5/delta packets (section 3 of the paper)."""
    register_copa("copa")
    flow = vm.Flow("copa", 0.05, variant="ns2", initial_window=5.0)
    case = vm.Scenario([vm.Link(1000.0, buffer=100)], [flow], run=vm.Run(120.0, 40.0, runs=3))
    found = vm.predict(case, model)
    assert found.utilization[0] > 0.95
    assert 0.0 < found.queue_mean[0] < 2.5 / 0.5


@pytest.mark.parametrize(("model", "variant"), [("rounds", "ns2"), ("fluid", "linux")])
def test_a_state_that_returns_has_the_numbers_of_the_law_in_it(model, variant):
    """The window falls every second round trip, but by more in every eighth, as a law counts."""
    vm.register_law(
        "counts",
        lambda f: 20.0 + f.k % 2.0 + (3.0 if f.k == 7.0 else 0.0) - f.window,
        state={"k": 0.0},
        update=lambda f: (f.k + 1.0) % 8.0,
        once_a_round=True,
        slow_start="none",
    )
    flow = vm.Flow("counts", 0.1, variant=variant, initial_window=20.0, send_jitter=0.0)
    found = vm.limit_cycle(vm.Scenario([vm.Link(500.0)], [flow]), model)
    assert found.kind == "periodic"
    assert found.period == pytest.approx(0.8, rel=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_a_window_that_rests_while_a_law_counts_is_no_fixed_point(model):
    """After 400 round trips it falls: ``fluid`` took a window at rest for one that stays so."""
    vm.register_law(
        "waits",
        lambda f: -10.0 if f.k == 400.0 else 0.0,
        state={"k": 0.0},
        update=lambda f: f.k + 1.0,
        once_a_round=True,
        slow_start="none",
    )
    flow = vm.Flow("waits", 0.1, variant="linux", initial_window=20.0, send_jitter=0.0)
    case = vm.Scenario([vm.Link(500.0)], [flow], run=vm.Run(duration=60.0, warmup=50.0))
    assert vm.predict(case, model).throughput[0] == pytest.approx(100.0, rel=0.01)
    assert vm.limit_cycle(case, model).throughput[0] < 190.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"state": 3}, r"state: 3 is not allowed; a dictionary of names and first values"),
        ({"state": (0.0, 1.0)}, r"state: .*0.0, 1.0.* is not allowed; a dictionary of names"),
        ({"state": "ab"}, r"state: 'ab' is not allowed; a dictionary of names"),
        ({"state": {"a b": 0.0}}, r"state: 'a b' is not allowed; a name of letters"),
        ({"state": {"_a": 0.0}}, r"state: '_a' is not allowed; a name of letters"),
        ({"state": {"class": 0.0}}, r"state: 'class' is not allowed; a name of letters"),
        ({"state": {2: 0.0}}, r"state: 2 is not allowed; a name of letters"),
        ({"state": {"beta": 0.5}}, r"state: 'beta' is a name of every Source; choose .* window"),
        ({"state": {"count": 0.5}}, r"state: 'count' is a name of every Source"),
        ({"state": {"a": math.inf}}, r"state, a: inf is not allowed; a number from -1e\+09 to"),
        ({"state": {"a": math.nan}}, r"state, a: nan is not allowed; a number from"),
        ({"state": {"a": "0"}}, r"state, a: '0' is not allowed; a number from"),
        ({"state": {"a": None}}, r"state, a: None is not allowed; a number from"),
        (
            {"state": {f"n{k}": 0.0 for k in range(9)}},
            r"state: 9 is not allowed; at most 8 numbers",
        ),
        ({"state": {"a": 0.0}}, r"state: 'a' is not allowed; a law with a function update or"),
        (
            {"update": lambda f: 1.0},
            r"update: 'test_state.py, line \d+' is not allowed; a law with state",
        ),
        ({"state": {"a": 0.0}, "update": 3}, r"update: 3 is not allowed; a function of a Source"),
        (
            {"state": {"a": 0.0, "b": 0.0}, "update": lambda f: f.a},
            r"update: 0.0 is not allowed; it must return 2 numbers \(a, b\) from -1e\+09 to 1e\+09",
        ),
        (
            {"state": {"a": 0.0, "b": 0.0}, "remember": lambda f: (f.a, f.b, 1.0)},
            r"remember: .*0.0, 0.0, 1.0.* is not allowed; it must return 2 numbers \(a, b\)",
        ),
        (
            {"state": {"a": 0.0}, "update": lambda f: (math.nan,)},
            r"update: .*nan.* it must return a number \(a\) .* Source had window 20, .* a 0 \(",
        ),
        (
            {"state": {"a": 0.0, "b": 0.0}, "update": lambda f: [f.a, f.b]},
            r"update: .*0.0, 0.0.* it must return 2 numbers",
        ),
        (
            {"state": {"max_rtt": 0.0}, "update": lambda f: f.max_rt},
            r"update: .*a Source has window, .*, max_rtt; did you mean 'max_rtt'\?",
        ),
        (
            {"state": {"a": 1.0}, "update": lambda f: f.a - 1.0, "cut": lambda f: 9.0 / f.a},
            r"cut: 'ZeroDivisionError: .* was raised; .* a 0 \(test_state",
        ),
        (
            {"state": {"a": 1.0}, "update": lambda f: setattr(f, "a", 2.0)},
            r"update: 'a new value of a' is not allowed; .*; update and remember return the new a",
        ),
    ],
)
def test_what_a_law_cannot_keep_is_one_line(given, said):
    with pytest.raises(FieldError, match=rf"^law keeps: {said}") as told:
        vm.register_law("keeps", lambda f: 1.0, **given)
    assert "\n" not in str(told.value)
    assert "keeps" not in laws.names()


@pytest.mark.parametrize("model", MODELS)
def test_a_number_that_becomes_unusable_in_a_run_is_named_with_what_its_function_saw(model):
    vm.register_law(
        "doubles",
        lambda f: 1.0,
        state={"big": 1.0},
        update=lambda f: 2.0 * f.big,
    )
    found = vm.predict(scenario("doubles", "reno", "ns2"), model)
    assert not found.applicable
    said = "law doubles: update: 1073741824.0 is not allowed; it must return a number (big)"
    assert found.reason.startswith(said)
    assert "big 5.36871e+08" in found.reason


@pytest.mark.parametrize("model", MODELS)
def test_functions_of_a_law_with_state_may_have_defaults(model):
    """A default holds a parameter, such as the growth, as in laws without state."""
    found = []
    for growth in (1.0, 8.0):
        vm.register_law(
            "defaults",
            lambda f, growth=growth: growth + f.k,
            state={"k": 0.0},
            update=lambda f, k=0.0: k,
        )
        found.append(vm.predict(scenario("defaults", "reno", "ns2"), model))
    assert [each.reason for each in found] == [None, None]
    assert found[1].throughput[0] > 1.2 * found[0].throughput[0]


def test_a_branch_that_returns_another_count_of_numbers_is_refused_when_compiled():
    vm.register_law(
        "uneven",
        lambda f: 1.0,
        state={"a": 0.0, "b": 0.0},
        update=lambda f: (f.a, f.b) if f.window < 1e6 else (f.a, f.b, f.a),
    )
    found = vm.predict(scenario("uneven", "reno", "ns2"), "fluid")
    assert not found.applicable
    assert found.reason.startswith("law uneven: update: ")
    assert "cannot be compiled by Numba" in found.reason


@settings(max_examples=100, deadline=None)
@given(
    kept=st.lists(st.floats(-1e4, 1e4), min_size=3, max_size=3),
    window=st.floats(1.0, 1e4),
    rtt=st.floats(1e-3, 1.0),
)
def test_the_compiled_functions_read_and_store_what_the_python_functions_do(kept, window, rtt):
    """``update`` mixes a whole number, a truth value and floats; an unusable result stores nothing.

    The numbers behind those of the law stay as they are.
    """
    if "mixes" not in laws.names():

        def update(f):
            return f.a * f.b * f.rtt, int(f.window), f.c > 0.0

        vm.register_law(
            "mixes", lambda f: f.a - f.b + f.c, state={"a": 0.0, "b": 1, "c": 2}, update=update
        )
    law = laws.find("mixes")
    plain = vm.Source(window, rtt, 0.1, 2.0, 1.0, 3.0, 1.0, 3.0, 10.0)
    kind = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * len(plain), ctypes.c_int64)
    memory = np.array([*kept, 77.0])
    drift = kind(address(law, "drift"))(*plain, memory.ctypes.data)
    seen = law.source(plain, kept)
    assert drift == pytest.approx(law.drift(seen), rel=1e-12, abs=1e-9)
    kind(address(law, "update"))(*plain, memory.ctypes.data)
    expected = law.update(seen)
    if abs(expected[0]) <= 1e9:
        np.testing.assert_allclose(memory, [*expected, 77.0], rtol=1e-12)
        raise_faults(law)
    else:
        np.testing.assert_array_equal(memory, [*kept, 77.0])
        with pytest.raises(FieldError, match="law mixes: update"):
            raise_faults(law)


def test_a_law_with_other_numbers_has_another_digest():
    def register(first=0.0, step=1.0, name="a"):
        def update(f):
            return f[9] + step

        vm.register_law("counts", lambda f: 1.0, state={name: first}, update=update)
        return digests.of_law(laws.find("counts"))

    found = [register(), register(), register(1.0), register(step=2.0), register(name="b")]
    assert found[0] == found[1]
    assert len(set(found)) == 4


def test_many_answers_with_threads_keep_the_numbers_of_each_flow_apart():
    register_copa("copa")
    case = scenario("copa", "copa", "ns2").replace({"run.runs": 1})
    cases = [case.replace({"link.buffer": buffer}) for buffer in (10, 20, 30, 40)]
    for model in MODELS:
        alone = [vm.predict(each, model).throughput for each in cases]
        together = [each.throughput for each in vm.batch(cases, model, threads=2)]
        np.testing.assert_array_equal(together, alone)
        grid = vm.sweep(case, {"link.buffer": [10, 20, 30, 40]}, model)
        np.testing.assert_array_equal(grid.throughput.values, alone)


def test_random_numbers_of_update_make_several_runs():
    vm.register_law("random", lambda f: f.x, state={"x": 1.0}, update=lambda _: random.random())
    assert vm.predict(scenario("random", "reno", "ns2"), "fluid").throughput_se is not None
    assert laws.reads.draws(laws.find("random"))


def test_explain_names_the_numbers_of_a_law():
    register_copa("copa")
    said = str(vm.explain("copa"))
    expected = "before (at first 0), direction (0), same_for (0), velocity (1)"
    assert f"It keeps these numbers: {expected}." in said
