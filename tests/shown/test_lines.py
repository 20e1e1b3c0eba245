"""Scenarios and results in a line, as text and in a notebook."""

import dataclasses
import json
import re

import numpy as np
import pytest

import vegasmodel as vm
from tests.shown.scenes import C, P, S
from vegasmodel.fields.lists import few
from vegasmodel.metrics import with_error
from vegasmodel.results.assumption import sends_after_warm_up
from vegasmodel.study.basins import Outcome
from vegasmodel.study.solutions import Design, Solution
from vegasmodel.support.shown import Shown


@pytest.mark.parametrize(
    ("rates", "error", "said"),
    [
        ((90.0, 200.0, 320.0), None, "inside the ranges of rounds for all 3 flows; the errors"),
        ((90.0, np.nan, 320.0), None, "inside the ranges of rounds for all 2 flows; the errors"),
        ((89.0, 200.0, 300.0), None, "outside the range of rounds for vegas[0] 89 (90..110); the"),
        # 5 runs: the 95 % interval is 2.78 standard errors to either side
        ((87.0, 200.0, 300.0), 1.2, "all 3 flows, 1 of them only by the 95 % interval of ns2;"),
        ((86.0, 200.0, 300.0), 1.2, "outside the range of rounds for vegas[0] 86 (90..110); the"),
        ((113.0, 200.0, 300.0), 1.2, "all 3 flows, 1 of them only by the 95 % interval of ns2;"),
        ((114.0, 200.0, 300.0), 1.2, "outside the range of rounds for vegas[0] 114 (90..110); the"),
    ],
)
def test_a_comparison_says_whether_a_measurement_lies_in_the_ranges(
    rates: tuple[float, ...], error: float | None, said: str
) -> None:
    errors = None if error is None else np.full(3, error)
    scenario = S.replace({"run.runs": 5})
    found = vm.Prediction("ns2", scenario, np.array(rates), throughput_se=errors)
    assert said in " ".join(vm.Comparison(S, found, (P,)).table().split())


@pytest.mark.parametrize("thing", [S, P, C, vm.Prediction.not_applicable("red", S, "no RED")])
def test_they_are_short_on_a_line_and_escaped_in_a_notebook(thing: object) -> None:
    line, page = repr(thing), thing._repr_html_()
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
    assert both._ipython_key_completions_() == [P.model, none.model]
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


def _escaped_table(found: Shown, rows: int) -> list[str]:
    """The lines of a result's table; checks its line and its page in a notebook."""
    assert "\n" not in repr(found)
    assert len(repr(found)) < 150
    page = found._repr_html_()
    assert page.count("<tr>") == rows + 1  # and the names of the columns
    assert "a &amp; b" in page
    assert "<b>" not in page
    assert len(found.table().splitlines()) == rows + 2
    return found.table().splitlines()


def test_outcomes_are_short_on_a_line_and_a_table_elsewhere() -> None:
    case = dataclasses.replace(S, flows=(S.flows[0], vm.Flow("reno", "80 ms", name="<b>")))
    found = vm.basins(case, "fluid", starts=4)
    title, names, row, *_ = _escaped_table(found, len(found.outcomes))
    assert title == "fluid on a & b: 4 of 4 starts; pkt/s: mean (least..greatest)"
    assert " ".join(names.split()) == "% of starts 95 % interval vegas[0] vegas[1] <b>"
    share, mean = found.outcomes[0].share, found.outcomes[0].throughput
    assert row.split()[:2] == [f"{100 * share:.3g}", "±"]
    assert all(f"{rate:.4g} (" in row for rate in mean)
    none = vm.basins(S, "red", starts=2)
    assert none.table() == f"red on a & b: 0 of 2 starts; {none.reasons[0]}"


def test_steady_states_are_short_on_a_line_and_a_table_elsewhere() -> None:
    flows = [vm.Flow("vegas", "80 ms", alpha=3, beta=3, variant="paper", name="<b>", count=2)]
    case = vm.Scenario([vm.Link("1000 pkt/s")], flows, name="a & b")
    found = vm.limit_cycles(case, starts=3)
    _, names, row, *_ = _escaped_table(found, len(found.outcomes))
    assert names.split()[-4:] == ["kind", "period", "<b>[0]", "<b>[1]"]
    assert "fixed point" in row
    assert f"{found.outcomes[0].throughput[0]:.4g} (" in row


def test_an_outcome_shows_the_least_and_the_greatest_throughput_of_each_flow() -> None:
    """3 of 4 starts, a share with the standard error sqrt(3/4 1/4 / 4) = 0.2165."""
    rates = [np.array(each) for each in ([10.0, 20.5], [9.0, 18.25], [11.0, 22.75])]
    outcome = Outcome(*rates, 3, 0.75, 0.2165, (0.3006, 0.9544), 1)
    cells = ["75 ± 22", "30.1..95.4", "10 (9..11)", "20.5 (18.25..22.75)"]
    assert outcome.cells(2) == cells
    assert outcome.cells(1) == cells[:-1]


