"""Figures show the numbers that they get, and label them."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver

import vegasmodel as vm
from tests.helpers import scenario
from vegasmodel import plots
from vegasmodel.command_line.commands import run
from vegasmodel.equilibrium import phase_plane
from vegasmodel.fields.errors import FieldError
from vegasmodel.results.many_predictions import Predictions
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Scenario

VEGAS = {"law": "vegas", "alpha": 3, "beta": 3}


def lines(ax: Axes) -> dict[str, np.ndarray]:
    """Label -> [points, 2] of every line with a label; for error bars, of their markers."""
    found = {str(line.get_label()): line.get_xydata() for line in ax.lines}
    found |= {str(bar.get_label()): bar[0].get_xydata() for bar in ax.containers if bar[0]}
    return {label: xy for label, xy in found.items() if not label.startswith("_")}


def arrivals() -> Scenario:
    return scenario({**VEGAS, "count": 3, "start": {"first": "4 s", "every": "2 s"}})


def test_matplotlib_loads_when_a_figure_is_made() -> None:
    code = "import vegasmodel.plots, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_exists() -> None:
    assert all(callable(getattr(plots, name)) for name in plots.__all__)
    assert set(plots.__all__) <= set(dir(plots))
    with pytest.raises(AttributeError):
        plots.nothing  # noqa: B018 - reading it raises


def test_rates_by_arrival() -> None:
    s = arrivals()
    exact = Prediction("arrivals", s, np.array([200.0, 300.0, 580.0]))
    band = Prediction(
        "bands", s, np.full(3, 360.0), throughput_range=np.array([[100.0, 500.0]] * 3)
    )
    packets = Prediction("ns2", s, np.array([250.0, 310.0, 520.0]), throughput_se=np.full(3, 7.0))
    refused = Prediction.not_applicable("red", s, "no RED")
    fig = plots.rate_by_arrival([exact, band, refused], [packets])
    drawn = lines(fig.axes[0])
    assert drawn["exact recursion"].tolist() == [[1, 200], [2, 300], [3, 580]]
    assert drawn["ns-2"].tolist() == [[1, 250], [2, 310], [3, 520]]
    assert drawn["fair share"][:, 1].tolist() == [360, 360]  # 1080 / 3
    (bars,) = (c for c in fig.axes[0].containers if c.get_label() == "ns-2")
    heights = [np.ptp(segment[:, 1]) for segment in bars[2][0].get_segments()]
    assert heights == pytest.approx([28.0] * 3)  # two standard errors to both sides
    (span,) = fig.axes[0].collections[:1]
    assert span.get_paths()[0].get_extents().y0 == 100
    assert "pkt/s" in fig.axes[0].get_ylabel()


def test_order_of_arrival_is_that_of_the_starts() -> None:
    s = scenario(
        {**VEGAS, "name": "late", "start": "9 s", "rtt": "90 ms"}, {**VEGAS, "name": "early"}
    )
    p = Prediction("fluid", s, np.array([700.0, 380.0]), base_rtt=np.array([0.1, 0.08]))
    assert lines(plots.rate_by_arrival([p]).axes[0])["fluid"].tolist() == [[1, 380], [2, 700]]
    drawn = lines(plots.base_rtt_by_arrival([p]).axes[0])
    np.testing.assert_allclose(drawn["fluid"], [[1, 80], [2, 100]])  # ms
    np.testing.assert_allclose(drawn["true RTT"], [[1, 80], [2, 90]])


def test_errors_and_ranges_are_in_the_order_of_arrival_too() -> None:
    s = scenario({**VEGAS, "name": "late", "start": "9 s"}, {**VEGAS, "name": "early"})
    rates, spans = np.array([700.0, 380.0]), np.array([[600.0, 800.0], [300.0, 400.0]])
    p = Prediction("bands", s, rates, throughput_range=spans, throughput_se=np.array([5.0, 2.0]))
    ax = plots.rate_by_arrival([p]).axes[0]
    span, bars = (ax.collections[0], next(c for c in ax.collections if type(c) is LineCollection))
    ends = {(float(x), float(y)) for x, y in span.get_paths()[0].vertices}
    assert ends == {(1, 300), (1, 400), (2, 600), (2, 800)}
    assert [each[:, 1].tolist() for each in bars.get_segments()] == [[376, 384], [690, 710]]


def test_bars_are_the_means_of_the_groups_with_two_errors_or_the_mean_range() -> None:
    """The two Vegas flows have standard errors of 3 and 4 pkt/s, and their mean one of 5/2."""
    s = scenario({**VEGAS, "count": 2}, {"law": "reno"})
    fluid = Prediction(
        "fluid", s, np.array([100.0, 300.0, 500.0]), throughput_se=np.array([3.0, 4.0, 6.0])
    )
    spans = np.array([[100.0, 180.0], [200.0, 320.0], [580.0, 700.0]])
    bands = Prediction("bands", s, np.array([150.0, 250.0, 600.0]), throughput_range=spans)
    ax = plots.throughput_bars([fluid, bands]).axes[0]
    bars = [each for each in ax.containers if isinstance(each, BarContainer)]
    errors = [each for each in ax.collections if type(each) is LineCollection]
    assert [[bar.get_height() for bar in each] for each in bars] == [[200, 500], [200, 600]]
    ends = [[line[:, 1].tolist() for line in each.get_segments()] for each in errors]
    assert ends == [[[195, 205], [488, 512]], [[150, 250], [580, 700]]]
    for group in range(2):  # the two bars touch no other, and the group's number is between them
        places = [(each[group].get_x(), each[group].get_width()) for each in bars]
        assert sum(x + width / 2 for x, width in places) / 2 == pytest.approx(group)
        assert places[0][0] + places[0][1] <= places[1][0]
        assert places[1][0] + places[1][1] < group + 0.5


def test_base_rtts_leave_out_who_has_none() -> None:
    s = arrivals()
    both = [
        Prediction("arrivals", s, np.ones(3), base_rtt=np.full(3, 0.09)),
        Prediction("fluid", s, np.ones(3)),
    ]
    assert set(lines(plots.base_rtt_by_arrival(both).axes[0])) == {"exact recursion", "true RTT"}


def test_throughput_over_the_buffer_in_any_order() -> None:
    def at(buffer: int, rates: list[float], model: str) -> Prediction:
        s = scenario({**VEGAS, "count": 2}, {"law": "reno"}, buffer=f"{buffer} pkt")
        return Prediction(model, s, np.array(rates), throughput_se=np.array([5.4, 5.4, 0.0]))

    models = [at(20, [108, 108, 864], "fluid"), at(5, [270, 270, 540], "fluid")]
    fig = plots.throughput_over_buffer(models, [at(5, [216, 216, 648], "ns2")])
    vegas, reno = fig.axes
    np.testing.assert_allclose(lines(vegas)["fluid"], [[5, 0.5], [20, 0.2]])
    np.testing.assert_allclose(lines(reno)["fluid"], [[5, 0.5], [20, 0.8]])
    np.testing.assert_allclose(lines(vegas)["ns-2"], [[5, 0.4]])
    (bars,) = (c for c in vegas.containers if c.get_label() == "ns-2")
    # of the mean of two flows 5.4/sqrt(2) pkt/s, of both 5.4 sqrt(2); four times that from end
    # to end, over 1080
    assert np.ptp(bars[2][0].get_segments()[0][:, 1]) == pytest.approx(0.02 * np.sqrt(2))
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["vegas", "reno"]


def test_the_part_of_the_capacity_counts_bytes() -> None:
    """The packets of the second group have half the scenario's size."""
    s = scenario(VEGAS, {"law": "reno", "packet_size": "250 B"}, buffer="9 pkt")
    vegas, reno = plots.throughput_over_buffer(Prediction("fluid", s, np.array([540, 540.0]))).axes
    assert lines(vegas)["fluid"].tolist() == [[9, 0.5]]
    assert lines(reno)["fluid"].tolist() == [[9, 0.25]]


