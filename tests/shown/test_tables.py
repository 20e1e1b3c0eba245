"""The tables that commands print: rows, columns, widths, standard errors."""

import dataclasses

import numpy as np
import pytest

import vegasmodel as vm
from tests.shown.scenes import P, S
from vegasmodel.report import console, notes, tables
from vegasmodel.results.many_predictions import Predictions


def test_a_set_of_rates_is_not_shown_as_a_point(capsys: pytest.CaptureFixture[str]) -> None:
    """Vegas's two flows have 90..110 and 180..220 pkt/s, so their mean has 135..165."""
    tables.print_results(S, [P])
    said = " ".join(capsys.readouterr().out.split())
    assert "rounds gives ranges, not single rates" in said
    assert "vegas 135..165, <b> 280..320" in said
    assert "--flows" in said
    tables.print_results(S, [dataclasses.replace(P, throughput_range=None)], per_flow=True)
    assert "ranges" not in capsys.readouterr().out


def test_one_flow_has_no_shares() -> None:
    alone = vm.Scenario([vm.Link(100.0)], [vm.Flow("reno", 0.1)])
    assert tables.shares_table(alone, [vm.Prediction("rounds", alone, np.array([9.0]))]) is None


def test_the_first_line_tells_random_loss_and_the_queue_discipline() -> None:
    flows = [vm.Flow("vegas", 0.1)]
    plain = vm.Link(100.0, buffer=20)
    lossy = vm.Link(100.0, name="b", buffer=20, loss=0.001)
    both = vm.Link(100.0, name="c", buffer=20, queue=vm.Red(5, 15), loss="12.5 %")
    served = vm.Link(100.0, name="d", buffer=20, queue=vm.RateDelay())
    said = tables.headline(vm.Scenario([plain], flows))
    assert said == "scenario (bottleneck: 100 pkt/s, buffer 20 pkt; RTT 100 ms; packets of 1000 B)"
    said = tables.headline(vm.Scenario([lossy, both, served], flows))
    assert "b: 100 pkt/s, buffer 20 pkt, random loss 0.1 %; c:" in said
    assert "c: 100 pkt/s, buffer 20 pkt, queue red, random loss 12.5 %; d:" in said
    assert "d: 100 pkt/s, buffer 20 pkt, queue rd; RTT" in said


def test_many_groups_are_rows_and_models_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """Each group's rate, Mbit/s and share are in the column of the model."""
    laws = ("vegas", "reno", "newreno", "sack", "cubic")
    many = vm.Scenario([vm.Link(1000.0)], [vm.Flow(law, 0.1) for law in laws], packet_size=1000)
    rates = np.array([100.0, 300.0, 200.0, 250.0, 150.0])
    results = [vm.Prediction(name, many, k * rates) for k, name in ((1, "rounds"), (0.5, "fluid"))]
    tables.print_results(many, results)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["group", "pkt/s", "pkt/s"] in lines
    assert ["sack", "250", "125"] in lines
    assert ["sack", "2", "25.0", "%", "1", "25.0", "%"] in lines
    assert ["Jain", "0.889", "0.889"] in lines  # 1000^2 / (5 * 225000)
    ratios = lines[lines.index(["Ratio", "to", "vegas"]) + 1 :]
    assert ratios[:5] == [
        ["group", "rounds", "fluid"],
        ["reno", "3", "3"], ["newreno", "2", "2"], ["sack", "2.5", "2.5"], ["cubic", "1.5", "1.5"],
    ]  # fmt: skip
    rates[0] = 0.0
    tables.print_results(many, [vm.Prediction("rounds", many, rates)])
    assert ["sack", "-"] in [line.split() for line in capsys.readouterr().out.splitlines()]


