"""Wrong arguments from Python: one line that names the argument, and no wrong number."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel import stacks

BASE = vm.Scenario(
    [vm.Link(1000.0, buffer=20.0)],
    [vm.Flow("vegas", 0.05, alpha=3.0, beta=3.0), vm.Flow("reno", 0.05)],
    run=vm.Run(duration=30.0),
)
E = vm.equilibrium
TWO, THREE = np.array([0.5, 0.6]), np.array([0.5, 0.6, 0.7])
FLOW, CURVE = E.heterogeneous.Flows(["reno"], 0.1), E.heterogeneous.droptail(5.0)


def test_a_key_that_is_no_text_is_an_unknown_key() -> None:
    table: Any = {"link": [{"capacity": 5.0}], "flow": [{"law": "vegas", "rtt": 0.05}], 3: 4}
    with pytest.raises(vm.FieldError, match=r"^3: 3 is no key here; allowed keys: .*link, flow"):
        vm.Scenario.from_dict(table)


@pytest.mark.parametrize("buffer", ["20 pkt", "1 BDP", "64 kB", "100 ms", "inf", 20])
def test_a_buffer_in_the_place_of_a_name_is_refused(buffer: Any) -> None:
    """The link had this name, and an infinite buffer."""
    with pytest.raises(vm.FieldError, match=r"^name: .* the link's name; write buffer="):
        vm.Link("10 Mbit/s", buffer)
    assert vm.Link("10 Mbit/s", "uplink").name == "uplink"
    assert vm.Link("10 Mbit/s", name="100 ms").name == "100 ms"


FAILING: dict[str, Callable[[Path], object]] = {
    "FieldError": lambda _: vm.predict(BASE, "minicicle"),
    "FieldError of a file": vm.load,
    "TraceError": vm.packets.read,
    "TraceError that cannot be opened": lambda file: vm.packets.read(file.with_name("none")),
    "UnknownNameError": lambda _: vm.predict(BASE, "minicycle").ratios["vegas/vegas"],
}


@pytest.mark.parametrize("kind", FAILING)
def test_an_error_reaches_another_process_as_it_is(kind: str, tmp_path: Path) -> None:
    """Pools of processes and Dask send errors by ``pickle``."""
    file = tmp_path / "bad.toml"
    file.write_text("links = 3\n")
    with pytest.raises(vm.FieldError) as raised:
        FAILING[kind](file)
    error = raised.value
    pickled = pickle.loads(pickle.dumps(error))  # noqa: S301 - the test's own bytes
    for again in (pickled, copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert (again.field, again.value, again.file) == (error.field, error.value, error.file)


def test_the_text_of_a_scenario_is_no_file_name() -> None:
    with pytest.raises(vm.FieldError, match=r"^path: 'name = .*Scenario.from_toml reads its text"):
        vm.load(BASE.to_toml())


def test_a_sweep_over_a_single_text_says_what_it_takes() -> None:
    with pytest.raises(vm.FieldError, match=r"^over: 'link.buffer' .* a dictionary such as"):
        vm.sweep(BASE, "link.buffer", "minicycle")


def test_a_packet_simulator_refuses_settings_that_it_would_ignore() -> None:
    from vegasmodel.packets import ns2, ns2_script, ns2_trace

    wrong: Any
    for wrong in ({"engine": "ns-3"}, {"interval": -1.0}, {"interval": 0.0}, {"number": -1}):
        with pytest.raises(vm.FieldError, match=rf"^{next(iter(wrong))}: "):
            ns2_trace.record(BASE, **wrong)
    with pytest.raises(vm.FieldError, match=r"^stock: 'x' is not allowed; parameters of ns-2: "):
        ns2_script.script(BASE, stock=["x"])
    with pytest.raises(vm.FieldError, match=r"^interval: "):
        ns2.run(BASE, interval=-1.0)


@pytest.mark.parametrize(
    "x",
    [
        np.array([1, 2], "m8[ms]"),
        np.array(["2020-01-01", "2021-01-01"], "M8[D]"),
        np.array([0.1 + 1j, 0.2]),
        np.ma.masked_array([0.1, 0.2], [False, True]),
        [0.1, None],
        None,
        True,
        np.True_,
        [True, False],
        [[0.1, True]],
        np.array([True, False]),
        np.array([0.1, True], object),
    ],
)
def test_closed_forms_read_no_number_from_what_is_none(x: Any) -> None:
    """A time in ms was taken for seconds, True for 1; masks and imaginary parts were dropped."""
    e = vm.equilibrium
    with pytest.raises(vm.FieldError, match=r"^x: "):
        e.rates([3.0, 3.0], x, 250.0)
    with pytest.raises(vm.FieldError, match=r"^rtt: "):
        e.minicycle.throughput(1000.0, x, 20.0)


def test_true_is_no_number_and_a_number_no_truth_value() -> None:
    wrong: Any
    for wrong, name in (
        (lambda: vm.metrics.jain([True, False]), "throughput"),
        (lambda: vm.equilibrium.settling.alone([True], [0.1], [1.0]), "windows"),
        (lambda: vm.plots.model_errors({"fluid": [True]}), "errors, fluid"),
        (lambda: vm.equilibrium.red.Flows([True, False], True), "rtt"),
        (lambda: vm.equilibrium.red.Flows("yes", 0.05), "vegas"),
    ):
        with pytest.raises(vm.FieldError, match=rf"^{name}: "):
            wrong()
    for vegas in (True, [True, False], np.array([True, False])):
        vm.equilibrium.red.Flows(vegas, 0.05)


def test_a_routing_matrix_may_hold_truth_values() -> None:
    """The truth values say which flow crosses which link."""
    e, crosses = vm.equilibrium, np.array([[True, True], [True, False]])
    flows = e.heterogeneous.Flows(["vegas", "vegas"], 0.1)
    curves = [e.heterogeneous.droptail(100.0)] * 2
    for routing in (crosses, crosses.tolist()):
        rates = e.network.solve(routing, [100.0, 200.0], 3.0).rates
        assert np.array_equal(rates, e.network.solve(crosses * 1, [100.0, 200.0], 3.0).rates)
        (one,) = e.heterogeneous.equilibria(routing, [100.0, 200.0], curves, flows).found
        np.testing.assert_allclose(one.rates, [50.0, 50.0])


def test_an_error_does_not_name_classes_of_numpy() -> None:
    """The kinds of which ``ArrayLike`` consists stood in the message: a _Buffer or ..."""
    for wrong in (
        lambda: vm.equilibrium.arrivals.arrive([1.0], 3.0, beta="x"),
        lambda: vm.equilibrium.minicycle.solve(1.0, 3.0, 3.0, beta="x"),
    ):
        with pytest.raises(vm.FieldError, match=r"; a number or an array of numbers or None$"):
            wrong()


def test_a_list_is_an_array_where_another_kind_may_stand_as_well() -> None:
    """The compiler's own error of many lines: a list reached compiled code."""
    from vegasmodel.engines.fluid import continuous

    pair = vm.Scenario([vm.Link(400.0)], [vm.Flow("vegas", 0.1, count=2)], run=vm.Run(duration=5.0))
    given: Any = [5.0, 5.0]
    one, other = (continuous.run(pair, starts=x) for x in (given, np.array(given)))
    assert np.array_equal(one.window, other.window)