def test_class_shares_with_and_without_rd() -> None:
    def case(n_rate: int, discipline: str, rates: list[float], model: str) -> Prediction:
        s = scenario({"law": "newreno", "count": n_rate}, VEGAS, queue={"discipline": discipline})
        return Prediction(model, s, np.array(rates))

    rd = [case(2, "rd", [360, 360, 360], "rate-delay"), case(1, "rd", [540, 540], "rate-delay")]
    without = [case(1, "droptail", [1026, 54], "ns2")]
    upper, lower = plots.class_shares(rd, without).axes
    assert lines(upper)["RD equations, RD: rate class"].tolist() == [[1, 1], [2, 1]]
    np.testing.assert_allclose(lines(upper)["ns-2, no RD: delay class"], [[1, 0.1]])
    np.testing.assert_allclose(lines(lower)["ns-2, no RD: delay / rate"], [[1, 54 / 1026]])
    assert lower.get_yscale() == "log"  # the quotients are 1 and 1/19
    assert plots.class_shares(rd).axes[1].get_yscale() == "linear"
    for ax in (upper, lower):  # hollow markers without RD
        hollow = {c[0].get_markerfacecolor() for c in ax.containers}
        filled = {line.get_markerfacecolor() for line in ax.lines if "RD:" in line.get_label()}
        assert hollow == {"white"}
        assert filled
        assert "white" not in filled
    alone = Prediction("fluid", scenario(VEGAS), np.array([1080.0]))
    with pytest.raises(ValueError, match=r"^models, measured: .*no flow of class rate"):
        plots.class_shares([alone])


def test_class_shares_tell_models_apart() -> None:
    """The lines of fluid and rounds had one style."""
    s = scenario({"law": "newreno"}, VEGAS, queue={"discipline": "rd"})
    names = ("rate-delay", "fluid", "rounds", "minicycle", "red", "network")
    answers = [Prediction(name, s, np.array([540.0, 540.0 + i])) for i, name in enumerate(names)]
    upper, lower = plots.class_shares([Predictions(answers), answers[0]]).axes
    for ax, kinds in ((upper, 2), (lower, 1)):
        drawn = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
        assert len(drawn) == kinds * len(names)
        looks = [(o.get_color(), o.get_marker(), str(o._dash_pattern)) for o in drawn]
        assert len(set(looks)) == len(drawn)
        dashes = {dash for _, _, dash in looks[: 5 * kinds]}
        assert len(dashes) == 5  # also without the markers


