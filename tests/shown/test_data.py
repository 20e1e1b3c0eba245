"""What results hold as data: shares, runs, frames, datasets, plain data."""

import dataclasses
import json
import math
import re

import numpy as np
import pytest

import vegasmodel as vm
from tests.shown.scenes import C, P, S
from vegasmodel.results.assumption import Assumption
from vegasmodel.results.many_predictions import Predictions
from vegasmodel.results.steady_state import LimitCycle


def test_the_arrays_of_an_answer_are_read_only() -> None:
    """Ratios and shares are computed once, so they would not follow a change."""
    mine = np.array([100.0, 200.0, 300.0])
    given = dataclasses.replace(P, throughput=mine)
    with pytest.raises(ValueError, match="read-only"):
        given.throughput[0] = 7.0
    mine *= 2.0  # the caller's own array stays writeable


def test_a_share_is_of_bits_and_of_a_whole_group() -> None:
    """300 packets of 500 B of Vegas and 300 of 1000 B of Reno: a third and two thirds."""
    assert P.group_bps == {"vegas": 300 * 4000.0, "<b>": 300 * 8000.0}
    assert P.shares == pytest.approx({"vegas": 1 / 3, "<b>": 2 / 3})
    assert dataclasses.replace(P, throughput=np.zeros(3)).shares == {"vegas": None, "<b>": None}
    assert vm.Prediction.not_applicable("x", S, "no").shares == {}


def test_the_load_by_a_law_is_that_of_its_forward_flows_in_bytes() -> None:
    """The link carries 500 packets of 500 B per second. Half the data of Reno crosses it back."""
    flows = [
        vm.Flow("reno", "80 ms", packet_size="250 B"),
        vm.Flow("reno", "80 ms", "back", direction="reverse"),
        vm.Flow("vegas", "80 ms"),
    ]
    s = vm.Scenario([vm.Link(500.0)], flows, packet_size="500 B")
    laws = vm.Prediction("fluid", s, np.array([200.0, 100.0, 150.0])).laws
    assert {law: its["utilization"] for law, its in laws.items()} == {"reno": 0.2, "vegas": 0.3}
    assert laws["reno"]["share"] == pytest.approx(4 / 7)


def test_a_flow_without_throughput_has_no_share_but_the_others_have() -> None:
    """A flow that is not active between warm-up and end has no rate, and delivers nothing."""
    partly = dataclasses.replace(P, throughput=np.array([np.nan, np.nan, 300.0]))
    assert partly.shares == {"vegas": 0.0, "<b>": 1.0}
    assert partly.ratios == {"vegas/<b>": None, "<b>/vegas": None}
    assert list(partly.to_dataframe()["share"]) == [0.0, 0.0, 1.0]
    assert partly.utilization[0] == pytest.approx(0.6)  # 300 packets of 1000 B of 500 kB/s
    nobody = dataclasses.replace(P, throughput=np.full(3, np.nan))
    assert nobody.shares == {"vegas": None, "<b>": None}


@pytest.mark.parametrize(
    ("runs", "error"),
    [
        # Without run 1 the shares are 3/4 and 1/4, and without run 2 1/4 and 3/4.
        ([[1.0, 3.0], [3.0, 1.0]], np.sqrt(1 / 2 * 2 / 16)),
        # Without one of the runs the share of Vegas is 5/8, 3/8 or 4/8.
        ([[1.0, 3.0], [3.0, 1.0], [2.0, 2.0]], np.sqrt(2 / 3 * 2 / 64)),
    ],
)
def test_a_prediction_has_the_standard_errors_of_its_shares(
    runs: list[list[float]], error: float
) -> None:
    """By the jackknife, se^2 = (n - 1)/n * sum_k (T_k - mean(T))^2 for n runs."""
    pair = vm.Scenario(S.links, [vm.Flow("vegas", "80 ms"), vm.Flow("reno", "80 ms")])
    known = vm.Prediction("rounds", pair, np.mean(runs, axis=0), extra={"throughput_runs": runs})
    assert known.shares_se == pytest.approx({"vegas": error, "reno": error})
    assert dataclasses.replace(known, extra={}).shares_se == {}
    assert vm.Prediction.not_applicable("x", pair, "no").shares_se == {}


def test_errors_of_shares_count_bytes() -> None:
    """The packets of Reno have three times the size, so its share without one run is 9/10 or 1/2.

    By the jackknife, se^2 = (2 - 1)/2 * 2 * (1/5)^2.
    """
    flows = [vm.Flow("vegas", "80 ms"), vm.Flow("reno", "80 ms", packet_size="1500 B")]
    pair, runs = vm.Scenario(S.links, flows, packet_size="500 B"), [[1.0, 3.0], [3.0, 1.0]]
    known = vm.Prediction("rounds", pair, np.mean(runs, axis=0), extra={"throughput_runs": runs})
    assert known.shares_se == pytest.approx({"vegas": 0.2, "reno": 0.2})


