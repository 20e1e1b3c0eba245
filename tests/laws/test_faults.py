"""A law of a user that fails, or grows without bound: what the answer and the error say."""

import ctypes
import math
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import vegasmodel as vm
from tests.laws.scenes import scenario
from vegasmodel import laws
from vegasmodel.adapters import fluid_assumptions
from vegasmodel.adapters.own_laws import own_laws_repair
from vegasmodel.engines.fluid import batch as fluid_batch
from vegasmodel.engines.fluid import pauses
from vegasmodel.engines.outside import address, raise_faults
from vegasmodel.engines.rounds import batch as rounds_batch
from vegasmodel.fields.errors import FieldError
from vegasmodel.report.notes import notes
from vegasmodel.scenario import Link, Run, Scenario


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (lambda: 1.0, r"'a function of \(\)' is not allowed"),
        (
            lambda f: f.windw,
            "AttributeError: 'Source' object has no attribute 'windw'\" was raised; a Source has "
            r"window, rtt, .*, round_trips; did you mean 'window'\? \(test_faults.py, line \d+\)",
        ),
        (lambda f: f.jiffies, r"was raised; a Source has window, .*, round_trips \(test_faults"),
        (lambda f: math.pie * f.rtt, "'pie'.* was raised; it must return a number from"),
        (lambda f: math.log(-f.rtt), "ValueError: math domain error"),
        (lambda _: math.nan, "nan is not allowed"),
        (lambda _: None, "None is not allowed"),
        (
            lambda a, b: a + b,
            r"of \(a, b\)' is not allowed; a function of one argument, the Source",
        ),
        (
            lambda source: 1 / (source.window - source.window),
            "division.* was raised; it must return",
        ),
        (lambda _: 1e300, "1e.300 is not allowed"),
        (3, "3 is not allowed"),
    ],
)
@pytest.mark.parametrize("name", ["drift", "cut"])
def test_a_rule_that_fails_is_refused_when_it_is_registered(rule, said, name):
    rules = {"drift": lambda _: 1.0} | {name: rule}
    with pytest.raises(FieldError, match=f"^law broken: {name}: .*{said}") as told:
        vm.register_law("broken", **rules)
    assert "\n" not in str(told.value)
    assert "broken" not in laws.names()


def test_a_number_as_cut_is_told_of_decrease():
    with pytest.raises(FieldError, match=r"^law factor: cut: 0.7 is .*is decrease=0.7$"):
        vm.register_law("factor", lambda _: 1.0, cut=0.7)


def test_a_cut_that_returns_a_factor_is_refused():
    """The window after a loss then was one packet, and no message told why the flow got little."""
    said = r"the window after a loss, packets, not a factor: 0\.5 \* f\.window \(test_faults"
    with pytest.raises(FieldError, match=rf"^law half: cut: 0\.5 is not allowed; {said}"):
        vm.register_law("half", lambda _: 1.0, cut=lambda _: 0.5)
    with pytest.raises(FieldError, match="not a factor"):
        vm.register_law("adaptive", lambda _: 1.0, cut=lambda f: f.base_rtt / f.rtt)
    vm.register_law("shallow", lambda _: 1.0, cut=lambda f: 0.5 * f.backlog)  # 0.9 at the test


@pytest.mark.parametrize("name", ["window", "memory", "velocity"])
def test_a_law_that_stores_in_its_source_is_told_what_stores_a_number(name):
    """Python's message was "can't set attribute", and then followed "it must return a number"."""

    def drift(f):
        setattr(f, name, 1.0)
        return 1.0

    said = rf"'a new value of {name}' is not allowed; the functions of a law only read .* remember"
    with pytest.raises(FieldError, match=f"^law stores: drift: {said}"):
        vm.register_law("stores", drift)


@pytest.mark.parametrize("name", ["count", "index"])
def test_a_field_that_a_source_lacks_is_named_although_tuples_have_it(name):
    said = f"'Source' object has no attribute '{name}'\" was raised; a Source has window, "
    with pytest.raises(FieldError, match=f"^law counts: drift: .*{said}"):
        vm.register_law("counts", lambda f: getattr(f, name) + 1)


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_a_rule_that_fails_in_a_run_is_named_with_what_it_saw(model):
    """Numba's C functions cannot raise: the run continues, but its answer is not returned."""

    @vm.register_law("late")
    def drift(f):
        if f.window > 30.0:
            raise ValueError("too late")
        return 1.0

    for case in (scenario("late", "reno", "ns2"), scenario("own-reno", "late", "ns2")):
        said = r"law late: drift: 'ValueError: too late'.*window"
        found = vm.predict(case, model)
        assert not found.applicable
        assert re.match(said, found.reason)
        assert "\n" not in found.reason
        with pytest.raises(FieldError, match=said):
            vm.simulate(case, model)


