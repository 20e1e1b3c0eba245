"""How a scenario, an answer and a comparison are shown: in a line, a notebook, a table."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel import console, result_tables
from vegasmodel.fields.lists import few
from vegasmodel.many_predictions import Predictions
from vegasmodel.metrics import with_error
from vegasmodel.prediction import sends_after_warm_up
from vegasmodel.study.solutions import Design, Solution

S = vm.Scenario(
    [vm.Link("4 Mbit/s", buffer="20 pkt")],
    [vm.Flow("vegas", "80 ms", count=2), vm.Flow("reno", "80 ms", packet_size=1000.0, name="<b>")],
    packet_size=500.0,
    name="a & b",
)
P = vm.Prediction(
    "rounds", S, np.array([100.0, 200.0, 300.0]), base_rtt=np.array([0.08, 0.09, np.nan]),
    throughput_range=np.array([[90.0, 110.0], [180.0, 220.0], [280.0, 320.0]]),
    queue_mean=np.array([7.0]),
)  # fmt: skip
C = vm.Comparison(S, dataclasses.replace(P, model="ns2", throughput=P.throughput * 1.1), (P,))


def test_the_arrays_of_an_answer_are_read_only() -> None:
    """Ratios and shares are computed once, so they would not follow a change."""
    mine = np.array([100.0, 200.0, 300.0])
    given = dataclasses.replace(P, throughput=mine)
    with pytest.raises(ValueError, match="read-only"):
        given.throughput[0] = 7.0  # type: ignore[index]
    mine *= 2.0  # the caller's own array stays writeable


def test_a_set_of_rates_is_not_shown_as_a_point(capsys: pytest.CaptureFixture[str]) -> None:
    """Vegas's two flows have 90..110 and 180..220 pkt/s, so their mean has 135..165."""
    result_tables.print_results(S, [P])
    said = " ".join(capsys.readouterr().out.split())
    assert "rounds gives ranges, not single rates" in said
    assert "vegas 135..165, <b> 280..320" in said
    assert "--flows" in said
    result_tables.print_results(S, [dataclasses.replace(P, throughput_range=None)], per_flow=True)
    assert "ranges" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rates", "error", "said"),
    [
        ((90.0, 200.0, 320.0), None, "inside the ranges of rounds for all 3 flows; the errors"),
        ((90.0, np.nan, 320.0), None, "inside the ranges of rounds for all 2 flows; the errors"),
        ((89.0, 200.0, 300.0), None, "outside the range of rounds for vegas[0] 89 (90..110); the"),
        # 5 runs: the 95 % interval is 2.78 standard errors to either side
        ((87.0, 200.0, 300.0), 1.2, "all 3 flows, 1 of them only by the 95 % interval of ns2;"),
        ((86.0, 200.0, 300.0), 1.2, "outside the range of rounds for vegas[0] 86 (90..110); the"),
    ],
)
def test_a_comparison_says_whether_a_measurement_lies_in_the_ranges(
    rates: tuple[float, ...], error: float | None, said: str
) -> None:
    errors = None if error is None else np.full(3, error)
    scenario = S.replace({"run.runs": 5})
    found = vm.Prediction("ns2", scenario, np.array(rates), throughput_se=errors)
    assert said in " ".join(vm.Comparison(S, found, (P,)).table().split())


def test_a_share_is_of_bits_and_of_a_whole_group() -> None:
    """300 packets of 500 B of Vegas and 300 of 1000 B of Reno: a third and two thirds."""
    assert P.group_bps == {"vegas": 300 * 4000.0, "<b>": 300 * 8000.0}
    assert P.shares == pytest.approx({"vegas": 1 / 3, "<b>": 2 / 3})
    assert dataclasses.replace(P, throughput=np.zeros(3)).shares == {"vegas": None, "<b>": None}
    assert vm.Prediction.not_applicable("x", S, "no").shares == {}


