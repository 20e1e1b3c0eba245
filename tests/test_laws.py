"""Laws: the registry, and a law that a user registers from outside the package."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import math
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import vegasmodel as vm
from tests.helpers import exact
from vegasmodel import laws
from vegasmodel.command_line.commands import run
from vegasmodel.engines.fluid import batch as fluid_batch
from vegasmodel.engines.fluid import pauses
from vegasmodel.engines.outside import address, sound
from vegasmodel.engines.rounds import batch as rounds_batch
from vegasmodel.fields.units import FieldError
from vegasmodel.scenario import LAWS, Link, Red, Run, Scenario

TARGET = 0.0  # s; a test changes it


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    """Each test begins without user-defined laws."""
    monkeypatch.setattr(laws, "_outside", {})
    monkeypatch.setattr(laws, "_files", {})

    @vm.register_law("own-reno")
    def reno(f):
        return 1.0

    @vm.register_law("own-vegas", decrease=0.75, delay_based=True)
    def vegas(f):
        if f.backlog < f.alpha:
            return 1.0
        return -1.0 if f.backlog > f.beta else 0.0


def scenario(one: str, two: str, variant: str = "paper", **link) -> Scenario:
    flows = (
        exact(one, 0.08, name="one", variant=variant, alpha=3.0, beta=3.0),
        exact(two, 0.08, name="two", variant=variant, alpha=3.0, beta=3.0),
    )
    return Scenario((Link(1080.0, **({"buffer": 20.0} | link)),), flows, run=Run(300.0, 100.0))


def rates(*arguments, **link) -> np.ndarray:
    return np.asarray(vm.predict(scenario(*arguments, **link), "fluid").throughput)


def test_a_registered_law_gives_what_the_exact_integration_of_the_same_law_gives():
    """``continuous.py`` solves for thresholds and ``sampled.py`` steps; both give one motion."""
    for pair in (("vegas", "reno"), ("reno", "reno"), ("vegas", "vegas")):
        own = tuple(f"own-{name}" for name in pair)
        np.testing.assert_allclose(rates(*own), rates(*pair), rtol=3e-3)


def test_a_registered_law_runs_in_a_stack_as_the_law_of_the_package_does():
    same = rates("vegas", "sack", "ns2")
    np.testing.assert_array_equal(rates("vegas", "own-reno", "ns2"), same)


def test_an_aimd_law_takes_the_share_that_its_averages_say():
    """AIMD(a, b) against AIMD(1, 1/2) is fair where a = 3 b/(2 - b) (Yang and Lam, 2000)."""

    @vm.register_law("aimd", decrease=0.875)
    def drift(f):
        return 0.2  # 3 (1/8)/(2 - 1/8)

    one, two = rates("aimd", "reno", buffer=40.0)
    assert one / two == pytest.approx(1.0, abs=0.1)


def test_rules_of_a_loss_see_what_they_ask_for():
    """A cut to one half, written as a rule, equals the cut by the factor."""

    @vm.register_law("half", cut=lambda f: 0.5 * f.window, remember=lambda f: f.window)
    def drift(f):
        return 1.0 if f.memory >= 0.0 and f.elapsed >= 0.0 else -1.0

    np.testing.assert_allclose(rates("half", "reno"), rates("own-reno", "reno"), rtol=1e-12)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (lambda: 1.0, r"'a function of \(\)' is not allowed"),
        (
            lambda f: f.windw,
            "AttributeError: 'Source' object has no attribute 'windw'\" was raised; a Source has "
            r"window, rtt, .*, round_trips; did you mean 'window'\? \(test_laws.py, line \d+\)",
        ),
        (lambda f: f.jiffies, r"was raised; a Source has window, .*, round_trips \(test_laws"),
        (lambda f: math.pie * f.rtt, "'pie'.* was raised; a rule gives a number"),
        (lambda f: math.log(-f.rtt), "ValueError: math domain error"),
        (lambda _: math.nan, "nan is not allowed"),
        (lambda _: None, "None is not allowed"),
        (
            lambda a, b: a + b,
            r"of \(a, b\)' is not allowed; a function of one argument, the Source",
        ),
        (lambda source: 1 / (source.window - source.window), "division.* was raised; a rule gives"),
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


def test_the_decorator_without_its_name_says_how_to_write_it() -> None:
    with pytest.raises(
        vm.FieldError, match=r"'mine' is not allowed; .*@vm.register_law\(\"my-law\"\)"
    ):

        @vm.register_law
        def mine(f):
            return 1.0


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
def test_a_law_reads_a_number_outside_it_anew_in_each_run(model, monkeypatch):
    """The law keeps ``TARGET`` seconds of queue; a notebook changes ``TARGET`` between runs."""

    def drift(f):
        return 1.0 if f.rtt - f.base_rtt < TARGET else -1.0

    vm.register_law("target", drift, delay_based=True)
    link = Link(1000.0, buffer=math.inf)
    case = Scenario((link,), (vm.Flow("target", 0.06),), run=Run(duration=60.0, warmup=20.0))
    for target in (0.005, 0.02):
        monkeypatch.setitem(globals(), "TARGET", target)
        mean = vm.predict(case, model).queue_mean
        assert mean[0] == pytest.approx(1000.0 * target, rel=0.02)  # within a packet or less


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
    with pytest.raises(FieldError, match=r"^law objects: drift: .*Numba compiles") as told:
        vm.simulate(scenario("objects", "reno"), "fluid")
    assert "\n" not in str(told.value)
    assert vm.predict(scenario("objects", "reno"), "fluid").reason == str(told.value)
    assert told.value.__suppress_context__, "Numba's own error is long"


def test_a_window_that_a_law_lowers_does_not_start_slowly_again_by_rounds():
    """Linux's tcp_vegas lowers ssthresh with the window, so slow start does not begin again."""
    vm.register_law("modest", lambda f: 4.0 - f.window, once_a_round=True)
    low = by_rounds("modest", "own-reno", "ns2")[0] * 0.08
    assert 3.0 <= low <= 4.5