def test_curves_over_the_buffer_have_the_error_bars_of_their_runs() -> None:
    """The runs of a group tell the error of its mean, as its flows are correlated."""
    s = scenario({**VEGAS, "count": 2}, {"law": "reno"}, buffer="5 pkt")
    runs = np.array([[100.0, 200.0, 700.0], [200.0, 100.0, 760.0]])
    error = np.ptp(runs, axis=0) / 2
    several = Prediction(
        "rounds", s, runs.mean(axis=0), throughput_se=error, extra={"throughput_runs": runs}
    )
    closed = Prediction("minicycle", s, np.array([150.0, 150.0, 700.0]))
    vegas, reno = plots.throughput_over_buffer([several, closed]).axes
    (bars,) = (c for c in reno.containers)
    assert np.ptp(bars[2][0].get_segments()[0][:, 1]) == pytest.approx(4 * 30 / 1080)
    assert not vegas.containers  # together the two get the same in each run


@pytest.mark.parametrize("name", [
    "throughput_bars", "rate_by_arrival", "base_rtt_by_arrival", "throughput_over_buffer",
    "class_shares",
])  # fmt: skip
def test_a_figure_of_no_answers_is_refused(name) -> None:
    s = scenario(VEGAS)
    refused = Prediction.not_applicable("red", s, "no RED")
    draw = getattr(plots, name)
    first = (s,) if name == "throughput_bars" else ()
    for given, said in ([], "no prediction"), ([refused], "red"):
        with pytest.raises(FieldError, match=f"'{said}' is not allowed; at least one prediction"):
            draw(*first, given)


def test_predict_tells_why_there_is_nothing_to_draw(tmp_path, capsys) -> None:
    file = tmp_path / "s.toml"
    file.write_text(scenario(VEGAS).to_toml())
    asked = ["predict", str(file), "--model", "minicycle", "--plot", str(tmp_path / "p.png")]
    assert run(asked) == 2
    assert "a picture needs an answer (minicycle: " in capsys.readouterr().err
    assert not (tmp_path / "p.png").exists()


def test_a_figure_of_no_base_rtts_is_refused() -> None:
    without = Prediction("fluid", scenario(VEGAS), np.array([1080.0]))
    with pytest.raises(FieldError, match=r"'fluid' is not allowed; .* whose base_rtt is known"):
        plots.base_rtt_by_arrival([without])


def test_class_shares_count_lasting_flows_that_cross_forward() -> None:
    back = {"law": "reno", "count": 5, "direction": "reverse"}
    web = {"law": "reno", "name": "web", "size": "9 pkt", "arrivals": {"poisson": "2 1/s"}}
    s = scenario({"law": "newreno"}, VEGAS, back, web)
    p = Prediction("fluid", s, np.array([810.0, 270.0, 1, 2, 3, 4, 5, 99.0]))
    upper, _ = plots.class_shares([p]).axes
    assert lines(upper)["fluid, no RD: rate class"].tolist() == [[1, 1.5]]
    assert lines(upper)["fluid, no RD: delay class"].tolist() == [[1, 0.5]]


def test_errors_best_first_and_no_answer_left_out() -> None:
    fig = plots.model_errors({"fluid": [0.3, 0.1], "minicycle": [0.05, np.nan], "red": [np.nan]})
    (ax,) = fig.axes
    assert [t.get_text() for t in ax.get_yticklabels()] == ["mini-cycle  (1)", "fluid  (2)"]
    dots = [line.get_xdata() for line in ax.lines if line.get_linestyle() == "None"]
    np.testing.assert_allclose(dots[0], [5.0])
    np.testing.assert_allclose(dots[1], [30.0, 10.0])


def test_small_errors_are_drawn_at_the_axis_and_the_bar_is_at_the_mean() -> None:
    fig = plots.model_errors({"fluid": [1e-5, 0.1, 0.5], "red": [1e-6]})
    red, fluid = (fig.axes[0].lines[i : i + 2] for i in (0, 2))
    assert fluid[0].get_xdata().tolist() == [0.01, 10.0, 50.0]  # percent
    np.testing.assert_allclose(fluid[1].get_xdata(), (0.001 + 10.0 + 50.0) / 3.0)
    assert red[1].get_xdata().tolist() == [0.01, 0.01]


def sawtooth(flows: int = 1, rtt: float = 0.2) -> xr.Dataset:
    """Windows that grow by 1 per sample from 20 to 40 and fall to 20; the queue is half of it."""
    time = 0.1 * np.arange(400)
    window = 20.0 + np.arange(400) % 21
    lost = np.arange(400) // 21  # one packet at each fall

    def of_each(values: np.ndarray) -> tuple[tuple[str, str], np.ndarray]:
        return ("time", "flow"), np.repeat(values[:, None], flows, axis=1)

    return xr.Dataset(
        {
            "window": of_each(window),
            "lost": of_each(lost),
            "rtt": of_each(np.full(400, rtt)),
            "queue": (("time", "link"), window[:, None] / 2),
        },
        coords={"time": time, "flow": [f"f{i}" for i in range(flows)], "link": ["wire"]},
        attrs={"scenario": "saw"},
    )


