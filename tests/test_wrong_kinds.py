"""NumPy's numbers are numbers; a value of another kind than a function takes is one line."""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike

import vegasmodel as vm
from vegasmodel.command_line.commands import run
from vegasmodel.fields.checked import Checked

FLOWS = [vm.Flow("vegas", "40 ms"), vm.Flow("reno", "40 ms")]
SCENARIO = vm.Scenario([vm.Link("8 Mbit/s", buffer="20 pkt")], FLOWS)


def test_numpy_numbers_are_numbers() -> None:
    link = vm.Link(np.int64(1000), buffer=np.float64(20.0))
    flows = [
        vm.Flow("vegas", np.float64(0.25), count=np.int64(2), delayed_ack=np.bool_(True)),
        vm.Flow("reno", vm.Uniform(np.float32(0.25), np.array(0.5)), alpha=np.float64(2.0)),
    ]
    times = vm.Run(duration=np.int32(60), warmup=np.float64(20.0), seed=np.int64(3))
    plain = vm.Scenario(
        [vm.Link(1000, buffer=20)],
        [
            vm.Flow("vegas", 0.25, count=2, delayed_ack=True),
            vm.Flow("reno", vm.Uniform(0.25, 0.5), alpha=2),
        ],
        run=vm.Run(duration=60, warmup=20, seed=3),
    )
    made = vm.Scenario([link], flows, run=times)
    assert made == plain
    assert made.fingerprint() == plain.fingerprint()
    changed = plain.replace({"link.buffer": np.int64(30), "run.seed": np.int16(4)})
    assert changed == plain.replace({"link.buffer": 30, "run.seed": 4})
    assert all(type(x) is float for x in (link.buffer, flows[0].rtt, changed.links[0].buffer))
    link_table = {"capacity": "8 Mbit/s", "buffer": np.int64(20)}
    flow_table = {"law": "reno", "rtt": "40 ms", "count": np.int32(2), "delayed_ack": np.True_}
    table = {"link": [link_table], "flow": [flow_table]}
    assert type(vm.Scenario.from_dict(table).flows[0].count) is int
    assert type(vm.Drop("reno", (np.int64(3),)).packets[0]) is int


@pytest.mark.parametrize("kind", [Fraction, np.longdouble])
def test_every_real_number_becomes_a_float(kind: Callable[[int], Any]) -> None:
    """A ``Fraction`` stayed one: its TOML was no number, and it had no fingerprint."""
    made = vm.Scenario([vm.Link(kind(100))], [vm.Flow("vegas", kind(1))])
    assert type(made.links[0].capacity) is type(made.flows[0].rtt) is float
    assert vm.Scenario.from_toml(made.to_toml()) == made
    assert made.fingerprint() == vm.Scenario([vm.Link(100)], [vm.Flow("vegas", 1)]).fingerprint()
    assert vm.plots.figure(kind(4), kind(3)).get_size_inches().tolist() == [4.0, 3.0]


def test_a_number_too_large_for_a_float_is_one_line() -> None:
    large = 10**400
    with pytest.raises(vm.FieldError, match=r"^buffer"):
        vm.Link(100, buffer=large)
    with pytest.raises(vm.FieldError, match=r"^rtt"):
        vm.Flow("vegas", large)
    with pytest.raises(vm.FieldError, match=r"^link.buffer"):
        vm.sweep(SCENARIO, {"link.buffer": [large]}, "minicycle")
    with pytest.raises(vm.FieldError, match=r"^alpha"):
        vm.equilibrium.queueing_delay([large], [0.0], 100.0)