def test_scenario_files_name_a_registered_law():
    text = """
    [[link]]
    capacity = "1080 pkt/s"
    buffer = "20 pkt"
    [[flow]]
    law = "own-reno"
    rtt = "80 ms"
    """
    assert vm.Scenario.from_toml(text).flows[0].law == "own-reno"
    with pytest.raises(FieldError, match="own-reno"):
        vm.Scenario.from_toml(text.replace("own-reno", "own-remo"))


def test_a_law_that_ns2_lacks_is_said_to_be_lacking():
    flows = [vm.Flow("own-reno", "60 ms"), vm.Flow("vegas", "60 ms")]
    scenario = vm.Scenario([Link(1080.0, buffer=20)], flows)
    with pytest.raises(FieldError, match=r"is not in ns-2, .* compare takes a trace") as told:
        vm.compare(scenario, models=["equilibrium"])
    assert str(told.value).count("takes a trace") == 1


MINE = """import vegasmodel as vm

@vm.register_law("mine")
def drift(f):
    return 1.0
"""
SCENARIO = '[[link]]\ncapacity = "1080 pkt/s"\nbuffer = "20 pkt"\n[[flow]]\nrtt = "80 ms"\nlaw = '


def test_a_file_registers_laws_for_the_command_line(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "s.toml").write_text(SCENARIO + '"mine"')
    arguments = ["predict", str(tmp_path / "s.toml"), "--model", "equilibrium"]
    assert run(arguments) == 2
    assert "or a law of your own (register_law, --laws)" in capsys.readouterr().err
    run([*arguments, "--laws", str(tmp_path / "mine.py"), "--json"])
    (found,) = json.loads(capsys.readouterr().out)["results"]
    assert found["reason"].startswith("no closed form has the law mine;")