def test_a_flow_without_throughput_has_no_share_but_the_others_have() -> None:
    """A flow that is not active between warm-up and end has no rate, and delivers nothing."""
    partly = dataclasses.replace(P, throughput=np.array([np.nan, np.nan, 300.0]))
    assert partly.shares == {"vegas": 0.0, "<b>": 1.0}
    assert partly.ratios == {"vegas/<b>": None, "<b>/vegas": None}
    assert list(partly.to_dataframe()["share"]) == [0.0, 0.0, 1.0]
    assert partly.utilization is not None
    assert partly.utilization[0] == pytest.approx(0.6)  # 300 packets of 1000 B of 500 kB/s
    nobody = dataclasses.replace(P, throughput=np.full(3, np.nan))
    assert nobody.shares == {"vegas": None, "<b>": None}


def test_a_sweep_gives_shares_where_a_flow_is_never_active() -> None:
    short = S.replace({"flow.<b>.stop": "5 s", "run.duration": "60 s", "run.warmup": "20 s"})
    data = vm.sweep(short, {"link.buffer": [10, 20]}, "rounds")
    assert data["share"].sel(flow="<b>").values.tolist() == [0.0, 0.0]
    assert data["share"].sum("flow").values == pytest.approx(1.0)


@pytest.mark.parametrize("thing", [S, P, C, vm.Prediction.not_applicable("red", S, "no RED")])
def test_they_are_short_on_a_line_and_escaped_in_a_notebook(thing: object) -> None:
    line, page = repr(thing), thing._repr_html_()  # type: ignore[attr-defined]
    assert "\n" not in line
    assert len(line) < 120
    assert page.startswith("<table>")
    assert "<b>" not in page
    assert "a & b" not in page


def test_what_they_say() -> None:
    assert repr(S) == "<Scenario a & b: 1000 pkt/s (4 Mbit/s), buffer 20 pkt; 2 vegas, <b>>"
    assert repr(P) == "<Prediction rounds: vegas 150 (135..165) pkt/s, <b> 300 (280..320) pkt/s>"
    one = dataclasses.replace(P, throughput_range=None)
    assert repr(one) == "<Prediction rounds: vegas 150 pkt/s, <b> 300 pkt/s>"
    assert "300 (280..320)" in P._repr_html_()
    assert "300 (280..320)" in C._repr_html_()
    assert repr(C) == "<Comparison of a & b with ns2: rounds errs least, 9.8 %>"
    assert "33.3 %" in P._repr_html_()
    assert "66.7 %" in P._repr_html_()
    assert with_error(48.25, 5e-15) == "48.25"  # rounding is no scatter
    assert with_error(48.25, 0.5) == "48.25 ± 0.5"


def test_predictions_are_tables_as_text() -> None:
    none = vm.Prediction.not_applicable("red", S, "no\nRED")
    both = vm.Predictions([P, none])
    assert both.table().splitlines() == [
        "a & b: pkt/s per flow",
        "model            vegas             <b>  does not hold, or why there is no answer",
        "rounds  150 (135..165)  300 (280..320)",
        "red                  -               -  no\\nRED",
    ]
    assert list(both.to_dataframe()["model"]) == ["rounds"] * 3  # of three flows
    assert "&lt;b&gt;" in both._repr_html_()
    assert none.table() == "red on a & b: no answer, no\\nRED"
    assert P.table().splitlines()[1:] == [
        "group  pkt/s per flow  Mbit/s together   share",
        "vegas  150 (135..165)              1.2  33.3 %",
        "<b>    300 (280..320)              2.4  66.7 %",
    ]
    assert vm.Predictions().to_dataframe().empty
    assert isinstance(vm.predict_all(S, ["bands"]), vm.Predictions)