def test_a_rule_that_fails_only_when_compiled_is_named_with_what_it_saw():
    """Whole numbers have 64 bits in compiled code, so 2 * 2^62 is negative there."""

    def cut(f):
        return min(float(int(f.window > 0.0) * 2 * 2**62), 5.0)

    vm.register_law("wraps", lambda f: 1.0, cut=cut)
    found = vm.predict(scenario("wraps", "reno", "ns2"), "fluid")
    assert re.fullmatch(
        r"law wraps: cut: 'cut' returned no usable number when compiled by Numba; it must return "
        r"a number from 0 to 1e\+09; its Source had window .* \(test_faults\.py, line \d+\)",
        found.reason,
    )


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_a_law_that_never_opens_its_window_is_named(model):
    vm.register_law("shrinks", lambda f: -1.0)
    said = {a.name: a for a in vm.predict(scenario("shrinks", "reno"), model).assumptions}
    assert said["own-law-grows"].holds is False
    assert "one (" in said["own-law-grows"].detail
    grows = {a.name: a.holds for a in vm.predict(scenario("own-reno", "reno"), model).assumptions}
    assert grows["own-law-grows"] is True


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_a_window_below_zero_after_a_loss_is_refused(model):
    vm.register_law("below-zero", lambda f: 1.0, cut=lambda f: 30.0 - f.window)
    found = vm.predict(scenario("below-zero", "reno"), model)
    assert not found.applicable
    assert re.match(r"law below-zero: cut: -[\d.]+ is not allowed", found.reason)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"drift": lambda f: 1.0, "cut": lambda f: 2.0 * f.window}, "cut: .* not above the one"),
        ({"drift": lambda f: 1e9}, "drift: 1000000000.0 is not allowed; a growth"),
    ],
)
def test_fluid_ends_if_a_law_enlarges_its_window_without_bound(rules, said):
    """Earlier ``fluid`` dropped all packets of the window one by one, for hours."""
    vm.register_law("boundless", **rules)
    case = scenario("boundless", "reno", "ns2", buffer=40.0)
    found = vm.predict(case, "fluid")
    assert re.match(f"law boundless: {said}", found.reason)
    assert "one has a window of " in found.reason
    assert "link and buffer hold 126" in found.reason  # 1080 packets/s * 80 ms + 40
    with pytest.raises(vm.FieldError, match=f"law boundless: {said}"):
        vm.limit_cycle(case, "fluid")


def test_the_error_asks_a_boundless_law_with_the_backlog_that_it_saw():
    """Linux has W (RTT - baseRTT)/baseRTT, so the factor of 1e9 is 1; it was baseRTT/RTT."""

    def drift(f):
        queueing = (f.rtt - f.base_rtt) / f.base_rtt
        return 1e9 * min(f.backlog / f.window / queueing, 1.0) if f.backlog > 1.0 else 1.0

    vm.register_law("boundless", drift)
    found = vm.predict(scenario("boundless", "reno", "linux", buffer=40.0), "fluid")
    assert found.reason.startswith("law boundless: drift: 1000000000.0 is not allowed; a growth")


def test_fluid_pauses_for_ctrl_c_after_many_drops_too(monkeypatch):
    """Earlier its pauses counted only time steps, not the packets dropped in each step."""
    pieces = []
    monkeypatch.setattr(pauses.threads, "check", lambda: pieces.append(1))
    vm.register_law("greedy", lambda f: 1e5)
    case = scenario("greedy", "reno", "ns2", buffer=40.0).replace({"run.runs": 1})
    lost = vm.simulate(case, "fluid").lost[-1].sum()
    assert lost > 4 * pauses.PAUSE
    assert len(pieces) > lost / pauses.PAUSE


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_a_law_that_cannot_repair_its_losses_is_named(model):
    """Westwood's cut to window base_rtt / rtt leaves too large a window after slow start."""
    said = {}
    for recovery in ("hole by hole", "scoreboard"):
        vm.register_law(
            "westwood",
            lambda f: 1.0,
            recovery=recovery,
            cut=lambda f: max(2.0, f.window * f.base_rtt / f.rtt),
        )
        flow = vm.Flow("westwood", 0.06, variant="ns2")
        case = vm.Scenario((vm.Link(1000.0, buffer=20),), (flow,), run=vm.Run(120.0, 40.0))
        found = vm.predict(case, model)
        (said[recovery],) = [a for a in found.assumptions if a.name == "own-law-repairs"]
    assert said["hole by hole"].holds is False
    assert "westwood loses " in said["hole by hole"].detail
    assert said["scoreboard"].holds is True