@pytest.mark.parametrize(
    ("ask", "field"),
    [
        (lambda span: vm.Flow("vegas", span), "rtt"),
        (lambda span: vm.Flow("vegas", 0.1, count=span), "count"),
        (lambda span: SCENARIO.replace({"flow.start": span}), "flow.start"),
        (lambda span: vm.basins(SCENARIO, "minicycle", phase=span), "phase"),
        (lambda span: vm.batch([SCENARIO], "minicycle", threads=span), "threads"),
        (lambda span: vm.equilibrium.bands.equilibria(2, 2, 0.0, span), "capacity"),
    ],
)
@pytest.mark.parametrize("unit", ["ns", "ms"])
def test_a_time_span_of_numpy_is_no_number(
    ask: Callable[[Any], Any], field: str, unit: Any
) -> None:
    """1000 ns were read as 1000 s, and 1 ms was an error of Python's."""
    with pytest.raises(vm.FieldError, match=rf"^{field}: np.timedelta64\(7,'{unit}'\) "):
        ask(np.timedelta64(7, unit))


def test_an_array_of_dimension_0_is_no_list() -> None:
    """The error was Python's: iteration over a 0-d array."""
    with pytest.raises(vm.FieldError, match=r"^scenarios: array\(1.5\) is not allowed"):
        vm.batch(np.array(1.5), "minicycle")  # type: ignore[arg-type]


UNSIZED = np.array(1.5)
MASKED = np.ma.array([1.0, 2.0], mask=[False, True])
WIDE = 10**25  # NumPy has no integers of more than 64 bits


@pytest.mark.parametrize(
    ("ask", "field"),
    [
        (lambda: vm.equilibrium.random_loss.share(UNSIZED, 0.1, 100.0), "flows"),
        (lambda: vm.equilibrium.random_loss.share(iter([]), 0.1, 100.0), "flows"),
        (lambda: vm.engines.fluid.batch.pack(iter([SCENARIO])), "scenarios"),
        (lambda: vm.engines.delayed.integrator.integrate(print, UNSIZED, [1.0]), "span"),
        (lambda: vm.engines.delayed.integrator.integrate(print, MASKED, [1.0]), "span"),
        (lambda: vm.equilibrium.network.solve(WIDE, 1.0, 1.0), "routing"),
        (lambda: vm.equilibrium.random_loss.pftk(_SWEPT, 0.1, 0.2), "p"),
    ],
)
def test_what_has_no_length_or_shape_is_one_line(ask: Callable[[], Any], field: str) -> None:
    """The errors were Python's, for example: len() of unsized object."""
    with pytest.raises(vm.FieldError) as said:
        ask()
    assert said.value.field == field
    assert "\n" not in str(said.value)


@pytest.mark.parametrize("kind", [Fraction, Decimal, np.float32, np.int8, np.array])
def test_any_single_number_is_one_of_pythons(kind: Callable[[int], Any]) -> None:
    """An int8 was too narrow for the number of samples, and Numba did not know a ``Fraction``."""
    run = vm.engines.fluid.continuous.run
    found, plain = run(PAIR, kind(2)), run(PAIR, 2.0)
    np.testing.assert_array_equal(found.window, plain.window)
    red = vm.equilibrium.red.simple_pftk
    assert red(0.01, 0.1, 0.3, kind(2)) == red(0.01, 0.1, 0.3, 2.0)


def test_a_random_time_from_0_to_minus_0_is_0() -> None:
    """NumPy's generator refused the range."""
    found = vm.basins(SCENARIO, "minicycle", starts=2, phase=-0.0)
    assert all(start.times == (0.0, 0.0) for start in found.starts)


def test_arguments_may_be_numpy_numbers() -> None:
    """``basins`` refused ``np.int64(3)`` as a number of starts."""
    two, whole = np.int64(2), np.int32(21)
    found = vm.basins(SCENARIO, "minicycle", starts=two, seed=two, tolerance=np.float32(0.05))
    assert len(found.starts) == 2
    assert vm.simulate(SCENARIO, "fluid", samples=whole).sizes["time"] == 21
    assert len(vm.batch([SCENARIO], "minicycle", threads=two)) == 1


def test_a_run_needs_no_warmup() -> None:
    """The default never ends after the run, and is part of neither the file nor the repr."""
    run = vm.Run(duration="60 s")
    assert (run.warmup, vm.Run().warmup, vm.Run(duration="6000 s").warmup) == (20.0, 200.0, 200.0)
    assert repr(run) == "Run(duration='60 s')"
    short = SCENARIO.replace({"run.duration": "60 s"})
    assert "warmup" not in short.to_toml()
    assert vm.Scenario.from_toml(short.to_toml()).run == run
    assert short.replace({"run.duration": "90 s"}).run.warmup == 30.0