def test_a_number_too_large_for_a_float_is_no_number() -> None:
    """The error was Python's own: int too large to convert to float."""
    for wrong in (
        lambda: vm.metrics.percent(10**400),
        lambda: vm.equilibrium.settling.first_peak(np.ones(2), np.ones(2), 10**400),
        lambda: vm.packets.trace.make("ns2", [1.0], ["a"], {}, begin=-(10**400)),
    ):
        with pytest.raises(vm.FieldError, match=r"^(part|c|begin): .* a number$"):
            wrong()


def test_an_unknown_argument_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(vm.FieldError, match="is no argument of Flow; did you mean 'delayed_ack'"):
        vm.Flow("vegas", "40 ms", delayed_acks=True)
    with pytest.raises(vm.FieldError, match="did you mean 'buffer'"):
        vm.Link("10 Mbit/s", bufer="20 pkt")
    with pytest.raises(vm.FieldError, match="did you mean 'name'"):
        vm.Scenario(BASE.links, BASE.flows, nam="x")


def test_a_queue_is_named_once() -> None:
    """The error named link.queue.queue.max_threshold, and no file has such a key."""
    table = {"discipline": "red", "min_threshold": "5 pkt", "max_threshold": "3 pkt"}
    red = BASE.replace({"link.queue": vm.Red(5.0, 15.0)})
    wrong: Any
    for wrong, place in (
        (lambda: vm.Red(5.0, 3.0), "max_threshold"),
        (lambda: vm.Link(1000.0, queue=table), "queue.max_threshold"),
        (lambda: red.replace({"link.queue.max_threshold": 3.0}), "link.queue.max_threshold"),
        (lambda: BASE.replace({"link.queue": table}), "link.queue.max_threshold"),
    ):
        with pytest.raises(vm.FieldError, match=rf"^{place}: '3 pkt' is .* min_threshold, 5 pkt"):
            wrong()
    toml = red.to_toml().replace("15 pkt", "3 pkt")
    with pytest.raises(vm.FieldError, match=r"^link 1, queue.max_threshold: '3 pkt'"):
        vm.Scenario.from_toml(toml)


