"""``compare`` if models and measurement have different variants of Vegas."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel import comparison, measurement, packets, same_case
from vegasmodel.command_line import newfile
from vegasmodel.command_line.commands import run
from vegasmodel.fields.errors import FieldError
from vegasmodel.packets.trace import make
from vegasmodel.report import notes
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Flow, Link, Run, Scenario

ROOT = Path(__file__).parents[1]
FLOWMON = ROOT / "tests" / "data" / "flowmon.xml"


def pair(variant: str, other: str = "reno") -> Scenario:
    flows = (
        Flow(law="vegas", rtt=0.06, alpha=3, beta=3, variant=variant),
        Flow(law=other, rtt=0.06),
    )
    return Scenario(links=(Link(capacity=1080.0, buffer=20.0),), flows=flows)


def measured(scenario: Scenario, model: str, engine: str | None = None) -> Prediction:
    extra = {} if engine is None else {"engine": engine}
    return Prediction(model, scenario, np.array([300.0, 700.0]), extra=extra)


@pytest.mark.parametrize(
    ("variant", "model", "engine", "holds", "named"),
    [
        ("ns2", "ns2", None, True, ()),
        ("paper", "ns2", None, False, ("the papers' Vegas", "ns-2's Vegas", 'variant = "ns2"')),
        ("linux", "trace", "linux", True, ()),
        ("ns2", "trace", "linux", False, ("ns-2's Vegas", "the Linux kernel's Vegas")),
        ("ns2", "ns3", None, False, ("ns-2's Vegas", "ns-3's Vegas")),
        ("ns2", "trace", "pcap", None, ("pcap",)),
    ],
)
def test_whose_vegas(
    variant: str, model: str, engine: str | None, holds: bool | None, named: tuple[str, ...]
) -> None:
    scenario = pair(variant)
    (said,) = same_case.same_vegas(scenario, measured(scenario, model, engine))
    assert said.holds is holds
    assert all(name in said.detail for name in named)


@pytest.mark.parametrize(
    ("variant", "models", "named"),
    [
        ("paper", ("minicycle", "rounds", "ns2"), ["ns2"]),
        ("paper", ("rounds", "ns2", "ns3"), ["ns2", "ns3"]),
        ("ns2", ("rounds", "ns2"), []),
        ("paper", ("minicycle", "rounds"), []),
        ("paper", ("ns2", "ns3"), []),
    ],
)
def test_another_vegas_between_models(
    variant: str, models: tuple[str, ...], named: list[str]
) -> None:
    said = same_case.other_vegas(pair(variant), models)
    assert [text.partition(":")[0] for text in said] == named
    assert all("same-vegas does not hold" in text for text in said)


def test_without_vegas_there_is_nothing_to_say() -> None:
    s = dataclasses.replace(pair("paper"), flows=(Flow(law="reno", rtt=0.06),))
    assert same_case.same_vegas(s, measured(s, "ns2")) == ()


def test_whose_senders_wait() -> None:
    """A run of a simulator has the scenario's waits; a trace may state its own, or none."""
    still = dataclasses.replace(pair("ns2"), flows=(Flow("reno", 0.06, send_jitter=0.0),))
    waits = dataclasses.replace(still, flows=(Flow("reno", 0.06, send_jitter=0.001),))

    def said(scenario: Scenario, model: str, ran: str | None = None) -> Assumption:
        extra = {"scenario": ran}
        return same_case.same_jitter(scenario, Prediction(model, scenario, None, extra=extra))

    assert said(waits, "ns2") == Assumption("same-jitter", True)
    assert said(waits, "trace", waits.fingerprint()).holds is True
    other = said(waits, "trace", still.fingerprint())
    assert other.holds is False
    assert "up to 1 ms" in other.detail
    assert said(still, "trace").holds is None


def test_every_model_of_a_comparison_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = pair("paper")
    monkeypatch.setattr(measurement, "find", lambda s, *_: measured(s, "ns2"))
    for result in comparison.compare(scenario, models=["minicycle", "fluid", "red"]).models:
        said = [a for a in result.assumptions if a.name == "same-vegas"]
        assert len(said) == result.applicable
        assert all(a.holds is False for a in said)