def test_a_batch_is_a_tuple_that_is_short_on_a_line_and_a_table_elsewhere() -> None:
    none = vm.Prediction.not_applicable("rounds", S, "no\nway")
    three = vm.Batch((P, none, P))
    assert isinstance(three, tuple)
    assert three[2] is P
    assert repr(three) == "<Batch rounds: 3 scenarios, 1 without an answer>"
    assert three.table().splitlines() == [
        "rounds: pkt/s per flow",
        "scenario           vegas             <b>  does not hold, or why there is no answer",
        "       0  150 (135..165)  300 (280..320)",
        "       1               -               -  no\\nway",
        "       2  150 (135..165)  300 (280..320)",
    ]
    assert "&lt;b&gt;" in three._repr_html_()
    frame = three.to_dataframe()
    assert frame["scenario"].tolist() == [0, 0, 0, 2, 2, 2]  # of three flows each
    assert frame["flow"].tolist() == 2 * P.names
    given = json.loads(json.dumps(three.to_json(), allow_nan=False))
    assert [each["applicable"] for each in given] == [True, False, True]
    assert vm.Batch().to_dataframe().empty
    assert vm.Batch().table().startswith("no scenario")
    closed = vm.batch([S, S], "bands")
    assert isinstance(closed, vm.Batch)
    assert isinstance(vm.batch([]), vm.Batch)
    assert len(repr(closed)) < 80


def test_a_verdict_on_stability_is_short_on_a_line_and_a_table_elsewhere() -> None:
    queue = vm.Red("5 pkt", "15 pkt", max_probability=0.1, weight=0.002)
    link = vm.Link("1000 pkt/s", buffer="40 pkt", queue=queue)
    case = vm.Scenario([link], [vm.Flow("reno", "100 ms", name="<b>", count=2)], name="a & b")
    found = vm.stability(case)
    assert found.stability is not None
    growth, period = found.stability.root.real, found.stability.period
    line = repr(found)
    assert line.startswith(f"<StabilityVerdict of a & b: {'' if found.stable else 'un'}stable, ")
    (rate,) = re.findall(r"growth rate (\S+)/s", line)
    (ms,) = re.findall(r"period (\S+) ms>", line)
    assert float(rate) == pytest.approx(growth, rel=1e-2)
    assert float(ms) / 1000 == pytest.approx(period, rel=1e-2)
    assert len(line) < 120
    assert "<caption" in found._repr_html_()
    assert "a &amp; b" in found._repr_html_()
    assert found.table().splitlines()[0].startswith("Equilibrium of a & b: ")
    none = vm.stability(case.replace({"flow.<b>.law": "cubic"}))
    assert repr(none) == f"<StabilityVerdict of a & b: no verdict, {none.reason}>"
    assert none.table() == f"Equilibrium of a & b: no verdict, {none.reason}"


def test_the_window_by_rounds_includes_what_duplicate_acks_add() -> None:
    """As its docstring says.  80 packets fill the link, and 20 the buffer: SACK has no more."""
    flow = vm.Flow("reno", "80 ms", name="one", variant="ns2", send_jitter=0.0)
    case = vm.Scenario([vm.Link(1000.0, buffer=20.0)], [flow], run=vm.Run(60.0, 10.0))
    most = {}
    for law in ("reno", "sack"):
        paths = vm.simulate(case.replace({"flow.one.law": law}), "rounds", samples=6001)
        most[law] = float(paths["window"].sel(time=slice(10.0, None)).max())
    assert most["sack"] < 105.0
    assert most["reno"] > 125.0


def test_texts_of_several_lines_are_shown_as_they_are() -> None:
    """A notebook shows the ``repr`` of a cell's last value; that of a plain text has ``\\n``."""
    both = vm.Predictions([P, P])
    for text in (
        vm.explain("fluid"),
        vm.explain("reno"),
        vm.explain("rtt"),
        both.table(),
        C.table(),
    ):
        assert isinstance(text, str)
        assert repr(text) == "".join(text)
        assert json.loads(json.dumps(text)) == text