def test_an_error_is_one_line_whatever_the_value_is() -> None:
    """The many lines of a dataset or an array were a part of the message."""
    data = vm.simulate(BASE, "fluid", samples=5)
    trace = vm.packets.trace.make("ns2", [1.0, 2.0], ["a"], {"throughput": [[1.0], [2.0]]})
    wrong: Any
    for wrong in (
        lambda: vm.predict(data),
        lambda: vm.plots.sweep(data),
        lambda: vm.plots.windows(trace.data),
        lambda: vm.plots.sweep(trace),
        lambda: vm.compare(data),
        lambda: vm.Flow("vegas", np.ones((3, 3))),
        lambda: vm.load(data),
        lambda: vm.Link(data),
        lambda: vm.Link(10**5000),
        lambda: vm.Flow("vegas", 0.05, count=10**5000),
        lambda: vm.equilibrium.rates(10**5000, 0.0, 1.0),
    ):
        with pytest.raises(vm.FieldError) as said:
            wrong()
        assert len(str(said.value).splitlines()) == 1
        assert len(str(said.value)) < 300


def test_a_trace_is_written_to_a_path() -> None:
    trace = vm.packets.trace.make("ns2", [1.0, 2.0], ["a"], {"throughput": [[1.0], [2.0]]})
    with pytest.raises(vm.FieldError, match=r"^path: 3 is not allowed; text or a path"):
        trace.write(3)


def test_helpers_of_plots_name_what_is_no_axes_and_no_map() -> None:
    """The errors were Python's own: 'int' object has no attribute 'spines'."""
    import xarray as xr

    plots, one = vm.plots, xr.DataArray(np.ones((2, 2)), dims=("y", "x"))
    ax, words = plots.figure().subplots(), {"title": "", "shown": "", "up": ""}
    wrong: Any
    for wrong, name in (
        (lambda: plots.tidy(3), "axes"),
        (lambda: plots.tidy(np.array([ax])), "axes"),
        (lambda: plots.tidy(ax, grid=3), "grid"),
        (lambda: plots.legend(3), "fig"),
        (lambda: plots.legend(plots.figure(), 3), "axes"),
        (lambda: plots.legend(plots.figure(), columns=0), "columns"),
        (lambda: plots.heat([], [], [], **words), "panels"),
        (lambda: plots.heat([one[0]], [""], [""], **words), "panels"),
        (lambda: plots.heat([one * np.nan], [""], [""], **words), "panels"),
        (lambda: plots.heat([one.astype(str)], [""], [""], **words), "panels"),
        (lambda: plots.heat([one], [], [""], **words), "titles"),
        (lambda: plots.heat([one], [""], ["", ""], **words), "across"),
    ):
        with pytest.raises(vm.FieldError, match=rf"^{name}: "):
            wrong()