@pytest.mark.parametrize("law", ["reno", "newreno", "sack", "tahoe"])
def test_the_fluid_says_which_recovery_it_leaves_out(law: str) -> None:
    """In the papers' law; with ns-2's whole packets ``fluid`` has the recovery of each law."""
    found = vm.predict(pair("paper", law), "fluid")
    (said,) = (a for a in found.assumptions if a.name == "recovery-as-taken")
    assert said.holds is False
    assert law in said.detail.lower()
    found = vm.predict(pair("ns2", law), "fluid")
    assert [a.holds for a in found.assumptions if a.name == "recovery-as-taken"] == [True]


def test_it_does_not_where_nothing_is_lost() -> None:
    roomy = dataclasses.replace(pair("paper", "sack"), links=(Link(capacity=1080.0),))
    short = dataclasses.replace(roomy, run=vm.Run(duration=20.0, warmup=5.0))
    found = vm.predict(short, "fluid")
    assert [a.holds for a in found.assumptions if a.name == "recovery-as-taken"] == [True]


def test_closed_forms_of_reno_say_it_of_the_others() -> None:
    for law, holds in (("reno", True), ("newreno", False), ("sack", False)):
        found = vm.predict(pair("paper", law), "minicycle")
        assert [a.holds for a in found.assumptions if a.name == "recovery-as-taken"] == [holds]


def test_what_two_models_say_alike_stands_once() -> None:
    scenario = pair("paper")
    broken = (Assumption("no-noise", False, "there is some"),)
    results = [
        dataclasses.replace(measured(scenario, name), assumptions=broken) for name in ("a", "b")
    ]
    assert notes.notes(results) == ["a, b: no-noise does not hold: there is some."]


def test_what_is_not_known_is_said() -> None:
    """A model's is named in one sentence for all; a measurement's has a sentence of its own."""
    unknown = (Assumption("insensitive-to-starts", None, "one run"),)
    results = [
        dataclasses.replace(measured(pair("paper"), name), assumptions=unknown)
        for name in ("fluid", "rounds", "ns2")
    ]
    assert notes.notes(results) == [
        "ns2: insensitive-to-starts is not known: one run.",
        "Not known whether this assumption holds: insensitive-to-starts (fluid, rounds). "
        "The command `vegasmodel basins` counts the outcomes of many starts.",
    ]