def test_models_without_an_answer_for_the_same_reason_share_a_line() -> None:
    reasons = {"bands": "no law", "rounds": None, "red": "no RED", "network": "no law"}
    found = vm.Predictions(
        vm.Prediction.not_applicable(name, S, why) if why else P for name, why in reasons.items()
    )
    assert found.table().splitlines()[2:] == [
        "2 models               -               -  no law (bands, network)",
        "rounds    150 (135..165)  300 (280..320)",
        "red                    -               -  no RED",
    ]
    assert found._repr_html_().count("<tr>") == 4


def test_the_broken_assumptions_are_those_that_do_not_hold() -> None:
    three = tuple(vm.Assumption(str(holds), holds) for holds in (True, False, None))
    found = dataclasses.replace(P, assumptions=three)
    assert [each.name for each in found.broken] == ["False"]
    assert P.broken == ()


def test_a_frame_has_a_row_for_every_flow() -> None:
    frame = P.to_dataframe()
    assert list(frame["flow"]) == ["vegas[0]", "vegas[1]", "<b>"]
    assert list(frame["throughput_pps"]) == [100.0, 200.0, 300.0]
    assert frame["share"].sum() == pytest.approx(1.0)
    assert np.isnan(frame["base_rtt_s"][2])
    assert frame["throughput_low_pps"][0] == 90.0
    both = C.to_dataframe()
    assert list(both["model"]) == ["rounds"] * 3 + ["ns2"] * 3
    nothing = vm.Prediction.not_applicable("red", S, "no RED").to_dataframe()
    assert nothing["throughput_pps"].isna().all()


def test_a_dataset_has_names_and_units() -> None:
    data = P.to_xarray()
    assert float(data["throughput"].sel(flow="vegas[1]")) == 200.0
    assert float(data["throughput_low"].sel(flow="vegas[0]")) == 90.0
    bits = P.to_dataframe().set_index("flow")["throughput_bps"]
    assert float(data["throughput_mbps"].sel(flow="<b>")) == pytest.approx(bits["<b>"] / 1e6)
    assert float(data["queue_mean"].sel(link="bottleneck")) == 7.0
    both = C.to_xarray()
    assert both["throughput"].dims == ("model", "flow")
    assert float(both["throughput"].sel(model="ns2", flow="<b>")) == pytest.approx(330.0)
    error = float(both["error_throughput_nrmse"].sel(model="rounds"))
    assert error == C.errors["rounds"]["throughput_nrmse"]
    assert np.isnan(both["error_throughput_nrmse"].sel(model="ns2"))


def test_a_dataset_has_the_names_and_units_of_a_sweep() -> None:
    """So that one program can read both."""
    grid = vm.sweep(S, {"link.buffer": [5.0, 6.0]}, "equilibrium")
    data = P.to_xarray()
    beside = set(data.data_vars) - {"acks", "retransmits", "throughput_low", "throughput_high"}
    assert beside <= set(grid.data_vars)
    for name in beside:
        assert data[name].attrs["units"] == grid[name].attrs["units"]


def test_a_comparison_gives_its_table_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = C.table()
    assert capsys.readouterr().out == ""
    assert "33.3 %" in text
    assert "Errors against ns2" in text
    C.print_table()
    assert capsys.readouterr().out == text


def test_one_flow_has_no_shares() -> None:
    alone = vm.Scenario([vm.Link(100.0)], [vm.Flow("reno", 0.1)])
    assert (
        result_tables.shares_table(alone, [vm.Prediction("rounds", alone, np.array([9.0]))]) is None
    )