def test_groups_of_a_law_are_added_up_in_a_table_of_laws(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of 8 Mbit/s the three Vegas flows get 200 packets/s of 1000 B (1.6 Mbit/s), Reno 600."""
    flows = [
        vm.Flow("vegas", 0.1, name="one"),
        vm.Flow("vegas", 0.2, name="two", count=2),
        vm.Flow("reno", 0.1),
    ]
    shared = vm.Scenario([vm.Link(1000.0)], flows, packet_size=1000)
    rates = np.array([100.0, 60.0, 40.0, 600.0])
    tables.print_results(shared, [vm.Prediction("rounds", shared, rates)])
    _, _, printed = capsys.readouterr().out.partition("Laws, all flows together")
    assert [line.split() for line in printed.splitlines()][1:4] == [
        ["law", "flows", "model", "Mbit/s", "share", "load"],
        ["vegas", "3", "rounds", "1.6", "25.0", "%", "0.2"],
        ["reno", "1", "rounds", "4.8", "75.0", "%", "0.6"],
    ]


def test_a_table_shows_each_standard_error_that_is_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Three flows, long names and large errors fit 80 columns; a closed form has no error."""
    flows = [vm.Flow(law, 0.1) for law in ("newreno", "vegas", "cubic")]
    three = vm.Scenario([vm.Link(2e5)], flows, packet_size=1000)
    rates = np.array([12345.6, 54321.0, 99999.0])
    errors = np.array([1234.5, 0.0, 0.0123])
    bare = vm.Prediction("arrivals-bonald", three, rates)
    tables.print_results(three, [bare, vm.Prediction("ns2", three, rates, throughput_se=errors)])
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    assert "12346 ± 1200  54321  99999 ± 0.012" in printed
    assert "standard error" in printed
    tables.print_results(three, [bare])
    assert "±" not in capsys.readouterr().out


def test_the_error_of_a_group_is_said_to_be_that_of_its_mean(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The flows of the group scatter by 50 packets/s, their mean by 1: no flow has 150 ± 1."""
    runs = np.array([[100.0, 200.0, 290.0], [202.0, 102.0, 310.0]])
    means = runs.mean(axis=0)
    answer = dataclasses.replace(P, throughput=means, extra={"throughput_runs": runs})
    tables.print_results(S, [answer])
    out = capsys.readouterr().out
    assert out.splitlines()[3].split()[:4] == ["model", "mean", "pkt/s", "pkt/s"]
    assert "151 ± 1" in out
    assert notes.OF_GROUPS in out.replace("\n  ", " ")
    single = vm.Scenario([vm.Link(1000.0)], [vm.Flow("vegas", 0.1), vm.Flow("reno", 0.1)])
    error = np.array([2.0, 3.0])
    answer = vm.Prediction("rounds", single, means[:2], throughput_se=error)
    tables.print_results(single, [answer])
    assert notes.OF_GROUPS not in capsys.readouterr().out.replace("\n  ", " ")
    tables.print_results(S, [vm.Prediction("fluid", S, means)])  # no error is known
    assert notes.OF_GROUPS not in capsys.readouterr().out.replace("\n  ", " ")


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
    tables.print_results(case, [answer])
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
    tables.print_results(S, [P, dataclasses.replace(P, model="fluid", queue_mean=None)])
    assert "Mean queueing delay at bottleneck: rounds 7 ms.\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("columns", "keep", "left_out"),
    [("80", 2, 0), ("79", 2, 1), ("50", 2, 2), ("50", 3, 1), ("15", 3, 1), ("15", 1, 2)],
)
def test_columns_that_do_not_fit_are_left_out_and_counted(
    columns: str, keep: int, left_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each column takes 20 characters with the space around it; ``keep`` columns always stay.

    A terminal counts as at least 40 characters wide.
    """
    monkeypatch.setenv("COLUMNS", columns)
    heads = ["first", "second", "third", "fourth"]
    grid, narrow = console.fitting(heads, [["123456789012345678"] * 4], keep)
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
    tables.print_results(case, [answer, vm.Prediction("fluid", case, rate)])
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
    tables.print_results(case, [vm.Prediction("rounds", case, np.array([300.0]))])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["model", "pkt/s", "Jain", "load"] in rows
    assert ["rounds", "300", "1", "0.75"] in rows


def test_counts_of_packets_are_rounded(capsys: pytest.CaptureFixture[str]) -> None:
    """Means over three runs: nobody needs the ten-thousandth part of an ACK."""
    case = vm.Scenario([vm.Link(400.0)], [vm.Flow("reno", 0.08)])
    acks, again = np.array([1234567.6667]), np.array([5 / 3])
    answer = vm.Prediction("rounds", case, np.array([300.0]), acks=acks, retransmits=again)
    tables.print_results(case, [answer], per_flow=True)
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
    tables.print_results(case, [answer], per_flow=True)
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
        tables.print_results(two, results)
        out = capsys.readouterr().out.replace("\n  ", " ")
        return next((line for line in out.splitlines() if line.startswith("±")), "")

    # standard errors 10/sqrt(3) and sqrt(2.5/5)
    widest = "Widest 95 % interval (Student's t): vegas ± 25 pkt/s by rounds"
    assert f"over 3 runs. {widest}. " in legend(three)
    assert "3 runs may agree by chance; `predict --runs 20`, or `runs = 20` in" in legend(three)
    assert "over 5 runs. Widest 95 % interval (Student's t): vegas ± 2 pkt/s by" in legend(five)
    assert "by chance" not in legend(five)
    assert "over the runs (rounds 3, fluid 5)" in legend(three, five)
    assert f"{widest}, vegas ± 2 pkt/s by fluid" in legend(three, five)
    assert three.table().splitlines()[0].endswith("mean over 3 runs")
    title = Predictions([three, five]).table().splitlines()[0]
    assert title.endswith("mean over the runs (rounds 3, fluid 5)")
    assert "±" not in P.table()
    four = _of_runs(two, "rounds", *([300.0 + i, 600.0 + i] for i in range(4)))
    batch = vm.Batch([three, four, three]).table()  # it named the model for each scenario
    assert batch.splitlines()[0].endswith("±: standard error of the mean over 3 to 4 runs")


@pytest.mark.parametrize("links", [1, 2])
def test_tables_say_that_the_load_is_that_of_the_forward_direction(
    links: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flow that sends against the link's direction adds nothing to its load."""
    wires = [vm.Link(1000.0, name=f"l{i}") for i in range(links)]
    there, back = vm.Flow("vegas", 0.1), vm.Flow("reno", 0.1, direction="reverse")
    said = "Load, queue and queueing delay are those in the forward direction."
    for flows, told in (([there, back], True), ([there], False)):
        case = vm.Scenario(wires, flows)
        found = vm.Prediction("rounds", case, np.full(len(flows), 400.0))
        assert found.utilization[0] == pytest.approx(0.4)
        tables.print_results(case, [found])
        assert (said in capsys.readouterr().out) == told


def test_a_link_that_idles_although_nothing_limits_a_flow_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """45 of 1000 pkt/s cross the link; the flows' RTTs of 40 and 60 ms give 50 pkt."""
    both = [vm.Flow("vegas", "40 ms"), vm.Flow("reno", "60 ms")]
    case = vm.Scenario([vm.Link(1000.0, buffer=2.0)], both)
    results = [
        vm.Prediction(name, case, rates)
        for name, rates in (("rounds", np.array([20.0, 25.0])), ("fluid", np.array([400.0, 300.0])))
    ]
    tables.print_results(case, results)
    said = " ".join(capsys.readouterr().out.split())
    assert "link is idle for most of the time by rounds (load 0.045): " in said
    assert "The buffer, 2 pkt, is small beside the bandwidth-delay product, 50 pkt" in said
    assert not notes.idle(case, results[1:])
    for loss, small in ((0.0, False), (0.01, True)):
        known = dataclasses.replace(results[0], loss_rate=np.full(2, loss))
        (text,) = notes.idle(case, [known])
        assert ("so it overflows" in text) == small
    two = vm.Scenario([vm.Link(1000.0, name="wide"), vm.Link(60.0, name="narrow")], both)
    assert not notes.idle(two, [vm.Prediction("rounds", two, np.array([20.0, 25.0]))])
    [text] = notes.idle(two, [vm.Prediction("rounds", two, np.array([2.0, 4.0]))])
    assert text.startswith("The busiest link is idle for most of the time by rounds (load 0.1): ")
    limits = {"max_window": "3 pkt", "size": "30 pkt", "access": "900 pkt/s", "stop": 9.0}
    for key, value in (limits | {"direction": "reverse"}).items():
        limited = case.replace({f"flow.reno.{key}": value})
        assert not notes.idle(limited, [vm.Prediction("rounds", limited, np.array([20.0, 25.0]))])