@pytest.mark.parametrize("model", ["fluid", "rounds"])
@pytest.mark.parametrize("recovery", ["one hole", "scoreboard"])
def test_a_law_that_returns_its_new_window_is_asked_about_it(model, recovery):
    said = {}
    for name, drift in (("mistaken", lambda f: f.window + 1.0), ("fast", lambda f: 8.0)):
        vm.register_law(name, drift, recovery=recovery)
        flow = vm.Flow(name, 0.06, variant="ns2")
        case = vm.Scenario((vm.Link(1000.0, buffer=40),), (flow,), run=vm.Run(60.0, 20.0))
        found = vm.predict(case, model)
        (said[name],) = [a for a in found.assumptions if a.name == "own-law-returns-change"]
    assert said["mistaken"].holds is False
    asked = r"mistaken is (\S+) at a window of (\S+): did the function return the new"
    grows, window = map(float, re.search(asked, said["mistaken"].detail).groups())
    assert grows == pytest.approx(window + 1.0, rel=0.01)
    assert said["fast"].holds is True


@pytest.mark.parametrize("model", ["fluid", "rounds"])
@pytest.mark.parametrize(
    ("drift", "kept", "holds"),
    [
        (
            lambda f: 1.0 if f.memory == 0.5 else 2.0 * f.window,
            {"remember": lambda _: 0.5},
            True,
        ),
        # its first value would let the window grow to 1e6 packets at once
        (lambda f: max(1.0, (f.goal - f.window) / 4.0), {"state": {"goal": 1e6}}, True),
        # after the first loss it returns its window
        (lambda f: f.window if f.goal < 1e6 else 1.0, {"state": {"goal": 1e6}}, False),
    ],
)
def test_the_question_about_the_new_window_is_asked_of_what_a_law_keeps(model, drift, kept, holds):
    if "state" in kept:
        kept = {**kept, "remember": lambda f: f.window}
    vm.register_law("keeps", drift, recovery="scoreboard", **kept)
    flow = vm.Flow("keeps", 0.06, variant="ns2")
    case = vm.Scenario((vm.Link(1000.0, buffer=40),), (flow,), run=vm.Run(60.0, 20.0))
    found = vm.predict(case, model)
    (said,) = [a for a in found.assumptions if a.name == "own-law-returns-change"]
    assert said.holds is holds
    ends = [text.rstrip()[-8:] for text in notes([found]) if said.name in text]
    assert ends == ([] if holds else [" change?"])  # no full stop follows the question


def test_a_scenario_that_rounds_cannot_simulate_asks_a_law_nothing():
    """The answer then has no numbers that the law keeps."""
    vm.register_law("keeps", lambda f: 1.0)
    short = vm.Flow("reno", 0.06, size=10, arrivals={"poisson": "10000000 1/s"})
    found = vm.predict(vm.Scenario((vm.Link(1000.0, buffer=20),), (vm.Flow("keeps", 0.06), short)))
    assert "short flows; the most is" in found.reason


@pytest.mark.parametrize(("recovery", "advised"), [("one hole", True), ("scoreboard", False)])
def test_sack_is_not_advised_to_a_law_that_has_it(recovery, advised):
    vm.register_law("keeps", lambda f: 8.0, recovery=recovery)
    flow = vm.Flow("keeps", 0.06, variant="ns2")
    case = vm.Scenario((vm.Link(1000.0, buffer=4),), (flow,), run=vm.Run(60.0, 20.0))
    (said,) = own_laws_repair(case, np.array([0.2]))
    assert "keeps loses 20 %" in said.detail
    assert ('recovery="scoreboard" may' in said.detail) == advised


def test_fluid_says_that_a_law_grows_too_fast_for_it():
    """Beside Vegas, 30 packets a round trip cost about 30 packets at each overflow."""
    for growth in (1.0, 3.0, 30.0):
        vm.register_law("grows", lambda f, growth=growth: growth)
        found = vm.predict(scenario("vegas", "grows", "ns2"), "fluid")
        said = {a.name: a for a in found.assumptions}["own-law-grows-slowly"]
        assert said.holds is (growth < 10.0)
        assert said.holds or "two by 30 packets a round trip at a window of" in said.detail