def test_many_groups_are_rows_and_models_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """Each group's rate, Mbit/s and share are in the column of the model."""
    laws = ("vegas", "reno", "newreno", "sack", "cubic")
    many = vm.Scenario([vm.Link(1000.0)], [vm.Flow(law, 0.1) for law in laws], packet_size=1000)
    rates = np.array([100.0, 300.0, 200.0, 250.0, 150.0])
    results = [vm.Prediction(name, many, k * rates) for k, name in ((1, "rounds"), (0.5, "fluid"))]
    result_tables.print_results(many, results)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["group", "pkt/s", "pkt/s"] in lines
    assert ["sack", "250", "125"] in lines
    assert ["sack", "2", "25.0", "%", "1", "25.0", "%"] in lines
    assert ["Jain", "0.889", "0.889"] in lines  # 1000^2 / (5 * 225000)


def test_a_table_shows_each_standard_error_that_is_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Three flows, long names and large errors fit 80 columns; a closed form has no error."""
    flows = [vm.Flow(law, 0.1) for law in ("newreno", "vegas", "cubic")]
    three = vm.Scenario([vm.Link(2e5)], flows, packet_size=1000)
    rates = np.array([12345.6, 54321.0, 99999.0])
    errors = np.array([1234.5, 0.0, 0.0123])
    bare = vm.Prediction("arrivals-bonald", three, rates)
    result_tables.print_results(
        three, [bare, vm.Prediction("ns2", three, rates, throughput_se=errors)]
    )
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert "12346 ± 1200  54321  99999 ± 0.012" in printed
    assert "standard error" in printed
    result_tables.print_results(three, [bare])
    assert "±" not in capsys.readouterr().out


def test_flows_of_a_group_scatter_together() -> None:
    """Two flows with a fixed sum: each scatters, their mean does not."""
    runs = np.array([[100.0, 200.0, 290.0], [200.0, 100.0, 310.0]])
    error = runs.std(axis=0, ddof=1) / 2**0.5
    known = dataclasses.replace(P, throughput_se=error, extra={"throughput_runs": runs})
    assert known.groups_se == pytest.approx({"vegas": 0.0, "<b>": 10.0})
    assert dataclasses.replace(P, throughput_se=error).groups_se == pytest.approx({"<b>": 10.0})
    assert P.groups_se == {}


def test_the_error_of_a_group_is_said_to_be_that_of_its_mean(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The flows of the group scatter by 50 packets/s, their mean by 1: no flow has 150 ± 1."""
    runs = np.array([[100.0, 200.0, 290.0], [202.0, 102.0, 310.0]])
    means = runs.mean(axis=0)
    answer = dataclasses.replace(P, throughput=means, extra={"throughput_runs": runs})
    result_tables.print_results(S, [answer])
    out = capsys.readouterr().out
    assert out.splitlines()[3].split()[:4] == ["model", "mean", "pkt/s", "pkt/s"]
    assert "151 ± 1" in out
    assert result_tables.OF_GROUPS in out.replace("\n  ", " ")
    single = vm.Scenario([vm.Link(1000.0)], [vm.Flow("vegas", 0.1), vm.Flow("reno", 0.1)])
    error = np.array([2.0, 3.0])
    answer = vm.Prediction("rounds", single, means[:2], throughput_se=error)
    result_tables.print_results(single, [answer])
    assert result_tables.OF_GROUPS not in capsys.readouterr().out.replace("\n  ", " ")


def test_a_part_is_shown_with_its_units_as_the_call_that_makes_it() -> None:
    """Plain numbers are in seconds, packets or packets per second; the line shows the unit."""
    assert repr(vm.Link(10)) == "Link(capacity='10 pkt/s')"
    assert repr(vm.Flow("vegas", 40)) == "Flow(law='vegas', rtt='40 s')"
    whole = vm.Flow("reno", vm.scenario.Uniform(0.02, 0.3), count=2, size="30 kB", delayed_ack=True)
    for part in (whole, vm.Run("90 s", 30), vm.Link("10 Mbit/s", queue=vm.Red(5, 15))):
        names = vars(vm.scenario) | {"Red": vm.Red}
        assert eval(repr(part), names) == part  # noqa: S307 - our own text