def test_a_sweep_takes_values_as_text() -> None:
    data = vm.sweep(SCENARIO, {"link.capacity": ["4 Mbit/s", 1000.0]}, "minicycle")
    assert data["link.capacity"].values.tolist() == [500.0, 1000.0]


PAIR = vm.Scenario([vm.Link(400)], [vm.Flow("vegas", 0.1, count=2)])
_ANSWER = vm.predict(SCENARIO, "minicycle")
_SWEPT = vm.sweep(SCENARIO, {"link.buffer": [10, 20], "flow.rtt": [0.04, 0.06]}, "minicycle")
CALLS: dict[str, dict[str, Any]] = {
    "basins": {"scenario": SCENARIO, "model": "minicycle", "starts": 2},
    "batch": {"scenarios": [SCENARIO], "model": "minicycle"},
    "compare": {"scenario": SCENARIO},
    "design": {"scenario": SCENARIO, "solve": "link.buffer", "target": "jain=1"},
    "limit_cycle": {"scenario": SCENARIO},
    "limit_cycles": {"scenario": SCENARIO},
    "load": {},
    "predict": {"scenario": SCENARIO},
    "predict_all": {"scenario": SCENARIO},
    "register_law": {"name": "of-no-use", "drift": lambda f: f.alpha},
    "sensitivity": {"scenario": SCENARIO, "model": "minicycle", "names": ["link.buffer"]},
    "simulate": {"scenario": SCENARIO},
    "stability": {},
    "stability_boundary": {"scenario": PAIR, "over": {"flow.rtt": (1, 2), "flow.alpha": (1, 2)}},
    "sweep": {"scenario": SCENARIO, "over": {"link.buffer": [5]}, "model": "minicycle"},
    "uncertainty": {"scenario": SCENARIO, "model": "minicycle", "errors": {"link.buffer": 0.1}},
    "plots.base_rtt_by_arrival": {"models": [_ANSWER]},
    "plots.class_shares": {"models": [_ANSWER]},
    "plots.convergence_regions": {"scenario": PAIR},
    "plots.curves": {"models": {}, "measured": {}, "x": "x", "y": "y"},
    "plots.figure": {},
    "plots.model_errors": {"errors": {}},
    "plots.rate_by_arrival": {"models": [_ANSWER]},
    "plots.save": {"fig": vm.plots.figure(), "path": "x.png"},
    "plots.sweep": {"data": _SWEPT},
    "plots.throughput_bars": {"scenario": SCENARIO, "results": [_ANSWER]},
    "plots.throughput_over_buffer": {"models": [_ANSWER]},
    "plots.windows": {"data": vm.simulate(SCENARIO, "fluid", samples=9)},
}
# words of a figure may be anything, and so may what is asked whether it is JAX's
ANYTHING = {"title", "x", "y", "log"}
OBJECTS = {"plots.heat", "plots.legend", "plots.tidy", "equilibrium.secular.is_jax"}