def test_a_measurement_says_how_many_runs_it_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With one run the scatter is unknown.

    With several, a perfect model has their standard error.  Without a wish there are 3 runs if
    chance has a part, as in the senders' waits, and else one.
    """
    asked = []

    def engine(s: Scenario, *_: object, timeout: float | None = None) -> Prediction:
        asked.append(s.run.times)
        error = np.array([3.0, 4.0]) if s.run.times > 1 else None
        return dataclasses.replace(measured(s, "ns2"), throughput_se=error)

    monkeypatch.setattr(measurement, "run_engine", engine)
    scenario = dataclasses.replace(pair("paper"), run=vm.Run(duration=90.0, warmup=30.0))
    one, ten = (vm.compare(scenario, models=["minicycle"], runs=runs) for runs in (1, 10))
    assert asked == [1, 10]
    asked.clear()
    waits = scenario.replace({"flow.send_jitter": "1 ms"})
    still = scenario.replace({"flow.send_jitter": "0 s"})
    for case in (waits, still, waits.replace({"run.runs": 2})):
        many = vm.compare(case, models=["minicycle"])
        assert asked.pop() == many.runs
        assert many.runs == (case.run.runs or (3 if case.by_chance else 1))
    assert waits.by_chance
    assert not still.by_chance
    assert [a.holds for a in one.measured.assumptions if a.name == "enough-runs"] == [None]
    assert "Errors against ns2, one run" in one.table()
    assert "runs = 5" in one.table()
    assert [a.holds for a in ten.measured.assumptions if a.name == "enough-runs"] == [True]
    assert ten.scatter() == pytest.approx((12.5**0.5) / 500)  # root of (9 + 16) / 2, over the mean
    assert "mean of 10 runs" in ten.table()
    assert one.table().count("enough-runs is not known") == 1
    path = tmp_path / "s.toml"
    for command, title, said in (
        (["--runs", "10"], "ns2, mean of 10 runs", "over 10 runs"),
        ([], "ns2, one run", "one run, in which chance has a part; five runs (`--runs 5`"),
    ):
        path.write_text(waits.to_toml())
        assert run(["measure", str(path), *command]) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert title in out
        assert said in out
    two = vm.compare(scenario, models=["minicycle"], runs=2)  # t = 12.7: 13 % of 300
    (said,) = (a for a in two.measured.assumptions if a.name == "enough-runs")
    assert said.holds is False
    assert "vegas's mean is 13 %" in said.detail
    with pytest.raises(vm.FieldError, match=r"^runs: 2 .*; leave it out: a trace is one run$"):
        vm.compare(scenario, "x.pcap", runs=2)


def test_several_models_have_no_answer_for_one_reason() -> None:
    scenario = pair("paper")
    none = [Prediction.not_applicable(name, scenario, "two links") for name in ("a", "b")]
    assert notes.notes(none) == ["a, b have no answer: two links."]
    assert notes.notes(none[:1]) == ["a has no answer: two links."]


def test_a_model_asked_by_name_says_why_it_has_no_answer() -> None:
    """If all models are asked, closed forms that are not meant for the scenario stay silent."""
    scenario = pair("paper")
    why = "red has no answer: not this queue."
    red = Prediction.not_applicable("red", scenario, "not this queue")
    asked = comparison.Comparison(scenario, measured(scenario, "ns2"), (red,)).table()
    assert why in asked
    assert "Errors against" not in asked  # of no model
    every = tuple(Prediction.not_applicable(n, scenario, "not this queue") for n in vm.MODELS)
    told = comparison.Comparison(scenario, measured(scenario, "ns2"), every).table()
    assert "fluid, rounds have no answer: not this queue." in told
    assert "red" not in told


def test_the_pair_with_the_largest_error_is_named() -> None:
    """The error is of a ratio a/b; its sign says nothing unless the table says of which."""
    flows = tuple(Flow(law="reno", rtt=0.05, name=name) for name in "abc")
    scenario = Scenario(links=(Link(name="l", capacity=1000.0, buffer=20.0),), flows=flows)
    model = Prediction("fluid", scenario, np.array([250.0, 500.0, 250.0]))
    measured = Prediction("ns2", scenario, np.array([200.0, 200.0, 600.0]))
    text = comparison.Comparison(scenario, measured, (model,)).table()
    assert "1.79 (b/c)" in text  # ln 6
    two = Scenario(links=scenario.links, flows=flows[:2])
    of_two = Prediction("fluid", two, np.array([250.0, 500.0]))
    equal = Prediction("ns2", two, np.array([400.0, 400.0]))
    assert "-0.693 (a/b)" in comparison.Comparison(two, equal, (of_two,)).table()  # -ln 2


def test_without_a_measurement_the_error_names_the_other_ways(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ns-2 has no Vegas of Linux, and no such run is stored."""
    flow = Flow(law="vegas", rtt=0.04321, variant="linux")
    scenario = Scenario(links=(Link(name="l", capacity=833.0, buffer=31.0),), flows=(flow,))
    other = r"give compare a trace \(trace=FILE\), or use predict, which needs no measurement$"
    with pytest.raises(FieldError, match=rf"'linux' cannot be measured in ns-2; .*; {other}"):
        vm.compare(scenario)
    path = tmp_path / "s.toml"
    path.write_text(scenario.to_toml())
    assert run(["compare", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"vegasmodel: {path}, flow 1, key variant: 'linux' cannot be measured")
    assert "give compare a trace (--trace FILE), or use predict" in said


def test_more_runs_are_asked_of_a_simulator_only() -> None:
    """The kernel's stored trace of this scenario cannot be run again; nor can ns-2 run it."""
    scenario = vm.load(ROOT / "paper_checks/linux/e1a_2M_40ms_a3b3.toml")
    with pytest.raises(FieldError, match=r"^runs: 3 is not allowed; leave it out: ns-2 did not"):
        vm.compare(scenario, models=["equilibrium"], runs=3)


def test_a_trace_of_one_interval_cannot_leave_out_the_warm_up() -> None:
    """FlowMonitor has one interval, from 0.7 to 60 s."""
    text, *_ = newfile.from_trace(packets.read(FLOWMON), "flows")
    whole = vm.Scenario.from_toml(text)
    assert whole.run.warmup == 0.0
    for warmup, told in (("0 s", False), ("1 s", False), ("20 s", True)):
        found = vm.compare(whole.replace({"run.warmup": warmup}), FLOWMON, models=[]).measured
        notes = [a.detail for a in found.assumptions if a.name == "warm-up-left-out"]
        assert bool(notes) == told, warmup
        assert all("from 0.721 to 60 s" in said for said in notes)
    fine = np.full((60, 1), 100.0)
    trace = make("pcap", np.arange(1.0, 61.0), ["a"], {"throughput": fine})
    flow = Flow(law="reno", rtt=0.05, name="a")
    one = Scenario([Link("200 pkt/s", buffer=10)], [flow], run=Run(duration=60.0, warmup=20.5))
    names = [a.name for a in vm.compare(one, trace, models=[]).measured.assumptions]
    assert "warm-up-left-out" not in names


@pytest.mark.parametrize(
    ("run", "flow", "mbps", "told"),
    [
        ({"duration": 130.0, "warmup": 10.0}, {}, 0.8, True),  # 100 packets of 8000 bit a second
        ({"duration": 61.0, "warmup": 10.0}, {}, 0.8, False),
        ({"duration": 130.0, "warmup": 10.0}, {"stop": 50.0}, 0.8 * 40 / 120, False),
        ({"duration": 130.0, "warmup": 10.0}, {"size": 6000.0}, 0.8 * 50 / 120, False),
    ],
)
def test_a_trace_that_ends_before_the_run_gives_averages_of_its_own_time(
    run: dict[str, float], flow: dict[str, float], mbps: float, told: bool
) -> None:
    """60 s of 100 pkt/s on a link of 200 pkt/s."""
    trace = make("pcap", np.arange(1.0, 61.0), ["a"], {"throughput": np.full((60, 1), 100.0)})
    one = Flow(law="reno", rtt=0.05, name="a", **flow)
    scenario = Scenario([Link("200 pkt/s", buffer=10)], [one], run=Run(**run))
    found = vm.compare(scenario, trace, models=[]).measured
    assert found.throughput == pytest.approx([100.0])
    assert found.group_bps["a"] == pytest.approx(1e6 * mbps)
    assert found.utilization == pytest.approx([mbps / 1.6])
    notes = [a.detail for a in found.assumptions if a.name == "whole-run"]
    assert [said.partition(", so ")[0] for said in notes] == (
        ["the trace lasts from 0 to 60 s"] if told else []
    )


def test_a_trace_without_queues_tells_how_long_its_rtts_are() -> None:
    """100 pkt/s with 10 ms in the queue, and 300 pkt/s with 30 ms: 25 ms for the mean packet."""
    rates, rtts = np.tile([100.0, 300.0], (60, 1)), np.tile([0.05, 0.08], (60, 1))
    figures = {"throughput": rates, "rtt": rtts}
    trace = make("pcap", np.arange(1.0, 61.0), ["a", "b"], figures)
    flows = [Flow(law="reno", rtt=rtt, name=name) for name, rtt in (("a", 0.04), ("b", 0.05))]
    run = Run(duration=60.0, warmup=10.0)
    scenario = Scenario([Link("500 pkt/s", buffer=10)], flows, run=run)
    text = vm.compare(scenario, trace, models=["fluid"]).table()
    said = "trace has no queue; its mean RTT is 25 ms above the scenario's."
    assert said in " ".join(text.split())
    waiting = make(
        "pcap",
        np.arange(1.0, 61.0),
        ["a", "b"],
        figures | {"queue": np.full((60, 1), 5.0)},
        links=["bottleneck"],
    )
    assert "has no queue" not in vm.compare(scenario, waiting, models=["fluid"]).table()


def test_the_error_of_base_rtt_is_a_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """1 ms is 100 times the measured excess of 0.01 ms, and still only 1 ms.

    ns-2 tells only the least RTT. The table says so where a model differs from it.
    """
    case, rate = pair("ns2"), np.array([300.0, 700.0])
    model = Prediction("rounds", case, rate, base_rtt=np.array([0.06101, np.nan]))
    least = "baseRTT differs from the least RTT in ns2."
    for true, said in ((0.06001, " 1 ms"), (0.05999, " 1.02 ms"), (0.06101, " 0 s")):
        for engine in ("ns2", "linux"):
            found = Prediction(engine, case, rate, base_rtt=np.array([true, np.nan]))
            for columns in ("80", "60"):
                monkeypatch.setenv("COLUMNS", columns)
                vm.Comparison(case, found, (model,)).print_table()
                out = capsys.readouterr().out
                assert max(map(len, out.splitlines())) <= int(columns)
                assert said in out
                assert "10000 %" not in out
                assert (least in " ".join(out.split())) == (engine == "ns2" and true < 0.061)


@pytest.mark.parametrize(
    ("figure", "source", "least"),
    [
        ("base_rtt", "vegas_baseRTT_us", False),
        ("base_rtt", "minrtt_us", True),
        ("base_rtt", "smallest RTT of the flow so far", True),
        ("rtt_min", "", True),
    ],
)
def test_a_comparison_knows_whose_base_rtt_a_trace_has(
    figure: str, source: str, least: bool
) -> None:
    rates, rtts = np.tile([300.0, 700.0], (60, 1)), np.tile([0.09, np.nan], (60, 1))
    trace = make(
        "linux", np.arange(1.0, 61.0), ["vegas", "reno"], {"throughput": rates, figure: rtts},
        provenance={"base_rtt": source},
    )  # fmt: skip
    case = pair("ns2").replace({"run.duration": 60.0, "run.warmup": 10.0})
    text = " ".join(vm.compare(case, trace, models=["minicycle"]).table().split())
    assert ("differs from the least RTT in trace." in text) == least


def test_no_model_is_named_the_nearest_if_chance_may_decide() -> None:
    """Of models at 500 and 502 none is the nearest to 501.5 ± 2; of 500 and 520 one is."""
    scenario = pair("paper").replace({"run.runs": 5})

    def answer(model: str, rate: float, error: float | None = None) -> Prediction:
        se = None if error is None else np.array([error, 0.0])
        return Prediction(model, scenario, np.array([rate, 300.0]), throughput_se=se)

    def compared(*models: Prediction, error: float | None = 2.0) -> vm.Comparison:
        return vm.Comparison(scenario, answer("ns2", 501.5, error), models)

    a, b, far = answer("a", 500.0), answer("b", 502.0), answer("far", 520.0)
    assert compared(a, b, far).nearest == ("b", "a")
    assert "; which is least may be chance>" in repr(compared(a, b, far))
    assert "errs least" not in repr(compared(a, b, far))
    assert compared(a, far).nearest == ("a",)
    assert "a errs least, 0.26 %>" in repr(compared(a, far))
    assert compared(a, b, error=1e-3).nearest == ("b",)  # a measurement without noise
    assert compared(a, answer("far", 520.0, 10.0), error=1e-3).nearest == ("a", "far")
    assert compared(a, b, error=None).nearest == ("b",)
    assert compared(a, far, error=np.nan).nearest == ("a", "far")  # it sends in some runs only
    assert vm.Comparison(scenario, answer("ns2", 501.5), ()).nearest == ()


@pytest.mark.parametrize(("part", "tied"), [(0.98, False), (1.02, True)])
def test_the_95_percent_interval_decides_whether_a_model_is_nearer(part: float, tied: bool) -> None:
    """Two models are 1 below and 2 above the measurement; a rise by e changes both distances by e.

    The first comes nearer and the other one recedes, or vice versa. So the difference of the
    distances, 1, may be due to chance if 2 T_4 e >= 1, with Student's T_4 = 2.776 for 5 runs.
    """
    scenario = pair("paper").replace({"run.runs": 5})
    error = part * 1.0 / (2.0 * 2.776445)
    measured = Prediction(
        "ns2", scenario, np.array([500.0, 300.0]), throughput_se=np.array([error, 0.0])
    )
    models = [
        Prediction(name, scenario, np.array([rate, 300.0]))
        for name, rate in (("below", 499.0), ("above", 502.0))
    ]
    found = vm.Comparison(scenario, measured, tuple(models)).nearest
    assert found == (("below", "above") if tied else ("below",))


def test_a_measurement_of_one_run_says_that_its_noise_is_unknown() -> None:
    scenario = pair("paper")
    unknown = (Assumption("enough-runs", None),)
    one = dataclasses.replace(measured(scenario, "ns2"), assumptions=unknown)
    model = dataclasses.replace(measured(scenario, "m"), throughput=one.throughput + 1.0)
    assert repr(vm.Comparison(scenario, one, (model,))).endswith("; one run, so noise unknown>")