def test_an_unknown_argument_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(
        vm.FieldError, match="Flow has no such argument; did you mean 'delayed_ack'"
    ):
        vm.Flow("vegas", "40 ms", delayed_acks=True)  # type: ignore[call-arg]
    with pytest.raises(vm.FieldError, match="did you mean 'buffer'"):
        vm.Link("10 Mbit/s", bufer="20 pkt")  # type: ignore[call-arg]
    with pytest.raises(vm.FieldError, match="did you mean 'name'"):
        vm.Scenario(S.links, S.flows, nam="x")  # type: ignore[call-arg]


def test_a_list_that_is_cut_says_how_many_more_there_are() -> None:
    assert few(["a", "b"]) == "a, b"
    assert few(["a", "b"], clauses=True) == "a; b"
    assert few(["a", "b", "c", "d"]) == "a, b, c and 1 more"
    assert few(["a", "b", "c", "d"], 2, clauses=True) == "a; b; and 2 more"
    flows = [vm.Flow("vegas", "80 ms", name=f"v{i}", stop="5 s") for i in range(5)]
    case = vm.Scenario([vm.Link(1000.0)], flows, run=vm.Run("60 s", "10 s"))
    (known,) = sends_after_warm_up(case, np.zeros(5))
    assert "v2 stops at 5 s and 2 more before averages begin" in known.detail


def test_a_design_is_a_table_in_a_notebook_and_as_text() -> None:
    solution = Solution(24.0, "pkt", 0.2995, True, S, 0.01, {"<b>": 0.31}, {"<b>": None}, "near")
    found = Design("link.buffer", "share:<i>", 0.3, "rounds", (1.0, 60.0), (solution,))
    page = found._repr_html_()
    for cell in ("24 pkt", "0.2995 ± 0.01", "0.31", "&lt;b&gt;", "share:&lt;i&gt; = 0.3", "near"):
        assert cell in page
    assert found.table().splitlines() == [
        "link.buffer for share:<i> = 0.3 by rounds: near",
        "link.buffer         rounds   <b>",
        "     24 pkt  0.2995 ± 0.01  0.31",
    ]
    assert repr(found) == "<Design of link.buffer for share:<i> = 0.3 by rounds: 24 pkt>"
    none = dataclasses.replace(found, solutions=(), reason="it goes from 0.4 to 0.5")
    assert "no value, it goes from 0.4 to 0.5" in none._repr_html_()
    assert none.table().endswith(": no value, it goes from 0.4 to 0.5")


WIDE = """
[[link]]
capacity = "1080 pkt/s"
[[flow]]
law = "vegas"
name = "vegas-far-away"
rtt = "60 ms"
[[flow]]
law = "reno"
name = "reno-far-away"
rtt = "60 ms"
[[flow]]
law = "cubic"
rtt = "60 ms"
"""