def test_a_steady_state_as_plain_data_and_as_a_table() -> None:
    """Each number is another one, so that none can stand in the place of another."""
    found = LimitCycle(
        kind="periodic",
        period=2.0,
        overflows=3,
        throughput=np.array([100.0, 201.0]),
        spread=np.array([1.0, 2.0]),
        window=np.array([11.0, 22.0]),
        rtt_mean=np.array([0.05, 0.06]),
        base_rtt=np.array([0.03, math.nan]),
        queue_mean=7.0,
        losses=np.array([4.0, 5.0]),
        multipliers=np.array([0.5 + 0.25j]),
        residual=0.125,
        status="done",
        names=("a", "b"),
    )
    assert found.to_json() == {
        "kind": "periodic", "period_s": 2.0, "overflows": 3, "queue_mean_pkt": 7.0,
        "multipliers": [[0.5, 0.25]], "residual_pkt": 0.125, "status": "done", "hint": "",
        "flows": [
            {"name": "a", "throughput_pps": 100.0, "throughput_se_pps": 1.0, "window_pkt": 11.0,
             "rtt_mean_s": 0.05, "base_rtt_s": 0.03, "losses": 4.0},
            {"name": "b", "throughput_pps": 201.0, "throughput_se_pps": 2.0, "window_pkt": 22.0,
             "rtt_mean_s": 0.06, "base_rtt_s": None, "losses": 5.0},
        ],
    }  # fmt: skip
    cells = re.findall("<td[^>]*>([^<]*)</td>", found._repr_html_())
    assert cells[:4] == ["a", "100 ± 1", "11", "50 ms"]
    assert cells[4:] == ["b", "201 ± 2", "22", "60 ms"]


def test_a_range_of_one_throughput_is_not_shown() -> None:
    narrow = dataclasses.replace(P, throughput_range=np.repeat(P.throughput[:, None], 2, axis=1))
    assert repr(narrow) == "<Prediction rounds: vegas 150 pkt/s, <b> 300 pkt/s>"


def test_a_sweep_gives_shares_where_a_flow_is_never_active() -> None:
    short = S.replace({"flow.<b>.stop": "5 s", "run.duration": "60 s", "run.warmup": "20 s"})
    data = vm.sweep(short, {"link.buffer": [10, 20]}, "rounds")
    assert data["share"].sel(flow="<b>").values.tolist() == [0.0, 0.0]
    assert data["share"].sum("flow").values == pytest.approx(1.0)


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


def test_a_table_has_the_rate_while_a_flow_is_active_and_that_over_all_the_time() -> None:
    """Flow b is active for 4 of the 10 s after the warm-up, so it delivers 0.4 times its rate."""
    flows = (vm.Flow("vegas", 0.04, "a"), vm.Flow("vegas", 0.04, "b", start=2.0, stop=6.0))
    case = vm.Scenario((vm.Link(900.0),), flows, run=vm.Run(duration=12.0, warmup=2.0))
    frame = vm.Prediction("mine", case, np.array([500.0, 400.0])).to_dataframe()
    ratio = frame["delivered_bps"] / frame["throughput_bps"]
    assert list(ratio) == pytest.approx([1.0, 0.4])


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
    """One program can then read both."""
    grid = vm.sweep(S, {"link.buffer": [5.0, 6.0]}, "equilibrium")
    data = P.to_xarray()
    beside = set(data.data_vars) - {"acks", "retransmits", "throughput_low", "throughput_high"}
    assert beside <= set(grid.data_vars)
    for name in beside:
        assert data[name].attrs["units"] == grid[name].attrs["units"]


def test_flows_of_a_group_scatter_together() -> None:
    """Two flows with a fixed sum: each scatters, their mean does not."""
    runs = np.array([[100.0, 200.0, 290.0], [200.0, 100.0, 310.0]])
    error = runs.std(axis=0, ddof=1) / 2**0.5
    known = dataclasses.replace(P, throughput_se=error, extra={"throughput_runs": runs})
    assert known.groups_se == pytest.approx({"vegas": 0.0, "<b>": 10.0})
    assert dataclasses.replace(P, throughput_se=error).groups_se == pytest.approx({"<b>": 10.0})
    assert P.groups_se == {}


def test_a_stored_measurement_has_the_runs_of_its_scenario() -> None:
    two = vm.Scenario([vm.Link(90.0)], [vm.Flow("reno", 0.1)], run=vm.Run(runs=7))
    rates = np.array([8.0])
    assert vm.Prediction("ns2", two, rates, throughput_se=np.array([0.1])).runs == 7
    assert vm.Prediction("red", two, rates).runs == 1