def _public(room: ModuleType = vm, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All functions and classes that one reaches from ``vegasmodel`` by its public names."""
    for name in dir(room):
        thing = getattr(room, name)
        if isinstance(thing, ModuleType):
            yield from _public(thing, f"{prefix}{name}.")
        elif getattr(thing, "__module__", "").startswith("vegasmodel") and callable(thing):
            yield f"{prefix}{name}", thing


PUBLIC = dict(_public())
FUNCTIONS = {
    name: thing
    for name, thing in PUBLIC.items()
    if not isinstance(thing, type) and name not in OBJECTS and hasattr(thing, "__globals__")
}
MADE = {  # classes of what a function takes; the others are of what a function returns
    "engines.delayed.feedback.Equilibrium",
    "engines.delayed.integrator.Event",
    "engines.rounds.run.Simulation",
    "equilibrium.heterogeneous.Flows",
    "equilibrium.loop_rest.Sources",
    "equilibrium.loss_rounds.Recovery",
    "equilibrium.loss_rounds.Source",
    "equilibrium.random_loss.Sender",
    "equilibrium.red.Curve",
    "equilibrium.red.Flows",
    "equilibrium.settling.Earlier",
    "equilibrium.settling.Newcomer",
    "equilibrium.stability.Loop",
}
PLAIN = {int: 2, float: 1.0, complex: 1.0, bool: True, str: "paper", Path: Path("a"), Any: 1.0}


def _good(hint: Any) -> Any:
    """A value of the kind that a type states; its checks may refuse it for another reason."""
    if alias := getattr(get_origin(hint), "__value__", None):  # NDArray, since NumPy 2.5
        hint = alias[get_args(hint)]
    origin, inner = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        return PLAIN[hint]
    if hint == ArrayLike or origin is np.ndarray:
        return np.array([1.0])
    if origin in (Union, UnionType):
        if NoneType not in inner and set(get_args(ArrayLike) or [ArrayLike]) <= set(inner):
            return np.array([1.0])
        return None if NoneType in inner else _good(inner[0])
    if origin is Literal:
        return inner[0]
    if origin is tuple and Ellipsis not in inner:
        return tuple(_good(each) for each in inner)
    if origin is Callable:
        return lambda *_: None
    if hint is vm.Scenario:
        return SCENARIO
    if origin is None:
        return object.__new__(hint)  # of that class, and nothing else is known of it
    return {} if issubclass(origin, Mapping) else []


def _hints(thing: Any) -> dict[str, Any]:
    room = vars(sys.modules[thing.__module__])
    return {
        argument.name: eval(argument.annotation, room)  # noqa: S307 - our own source
        for argument in inspect.signature(thing).parameters.values()
        if argument.kind not in (argument.VAR_KEYWORD, argument.VAR_POSITIONAL)
    }


def _calls(names: Iterable[str]) -> list[Any]:
    return [
        pytest.param(name, argument.name, id=f"{name}-{argument.name}")
        for name in names
        for argument in inspect.signature(PUBLIC[name]).parameters.values()
        if argument.kind not in (argument.VAR_KEYWORD, argument.VAR_POSITIONAL)
        and not (name.startswith("plots.") and argument.name in ANYTHING)
    ]


def _call(name: str) -> dict[str, Any]:
    if name in CALLS:
        return CALLS[name]
    given = inspect.signature(PUBLIC[name]).parameters
    hints = _hints(PUBLIC[name])
    return {one: _good(hints[one]) for one in hints if given[one].default is given[one].empty}


@pytest.mark.parametrize(("name", "argument"), _calls(FUNCTIONS))
def test_a_wrong_argument_is_one_line(name: str, argument: str) -> None:
    """Each argument of each public function, in turn, is of no use."""
    with pytest.raises(vm.FieldError) as said:
        PUBLIC[name](**{**_call(name), argument: object()})
    where = "law" if name == "register_law" else argument
    assert where in str(said.value).split(":")[0]
    assert "\n" not in str(said.value)


@pytest.mark.parametrize(("name", "argument"), _calls(sorted(MADE)))
def test_a_wrong_field_is_one_line(name: str, argument: str) -> None:
    """The classes of what the closed forms and the simulators take."""
    with pytest.raises(vm.FieldError) as said:
        PUBLIC[name](**{**_call(name), argument: object()})
    assert argument in str(said.value).split(":")[0]


@pytest.mark.parametrize(("name", "argument"), _calls(CALLS))
def test_an_array_in_place_of_one_value_is_one_line(name: str, argument: str) -> None:
    """``truth value of an array`` was NumPy's own error."""
    if argument == "between":  # it may be an array of two numbers
        return
    with pytest.raises(vm.FieldError) as said:
        PUBLIC[name](**{**CALLS[name], argument: np.array([1.0, 2.0])})
    assert "\n" not in str(said.value)


def test_one_public_class_is_called_flow() -> None:
    """``equilibrium.random_loss`` had another one."""
    found = {each for each in PUBLIC.values() if getattr(each, "__name__", "") == "Flow"}
    assert found == {vm.Flow}


def test_every_public_class_is_here() -> None:
    """Users make a class, a function returns it or a part of it, or a user's law gets it."""
    assert MADE | set(CALLS) <= set(PUBLIC)
    assert len(FUNCTIONS) > 150
    returned = [str(inspect.signature(each).return_annotation) for each in FUNCTIONS.values()]
    classes = {name: thing for name, thing in PUBLIC.items() if isinstance(thing, type)}
    parts = [
        str(inspect.get_annotations(kind)) for each in classes.values() for kind in each.__mro__
    ]
    said = " ".join(returned + parts)
    for name, thing in classes.items():
        checked = name in (*MADE, "Source") or issubclass(thing, Checked | Exception | Enum)
        assert checked or thing.__name__ in said, name


@pytest.mark.parametrize(
    "cls",
    [vm.Link, vm.Flow, vm.Scenario, vm.Drop, vm.Red, vm.Uniform, vm.Pareto, vm.Poisson],
)
def test_a_part_without_its_required_fields_is_one_line(cls: type[Any]) -> None:
    first = next(iter(inspect.signature(cls).parameters))
    with pytest.raises(vm.FieldError, match=f"^{first}: missing; this argument is required$"):
        cls()
    with pytest.raises(vm.FieldError, match=r"^rtt: missing; this argument is required$"):
        vm.Flow("reno")


@pytest.mark.parametrize(
    ("ask", "field", "allowed"),
    [
        (lambda: vm.Flow("vegas", np.array([0.04, 0.05])), "rtt", "a time"),
        (lambda: vm.Scenario(vm.Link(1000), FLOWS), "links", "a list of Link"),
        (lambda: vm.Scenario([], []), "links", "at least one link"),
        (lambda: vm.Scenario([vm.Link(1000)], []), "flows", "at least one group"),
        (lambda: vm.Flow("reno", 0.1, service="fast"), "service", "one of rate, delay"),
        (lambda: vm.predict(SCENARIO, ["fluid", "rounds"]), "model", "predict_all"),
        (lambda: vm.predict(SCENARIO, "mini"), "model", "one of equilibrium, bands, "),
        (lambda: vm.predict_all(SCENARIO, 3), "models", "a list of models"),
        (lambda: vm.batch(SCENARIO), "scenarios", "a list of scenarios"),
        (lambda: vm.limit_cycle("mixed.toml"), "scenario", "a Scenario"),
        (lambda: vm.limit_cycle(SCENARIO, "rounds", losers="all"), "losers", "fluid takes it"),
        (lambda: vm.simulate(SCENARIO, samples=2.5), "samples", "a whole number"),
        (lambda: vm.sweep(SCENARIO, "link.buffer=5,9"), "over", "a list of texts"),
        (lambda: vm.sweep("s", {"link.buffer": [5]}), "scenario", "a Scenario"),
        (lambda: vm.design(SCENARIO, "link.buffer", "jain=1", verify=2), "verify", "a list"),
        (lambda: vm.design(SCENARIO, "link.buffer", "jain=1", verify="roun"), "verify", "'rounds'"),
        (lambda: vm.plots.windows(SCENARIO), "data", "simulate returns"),
        (lambda: vm.plots.rate_by_arrival(SCENARIO), "models", "a list of predictions"),
        (lambda: vm.plots.throughput_bars(SCENARIO, [SCENARIO]), "results", "predictions"),
        (lambda: SCENARIO.replace(duration="9 s"), "duration", "did you mean run.duration?"),
        (lambda: SCENARIO.replace({"rtt": "9 s"}), "rtt", "did you mean flow.rtt?"),
        (lambda: vm.Link(1000, queue="red"), "queue", "in Python one of DropTail, Red, RateDelay"),
        (lambda: vm.sweep(SCENARIO, {"rtt": [5]}), "over", "did you mean 'flow.rtt'?"),
        (lambda: vm.Link("4,32 Mbit/s"), "capacity", "no comma"),
        (lambda: vm.Flow("vegas", "40 ms", alpha=5), "beta", "its default, so give beta too"),
        (
            lambda: vm.sweep(SCENARIO, {"link.buffer": "5..9"}),
            "over",
            "the number of random points",
        ),
        (lambda: vm.design(SCENARIO, "buffer", "jain=1"), "solve", "did you mean 'link.buffer'?"),
        (lambda: vm.design(SCENARIO, "link.buffer", 0.3), "target", "text such as"),
        (
            lambda: vm.design(SCENARIO, "link.buffer", "jain=1", "minicycle", between=5),
            "between",
            "two numbers",
        ),
        (lambda: vm.basins(SCENARIO, "fluid", windows=5), "windows", "two whole numbers"),
        (lambda: vm.uncertainty(SCENARIO, "minicycle", "rtt"), "errors", "a mapping"),
        (lambda: vm.sensitivity(SCENARIO, "minicycle", 3), "names", "a list"),
        (lambda: vm.sensitivity(SCENARIO, "minicycle", "rtt"), "field", "'flow.rtt'"),
        (lambda: vm.stability_boundary(SCENARIO, "rtt"), "over", "two fields"),
        (lambda: vm.packets.ns2.run("mixed.toml"), "scenario", "a Scenario"),
        (lambda: vm.packets.ns3.run("mixed.toml"), "scenario", "a Scenario"),
        (lambda: vm.compare(SCENARIO, runs=0), "runs", "a whole number from 1"),
        (lambda: vm.load(SCENARIO), "path", "the name of a scenario file"),
        (lambda: vm.packets.read(SCENARIO), "path", "the name of a trace file"),
        (lambda: vm.packets.read(pd.DataFrame()), "path", "a CSV table that DataFrame.to_csv"),
        (lambda: vm.packets.read(pd.DataFrame()), "path", "packets.trace.make makes a Trace"),
        (lambda: vm.compare(SCENARIO, pd.DataFrame()), "trace", "packets.trace.make makes"),
        (lambda: vm.compare(SCENARIO, pd.DataFrame()), "trace", "that DataFrame.to_csv wrote"),
    ],
)
def test_another_kind_is_one_line(ask: Callable[[], Any], field: str, allowed: str) -> None:
    with pytest.raises(vm.FieldError) as said:
        ask()
    assert said.value.field == field
    assert allowed in said.value.allowed
    assert "\n" not in str(said.value)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """Some editors write one; the file was refused as no TOML."""
    file = tmp_path / "marked.toml"
    file.write_bytes(b"\xef\xbb\xbf" + SCENARIO.to_toml().encode())
    assert vm.load(file) == SCENARIO


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("predict FILE --model fluidd", "--model: 'fluidd'"),
        ("measure FILE --engine ns4", "--engine: 'ns4'"),
        ("design FILE --solve link.buffer --for sharp=1", "--for: 'sharp=1'"),
        ("sweep FILE --over link.buffer --out a.zarr", "--over: 'link.buffer'"),
        ("measure FILE --runs 0", "--runs: 0"),
        ("design FILE --solve buffer --for jain=1", "--solve: 'buffer'"),
        ("basins FILE --phase 1e9s", "--phase: "),
        ("basins FILE --against ns4", "--against: 'ns4'"),
        ("design FILE --solve link.buffer --for jain=1 --verify ns4", "--verify: 'ns4'"),
        ("design FILE --solve link.buffer --for jain=1 --between 5ms:x", "--between: 'x'"),
        ("predict FILE --uncertain rtt=1", "--uncertain, "),
        ("predict FILE --uncertain =5%", "--uncertain: ''"),
        ("predict /", "/: '/' cannot be read"),
        ("predict FILE --laws none.py", "--laws: 'none.py'"),
    ],
)
def test_the_command_line_names_the_option(
    line: str, option: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python names the argument ``model``; whoever typed ``--model`` reads ``--model``."""
    file = tmp_path / "s.toml"
    file.write_text(SCENARIO.to_toml())
    assert run([str(file) if word == "FILE" else word for word in line.split()]) == 2
    assert capsys.readouterr().err.startswith(f"vegasmodel: {option}")