def test_a_figure_is_of_one_scenario() -> None:
    """The picture was empty, had bars of another scenario, or was NumPy's own error."""
    plots, here = vm.plots, vm.predict(BASE, "minicycle")
    renamed = vm.predict(BASE.replace({"flow.vegas.name": "other"}), "minicycle")
    more = vm.predict(BASE.replace({"flow.vegas.count": 2}), "minicycle")
    for wrong, where in (
        (lambda: plots.throughput_bars(BASE, [here, renamed]), "results: 'for other, reno'"),
        (lambda: plots.rate_by_arrival([here], [more]), r"models, measured: 'for vegas\[0\], "),
        (lambda: plots.base_rtt_by_arrival([here, renamed]), "models, measured: 'for other, "),
        (lambda: plots.throughput_over_buffer([here], [renamed]), "models, measured: 'for other"),
    ):
        with pytest.raises(vm.FieldError, match=rf"^{where}.* predictions for vegas, reno$"):
            wrong()
    larger = vm.predict(BASE.replace({"link.buffer": 30.0}), "minicycle")
    plots.throughput_bars(BASE, [here, larger])
    plots.throughput_over_buffer([here, larger, more])


def test_times_to_settle_are_of_no_negative_window_or_delay() -> None:
    """A negative backlog gave a delay, and a negative capacity a warning of NumPy and NaN."""
    settling, minus = E.settling, np.array([1.0, -2.0])
    earlier, newcomer = settling.Earlier(TWO, TWO, TWO, TWO, 9.0), settling.Newcomer(0.0, 0.1, 1.0)
    wrong: Any
    for wrong, name in (
        (lambda: settling.first_peak(minus, TWO, 9.0), "backlog"),
        (lambda: settling.first_peak(TWO, minus, 9.0), "rtt"),
        (lambda: settling.first_peak(TWO, TWO, -9.0), "c"),
        (lambda: settling.peak(minus, TWO, 9.0, (TWO, TWO)), "windows"),
        (lambda: settling.peak(TWO, TWO, 0.0, (TWO, TWO)), "c"),
        (lambda: settling.alone(TWO, TWO, minus), "backlog"),
        (lambda: settling.together(TWO, TWO, np.array(-2.0)), "c"),
        (lambda: settling.later(TWO, minus, TWO), "after"),
        (lambda: settling.Earlier(TWO, TWO, TWO, minus, 9.0), "rtt"),
        (lambda: settling.Earlier(TWO, TWO, TWO, TWO, -9.0), "c"),
        (lambda: settling.Newcomer(0.0, -2.0, 1.0), "rtt"),
        (lambda: settling.Newcomer(0.0, 0.1, -2.0), "gamma"),
        (lambda: settling.lag(earlier, newcomer, (0.01, -2.0), 1.0), "between"),
        (lambda: settling.lag(earlier, newcomer, (0.01, 0.02), 0.0), "doubling"),
    ):
        with pytest.raises(vm.FieldError, match=rf"^{name}: (-[29]|0).0 is not allowed"):
            wrong()
    assert np.isnan(settling.first_peak(np.array([1.0, np.nan]), TWO, 9.0))  # not known