def test_windows_and_their_mini_cycles() -> None:
    data = sawtooth()
    fig = plots.windows(data, cycles=3)
    whole, zoom, below, _ = fig.axes
    np.testing.assert_array_equal(lines(whole)["f0"][:, 1], data["window"].values[:, 0])
    np.testing.assert_array_equal(lines(below)["queue of wire"][:, 1], data["queue"].values[:, 0])
    falls = [line.get_xdata()[0] for line in zoom.lines if line.get_linestyle() == ":"]
    assert falls == pytest.approx([33.6, 35.7, 37.8, 39.9])  # multiples of 2.1 s
    assert len(plots.windows(data, cycles=0).axes) == 2  # no column of cycles
    coarse = sawtooth(rtt=0.19)  # more than half of it lies between samples
    assert len(plots.windows(coarse, cycles=3).axes) == 2


def test_the_second_column_is_of_the_last_cycles() -> None:
    """It begins and ends 5 % of its length before and after them, here 0.315 s."""
    data = sawtooth().isel(time=slice(0, 390))  # falls at multiples of 2.1 s, the last at 37.8 s
    x = lines(plots.windows(data, cycles=3).axes[1])["f0"][:, 0]
    assert x[[0, -1]] == pytest.approx([31.2, 38.1])
    for falls, axes in ((6, 2), (7, 4)):  # none if there are at most six falls
        fewer = data.isel(time=slice(0, 21 * falls + 1))
        assert len(plots.windows(fewer, cycles=3).axes) == axes


def test_a_flow_that_has_not_started_has_no_window() -> None:
    data = sawtooth(2)
    data["window"].values[:100, 1] = 0.0
    drawn = lines(plots.windows(data, cycles=0).axes[0])
    assert np.isnan(drawn["f1"][:100, 1]).all()
    np.testing.assert_array_equal(drawn["f1"][100:], drawn["f0"][100:])


@pytest.mark.parametrize(("loses", "last"), [([0], 20.3), ([0, 1], 20.0)])
def test_losses_of_several_flows_are_one_within_the_longest_of_their_rtts(
    loses: list[int], last: float
) -> None:
    """The flows have RTTs of 0.2 and 0.4 s. Both lose packets until 20.0 s, and some at 20.3 s."""
    data = sawtooth(2)
    data["rtt"].values[:, 1] = 0.4
    data["lost"].values[:] = (np.arange(400)[:, None] >= [50, 100, 200]).sum(axis=1)[:, None]
    data["lost"].values[203:, loses] += 1
    fig = plots.windows(data, cycles=1)
    found = [line.get_xdata()[0] for line in fig.axes[1].lines if line.get_linestyle() == ":"]
    assert found[-1] == pytest.approx(last)


def test_a_flow_whose_name_begins_with_an_underscore_is_in_the_legend() -> None:
    """matplotlib leaves out such labels."""
    data = sawtooth(3).assign_coords(flow=["_a", "_$b$", "c_"])
    fig = plots.windows(data, cycles=0)
    shown = [text.get_text() for text in fig.legends[0].get_texts()]
    assert shown == [r"$\_$a", r"$\_$\$b\$", "c_", "queue of wire"]
    fig.savefig(io.BytesIO())  # the formulas can be drawn


def test_what_is_lost_within_a_round_trip_is_one_loss() -> None:
    data = sawtooth()
    data["lost"] = data["lost"].copy(
        data=np.repeat([0, 1, 3, 4, 4, 5], [100, 1, 99, 1, 3, 196])[:, None]
    )
    fig = plots.windows(data, cycles=1)
    found = [line.get_xdata()[0] for line in fig.axes[1].lines if line.get_linestyle() == ":"]
    assert found == pytest.approx([20.0, 20.4])  # 10.0, and 10.1 with it


ALONE = """
link = [{ capacity = "400 pkt/s", buffer = "5 pkt" }]
flow = [{ law = "reno", rtt = "20 ms", variant = "VARIANT", send_jitter = "0 s" }]
run = { duration = "300 s", warmup = "100 s" }
"""