def test_a_boundary_of_stability_is_short_on_a_line_and_a_table_elsewhere() -> None:
    flow = vm.Flow("vegas", "60 ms", alpha=3, beta=3, count=3, name="<b>")
    case = vm.Scenario([vm.Link("1000 pkt/s")], [flow], name="a & b")
    over = {"flow.rtt": (0.01, 1.0), "link.capacity": (100.0, 10000.0)}
    found = vm.stability_boundary(case, over, most=5)
    points = [at for curve in found.curves for at in curve]
    title, names, row, *_ = _escaped_table(found, len(points))
    assert repr(found) == f"<StabilityBoundary of {title}>"
    assert f"{len(points)} points" in title
    assert " ".join(names.split()) == "flow.rtt (s) link.capacity (pkt/s) period s separates"
    assert row.split()[:2] == [f"{points[0].x:.6g}", f"{points[0].y:.6g}"]
    short = {"flow.rtt": (1e-4, 1e-3), "link.capacity": (1.0, 2.0)}
    stable = vm.stability_boundary(case, short)
    assert "0 curves, 0 points" in repr(stable)
    assert stable.table() == repr(stable)[len("<StabilityBoundary of ") : -1]


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
        "2 models               -               -  bands, network: no law",
        "rounds    150 (135..165)  300 (280..320)",
        "red                    -               -  no RED",
    ]
    assert found._repr_html_().count("<tr>") == 4


def test_a_comparison_gives_its_table_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = C.table()
    assert capsys.readouterr().out == ""
    assert "33.3 %" in text
    assert "Errors against ns2" in text
    C.print_table()
    assert capsys.readouterr().out == text


def test_a_part_is_shown_with_its_units_as_the_call_that_makes_it() -> None:
    """Plain numbers are in seconds, packets or packets per second; the line shows the unit."""
    assert repr(vm.Link(10)) == "Link(capacity='10 pkt/s')"
    assert repr(vm.Flow("vegas", 40.0)) == "Flow(law='vegas', rtt='40 s')"
    whole = vm.Flow("reno", vm.scenario.Uniform(0.02, 0.3), count=2, size="30 kB", delayed_ack=True)
    for part in (whole, vm.Run("90 s", 30), vm.Link("10 Mbit/s", queue=vm.Red(5, 15))):
        names = vars(vm.scenario) | {"Red": vm.Red}
        assert eval(repr(part), names) == part  # noqa: S307 - our own text


def test_a_list_that_is_cut_says_how_many_more_there_are() -> None:
    assert few(["a", "b"]) == "a, b"
    assert few(["a", "b"], clauses=True) == "a; b"
    assert few(["a", "b", "c", "d"]) == "a, b, c and 1 more"
    assert few(["a", "b", "c", "d"], 2, clauses=True) == "a; b; and 2 more"
    flows = [vm.Flow("vegas", "80 ms", name=f"v{i}", stop="5 s") for i in range(5)]
    case = vm.Scenario([vm.Link(1000.0)], flows, run=vm.Run(duration="60 s", warmup="10 s"))
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


def test_a_scenario_s_page_names_the_tcp_that_a_flow_runs() -> None:
    """Loss-based flows with the variant ``paper`` run ns-2's code, or Linux's beside it."""
    for vegas, sack in (("paper", "ns2"), ("ns2", "ns2"), ("linux", "linux")):
        flows = [vm.Flow("vegas", 0.1, variant=vegas), vm.Flow("sack", 0.1)]
        page = vm.Scenario([vm.Link(1000.0)], flows)._repr_html_()
        last = [row.rpartition(">")[2] for row in page.split("</td></tr>")[:-1]]
        assert last[-2:] == [vegas, sack]


def test_the_repr_of_a_part_shows_a_number_as_the_text_from_which_it_comes():
    """8 Mbit/s with packets of 1500 B are 2000/3 pkt/s, which has no short decimal form."""
    text = """packet_size = "1500 B"
    [[link]]
    capacity = "8 Mbit/s"
    buffer = "100 ms"
    queue = { discipline = "red", min_threshold = "10 kB", max_threshold = "0.5 BDP" }
    [[flow]]
    law = "vegas"
    rtt = "40 ms"
    max_window = "64 kB"
    """
    s = vm.Scenario.from_toml(text)
    queue = "Red(min_threshold='10 kB', max_threshold='0.5 BDP')"
    link = f"Link(capacity='8 Mbit/s', buffer='100 ms', delay='1 ms', queue={queue})"
    assert repr(s.links[0]) == link
    assert repr(s.flows[0]) == "Flow(law='vegas', rtt='40 ms', max_window='64 kB')"
    names = {name: getattr(vm, name) for name in ("Link", "Flow", "DropTail", "RateDelay", "Red")}
    made = [eval(repr(part), names) for part in (s.links[0], s.flows[0])]  # noqa: S307 - our own
    assert vm.Scenario((made[0],), (made[1],), "1500 B") == s
    changed = s.replace({"link.buffer": "33 pkt"}).links[0]
    assert repr(changed).startswith("Link(capacity='8 Mbit/s', buffer='33 pkt', delay='1 ms'")
    queues = [vm.DropTail(), vm.RateDelay(2.0), vm.Red("5 pkt", "15 pkt", ecn=True)]
    assert [eval(repr(queue), names) for queue in queues] == queues  # noqa: S307 - our own


@pytest.mark.parametrize(("stop", "said"), [(19.9, True), (20.0, True), (20.1, False)])
def test_a_flow_that_stops_when_the_averages_begin_is_named(stop: float, said: bool) -> None:
    """In some traces its throughput is 0, and not NaN."""
    flows = [vm.Flow("reno", 0.1, "a", stop=stop), vm.Flow("reno", 0.1, "b")]
    case = vm.Scenario([vm.Link(100.0)], flows, run=vm.Run(duration=60.0, warmup=20.0))
    for rate in (0.0, np.nan):
        found = sends_after_warm_up(case, np.array([rate, 90.0]))
        assert bool(found) is said
        if said:
            (note,) = found
            assert note.holds is False
            assert note.detail.startswith(f"a stops at {stop:g} s before averages begin at 20 s")