@pytest.mark.parametrize("step", [0.0, -1.0, np.nan, np.inf])
def test_a_curve_is_followed_by_steps_above_0(step: float) -> None:
    """Steps of 0 gave 10,000 equal points, and NaN an endless loop."""
    for follow in (
        lambda: E.minicycle_folds.cycles(1000.0, 0.05, step=step),
        lambda: E.continuation.follow(lambda x, p: x - p, 0.5, 0.5, (0.0, 1.0), step=step),
    ):
        with pytest.raises(vm.FieldError, match=r"^step: .* more than 0, and finite"):
            follow()


@pytest.mark.parametrize("step", [2.5, 1e12, 1e300])
def test_a_step_beyond_the_curve_ends_it(step: float) -> None:
    """The error was Python's own: math domain error, or a result out of range."""
    assert E.minicycle_folds.cycles(1000.0, 0.05, step=step).buffer[0] == 1.0


def test_a_prediction_is_found_by_the_name_of_its_model() -> None:
    """List indices must be integers or slices, said Python."""
    found = vm.predict_all(BASE, ["minicycle", "random-loss"])
    assert found["random-loss"] is found[1] is found[-1]
    assert isinstance(found[:1], vm.Predictions)
    assert found[:1]["minicycle"] is found[0]
    with pytest.raises(vm.FieldError, match=r"^model: 'random-los' .*one of minicycle, random-"):
        found["random-los"]
    with pytest.raises(vm.FieldError, match=r"^model: 'random-loss' is not allowed; one of mini"):
        found[:1]["random-loss"]


def test_absurd_sizes_are_one_line() -> None:
    """NumPy's errors named no argument, or a symbolic sum had no end."""
    from vegasmodel.packets import ns2_trace

    many, engines, symbolic = 10**12, vm.engines, vm.symbolic
    pair = vm.Scenario([vm.Link(400.0)], [vm.Flow("vegas", 0.1, count=2)], run=vm.Run(duration=5.0))
    wrong: Any
    for wrong, name in (
        (lambda: E.arrivals.bonald(many, 3.0, 9.0), "n"),
        (lambda: E.arrivals.asymptotes(10**400, 3.0, 9.0), "n"),
        (lambda: E.network.parking_lot(many), "links"),
        (lambda: E.network.parking_lot(10**4, 1, 10**4), "links, long, cross"),
        (lambda: vm.simulate(BASE, "fluid", samples=many), "samples"),
        (lambda: vm.simulate(BASE, "rounds", samples=many), "samples"),
        (lambda: vm.sweep(BASE, {"link.buffer": "1..9"}, "minicycle", draw=10**8), "out"),
        (
            lambda: vm.stability_boundary(pair, {"flow.rtt": (1, 2), "flow.alpha": (1, 2)}, many),
            "most",
        ),
        (lambda: engines.delayed.feedback.run(pair, many), "samples"),
        (lambda: engines.fluid.continuous.run(pair, 1e-12), "sample"),
        (lambda: engines.fluid.run.run(BASE, 1e-12), "sample"),
        (lambda: engines.fluid.run.run(BASE, runs=many), "runs"),
        (lambda: engines.fluid.batch.run([pair], threads=-1), "threads"),
        (lambda: engines.rounds.run.run(BASE, samples=many), "samples"),
        (lambda: engines.rounds.run.run(BASE, parts=10**400), "parts"),
        (lambda: engines.rounds.answers.answer(BASE, runs=many), "runs"),
        (lambda: engines.rounds.batch.run([BASE], runs=many), "runs"),
        (lambda: ns2_trace.record(BASE, 1e-12), "interval"),
        (lambda: symbolic.boutremans.arrivals_bonald(many), "flows"),
        (lambda: symbolic.boutremans.cross_corrected(1), "flows"),
        (lambda: symbolic.boutremans.sensitivities(many), "flows"),
        (lambda: symbolic.random_loss.moment_product(many), "terms"),
    ):
        with pytest.raises(vm.FieldError, match=rf"^{name}: "):
            wrong()