@pytest.mark.parametrize("columns", ["40", "60", "80"])
def test_no_group_is_left_out_for_lack_of_width(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = vm.Scenario.from_toml(WIDE)
    rates = np.array([270.123, 330.234, 480.345])
    answer = vm.Prediction("rounds", case, rates, throughput_se=rates / 30.0)
    monkeypatch.setenv("COLUMNS", columns)
    result_tables.print_results(case, [answer])
    out, _ = capsys.readouterr()
    for shown in ("270.1 ±", "330.2 ±", "480.3 ±", "25.0 %", "30.6 %", "44.4 %"):
        assert shown in out
    assert max(map(len, out.splitlines())) <= int(columns)


def test_the_errors_of_models_fit_60_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = vm.Scenario.from_toml(WIDE)
    answer = vm.Prediction("minicycle", case, np.array([270.0, 330.0, 480.0]))
    measured = vm.Prediction("ns2", case, np.array([300.0, 320.0, 490.0]))
    monkeypatch.setenv("COLUMNS", "60")
    vm.Comparison(case, measured, (answer,)).print_table()
    said = capsys.readouterr().out.split("Errors against")[1]
    assert any(line.startswith(" minicycle ") for line in said.splitlines())
    assert max(map(len, said.splitlines())) <= 60


def test_the_queueing_delay_is_under_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """7 packets wait at 1000 packets/s: 4 Mbit/s, 500 B."""
    result_tables.print_results(S, [P, dataclasses.replace(P, model="fluid", queue_mean=None)])
    assert "Mean queueing delay at bottleneck: rounds 7 ms.\n" in capsys.readouterr().out


@pytest.mark.parametrize(("columns", "left_out"), [("80", 0), ("70", 1), ("50", 2), ("15", 2)])
def test_columns_that_do_not_fit_are_left_out_and_counted(
    columns: str, left_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each column takes 20 characters with the space around it; two columns always stay."""
    monkeypatch.setenv("COLUMNS", columns)
    heads = ["first", "second", "third", "fourth"]
    grid, narrow = console.fitting(heads, [["123456789012345678"] * 4], 2)
    assert (narrow, len(grid.columns)) == (left_out, 4 - left_out)


def test_every_link_has_its_queue_and_load(capsys: pytest.CaptureFixture[str]) -> None:
    """5 packets wait at 500 packets/s, and 2 at 400 packets/s."""
    links = [
        vm.Link(name="a", capacity=500.0),
        vm.Link(name="b", capacity=400.0),
    ]
    flow = vm.Flow(law="reno", name="f", rtt="80 ms", path=["a", "b"])
    case = vm.Scenario(links=links, flows=[flow])
    rate, queue, load = np.array([300.0]), np.array([5.0, 2.0]), np.array([0.6, 0.75])
    answer = vm.Prediction("rounds", case, rate, queue_mean=queue, utilization_links=load)
    result_tables.print_results(case, [answer, vm.Prediction("fluid", case, rate)])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    for row in (
        ["a", "rounds", "0.6", "5", "10", "ms"],
        ["a", "fluid", "0.6", "-", "-"],
        ["b", "rounds", "0.75", "2", "5", "ms"],
        ["b", "fluid", "0.75", "-", "-"],
    ):
        assert row in rows
    assert ["model", "pkt/s", "Jain"] in rows  # without a load: of which link?


def test_the_load_of_the_only_link_is_in_the_main_table(capsys: pytest.CaptureFixture[str]) -> None:
    case = vm.Scenario([vm.Link(400.0)], [vm.Flow("reno", 0.08)])
    result_tables.print_results(case, [vm.Prediction("rounds", case, np.array([300.0]))])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["model", "pkt/s", "Jain", "load"] in rows
    assert ["rounds", "300", "1", "0.75"] in rows


def test_counts_of_packets_are_rounded(capsys: pytest.CaptureFixture[str]) -> None:
    """Means over three runs: nobody needs the ten-thousandth part of an ACK."""
    case = vm.Scenario([vm.Link(400.0)], [vm.Flow("reno", 0.08)])
    acks, again = np.array([1234567.6667]), np.array([5 / 3])
    answer = vm.Prediction("rounds", case, np.array([300.0]), acks=acks, retransmits=again)
    result_tables.print_results(case, [answer], per_flow=True)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["reno", "300", "1234568", "1.67"] in rows


@pytest.mark.parametrize("columns", ["30", "45", "60"])
def test_a_table_of_flows_is_cut_into_several_where_it_is_too_wide(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No name, head or number is cut; each part has the names of the flows."""
    case = vm.Scenario([vm.Link(400.0)], [vm.Flow("reno", 0.08, name="upload")])
    answer = vm.Prediction(
        "rounds", case, np.array([312.25]), throughput_se=np.array([1.5]),
        rtt_mean=np.array([0.1234]), acks=np.array([1234567.0]), loss_rate=np.array([0.00123]),
        retransmits=np.array([7.0]),
    )  # fmt: skip
    monkeypatch.setenv("COLUMNS", columns)
    result_tables.print_results(case, [answer], per_flow=True)
    out = capsys.readouterr().out
    assert "…" not in out
    lines = [line.split() for line in out.splitlines()]
    heads = [line for line in lines if line[:1] == ["flow"]]
    named = [name for line in heads for name in line[1:]]
    assert named == ["pkt/s", "RTT", "loss", "ACKs", "rexmit"]
    cells = [cell for line in lines if line[:1] == ["upload"] for cell in line[1:]]
    assert cells == ["312.2", "±", "1.5", "123.4", "ms", "0.0012", "1234567", "7"]
    assert (len(heads) > 1) == (int(columns) < 60)


def _of_runs(scenario: vm.Scenario, model: str, *runs: list[float]) -> vm.Prediction:
    rates = np.array(runs)
    error = vm.metrics.standard_error(rates)
    more = {"throughput_runs": rates}
    return vm.Prediction(model, scenario, rates.mean(axis=0), throughput_se=error, extra=more)


def test_a_standard_error_is_printed_with_the_number_of_runs_and_what_few_runs_tell(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The quantiles of Student's t with 2 and 4 degrees of freedom are 4.303 and 2.776."""
    two = vm.Scenario([vm.Link(1000.0)], [vm.Flow("vegas", 0.1), vm.Flow("reno", 0.1)])
    three = _of_runs(two, "rounds", [300.0, 600.0], [310.0, 610.0], [320.0, 620.0])
    five = _of_runs(two, "fluid", *([300.0 + i, 600.0 + i] for i in range(5)))
    assert (three.runs, five.runs, P.runs) == (3, 5, 1)

    def legend(*results: vm.Prediction) -> str:
        result_tables.print_results(two, results)
        out = capsys.readouterr().out.replace("\n  ", " ")
        return next((line for line in out.splitlines() if line.startswith("±")), "")

    assert "over 3 runs. The 95 % interval (Student's t) reaches 4.3 times" in legend(three)
    assert "Few runs may agree by chance: `predict --runs 20`, or `runs = 20`" in legend(three)
    assert "over 5 runs. The 95 % interval (Student's t) reaches 2.8 times" in legend(five)
    assert "Few runs" not in legend(five)
    assert "over the runs (rounds 3, fluid 5)" in legend(three, five)
    assert "4.3 times for 3 runs or 2.8 times for 5 runs" in legend(three, five)
    assert three.table().splitlines()[0].endswith("mean over 3 runs")
    title = Predictions([three, five]).table().splitlines()[0]
    assert title.endswith("mean over the runs (rounds 3, fluid 5)")
    assert "±" not in P.table()


def test_a_stored_measurement_has_the_runs_of_its_scenario() -> None:
    two = vm.Scenario([vm.Link(90.0)], [vm.Flow("reno", 0.1)], run=vm.Run(runs=7))
    rates = np.array([8.0])
    assert vm.Prediction("ns2", two, rates, throughput_se=np.array([0.1])).runs == 7
    assert vm.Prediction("red", two, rates).runs == 1


def test_the_results_of_several_models_as_plain_data() -> None:
    data = json.loads(json.dumps(Predictions([P, P]).to_json(), allow_nan=False))
    assert data == [P.to_json(), P.to_json()]


def test_a_scenario_s_page_names_the_tcp_that_a_flow_runs() -> None:
    """Loss-based flows with the variant ``paper`` run ns-2's code, or Linux's beside it."""
    for vegas, sack in (("paper", "ns2"), ("ns2", "ns2"), ("linux", "linux")):
        flows = [vm.Flow("vegas", 0.1, variant=vegas), vm.Flow("sack", 0.1)]
        page = vm.Scenario([vm.Link(1000.0)], flows)._repr_html_()
        last = [row.rpartition(">")[2] for row in page.split("</td></tr>")[:-1]]
        assert last[-2:] == [vegas, sack]