def test_the_results_of_several_models_as_plain_data() -> None:
    data = json.loads(json.dumps(Predictions([P, P]).to_json(), allow_nan=False))
    assert data == [P.to_json(), P.to_json()]


def test_the_json_document_of_an_answer_by_hand() -> None:
    """Two links, packets of two sizes, and a value of each kind that is not known."""
    case = vm.Scenario(
        [vm.Link(500.0, "a", delay=0.001), vm.Link(400.0, "b", delay=0.001)],
        [
            vm.Flow("vegas", 0.1, "v"),
            vm.Flow("reno", 0.1, "r", path=("b",), packet_size=1500.0),
            vm.Flow("sack", 0.1, "back", direction="reverse"),
        ],
        packet_size=500.0,
        name="by hand",
    )
    nan = np.nan
    found = vm.Prediction(
        "rounds", case, np.array([100.0, 50.0, 25.0]),
        throughput_range=np.array([[90.0, 110.0], [45.0, 55.0], [20.0, 30.0]]),
        throughput_se=np.array([1.0, nan, 2.0]),
        base_rtt=np.array([0.1, nan, nan]), rtt_mean=np.array([0.11, 0.12, 0.13]),
        loss_rate=np.array([0.0, 0.01, 0.02]), acks=np.array([7.0, 8.0, 9.0]),
        retransmits=np.array([4.0, 5.0, nan]), queue_mean=np.array([3.0, 6.0]), seconds=0.5,
        assumptions=(Assumption("whole-stack", False, "why"), Assumption("enough-runs", None)),
    )  # fmt: skip
    names = (
        "name", "law", "throughput_pps", "throughput_bps", "throughput_range_pps",
        "throughput_se_pps", "base_rtt_s", "rtt_mean_s", "loss_rate", "acks", "retransmits",
    )  # fmt: skip
    flows = [
        ("v", "vegas", 100.0, 4e5, [90.0, 110.0], 1.0, 0.1, 0.11, 0.0, 7.0, 4.0),
        ("r", "reno", 50.0, 6e5, [45.0, 55.0], None, None, 0.12, 0.01, 8.0, 5.0),
        ("back", "sack", 25.0, 1e5, [20.0, 30.0], 2.0, None, 0.13, 0.02, 9.0, None),
    ]
    # forward: v on both links, and r on b, where each of its packets counts as 3
    links = [("a", 100.0 / 500.0, 3.0), ("b", (100.0 + 3.0 * 50.0) / 400.0, 6.0)]
    document = found.to_json()
    assert document.pop("ratios") == pytest.approx(
        {"v/r": 2.0, "r/v": 0.5, "v/back": 4.0, "back/v": 0.25, "r/back": 2.0, "back/r": 0.5}
    )
    shares = {"v": 4.0 / 11.0, "r": 6.0 / 11.0, "back": 1.0 / 11.0}  # of 1.1 Mbit/s
    assert document.pop("shares") == pytest.approx(shares)
    assert document.pop("shares_se") == {}  # the throughputs of the runs are not known
    of_laws = zip(("vegas", "reno", "sack"), (4e5, 6e5, 1e5), shares.values(), strict=True)
    assert document.pop("laws") == [
        {
            "name": law, "flows": 1, "delivered_bps": bps, "share": pytest.approx(share),
            "utilization": None,
        }
        for law, bps, share in of_laws
    ]  # fmt: skip
    assert document.pop("jain") == pytest.approx(175.0**2 / (3.0 * (100**2 + 50**2 + 25**2)))
    assert document == {
        "model": "rounds", "applicable": True, "reason": None, "seconds": 0.5,
        "flows": [dict(zip(names, flow, strict=True)) for flow in flows],
        "utilization": pytest.approx(links[0][1]), "queue_mean_pkt": 3.0,
        "links": [
            {"name": name, "utilization": pytest.approx(load), "queue_mean_pkt": queue}
            for name, load, queue in links
        ],
        "assumptions": [
            {"name": "whole-stack", "holds": False, "detail": "why"},
            {"name": "enough-runs", "holds": None, "detail": ""},
        ],
    }  # fmt: skip


@pytest.mark.parametrize(("part", "bits"), [(None, 4e5), (20.0, 8e5)])
def test_delivered_packets_count_over_the_time_from_warm_up_to_end(
    part: float | None, bits: float
) -> None:
    """4000 packets of 500 B in 40 of 60 s, or in the 20 s of them that a trace covers."""
    case = vm.Scenario(
        [vm.Link(900.0)], [vm.Flow("reno", 0.1)], packet_size=500.0, run=vm.Run(60.0, 20.0)
    )
    found = vm.Prediction(
        "trace", case, np.array([90.0]), delivered=np.array([4000.0]), delivered_time=part
    )
    assert found.delivered_bps == pytest.approx([bits])
    assert found.utilization == pytest.approx([bits / (8.0 * 500.0 * 900.0)])