def test_starts_and_samples_of_a_simulator_fit_its_flows() -> None:
    """The errors were the compiler's, or NumPy's index out of range."""
    rounds, continuous = vm.engines.rounds.run, vm.engines.fluid.continuous
    pair = vm.Scenario([vm.Link(400.0)], [vm.Flow("vegas", 0.1, count=2)], run=vm.Run(duration=5.0))
    three = np.zeros(3)
    wrong: Any
    for wrong, name in (
        (lambda: rounds.run(BASE, starts=three), "starts"),
        (lambda: rounds.run(BASE, starts=[]), "starts"),
        (lambda: rounds.run(BASE, samples=2.5), "samples"),
        (lambda: rounds.run(BASE, samples=-1), "samples"),
        (lambda: rounds.run(BASE, samples=np.ones((2, 3))), "samples"),
        (lambda: rounds.run(BASE, samples=np.array([1.0, 0.5])), "samples"),
        (lambda: rounds.run(BASE, seed=-1), "seed"),
        (lambda: continuous.run(pair, starts=three), "starts"),
        (lambda: continuous.run(pair, starts=np.array([0.0, np.nan])), "starts"),
        (lambda: vm.engines.delayed.feedback.run(pair, step=0.0), "step"),
        (lambda: vm.engines.delayed.feedback.run(pair, losers="none"), "losers"),
    ):
        with pytest.raises(vm.FieldError, match=rf"^{name}: "):
            wrong()


def test_more_wrong_arguments_are_one_line() -> None:
    """The errors were Python's, NumPy's or xarray's own."""
    integrate = vm.engines.delayed.integrator.integrate
    make, trace = (
        vm.packets.trace.make,
        vm.packets.trace.make("ns2", [1.0], ["a"], {"throughput": [[1.0]]}),
    )
    curve = {"a": ([1.0], [1.0])}
    wrong: Any
    for wrong, name in (
        (lambda: BASE.path("vegas"), "group"),
        (lambda: BASE.size_of(0), "group"),
        (lambda: BASE.access_rate(None), "group"),
        (lambda: BASE.jitter(BASE), "group"),
        (lambda: BASE.transmission("reno"), "group"),
        (lambda: make("ns2", 1.0, ["a"], {}), "times"),
        (lambda: make("ns2", [1.0], {"a": 1}, {}), "flows"),
        (lambda: make("ns2", [1.0], [b"a"], {}), "flows"),
        (lambda: trace.get(["window"]), "name"),
        (lambda: trace.known(3), "name"),
        (lambda: vm.explain(np.ones(2)), "name"),
        (lambda: vm.Trace(3, "ns2"), "data"),
        (lambda: vm.Trace(vm.simulate(BASE, "fluid", samples=5), "fluid"), "data"),
        (lambda: vm.plots.save(vm.plots.figure(), "x.nosuch"), "path"),
        (lambda: vm.plots.curves({}, {"a": ([1, 2], [1, 2], [-1, 1])}, x="", y=""), "measured, a"),
        (lambda: vm.plots.curves({}, {"a": ([1, 2], [1, 2], [1] * 3)}, x="", y=""), "measured, a"),
        (lambda: E.continuation.follow(lambda x, p: TWO, 0.5, 0.5, (0.0, 1.0)), "equations"),
        (
            lambda: E.continuation.follow(
                lambda x, p: x - p, 0.5, 0.5, (0.0, 1.0), slopes=lambda x, p: THREE
            ),
            "slopes",
        ),
        (lambda: E.heterogeneous.equilibria([[1]], 9.0, [], FLOW), "curves"),
        (lambda: E.heterogeneous.equilibria([[1, 1]], 9.0, [CURVE], FLOW), "flows"),
        (lambda: integrate(lambda t, y, z: THREE, (0.0, 1.0), [1.0]), "f"),
        (lambda: vm.packets.ns2.run_trace(BASE, 0.0), "interval"),
        (lambda: vm.packets.ns2.run_trace(BASE, 0.1, number=-1), "number"),
        (lambda: vm.packets.ns2.run_trace(BASE, 0.1, number=2**31), "number"),
        (lambda: vm.packets.ns3.run_trace(BASE, np.nan), "interval"),
        (lambda: list(vm.packets.campaign.run([], "x", processes=-1)), "processes"),
        (lambda: vm.LimitCycle.failed(10**12, "no"), "n"),
        (lambda: vm.plots.curves(curve, {}, x="x", y="y", log=np.ones(2)), "log"),
        (lambda: E.random_loss.share(np.empty((0, 2)), 0.1, 9.0), "flows"),
        (lambda: E.hopf.trace(None, None, (1.0, -1.0), (1.0, 2.0)), "make"),
        (lambda: E.loss_rounds.Source([0.1], 0.1, 1.0), "loss"),
        (lambda: E.loss_rounds.Recovery(decrease=2.0), "decrease"),
        (lambda: E.heterogeneous.equilibria([[1]], 9.0, [CURVE], FLOW, seed=-1), "seed"),
    ):
        with pytest.raises(vm.FieldError, match=rf"^{name}: "):
            wrong()
    assert make("ns2", [1.0], ["a"], {}, links=np.empty(0)).links == []
    flat = {"a": ([0.0, 1.0], [0.0, 0.0])}
    vm.plots.curves(flat, {}, x="x", y="y", log=True)  # matplotlib warned: no positive values