def drawn_cycles(
    variant: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> np.ndarray:
    """Length of the cycles that ``simulate --plot`` draws for one Reno flow with a small window."""
    figures: list[Figure] = []
    monkeypatch.setattr(plots, "save", lambda figure, path: figures.append(figure))
    path = tmp_path / "alone.toml"
    path.write_text(ALONE.replace("VARIANT", variant))
    assert run(["simulate", str(path), "--model", model, "--plot", str(tmp_path / "a.png")]) == 0
    zoom = figures[0].axes[1]
    return np.diff([line.get_xdata()[0] for line in zoom.lines if line.get_linestyle() == ":"])


def test_the_fluid_s_cycles_as_drawn_are_those_of_the_closed_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand: from half of cT + B + 1 = 14 packets by one per T, then W dW = c dt.

    Until the path's 8 packets are full it takes T, from there (14^2 - 8^2)/(2 c).
    """
    found = drawn_cycles("paper", "fluid", tmp_path, monkeypatch)
    np.testing.assert_allclose(found, 0.02 + (14**2 - 8**2) / 800, atol=0.0101)  # one sample


def test_the_cycles_by_rounds_as_drawn_are_those_of_its_steady_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 8.52 transmission times; of a whole number, packets and ACKs meet at one instant, and the
    # rounding of the clock, which changes with the time, decides which comes first
    monkeypatch.setattr(sys.modules[__name__], "ALONE", ALONE.replace("20 ms", "21.3 ms"))
    steady = vm.limit_cycle(vm.Scenario.from_toml(ALONE.replace("VARIANT", "ns2")), "rounds")
    assert steady.kind == "periodic"
    assert steady.losses.tolist() == [1]
    found = drawn_cycles("ns2", "rounds", tmp_path, monkeypatch)
    np.testing.assert_allclose(found, steady.period, atol=0.0101)


def test_of_many_flows_first_and_last_are_drawn() -> None:
    fig = plots.windows(sawtooth(5), most=2)
    assert set(lines(fig.axes[0])) == {"f0", "f4"}
    assert "2 of 5 flows" in fig.axes[0].get_title(loc="left")


def two(alpha: float, beta: float, variant: str = "paper") -> Scenario:
    flow = {"law": "vegas", "count": 2, "alpha": alpha, "beta": beta, "variant": variant}
    return scenario({**flow, "over_estimate": "0 s"}, capacity="100 pkt/s")


@pytest.mark.parametrize("variant", ["paper", "linux"])
def test_edges_of_the_convergence_region(variant: str) -> None:
    # Diff by the protocol's own definition: W (1 - baseRTT/RTT), or over baseRTT for Linux
    fig = plots.convergence_regions(two(2, 6, variant))
    top = {"paper": 6, "linux": 7}[variant]
    for name, flow, diff in (("alpha_1", 0, 2), ("beta_1", 0, top), ("beta_2", 1, top)):
        xy = lines(fig.axes[0])[f"$\\{name}$"]
        W = xy[np.isfinite(xy).all(axis=1)]
        assert len(W) > 100
        rtt = W.sum(axis=1) / 100.0  # equal RTTs on a full link
        base = {"paper": rtt, "linux": 0.08}[variant]
        np.testing.assert_allclose(W[:, flow] * (rtt - 0.08) / base, diff, rtol=1e-9)


def test_given_over_estimates_replace_those_of_the_scenario() -> None:
    """The baseRTTs are then 80 and 100 ms; on a full link the RTT is (W_1 + W_2)/c."""
    fig = plots.convergence_regions(two(2, 6), x=[0.0, 0.02])
    for name, flow, base, diff in (("alpha_1", 0, 0.08, 2), ("beta_2", 1, 0.1, 6)):
        xy = lines(fig.axes[0])[f"$\\{name}$"]
        W = xy[np.isfinite(xy).all(axis=1)]
        rtt = W.sum(axis=1) / 100.0
        np.testing.assert_allclose(W[:, flow] * (rtt - base) / rtt, diff, rtol=1e-9)
    with pytest.raises(FieldError, match=r"^x: .*one for each of the two flows"):
        plots.convergence_regions(two(2, 6), x=[0.0, 0.01, 0.02])


def test_the_number_of_arrows_is_an_option() -> None:
    """An arrow is left out where both windows stay."""

    def count(**option: int) -> int:
        (ax,) = plots.convergence_regions(two(2, 6), **option).axes
        (arrows,) = (each for each in ax.collections if isinstance(each, Quiver))
        return int(arrows.N)

    assert 0 < count(arrows=4) <= 4**2 < count() <= 15**2


def test_with_equal_thresholds_the_region_is_a_point() -> None:
    fig = plots.convergence_regions(two(3, 3))
    drawn = lines(fig.axes[0])
    assert "$\\alpha_1 = \\beta_1$" in drawn
    assert not any("beta" in name and "alpha" not in name for name in drawn)


def test_paths_end_where_windows_hold() -> None:
    s = two(2, 6)
    data = vm.simulate(s, "fluid", samples=201)
    fig = plots.convergence_regions(s, [data])
    np.testing.assert_array_equal(lines(fig.axes[0])["fluid"], data["window"].values)
    end = data["window"].values[-1]
    # a hair inside: the law stops at the edge itself
    still = phase_plane.drift(end, 2 - 1e-3, 6 + 1e-3, 0.0, 100.0, 0.08)
    assert still.tolist() == [0, 0]


def test_regions_of_boutremans_figure_6() -> None:
    """By hand, 100 pkt/s and 80 ms: windows of 4 and 4 just fill the link; the queue is W - 8."""
    windows = [[4, 4], [7, 7], [20, 20], [40, 1], [1, 40]]
    # Diff = W queue / (sum of W): 0 0; 3 3; 16 16; 32.2 0.8; 0.8 32.2
    moves = phase_plane.drift(windows, 2.0, 6.0, 0.0, 100.0, 0.08)
    assert moves.tolist() == [[1, 1], [0, 0], [-1, -1], [-1, 1], [1, -1]]


def test_the_plane_is_of_two_vegas_flows() -> None:
    with pytest.raises(ValueError, match=r"^scenario: .*two Vegas flows"):
        plots.convergence_regions(scenario({"law": "reno"}, VEGAS))


SWEPT = vm.Scenario(
    [vm.Link("4 Mbit/s", buffer=20)],
    [vm.Flow("vegas", "80 ms", alpha=3, beta=3), vm.Flow("reno", "80 ms")],
    packet_size="500 B",
)


def test_a_sweep_of_one_field_is_a_line_for_each_group() -> None:
    data = vm.sweep(SWEPT, {"link.capacity": ["2 Mbit/s", "4 Mbit/s", "8 Mbit/s"]}, "minicycle")
    (ax,) = plots.sweep(data).axes
    drawn = lines(ax)
    assert list(drawn) == ["vegas", "reno"]
    assert ax.get_xlabel() == "link.capacity (Mbit/s)"
    np.testing.assert_allclose(drawn["vegas"][:, 0], [2, 4, 8])
    for name, xy in drawn.items():
        np.testing.assert_array_equal(xy[:, 1], data["share"].sel(flow=name))


def test_a_group_of_several_flows_has_one_line_in_the_picture_of_a_sweep() -> None:
    """The line shows the share of all flows together, as map, table and ``shares`` do."""
    flows = [vm.Flow("vegas", "80 ms", count=3), vm.Flow("vegas", "80 ms", "late", start="10 s")]
    data = vm.sweep(vm.Scenario(SWEPT.links, flows), {"link.buffer": [90, 120]}, "arrivals")
    data["group_share_se"] = (("link.buffer", "group"), [[0.02, 0.01], [0.04, 0.03]])
    (ax,) = plots.sweep(data).axes
    drawn = lines(ax)
    assert list(drawn) == ["vegas, 3 flows together", "late"]
    alone = data["share"].sel(flow="late").values
    np.testing.assert_array_equal(drawn["late"][:, 1], alone)
    np.testing.assert_allclose(drawn["vegas, 3 flows together"][:, 1], 1.0 - alone)
    for bars, errors in zip(ax.containers, ([0.02, 0.04], [0.01, 0.03]), strict=True):
        (segments,) = [c.get_segments() for c in bars.lines[2]]
        np.testing.assert_allclose([np.ptp(each[:, 1]) / 4 for each in segments], errors)


def test_a_sweep_of_one_field_may_show_one_group_or_several_as_a_sum() -> None:
    """Of a sum no error is known: the errors of its groups do not add up to it."""
    flows = [vm.Flow("vegas", "80 ms", name, start=f"{i}0 s") for i, name in enumerate("abc")]
    data = vm.sweep(vm.Scenario(SWEPT.links, flows), {"link.buffer": [90, 120]}, "arrivals")
    data["group_share_se"] = (0.1 * data["share"]).rename(flow="group")
    for group, others, bars in (("b", ["a", "c"], True), ("a+c", ["b"], False)):
        (ax,) = plots.sweep(data, group).axes
        drawn = lines(ax)
        rest = data["share"].sel(flow=others).sum("flow").values
        (label,) = drawn
        assert label.startswith(group)
        np.testing.assert_allclose(drawn[label][:, 1], 1.0 - rest, rtol=1e-12)
        assert [each.has_yerr for each in ax.containers] == [bars]
    (ax,) = plots.sweep(data, "law:vegas").axes
    assert ax.get_ylabel() == "part of the capacity that is used"
    with pytest.raises(FieldError, match="group: 'd' is not allowed; one of a, b, c, several"):
        plots.sweep(data, "d")


def test_the_share_of_a_single_group_is_no_picture_of_a_sweep() -> None:
    same = vm.Scenario(SWEPT.links, [vm.Flow("vegas", "80 ms", count=2)])
    data = vm.sweep(same, {"link.buffer": [10, 20]}, "equilibrium")
    (ax,) = plots.sweep(data).axes
    assert ax.get_ylabel() == "part of the capacity that is used"


def test_the_load_in_the_picture_of_a_sweep_is_that_of_the_first_link() -> None:
    same = vm.Scenario(SWEPT.links, [vm.Flow("vegas", "80 ms", count=2)])
    data = vm.sweep(same, {"link.buffer": [10, 20]}, "equilibrium")
    both = data.reindex(link=[*data["link"].values, "idle"], fill_value=0.0)
    (drawn,) = lines(plots.sweep(both).axes[0]).values()
    assert drawn[:, 1].tolist() == [1.0, 1.0]


def test_the_title_of_a_sweep_says_which_part_of_the_groups_is_drawn() -> None:
    flows = [vm.Flow("vegas", "80 ms", f"v{i}", start=f"{i} s") for i in range(9)]
    data = vm.sweep(vm.Scenario(SWEPT.links, flows), {"link.buffer": [200, 300]}, "arrivals")
    for group, drawn, part in ((None, 8, True), ("v8", 1, False)):
        (ax,) = plots.sweep(data, group).axes
        assert len(lines(ax)) == drawn
        assert ("8 of 9 groups" in ax.get_title(loc="left")) == part


def test_the_colours_of_ratios_end_at_a_hundred_and_starts_are_in_seconds() -> None:
    values, start = [[0.5, 2.0], [8.0, 1000.0]], ("x", [1.0, 2.0], {"units": "s"})
    ratios = xr.DataArray(values, {"y": [1, 2], "flow.a.start": start}, ("y", "x"), name="ratio")
    ratios = ratios.swap_dims(x="flow.a.start")
    for panel, largest in ((ratios, 100.0), (ratios.where(ratios < 100.0), 8.0)):
        fig = plots.heat([panel], ["all"], ["start"], title="", shown="", up="")
        mesh = fig.axes[0].collections[0]
        assert (mesh.norm.vmin, mesh.norm.vmax) == pytest.approx((1.0 / largest, largest))
    assert [tick.get_text() for tick in fig.axes[0].get_xticklabels()] == ["1", "2"]


def test_a_sweep_of_two_fields_is_a_map_of_the_first_group() -> None:
    """The first field lies along x; times are in ms, and words are words."""
    over = {"flow.rtt": [0.04, 0.08, 0.16], "flow.reno.law": ["reno", "sack"]}
    data = vm.sweep(SWEPT, over, "minicycle")
    ax = plots.sweep(data).axes[0]
    shown = np.ma.filled(ax.collections[0].get_array(), np.nan)
    np.testing.assert_array_equal(shown, data["share"].sel(flow="vegas").values.T)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("flow.rtt (ms)", "flow.reno.law")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["40", "80", "160"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["reno", "sack"]
    other = plots.sweep(data, "reno")
    shown = np.ma.filled(other.axes[0].collections[0].get_array(), np.nan)
    np.testing.assert_array_equal(shown, data["share"].sel(flow="reno").values.T)
    assert any("share of reno" in ax.get_ylabel() + ax.get_title() for ax in other.axes)
    with pytest.raises(FieldError, match="did you mean 'reno'"):
        plots.sweep(data, "ren")


def test_the_map_of_a_sweep_may_show_several_groups_or_those_of_a_law() -> None:
    """The groups are named as in targets of ``design``: ``a+b`` and ``law:LAW``."""
    flows = [
        vm.Flow("vegas", "80 ms", "one"),
        vm.Flow("vegas", "80 ms", "two", start="10 s"),
        vm.Flow("vegas", "80 ms", "three", start="20 s"),
    ]
    over = {"link.buffer": [90, 120], "link.capacity": ["4 Mbit/s", "8 Mbit/s"]}
    data = vm.sweep(vm.Scenario(SWEPT.links, flows), over, "arrivals")
    for group, left_out in (("one+two", ["three"]), ("law:vegas", [])):
        shown = plots.sweep(data, group).axes[0].collections[0].get_array()
        others = data["share"].sel(flow=left_out).sum("flow").values.T
        np.testing.assert_allclose(np.ma.filled(shown, np.nan), 1.0 - others, rtol=1e-12)
    for wrong in ("law:reno", "one+four", "+", ""):
        with pytest.raises(FieldError, match=r"several of them \(a\+b\), or all with one law"):
            plots.sweep(data, wrong)
    laws = data.rename({"link.buffer": "flow.one.law"})
    with pytest.raises(FieldError, match="law:vegas"):
        plots.sweep(laws, "law:vegas")


def test_a_sweep_with_error_bars_and_one_group() -> None:
    """A bar is two standard errors of the share; flows of one group have no share to map."""
    data = vm.sweep(SWEPT, {"link.buffer": [10, 20]}, "minicycle")
    data["throughput_se"] = 0.3 * data["throughput"]
    data["group_share_se"] = (0.1 * data["share"]).rename(flow="group")
    (bars, *_) = plots.sweep(data).axes[0].containers
    (segments,) = [c.get_segments() for c in bars.lines[2]]
    share = float(data["share"][0, 0])
    np.testing.assert_allclose(segments[0][:, 1], [0.8 * share, 1.2 * share])
    same = vm.Scenario(SWEPT.links, [vm.Flow("vegas", "80 ms", count=2)])
    two = vm.sweep(same, {"link.buffer": [10, 20], "flow.rtt": [0.04, 0.08]}, "equilibrium")
    shown = plots.sweep(two).axes[0].collections[0].get_array()
    assert shown.shape == (2, 2)


@pytest.mark.parametrize("n", [3, 9, 10, 12, 25, 60])
def test_ticks_are_at_values_of_the_sweep_with_one_step(n: int) -> None:
    buffers = 5.0 * np.arange(1, n + 1)
    data = vm.sweep(SWEPT, {"link.buffer": buffers}, "minicycle")
    ticks = plots.sweep(data).axes[0].get_xticks()
    assert set(ticks) <= set(buffers)
    assert len(set(np.diff(ticks))) == 1
    assert 3 <= len(ticks) <= 9
    data = vm.sweep(SWEPT, {"link.buffer": buffers, "flow.rtt": [0.06, 0.08]}, "minicycle")
    ax = plots.sweep(data).axes[0]
    assert len(set(np.diff(ax.get_xticks()))) == 1
    shown = [float(tick.get_text()) for tick in ax.get_xticklabels()]
    assert shown == ax.get_xticks().tolist()


@pytest.mark.parametrize(
    ("alphas", "edges", "scale"),
    [
        ([1, 2, 3, 4, 6, 8], [0.5, 1.5, 2.5, 3.5, 5, 7, 9], "linear"),
        ([1, 4, 16], [0.5, 2, 8, 32], "log"),
        ([16, 4, 1], [32, 8, 2, 0.5], "log"),
        ([3, 1, 2], [-0.5, 0.5, 1.5, 2.5], "linear"),  # in no order
        ([3], [-0.5, 0.5], "linear"),
        ([1, 1.01, 2, 9], [-0.5, 0.5, 1.5, 2.5, 3.5], "linear"),  # the first would be too thin
    ],
)
def test_cells_of_a_map_lie_at_the_values(
    alphas: list[float], edges: list[float], scale: str
) -> None:
    over = {"link.buffer": [10, 20, 30], "flow.vegas.alpha": alphas}
    ax = plots.sweep(vm.sweep(SWEPT, over, "minicycle")).axes[0]
    (mesh,) = (each for each in ax.collections if isinstance(each, QuadMesh))
    np.testing.assert_allclose(mesh.get_coordinates()[:, 0, 1], edges)
    np.testing.assert_allclose(mesh.get_coordinates()[0, :, 0], [5, 15, 25, 35])
    assert ax.get_yscale() == scale
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [str(a) for a in alphas]
    assert ax.get_ylabel() == "flow.vegas.alpha = beta (pkt)"


def test_a_map_says_that_beta_moves_only_if_it_does() -> None:
    both = {"flow.vegas.alpha": [1, 2], "flow.vegas.beta": [3, 4]}
    ax = plots.sweep(vm.sweep(SWEPT, both, "minicycle")).axes[0]
    assert ax.get_xlabel() == "flow.vegas.alpha (pkt)"
    apart = SWEPT.replace({"flow.vegas.beta": 5})
    data = vm.sweep(apart, {"flow.vegas.alpha": [1, 2]}, "minicycle")
    assert "long_name" not in data["flow.vegas.alpha"].attrs


def test_what_a_picture_of_a_sweep_cannot_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(vm.FieldError, match=r"data: .* dataset that vegasmodel.sweep returns"):
        plots.sweep(SWEPT)
    drawn = vm.sweep(SWEPT, ["link.buffer=5..9"], "minicycle", draw=2)
    with pytest.raises(vm.FieldError, match="'point' is not allowed; a grid over one or two"):
        plots.sweep(drawn)
    file, out = tmp_path / "s.toml", tmp_path / "p.zarr"
    file.write_text(SWEPT.to_toml())
    line = ["sweep", str(file), "--model", "minicycle", "--out", str(out)]
    for field in ("link.buffer=5,9", "flow.rtt=40ms,50ms", "link.delay=1ms,2ms"):
        line += ["--over", field]
    assert run([*line, "--plot", str(tmp_path / "p.png")]) == 2
    assert "--plot: " in capsys.readouterr().err
    assert not out.exists()
    assert run([*line[:-2], "--plot", str(tmp_path / "p.png")]) == 0
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_answers_are_drawn_as_the_functions_that_ask_return_them() -> None:
    s = scenario({**VEGAS, "name": "late", "start": "9 s"}, {**VEGAS, "name": "early"})
    here = Prediction("fluid", s, np.array([700.0, 380.0]))
    there = Prediction("ns2", s, np.array([600.0, 480.0]))
    beside = vm.Comparison(s, there, (here,))
    for given in (here, [here], Predictions([here]), [Predictions([here])]):
        assert lines(plots.rate_by_arrival(given).axes[0])["fluid"].tolist() == [[1, 380], [2, 700]]
        assert len(plots.throughput_bars(given).axes[0].containers) == 1
    for given in (beside, [beside]):
        drawn = lines(plots.rate_by_arrival(given).axes[0])
        assert drawn["ns-2"].tolist() == [[1, 480], [2, 600]]
        (bars,) = (c for c in plots.rate_by_arrival(given).axes[0].containers)
        assert bars.get_label() == "ns-2"  # points, not a line
        assert len(plots.throughput_bars(given).axes[0].containers) == 2
        assert len(plots.throughput_bars(s, given).axes[0].containers) == 2
    assert set(lines(plots.rate_by_arrival(here, beside).axes[0])) >= {"fluid", "ns-2"}
    with pytest.raises(vm.FieldError, match=r"scenario: .* vegasmodel.load"):
        plots.throughput_bars("mixed.toml", [here])
    with pytest.raises(vm.FieldError, match="results"):
        plots.throughput_bars(s)