@pytest.mark.parametrize(
    ("growth", "window", "holds"),
    [(3.0, 4.0, True), (3.1, 4.0, False), (20.0, 201.0, True), (20.0, 199.0, False)],
)
def test_a_window_may_grow_by_3_packets_or_by_a_tenth_in_a_round_trip(growth, window, holds):
    vm.register_law("grows", lambda f: growth)
    case = vm.Scenario((vm.Link(1e5),), (vm.Flow("grows", 0.1),))
    rate, rtt, losses = np.array([window / 0.1]), np.array([0.1]), np.ones(1)
    run = SimpleNamespace(throughput=rate, rtt_mean=rtt, base_rtt=rtt, losses=losses, kept=None)
    (said,) = fluid_assumptions._of_own_laws(case, run)
    assert said.holds is holds
    run.losses = np.zeros(1)  # nothing is lost, so it matters to nobody
    assert fluid_assumptions._of_own_laws(case, run)[0].holds


@pytest.mark.parametrize("variant", ["paper", "ns2"])
def test_a_fault_of_a_law_ends_with_its_answer(variant):
    @vm.register_law("late")
    def drift(f):
        return math.nan if f.window > 100.0 else 1.0

    def case(buffer):
        flows = [vm.Flow("vegas", 0.05, variant=variant), vm.Flow("late", 0.05)]
        return Scenario([Link("10 Mbit/s", buffer=buffer)], flows, run=Run(duration=60.0))

    before = vm.predict(case("10 pkt"), "fluid")
    for _ in range(2):
        reason = vm.predict(case("500 pkt"), "fluid").reason
        assert re.match(r"law late: drift: nan is not allowed.*window", reason)
    np.testing.assert_array_equal(vm.predict(case("10 pkt"), "fluid").throughput, before.throughput)


def _late(buffer):
    flows = [vm.Flow("vegas", 0.05, variant="ns2"), vm.Flow("late", 0.05, variant="ns2")]
    return Scenario([Link("10 Mbit/s", buffer=buffer)], flows, run=Run(duration=20.0))


@pytest.mark.parametrize("model", ["fluid", "rounds"])
def test_a_fault_of_a_law_leaves_the_answers_beside_it(model):
    """The points are computed on threads, which share the compiled function of the law."""
    vm.register_law("late", lambda f: math.nan if f.window > 100.0 else 1.0)
    buffers = [10.0, 500.0] * 4
    alone = vm.predict(_late(10.0), model)
    for found in (
        vm.batch([_late(buffer) for buffer in buffers], model, threads=4),
        vm.predict_all(_late(500.0), ["equilibrium", model]),
    ):
        for each in found:
            if each.scenario.links[0].buffer == 10.0:
                np.testing.assert_array_equal(each.throughput, alone.throughput)
            else:
                assert not each.applicable
                assert "law late" in each.reason
    grid = vm.sweep(_late(10.0), {"link.buffer": [10.0, 500.0, 11.0]}, model)
    assert (grid.status.values == 0).tolist() == [True, False, True]
    assert "law late: drift: nan is not allowed" in str(grid.reason.values[1])


def test_a_fault_belongs_to_the_run_of_its_thread():
    """One thread calls the compiled function so that it fails, and the other so that it does not.

    The threads take turns, so that their runs overlap.
    """
    vm.register_law("late", lambda f: math.nan if f.window > 100.0 else 1.0)
    law, turns = laws.find("late"), threading.Barrier(2)

    def verdict(window):
        kind = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * len(vm.Source._fields))
        drift = kind(address(law, "drift"))
        turns.wait()
        drift(window, 0.1, 0.1, 0.0, 1.0, 0.0, 1.0, 3.0, 10.0)
        turns.wait()
        try:
            raise_faults(law)
        except FieldError as error:
            return str(error)
        return "sound"

    with ThreadPoolExecutor(2) as pool:
        for _ in range(2):  # each run begins without the fault of the last one
            found = list(pool.map(verdict, (200.0, 20.0)))
            assert re.match("law late: drift: nan is not allowed.*window 200", found[0])
            assert found[1] == "sound"


@pytest.mark.parametrize("engine", [fluid_batch, rounds_batch])
def test_a_batch_of_an_engine_outlives_a_fault_of_a_law(engine):
    vm.register_law("late", lambda f: math.nan if f.window > 100.0 else 1.0)
    found = engine.run([_late(10.0), _late(500.0), _late(11.0)], threads=2)
    ok = found.ok if engine is fluid_batch else [each.applicable for each in found]
    assert list(ok) == [True, False, True]


def test_the_page_on_laws_has_the_word_of_the_errors() -> None:
    with pytest.raises(vm.FieldError) as caught:
        vm.register_law("not-a-function", 3)
    word = str(caught.value).split(": ")[1]
    page = Path(__file__).parents[2] / "docs/write-your-own-law.md"
    said = " ".join(page.read_text(encoding="utf-8").split())
    assert f"call your function `{word}`" in said