def test_a_search_for_a_share_bears_the_longest_buffer() -> None:
    """SciPy gave up after 100 halvings of the interval."""
    senders = [E.random_loss.Sender(law, 0.1) for law in ("vegas", "reno")]
    short, endless = (E.random_loss.share(senders, 0.01, 100.0, b, "pftk") for b in (1e9, 1e300))
    np.testing.assert_allclose(endless.rates, short.rates, rtol=1e-9)


def test_a_short_search_for_a_cycle_has_no_error_of_its_means() -> None:
    """NumPy warned of a division by 0."""
    found = vm.limit_cycle(BASE, "rounds", longest=3.0)
    assert found.kind == "neither found"
    assert np.isnan(found.spread).all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: vm.limit_cycle(BASE, longest=np.inf), "^longest: inf .*at least 1, and finite$"),
        (lambda: vm.plots.save(vm.plots.figure(), ""), "^path: '' is not allowed; the name of"),
        (lambda: vm.plots.save(vm.plots.figure(), "a\0.png"), "^path: 'a.x00.png' is not allowed"),
        (lambda: vm.sweep(BASE, ["link.buffer=5"], "minicycle", "a\0"), "^out: 'a.x00' is not"),
        (lambda: vm.metrics.loss_rates([[1, 2, 3]], [1, 2]), "^lost and sent: 'shapes .1, 3. and"),
        (lambda: vm.engines.delayed.feedback.run(BASE, step=5e-324), "makes at most 3e.09 steps"),
    ],
)
def test_an_argument_of_no_use_is_said_in_one_line(call: Callable[[], object], said: str) -> None:
    """The errors were Python's and NumPy's own, or inf was refused as "at least 1"."""
    with pytest.raises(ValueError, match=said):
        call()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: vm.basins(BASE, "fluid", tolerance=1.0), "a fraction above 0 and below 1"),
        (
            lambda: E.minicycle.throughput(100.0, 0.1, 20.0, 3.0, n_vegas=2, form="printed"),
            r"^n_vegas: 2 is not allowed; with form='printed' only 1",
        ),
        (lambda: E.arrivals.arrive(np.ones(2), 100.0, variant="linux"), "for the variant linux"),
        (lambda: stacks.dead_zone(2.0, 1.0, "paper"), r"^beta: 1.0 is not allowed; at least alpha"),
    ],
)
def test_a_message_says_what_is_allowed(call: Callable[[], object], said: str) -> None:
    """Readers had not understood these messages."""
    with pytest.raises(ValueError, match=said):
        call()