@pytest.mark.parametrize(
    ("text", "line", "fault"),
    [
        (
            MINE + "print(alpha)",
            6,
            "NameError: name 'alpha' is not defined; expected a Python file that runs and calls",
        ),
        (MINE.replace("return", "retrun"), 5, "SyntaxError: invalid syntax"),
        (MINE + "raise SystemExit(3)", 6, "SystemExit: 3"),
        (
            MINE.replace('"mine"', '"mine", decreas=0.5'),
            3,
            "'decreas' is not allowed; a property of a law",
        ),
        (MINE.replace("1.0", "1 / (f.rtt - f.rtt)"), 3, "law mine: drift: .* was raised; a rule"),
        (MINE.replace("1.0", "f.rrt"), 3, "law mine: drift: .*f.py, line 5"),
        ("x = 1", None, "laws: .*f.py' is not allowed; .* calls vegasmodel.register_law"),
        (None, None, "laws: .*No such file or directory"),
        (MINE.replace("mine", "reno"), 3, "law: 'reno' is not allowed"),
    ],
)
def test_what_is_wrong_in_a_file_is_one_line(text, line, fault, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("f.py").write_text(text)
    begin = "" if line is None else rf"f\.py, line {line}: .*"
    with pytest.raises(FieldError, match=f"^{begin}{fault}") as told:
        laws.register_file("f.py")
    assert "\n" not in str(told.value)


def test_two_files_cannot_give_one_law(tmp_path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(MINE)
    laws.register_file(tmp_path / "a.py")
    laws.register_file(tmp_path / "a.py")  # again is nothing new
    with pytest.raises(FieldError, match=r"b\.py.*of other names than those of .*a\.py: mine"):
        laws.register_file(tmp_path / "b.py")


@pytest.fixture
def _package(tmp_path, monkeypatch):
    """An installed package that offers laws, as pip would install it."""
    about = tmp_path / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[vegasmodel.laws]\nmine = theirs_one\nother = theirs_one\ngone = theirs_two\n"
        "ends = theirs_three\n"
    )
    (tmp_path / "theirs_one.py").write_text(MINE)
    (tmp_path / "theirs_three.py").write_text('raise SystemExit("no licence")')
    monkeypatch.syspath_prepend(tmp_path)
    laws.discovery.installed.cache_clear()
    yield
    laws.discovery.installed.cache_clear()
    sys.modules.pop("theirs_one", None)


@pytest.mark.usefixtures("_package")
def test_an_installed_package_offers_laws():
    assert {"mine", "other", "gone"} <= set(laws.names())
    assert "theirs_one" not in sys.modules  # nobody has asked for it
    assert vm.Scenario.from_toml(SCENARIO + '"mine"').flows[0].law == "mine"
    with pytest.raises(FieldError, match="law: 'other' is not allowed; registered by the module"):
        vm.Scenario.from_toml(SCENARIO + '"other"')
    with pytest.raises(FieldError, match=r"law gone: theirs_two: .*No module named"):
        vm.Scenario.from_toml(SCENARIO + '"gone"')
    with pytest.raises(FieldError, match=r"law ends: theirs_three: .*no licence"):
        vm.Scenario.from_toml(SCENARIO + '"ends"')


def test_every_closed_form_says_that_it_does_not_know_the_law():
    case = scenario("vegas", "own-reno")
    for found in vm.predict_all(case):
        assert found.applicable == (found.model in ("fluid", "rounds")), found.model
        if not found.applicable:
            assert "own-reno" in found.reason
    with pytest.raises(ValueError, match="own-reno"):  # decisions at every instant need thresholds
        vm.limit_cycle(case, "fluid", losers="growing")


def by_rounds(*arguments, **link) -> np.ndarray:
    return np.asarray(vm.predict(scenario(*arguments, **link), "rounds").throughput)


@pytest.mark.parametrize("variant", ["ns2", "linux"])
def test_rounds_gives_a_registered_law_what_it_gives_the_same_law_of_the_package(variant):
    """Only the last digits differ: W ACKs in a stretch add W/W at once, not one by one."""
    vm.register_law("own-newreno", lambda _: 1.0, recovery="hole by hole")
    for law, own in (("sack", "own-reno"), ("newreno", "own-newreno")):
        if variant == "linux" and law == "newreno":
            continue  # there the kernel's own Reno has a scoreboard, too
        expected = by_rounds("vegas", law, variant)
        np.testing.assert_allclose(by_rounds("vegas", own, variant), expected, rtol=0.02)
    limit = vm.limit_cycle(scenario("vegas", "own-reno", variant), "rounds")
    same = vm.limit_cycle(scenario("vegas", "sack", variant), "rounds")
    np.testing.assert_allclose(limit.throughput, same.throughput, rtol=0.04)


def test_a_registered_vegas_holds_its_packets_in_the_queue_by_rounds():
    """Alone, it keeps a backlog between alpha and beta and loses nothing."""

    @vm.register_law("own-band", delay_based=True, once_a_round=True)
    def drift(f):
        return 1.0 if f.backlog < f.alpha else (-1.0 if f.backlog > f.beta else 0.0)

    run = vm.simulate(scenario("own-band", "own-band", "ns2", buffer=np.inf), "rounds")
    queue = float(run.queue.values[-500:].mean())
    assert 2.0 * 3.0 - 2.0 <= queue <= 2.0 * 3.0 + 2.0
    assert (run.lost.values == 0.0).all()


def test_rules_of_a_loss_are_asked_by_rounds():
    """A law that grows only by what it remembers, and sets the window after a loss itself."""
    vm.register_law(
        "mindful",
        lambda f: f.memory / 7.0 if f.elapsed > 0.0 else -1.0,
        remember=lambda _: 7.0,
        cut=lambda f: 0.5 * f.window // 1.0,
    )
    expected = by_rounds("own-reno", "own-reno", "ns2")
    np.testing.assert_array_equal(by_rounds("mindful", "own-reno", "ns2"), expected)


@pytest.mark.parametrize("model", ["rounds", "fluid"])
def test_a_law_sees_how_many_round_trips_have_passed_since_its_start(model):
    """It grows for 30 round trips, from 10 packets.

    From N packets to N + 1 it needs N + 1/2 ACKs, so it grows to 39 in 29.7 round trips.
    """

    @vm.register_law("ramp", slow_start="none")
    def ramp(f):
        return 1.0 if f.round_trips < 30.0 else 0.0

    flow = vm.Flow("ramp", 0.1, variant="ns2", initial_window=10.0, send_jitter=0.0)
    case = vm.Scenario((vm.Link(10000.0),), (flow,), run=vm.Run(30.0, 10.0))
    assert vm.predict(case, model).throughput[0] == pytest.approx(39.0 / 0.1, rel=0.03)


@pytest.mark.parametrize("rtt", [0.05, 0.1])
def test_cubic_grows_as_in_rounds_beside_a_law_that_empties_the_queue_often(rtt):
    """Beside a flow that grows by four packets per round trip, as `rounds` has it packet by packet.

    That flow halves its window again and again, so the RTT swings. The window that CUBIC takes from
    Reno counts round trips (RFC 9438 4.3).
    """
    vm.register_law("four", lambda _: 4.0)
    flows = tuple(vm.Flow(law, rtt, variant="ns2", send_jitter=0.0) for law in ("four", "cubic"))
    link = vm.Link(2000.0, buffer=1000.0 * rtt)
    case = vm.Scenario((link,), flows, run=vm.Run(150.0, 50.0, runs=1))
    rates = [vm.predict(case, model).throughput[0] for model in ("fluid", "rounds")]
    assert rates[0] == pytest.approx(rates[1], rel=0.12)


def test_an_aimd_law_takes_by_rounds_what_it_takes_in_the_fluid():
    """On average over ten drawn networks: which flow loses next depends on details in each."""
    vm.register_law("aimd", lambda _: 0.2, decrease=0.875)
    rng = np.random.default_rng(20)
    shares = []
    for _ in range(10):
        link = vm.Link(float(rng.integers(300, 2000)), buffer=float(rng.integers(12, 60)))
        rtt = float(rng.uniform(0.03, 0.15))
        flows = tuple(vm.Flow(law, rtt, variant="ns2") for law in ("aimd", "sack"))
        case = vm.Scenario((link,), flows, run=vm.Run(120.0, 40.0, runs=3, start_jitter=0.5))
        both = (vm.predict(case, model).throughput for model in ("rounds", "fluid"))
        shares.append([float(found[0] / found.sum()) for found in both])
    assert np.abs(np.diff(shares)).mean() <= 0.08


@pytest.mark.parametrize(("before", "now"), [(80.0, 100.0), (120.0, 100.0)])
def test_cubic_is_back_where_it_was_after_the_time_that_the_rfc_says(before, now):
    """RFC 9438 (2): at W_max after K = cbrt((W_max - beta W)/C); Reno would be below."""
    from vegasmodel.laws import Source, cubic

    rtt, lost = 0.5, Source(now, 0.5, 0.5, 0.0, 9.0, before, 1.0, 3.0)
    memory = cubic.remember(lost)
    highest = now if now >= before else 0.85 * now  # fast convergence
    k, step = math.cbrt((highest - 0.7 * now) / 0.4), 1e-3
    window, time = 0.7 * now, rtt  # recovery has taken a round trip
    while time < k + rtt:
        window += (
            step
            / rtt
            * cubic.drift(
                lost._replace(window=window, elapsed=time, memory=memory, round_trips=time / rtt)
            )
        )
        time += step
    assert window == pytest.approx(highest, rel=0.01)
    later = lost._replace(window=highest, elapsed=k + 3.0, memory=memory)
    assert highest + cubic.drift(later) == pytest.approx(highest + 0.4 * 3.0**3, rel=1e-9)


def test_cubic_at_a_short_rtt_is_fair_to_reno_on_average():
    """RFC 9438 4.3: AIMD(3 (1-b)/(1+b), b) has the throughput of AIMD(1, 1/2)."""
    from vegasmodel.laws import Source, cubic

    rtt, begin = 1e-3, Source(20.0, 1e-3, 1e-3, 0.0, 0.0, 0.0, 1.0, 3.0)
    memory = cubic.remember(begin)
    after = begin._replace(window=14.0, memory=memory)
    target = 14.0 + cubic.drift(after._replace(elapsed=5.0 * rtt, round_trips=5.0))
    assert target == pytest.approx(14.0 + 5.0 * 3.0 * 0.3 / 1.7, rel=1e-9)


@pytest.mark.parametrize(("cubic_beta", "variant"), [(717, "linux"), (819, "ns2")])
def test_the_kernels_cubic_grows_as_before_above_the_window_at_the_loss(cubic_beta, variant):
    """tcp_cubic.c: Reno's window grows by a packet per (W beta_scale) >> 3 ACKs, at any W.

    beta_scale is 8 (1024 + beta)/3/(1024 - beta), in whole numbers.  ns-2 computes it for its first
    beta, 819.  By RFC 9438 the window grows by one packet per round trip above that at the loss.
    """
    from vegasmodel.laws import Source, cubic
    from vegasmodel.stacks import STACKS

    windows = 8 * (1024 + cubic_beta) // 3 // (1024 - cubic_beta) / 8
    assert STACKS[variant].reno_windows == windows
    seen = Source(20.0, 1e-3, 1e-3, 0.0, 0.0, 20.0, 1.0, 3.0)
    for trips in (5.0, 100.0):
        seen = seen._replace(elapsed=1e-3 * trips, round_trips=trips, window=13.0 + trips / windows)
        assert cubic.kernel_drift(windows)(seen) == pytest.approx(1.0, rel=1e-9)
    later = 20.0 + 100.0 - 6.0 / cubic.ALPHA  # by the RFC
    assert cubic.drift(seen._replace(window=later)) == 0.0
    assert cubic.drift(seen._replace(window=later - 1.0)) == pytest.approx(1.0)


@pytest.mark.parametrize("loss", [0.002, 0.006, 0.02])
def test_cubic_at_random_loss_gets_in_the_fluid_what_it_gets_in_rounds(loss):
    """`rounds` counts ACKs as ns-2 does; by RFC 9438 the flow gets over a third more than that."""
    flow = vm.Flow("cubic", 0.06, variant="ns2", send_jitter=0.0)
    case = vm.Scenario((vm.Link(1500.0, buffer=40.0, loss=loss),), (flow,), run=vm.Run(400.0, 50.0))
    rates = [vm.predict(case, model).throughput[0] for model in ("fluid", "rounds")]
    assert rates[0] == pytest.approx(rates[1], rel=0.12)


@pytest.mark.parametrize("model", ["rounds", "fluid"])
@pytest.mark.parametrize("variant", ["paper", "ns2"])
def test_simulators_know_cubic_and_closed_forms_say_that_they_do_not(model, variant):
    case = scenario("cubic", "reno", variant)
    share = np.asarray(vm.predict(case, model).throughput)
    assert share.sum() > 0.8 * 1080.0
    for found in vm.predict_all(case):
        assert found.applicable == (found.model in ("fluid", "rounds")), found.model
        assert found.applicable or "cubic" in found.reason
    with pytest.raises(ValueError, match="does not know the law cubic"):
        vm.limit_cycle(case, "fluid", losers="growing")


def test_what_cubic_lacks_in_a_stack_is_an_assumption_that_fails():
    slow = scenario("cubic", "reno", "linux")
    other = scenario("cubic", "reno", "ns2")
    other = other.replace(flows=(dataclasses.replace(other.flows[0], decrease=0.8), other.flows[1]))
    for case, word in ((slow, "HyStart"), (other, "0.7"), (scenario("cubic", "reno", "ns2"), "")):
        for model in ("rounds", "fluid"):
            failed = {a.name: a.detail for a in vm.predict(case, model).assumptions if not a.holds}
            expected = "" if model == "rounds" else word  # it runs tcp_cubic.c
            assert expected in failed.get("whole-laws", "")
            assert ("whole-laws" in failed) == bool(expected)
            assert ("whole-stack" in failed) == (model == "fluid" and case is slow)


def test_ns2_has_an_agent_for_every_law_of_the_package():
    from vegasmodel.packets.ns2_agents import AGENTS

    assert set(AGENTS) == {law.name for law in laws.BUILT_IN}


def test_ns2_has_cubic_with_the_factor_of_the_scenario_and_ns3_with_its_own():
    from vegasmodel.packets import ns2_script, ns3_support

    case = scenario("cubic", "vegas", "ns2")
    text = ns2_script.script(case).text
    assert "Agent/TCP/Linux Agent/TCPSink/Sack1" in text
    assert "module cubic cubic_beta 717" in text
    ns3_support.check(case)
    cubic, vegas = case.flows
    own = dataclasses.replace(case, flows=(dataclasses.replace(cubic, decrease=0.6), vegas))
    with pytest.raises(FieldError, match=r"flow\[0\].decrease: 0.6"):
        ns3_support.check(own)


def test_packet_drivers_refuse_the_law():
    from vegasmodel.packets import ns2_support, ns3_support

    case = scenario("vegas", "own-reno")
    for support in (ns2_support, ns3_support):
        with pytest.raises(FieldError, match="own-reno"):
            support.check(case)


def test_trajectories_of_a_registered_law():
    found = vm.simulate(scenario("own-vegas", "own-reno"), "fluid", samples=101)
    assert np.isfinite(found.window.values).all()


def test_what_cannot_be_a_law_is_one_line():
    def drift(f):
        return 1.0

    for arguments, data, field in (
        (("reno", drift), {}, "law"),
        (("", drift), {}, "law"),
        (("mine", drift), {"decreas": 0.5}, "decreas"),
        (("mine", drift), {"decrease": 2.0}, "decrease"),
        (("mine", drift), {"recovery": "never"}, "recovery"),
        (("mine", 3.0), {}, "drift"),
        (("mine", np.vectorize(drift)), {}, r"drift: .*\(def or lambda\)"),
        (("mine", drift), {"cut": lambda f: -1.0}, "cut: -1.0 is not allowed; a number from 0"),
    ):
        with pytest.raises(FieldError, match=field):
            vm.register_law(*arguments, **data)


@pytest.mark.parametrize(
    "name", ["My Law!", "my law", " own", "a/b", "-x", "a=b", "a.b", "", "a" * 61]
)
def test_the_name_of_a_law_has_letters_digits_and_hyphens(name):
    """It is the name of a flow and a part of texts such as ``ratio:a/b=1`` and ``flow.a.alpha``."""
    with pytest.raises(FieldError, match=r"^law: .* is not allowed; .*such as my-law$"):
        vm.register_law(name, lambda f: 1.0)


@pytest.mark.parametrize("name", ["my-law", "my_law_2", "Größe", "a" * 60])
def test_a_law_may_have_a_usual_name(name):
    vm.register_law(name, lambda f: 1.0)
    case = scenario(name, "reno").replace({"flow.one.name": name})
    assert case.replace({f"flow.{name}.alpha": 2.0}).flows[0].alpha == 2.0


def test_an_unknown_law_has_the_most_similar_name():
    with pytest.raises(FieldError, match="did you mean 'own-reno'"):
        laws.find("own-renno")


def test_the_registry_is_the_scenario_s_list():
    assert tuple(law.name for law in laws.BUILT_IN) == LAWS


@pytest.mark.parametrize("law", laws.BUILT_IN, ids=lambda law: law.name)
@pytest.mark.parametrize("stack", ["paper", "ns2", "linux"])
def test_rounds_runs_the_rules_of_the_law_s_own_file(law, stack):
    """The rules in plain Python on a plain object, against the compiled rules on a record."""
    from vegasmodel.engines.rounds import laws as senders
    from vegasmodel.engines.rounds.flows import mechanisms
    from vegasmodel.engines.rounds.state import FLOW
    from vegasmodel.stacks import STACKS

    if law.packets is None:
        pytest.skip("its drift is called by address")
    record = np.zeros(1, FLOW)
    mechanisms(law, STACKS[stack], record)
    flow = record[0]
    given = {"cwnd": 10.25, "ssthresh": 5.0, "growth": 0.1, "next": 20.0, "acked": 10.0}
    for key, value in given.items():
        flow[key] = value
    plain = SimpleNamespace(**{name: flow[name].item() for name in FLOW.names if name != "stock"})
    assert senders.acks_to_change(flow) == law.packets.acks_to_change(plain)
    senders.grow(flow, 3.0, 0.0)
    law.packets.upon_acks(plain, 3.0)
    assert flow["cwnd"] == plain.cwnd != given["cwnd"]


def test_no_law_s_recovery_is_taken_for_another_s_in_silence():
    """With the papers' law all recover alike, with a remark; with ns-2's each has its own."""
    alike = [vm.predict(scenario("vegas", law), "fluid") for law in ("reno", "tahoe")]
    np.testing.assert_array_equal(alike[0].throughput, alike[1].throughput)
    for found in alike:
        assert not {a.name: a.holds for a in found.assumptions}["recovery-as-taken"]
    own = [vm.predict(scenario("vegas", law, "ns2"), "fluid") for law in ("reno", "tahoe")]
    assert own[1].throughput[1] < 0.97 * own[0].throughput[1]
    assert all({a.name: a.holds for a in f.assumptions}["recovery-as-taken"] for f in own)


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
    """It dropped all packets of the window one by one, for hours."""
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
    """Its pauses counted time steps, and not the packets that it drops in each of them."""
    pieces = []
    monkeypatch.setattr(pauses.threads, "check", lambda: pieces.append(1))
    vm.register_law("greedy", lambda f: 1e5)
    case = scenario("greedy", "reno", "ns2", buffer=40.0).replace({"run.runs": 1})
    lost = vm.simulate(case, "fluid").lost[-1].sum()
    assert lost > 4 * pauses.PAUSE
    assert len(pieces) > lost / pauses.PAUSE


@pytest.mark.parametrize("model", ["fluid", "rounds"])
@pytest.mark.parametrize("buffer", [20, 40])
def test_a_cut_in_slow_start_halves_the_window_as_in_ns2(model, buffer):
    """tcp.cc, ``slowdown``: in slow start the factor is 1/2 even if ``decrease_num_`` is not.

    At the end of slow start the window is twice what fits. A cut to 0.95 of it left the sender in
    one recovery after another.
    """
    vm.register_law("gentle", lambda f: 1.0, recovery="hole by hole", decrease=0.95)
    for law in ("gentle", "newreno"):
        alone = vm.Flow(law, 0.06, variant="ns2", decrease=0.95)
        case = vm.Scenario((vm.Link(1000.0, buffer=buffer),), (alone,), run=vm.Run(120.0, 40.0))
        assert vm.predict(case, model).throughput == pytest.approx(1000.0, rel=0.01)


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


def test_fluid_says_that_a_law_grows_too_fast_for_it():
    """Beside Vegas, 30 packets a round trip cost about 30 packets at each overflow."""
    for growth in (1.0, 3.0, 30.0):
        vm.register_law("grows", lambda f, growth=growth: growth)
        found = vm.predict(scenario("vegas", "grows", "ns2"), "fluid")
        said = {a.name: a for a in found.assumptions}["own-law-grows-slowly"]
        assert said.holds is (growth < 10.0)
        assert said.holds or "two by 30 at a window of" in said.detail


def test_what_the_fluid_has_not_is_said():
    marks = scenario("vegas", "reno", queue=Red(5.0, 15.0, ecn=True))
    assert "ecn" in vm.predict(marks, "fluid").reason
    endless = vm.predict(scenario("vegas", "reno", "ns2", buffer=np.inf), "fluid")
    assert not {a.name: a.holds for a in endless.assumptions}["losses-end-growth"]


def test_like_sources_get_like_rates_in_the_fluid():
    """Sources of the same law and RTT differ only in their order in the file.

    In one run of ns-2 one SACK source may get 167 pkt/s and two others 63 and 75.
    """
    groups = [("vegas", 3.0), ("sack", 1.0)]
    flows = tuple(
        vm.Flow(law, 0.169, count=3, alpha=alpha, beta=3.0, variant="ns2", send_jitter=0.0)
        for law, alpha in groups
    )
    run = Run(300.0, 100.0, runs=40, start_jitter=0.5)
    case = Scenario((Link(405.0, buffer=57.0),), flows, run=run)
    rates = np.asarray(vm.predict(case, "fluid").throughput)
    for like in (rates[:3], rates[3:]):
        np.testing.assert_allclose(like, like.mean(), rtol=0.2)


def test_reno_brought_by_a_user_gets_in_linux_what_reno_gets() -> None:
    """Linux counts ACKs up to its whole window for a packet more, whichever law asks for it."""
    vm.register_law("my-reno", lambda _: 1.0, decrease=0.5, recovery="one hole")
    vm.register_law("gentle", lambda _: 0.5, decrease=0.8)
    got = []
    for law in ("reno", "my-reno"):
        flows = [vm.Flow(name, "40 ms", variant="linux") for name in ("gentle", law)]
        case = vm.Scenario([vm.Link(1250.0, buffer=60)], flows, run=vm.Run(40.0, 10.0, runs=2))
        got.append(vm.predict(case, "rounds").throughput)
    np.testing.assert_array_equal(*got)


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
            sound(law)
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


def test_cubic_on_a_very_fast_link():
    def case(capacity):
        flows = [vm.Flow("vegas", 0.05), vm.Flow("cubic", 0.05)]
        return Scenario([Link(capacity, buffer="1 BDP")], flows, run=Run(duration=10.0))

    slow = vm.predict(case("10 Mbit/s"), "fluid")
    fast = vm.predict(case("100 Gbit/s"), "fluid")
    capacity = case("100 Gbit/s").links[0].capacity
    assert 0.0 < fast.throughput.sum() <= capacity * (1.0 + 1e-9)
    np.testing.assert_array_equal(
        vm.predict(case("10 Mbit/s"), "fluid").throughput, slow.throughput
    )


def test_the_page_on_laws_has_the_word_of_the_errors() -> None:
    with pytest.raises(vm.FieldError) as caught:
        vm.register_law("not-a-function", 3)  # type: ignore[arg-type]
    word = str(caught.value).split(": ")[1]
    page = Path(__file__).parents[1] / "docs/write-your-own-law.md"
    assert f"call this function `{word}`" in page.read_text(encoding="utf-8")
