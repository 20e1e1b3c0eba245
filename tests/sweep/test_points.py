"""Each point of a sweep has what ``predict`` gives for its scenario, made by hand."""

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import vegasmodel as vm
from tests.sweep.scenes import file_of, mixed
from vegasmodel.command_line import sweep_rows
from vegasmodel.fields.errors import FieldError
from vegasmodel.study import fields, grid, points, store


def check_point(data: xr.Dataset, i: tuple[int, ...], made: vm.Scenario, model: str) -> None:
    """Compares all values of a point with ``predict`` for a scenario made by hand."""
    here = {name: data[name].values[i] for name in data.data_vars}
    try:
        answer = vm.predict(made, model)
    except FieldError:
        answer = None
    if answer is None or not answer.applicable:
        assert here["status"] != points.OK
        assert here.pop("reason")
        assert here.pop("broken") == ""
        assert all(np.isnan(value).all() for name, value in here.items() if name != "status")
        return
    assert here["status"] == points.OK
    assert here["reason"] == ""
    assert here["broken"].split() == sorted(each.name for each in answer.broken)
    rates = np.asarray(answer.throughput)
    assert here["throughput"] == pytest.approx(rates, rel=1e-12)
    assert here["throughput_mbps"] == pytest.approx(rates * 500 * 8 / 1e6, rel=1e-12)
    assert here["share"] == pytest.approx(rates / rates.sum(), rel=1e-12)
    assert here["group_share"] == pytest.approx(list(answer.shares.values()), rel=1e-12)
    pairs = list(data["pair"].values)
    assert here["ratio"][pairs.index("vegas/reno")] == pytest.approx(rates[0] / rates[1])
    assert here["jain"] == pytest.approx(answer.jain)
    for name in ("rtt_mean", "base_rtt", "loss_rate", "queue_mean"):
        wanted = getattr(answer, name)
        if wanted is not None:
            assert here[name] == pytest.approx(np.asarray(wanted), rel=1e-12, nan_ok=True)
    assert here["utilization"] == pytest.approx(np.asarray(answer.utilization), rel=1e-9)
    if answer.queue_mean is not None:
        delay = np.asarray(answer.queue_mean) / [link.capacity for link in made.links]
        assert here["queueing_delay"] == pytest.approx(delay)


def remade(base: vm.Scenario, **changes: Any) -> vm.Scenario | None:
    """The scenario with another text; None if its values contradict one another."""
    file = file_of(base.flows[0].variant)
    for old, new in changes.values():
        file = file.replace(old, new)
    try:
        return vm.Scenario.from_toml(file)
    except FieldError:
        return None


@pytest.mark.parametrize("variant", ["paper", "ns2", "linux"])
def test_the_minicycle_over_arrays_is_the_minicycle(variant: str) -> None:
    base = mixed(variant)
    rng = np.random.default_rng(7)
    buffers, alphas = np.round(rng.uniform(2, 90, 4), 2), [0.8, 3.0, 6.5]
    betas = [3.0, 7.0]
    over = {"link.buffer": buffers, "flow.vegas.alpha": alphas, "flow.vegas.beta": betas}
    data = vm.sweep(base, over, "minicycle")
    assert data["status"].dims == ("link.buffer", "flow.vegas.alpha", "flow.vegas.beta")
    for i, buffer in enumerate(buffers):
        for j, alpha in enumerate(alphas):
            for k, beta in enumerate(betas):
                made = remade(
                    base,
                    a=('buffer = "20 pkt"', f'buffer = "{buffer} pkt"'),
                    b=("alpha = 3", f"alpha = {alpha}"),
                    c=("beta = 3", f"beta = {beta}"),
                )
                if made is None:
                    assert data["status"].values[i, j, k] == points.NOT_ALLOWED
                    assert np.isnan(data["throughput"].values[i, j, k]).all()
                else:
                    check_point(data, (i, j, k), made, "minicycle")


@pytest.mark.parametrize("model", ["minicycle", "bands", "fluid"])
def test_a_point_without_an_answer_says_why(place: Path, model: str) -> None:
    over = {"flow.vegas.alpha": [2.0, 6.0], "flow.vegas.beta": [4.0]}
    for out in (None, place / "m.zarr"):
        status, reason = (vm.sweep(mixed(), over, model, out)[n] for n in ("status", "reason"))
        assert status.values[1, 0] == points.NOT_ALLOWED
        assert "beta: '4 pkt' is not allowed; at least alpha, 6 pkt" in str(reason.values[1, 0])
        why = "" if model != "bands" else "the equations do not have the law reno"
        assert str(reason.values[0, 0]) == why


@pytest.mark.parametrize("law", ["cubic", "grows-by-two"])
def test_the_minicycle_over_arrays_has_no_answer_for_a_law_without_closed_form(law: str) -> None:
    vm.register_law("grows-by-two", lambda f: 2.0)
    flows = [vm.Flow(name, "60 ms") for name in ("vegas", "reno")]
    other = vm.Flow(law, "60 ms", decrease=0.5)
    base = vm.Scenario([vm.Link("1080 pkt/s", buffer=20)], [*flows, other])
    says = f"no closed form has the law {law}; simulators do"
    assert vm.predict(base, "minicycle").reason == says
    data = vm.sweep(base, {"link.buffer": [20.0, 40.0]}, "minicycle")
    assert list(data["status"].values) == [points.NO_ANSWER] * 2
    assert set(data["reason"].values) == {says}


def test_a_scenario_with_two_laws_without_closed_form_names_both() -> None:
    vm.register_law("grows-by-three", lambda f: 3.0)
    flows = [vm.Flow(law, "60 ms") for law in ("vegas", "cubic", "grows-by-three")]
    both = vm.Scenario([vm.Link("1080 pkt/s", buffer=20)], flows)
    says = "no closed form has the laws cubic, grows-by-three; simulators do"
    assert vm.predict(both, "minicycle").reason == says


def test_link_and_rtt_too() -> None:
    over = {"link.capacity": [300.0, 2000.0], "flow.rtt": [0.0005, 0.02, 0.3]}
    data = vm.sweep(mixed("paper"), over, "minicycle")
    assert list(data["status"].values[:, 0]) == [points.NOT_ALLOWED] * 2, "shorter than its parts"
    for i, capacity in enumerate(over["link.capacity"]):
        for j, rtt in enumerate(over["flow.rtt"]):
            made = remade(
                mixed("paper"), a=("1080 pkt/s", f"{capacity} pkt/s"), b=("60 ms", f"{rtt} s")
            )
            assert (made is None) == (j == 0)
            if made is not None:
                check_point(data, (i, j), made, "minicycle")


@pytest.mark.parametrize(
    ("link", "flow", "least"),
    [
        ({}, {}, 0.001 * 1.01),  # an access link has 200 times the capacity
        ({"delay": "2 ms"}, {}, 0.001 * 1.01 + 0.004),
        ({}, {"access": "1080 pkt/s"}, 0.003),
    ],
)
def test_over_arrays_an_rtt_is_no_shorter_than_its_parts(
    link: dict[str, Any], flow: dict[str, Any], least: float
) -> None:
    """At 1080 packets/s, the link transmits a packet of 500 B and its ACK of 40 B in 1 ms."""
    base = vm.Scenario(
        [vm.Link("1080 pkt/s", buffer=20, **link)],
        [vm.Flow(law, "60 ms", **flow) for law in ("vegas", "reno")],
        packet_size=500,
    )
    # the study also makes scenarios of the first and the last allowed point, which would find it
    rtts = [1.0001 * least, 0.9999 * least, 1.0002 * least]
    data = vm.sweep(base, {"flow.rtt": rtts}, "minicycle")
    assert (data["status"].values == points.NOT_ALLOWED).tolist() == [False, True, False]


def test_arrays_take_a_link_given_in_bits_and_text() -> None:
    flows = [vm.Flow("vegas", "80 ms", alpha=3, beta=3), vm.Flow("reno", "80 ms")]
    asked = {"link.buffer": [10.0, 20.0]}
    same = [
        vm.sweep(vm.Scenario([vm.Link(rate, buffer=20, delay=delay)], flows), asked, "minicycle")
        for rate, delay in (("8.64 Mbit/s", "4 ms"), (1080.0, 0.004))
    ]
    assert (same[0]["status"] == points.OK).all()
    np.testing.assert_array_equal(same[0]["throughput"], same[1]["throughput"])


@pytest.mark.parametrize(("variant", "model"), [("paper", "fluid"), ("paper", "rate-delay")])
def test_other_models_answer_point_by_point(variant: str, model: str) -> None:
    data = vm.sweep(mixed(variant), ["link.buffer=5:25:10"], model)
    for i, buffer in enumerate((5, 15, 25)):
        made = remade(mixed(variant), a=('"20 pkt"', f'"{buffer} pkt"'))
        assert made is not None
        check_point(data, (i,), made, model)


def test_rounds_and_words_and_counts() -> None:
    base = mixed()
    data = vm.sweep(base, {"flow.reno.law": ["reno", "sack"], "link.buffer": [9.0, 25.0]}, "rounds")
    for i, law in enumerate(("reno", "sack")):
        for j, buffer in enumerate((9, 25)):
            made = remade(
                base,
                a=('law = "reno"', f'law = "{law}"\nname = "reno"'),
                b=('"20 pkt"', f'"{buffer} pkt"'),
            )
            assert made is not None
            check_point(data, (i, j), made, "rounds")
    assert list(data["flow.reno.law"].values) == ["reno", "sack"]
    crowd = vm.sweep(base, ["flow.vegas.count=1:3:1"], "minicycle")
    assert list(crowd["flow"].values) == ["vegas", "reno"], "a mean flow of each group"
    three = remade(base, a=('law = "vegas"', 'law = "vegas"\ncount = 3'))
    wanted = vm.predict(three, "minicycle").groups
    assert list(crowd["throughput"].values[2]) == pytest.approx(list(wanted.values()))


@pytest.mark.parametrize(
    "over",
    [
        {"flow.delayed_ack": [True, False]},
        {"flow.delayed_ack": np.array([True, False])},
        {"flow.delayed_ack": ["true", "false"]},
        ["flow.delayed_ack=true,false"],
    ],
)
def test_a_field_that_is_true_or_false(over: Any) -> None:
    data = vm.sweep(mixed(), over, "fluid")
    assert data["flow.delayed_ack"].values.tolist() == [True, False]
    for i, delayed in enumerate((True, False)):
        check_point(data, (i,), mixed().replace({"flow.delayed_ack": delayed}), "fluid")
    vm.plots.sweep(data)


@pytest.mark.parametrize("model", ["minicycle", "fluid"])
def test_the_share_of_a_group_whose_count_varies_is_that_of_all_its_flows(model: str) -> None:
    data = vm.sweep(mixed(), {"flow.vegas.count": [1, 2, 4]}, model)
    assert data["share"].values.sum(axis=1) == pytest.approx([1.0] * 3)
    for i, count in enumerate((1, 2, 4)):
        answer = vm.predict(mixed().replace({"flow.vegas.count": count}), model)
        assert dict(zip(data["flow"].values, data["share"].values[i], strict=True)) == (
            pytest.approx(answer.shares)
        )
        np.testing.assert_array_equal(data["group_share"].values[i], data["share"].values[i])
        assert data["throughput"].values[i] == pytest.approx(list(answer.groups.values()))


def test_values_and_units() -> None:
    data = vm.sweep(mixed(), ["flow.rtt=20ms:200ms:20ms", "link.buffer=5,7.5,60"], "minicycle")
    assert list(data["flow.rtt"].values) == [
        0.02,
        0.04,
        0.06,
        0.08,
        0.1,
        0.12,
        0.14,
        0.16,
        0.18,
        0.2,
    ]
    assert list(data["link.buffer"].values) == [5.0, 7.5, 60.0]
    assert data["flow.rtt"].attrs["units"] == "s"
    assert data["link.buffer"].attrs["units"] == "pkt"
    assert data["throughput"].attrs["units"] == "packets/s"
    assert data["throughput_mbps"].attrs["units"] == "Mbit/s"
    assert data.attrs["fingerprint"] == mixed().fingerprint()
    assert data.attrs["version"] == vm.__version__


def test_a_random_design_is_the_same_again() -> None:
    over = ["link.buffer=5..60", "flow.vegas.count=1..4"]
    one, same, other = (
        vm.sweep(mixed(), over, "minicycle", draw=20, seed=seed) for seed in (1, 1, 2)
    )
    xr.testing.assert_identical(one, same)
    assert not np.array_equal(one["link.buffer"], other["link.buffer"])
    assert one["status"].dims == ("point",)
    assert ((one["link.buffer"] >= 5) & (one["link.buffer"] <= 60)).all()
    assert set(one["flow.vegas.count"].values) == {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("over", "more", "says"),
    [
        ("link.bufer=5:60:5", {}, "did you mean 'link.buffer'"),
        ("link.buffer", {}, "START:STOP:STEP"),
        ("link.buffer=60:5:5", {}, "START at most STOP"),
        ("link.buffer=5:60:0", {}, "more than 0"),
        ("link.buffer=5:inf:1", {}, "START:STOP:STEP"),
        ("link.buffer=5:60", {}, "START:STOP:STEP"),
        ("link.buffer=5,5", {}, "each value once"),
        ("link.buffer=-1,5", {}, "at least 0"),
        ("flow.rtt=20:60:5", {}, "a unit is needed"),
        ("flow.vegas.count=1:9:0", {}, "from 1 to"),
        ("flow.vegas.law=vegas,rino", {}, "did you mean 'reno'"),
        ("flow.vegas.arrivals=2", {}, '"once"'),
        ("link.buffer=5..60", {}, r"give --draw \(in Python draw\), the number of random points"),
        ("link.buffer=5:60", {}, r"only with --draw \(in Python draw\), a range LOW\.\.HIGH"),
        ("link.buffer=5:60:5", {"draw": 9}, r"because --draw \(in Python draw\) asks for random"),
        ("link.buffer=1:9999999:0.0001", {}, "at most 10000000 values"),
        # the number of steps is above the greatest float, 1.8e308
        ("link.buffer=0:1e300:1e-9", {}, "at most 10000000 values"),
        ("link.buffer=5:60:5", {"model": "minicycel"}, "did you mean 'minicycle'"),
        ("link.buffer=5:60:5", {"engine": "dusk"}, "did you mean 'dask'"),
        ("link.buffer=5:60:5", {"scheduler": "tcp://x"}, "only with the engine dask"),
    ],
)
def test_bad_questions(over: str, more: dict[str, Any], says: str) -> None:
    with pytest.raises(FieldError, match=says):
        vm.sweep(mixed(), [over], **{"model": "minicycle", **more})


def test_fields_of_several_parts() -> None:
    base = vm.Scenario.from_toml(
        """
        [[link]]
        name = "a.b"
        capacity = "250 pkt/s"
        queue = { discipline = "rd", k = 2.0 }
        [[link]]
        name = "second"
        capacity = "300 pkt/s"
        [[flow]]
        name = "v"
        law = "vegas"
        rtt = "40 ms"
        [[flow]]
        law = "reno"
        rtt = { uniform = ["20 ms", "30 ms"] }
        """
    )
    names = fields.known(base)
    assert len(set(names)) == len(names)
    changed = fields.put(
        base,
        {
            fields.find(base, "link.a.b.queue.k"): 3.0,
            fields.find(base, "link.second.buffer"): 9.0,
            fields.find(base, "flow.v.alpha"): 2.0,
            fields.find(base, "flow.rtt"): 0.05,
            fields.find(base, "run.seed"): 5,
        },
    )
    assert changed.links[0].queue.k == 3.0
    assert changed.links[1].buffer == 9.0
    assert changed.flows[0].alpha == 2.0
    assert [member.rtt for member in changed.members] == [0.05, 0.05]
    assert changed.run.seed == 5
    with pytest.raises(FieldError, match="field"):
        fields.find(base, "link.queue.k")  # the two queues differ


def test_a_buffer_in_bandwidth_delay_products_follows_the_rtt() -> None:
    """The buffer does so in the file and along an axis."""
    text = file_of("paper").replace('"20 pkt"', '"0.5 BDP"')
    base = vm.Scenario.from_toml(text)
    data = vm.sweep(base, ["flow.rtt=40ms,60ms,80ms"], "minicycle")
    for i, rtt in enumerate((40, 60, 80)):
        made = vm.Scenario.from_toml(text.replace("60 ms", f"{rtt} ms"))
        assert made.links[0].buffer == pytest.approx(1080 * rtt * 0.5e-3)
        check_point(data, (i,), made, "minicycle")
    along = vm.sweep(mixed(), ["link.buffer=0.25 BDP,50 ms"], "minicycle")
    assert list(along["link.buffer"].values) == pytest.approx([0.25 * 1080 * 0.06, 54.0])


@pytest.mark.parametrize(
    ("values", "other", "refused"),
    [
        ("0.25 BDP:1 BDP:0.25 BDP", "flow.rtt=20ms:80ms:20ms", "'0.25 BDP' changes with flow.rtt"),
        ("20pkt,1 BDP", "flow.reno.rtt=20ms,30ms", "'1 BDP' changes with flow.reno.rtt"),
        ("10 ms,50 ms", "link.capacity=500pkt/s,1000pkt/s", "'10 ms' changes with link.capacity"),
        ("20 kB", "packet_size=500B,1000B", "'20 kB' changes with packet_size"),
        ("10 ms,50 ms", "flow.rtt=20ms,80ms", ""),
        ("1 BDP", "flow.vegas.beta=2,3", ""),  # beta 2 is below alpha
        ("5,20 pkt", "link.capacity=500pkt/s,1000pkt/s", ""),
    ],
)
def test_values_that_another_field_changes_are_refused(
    values: str, other: str, refused: str
) -> None:
    """An axis has one number for all points, but a BDP is another one for each RTT."""
    over = [f"link.buffer={values}", other]
    for both in (over, over[::-1]):
        with pytest.raises(FieldError, match=refused) if refused else nullcontext():
            vm.sweep(mixed(), both, "minicycle")
    if refused:
        name, _, texts = other.partition("=")
        lists = {"link.buffer": values.split(":")[0].split(","), name: texts}
        with pytest.raises(FieldError, match=f"{refused}, which varies, too"):
            vm.sweep(mixed(), lists, "minicycle")


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("link.capacity", [400.0, 2500.0]),  # beside access links of 1500 pkt/s
        ("flow.vegas.decrease", [0.5, 0.9]),
        ("flow.rtt", [0.01, 0.3]),
    ],
)
def test_over_arrays_the_same_assumptions_do_not_hold(key: str, values: list[float]) -> None:
    flows = [
        vm.Flow("vegas", 0.06, alpha=2, beta=3, access=1500.0, start=5.0, variant="ns2"),
        vm.Flow("newreno", 0.06, name="reno", count=2, max_window=30.0),
    ]
    base = vm.Scenario([vm.Link(1000.0, buffer=20)], flows, run=vm.Run(duration=200.0, warmup=60.0))
    over = {key: values, "link.buffer": [4.0, 20.0, 60.0]}
    data = vm.sweep(base, over, "minicycle")
    assert len(set(data["broken"].values.flat)) > 1
    for i in np.ndindex(2, 3):
        made = base.replace({key: values[i[0]], "link.buffer": over["link.buffer"][i[1]]})
        names = sorted(each.name for each in vm.predict(made, "minicycle").broken)
        assert data["broken"].values[i] == " ".join(names)


@pytest.mark.parametrize("model", ["rounds", "fluid"])
def test_points_at_which_no_flow_sends_after_the_warm_up_have_no_answer(model: str) -> None:
    flows = [vm.Flow(law, "80 ms", name=law, stop="5 s") for law in ("vegas", "reno")]
    scenario = vm.Scenario([vm.Link(300.0, buffer=20)], flows, run=vm.Run("40 s", "20 s"))
    swept = vm.sweep(scenario, {"flow.reno.stop": [5.0, 30.0]}, model)
    assert swept["status"].values.tolist() == [1, 0]  # no answer, done
    np.testing.assert_array_equal(np.isnan(swept["throughput"].values), [[True] * 2, [True, False]])


def test_the_error_of_a_share_counts_that_one_gets_what_the_other_loses() -> None:
    """Two flows: their shares add up to 1, so their standard errors are one; the jackknife's."""
    case = mixed().replace({"run.runs": 3, "flow.send_jitter": "1 ms"})
    data = vm.sweep(case, {"link.buffer": [10, 20]}, "rounds")
    error = data["share_se"].values
    np.testing.assert_allclose(error[:, 0], error[:, 1], rtol=1e-9)
    for k, buffer in enumerate((10, 20)):
        p = vm.predict(case.replace({"link.buffer": buffer}), "rounds")
        runs = np.asarray(p.extra["throughput_runs"])
        left = [np.delete(runs, i, axis=0).sum(axis=0) for i in range(3)]
        shares = [float(rates[0] / rates.sum()) for rates in left]
        assert error[k, 0] == pytest.approx(np.sqrt(4 / 3) * np.std(shares, ddof=1), rel=1e-6)
    assert np.isnan(vm.sweep(mixed(), {"link.buffer": [10]}, "minicycle")["share_se"]).all()


def test_the_error_of_a_groups_share_is_that_of_the_sum_over_its_flows() -> None:
    """Two groups: their shares add up to 1, so their standard errors are one; the jackknife's."""
    case = mixed().replace({"run.runs": 3, "flow.send_jitter": "1 ms", "flow.reno.count": 2})
    data = vm.sweep(case, {"link.buffer": [10]}, "rounds")
    assert data["group"].values.tolist() == ["vegas", "reno"]
    answer = vm.predict(case.replace({"link.buffer": 10}), "rounds")
    assert data["group_share"].values[0] == pytest.approx(list(answer.shares.values()))
    runs = np.asarray(answer.extra["throughput_runs"])
    left = [np.delete(runs, i, axis=0).sum(axis=0) for i in range(3)]
    shares = [float(rates[0] / rates.sum()) for rates in left]
    wanted = np.sqrt(4 / 3) * np.std(shares, ddof=1)
    np.testing.assert_allclose(data["group_share_se"].values, [[wanted, wanted]], rtol=1e-6)


def test_a_flow_that_sends_after_the_warm_up_in_some_runs_only_is_not_certain() -> None:
    """The flow's 700 packets outlast the warm-up in one run of five; else it delivers none."""
    flows = (
        vm.Flow("reno", 0.05, name="reno", variant="ns2"),
        vm.Flow("cubic", 0.15, name="cubic", size=700.0, variant="ns2"),
    )
    run = vm.Run(duration=30.0, warmup=9.0, start_jitter=4.0)
    case = vm.Scenario((vm.Link(700.0, buffer=35.0),), flows, run=run)
    delivers = np.isfinite(vm.predict(case, "rounds").extra["throughput_runs"][:, 1])
    assert delivers.any()
    assert not delivers.all()
    point = vm.sweep(case, {"link.buffer": [35.0]}, "rounds").isel({"link.buffer": 0})
    assert np.isnan(point["uncertainty"].item())
    assert "enough-runs" in point["broken"].item()
    # one run of five has it all: by the jackknife, such a mean has an error of its own size
    assert point["share_se"].values == pytest.approx(point["share"].values[1], rel=0.05)


def test_several_models_are_refused_with_what_to_do_instead() -> None:
    case = vm.Scenario([vm.Link("1000 pkt/s", buffer="20 pkt")], [vm.Flow("vegas", "60 ms")])
    models, over = ["equilibrium", "network"], {"flow.rtt": [0.05, 0.06]}
    with pytest.raises(vm.FieldError, match=r"xarray.concat\(\[sweep\(scenario, over, each\) for"):
        vm.sweep(case, over, models)
    joined = xr.concat([vm.sweep(case, over, each) for each in models], "model")
    assert dict(joined["share"].sizes) == {"model": 2, "flow.rtt": 2, "flow": 1}


def test_a_sweep_may_use_both_methods_of_fluid_in_a_new_process(tmp_path: Path) -> None:
    """Two threads that import Numba at the same time fail, if each begins with another module."""
    (tmp_path / "s.toml").write_text(file_of(), encoding="utf-8")
    code = (
        "import vegasmodel as vm; s = vm.load('s.toml')\n"
        "made = vm.sweep(s, {'flow.vegas.variant': ['paper', 'ns2']}, 'fluid')\n"
        "assert (made['throughput'].values > 0.0).all()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_whole_numbers_as_rtts_that_may_be_meant_in_ms_have_a_warning() -> None:
    said = "^rtt: 40 means 40 s; write '40 ms' or '40 s'$"
    with pytest.warns(UserWarning, match=said) as told:
        found = vm.sweep(mixed(), {"flow.rtt": [5, 40]}, "minicycle")
    assert [each.filename for each in told] == [__file__]
    assert found["flow.rtt"].values.tolist() == [5.0, 40.0]
    for silent in ([0.02, 0.04], ["20 s", "40 s"], [20.0, 40.0], [1, 2]):
        vm.sweep(mixed(), {"flow.rtt": silent}, "minicycle")
    vm.sweep(mixed(), {"link.buffer": [20, 40]}, "minicycle")


def test_a_group_has_the_mean_of_its_flows_that_have_a_throughput() -> None:
    """The first of three Reno flows has sent its 200 packets before the warm-up ends.

    The two others send after the warm-up, so the group's mean is over these two.
    """
    starts = vm.Staggered(0.0, 12.0)
    brief = vm.Flow("reno", "80 ms", "brief", 3, starts, size=200.0, send_jitter=0.0)
    base = vm.Scenario(
        [vm.Link("300 pkt/s", buffer=20)],
        [brief, vm.Flow("vegas", "80 ms", variant="ns2", send_jitter=0.0)],
        run=vm.Run(duration="40 s", warmup="10 s"),
    )
    rates = vm.predict(base, "rounds").throughput
    assert np.isnan(rates).tolist() == [True, False, False, False]
    assert rates[1] != rates[2]
    mean = (rates[1] + rates[2]) / 2.0
    by_flow = vm.sweep(base, {"link.buffer": [20]}, "rounds")
    [row] = sweep_rows.rows(by_flow, ["link.buffer"], base)
    assert row["groups"]["brief"]["throughput_pps"] == pytest.approx(mean)
    assert row["groups"]["brief"]["throughput_mbps"] == pytest.approx(mean * 8e-3)  # 1000 B
    by_group = vm.sweep(base, {"flow.brief.count": [1, 3]}, "rounds")
    assert np.isnan(by_group["throughput"].values[0, 0])
    assert by_group["throughput"].values[1].tolist() == pytest.approx([mean, rates[3]])
    [none, row] = sweep_rows.rows(by_group, ["flow.brief.count"], base)
    assert none["groups"]["brief"]["throughput_pps"] is None
    assert row["groups"]["brief"]["throughput_pps"] == pytest.approx(mean)


def test_random_values_of_two_fields_are_independent_and_fill_their_ranges() -> None:
    """1000 points: the correlation has the standard deviation 1/sqrt(1000) = 0.03."""
    ranges = {"link.buffer": "5..65", "flow.rtt": "20ms..80ms"}
    space, again, other = (grid.make(mixed(), ranges, 1000, seed) for seed in (1, 1, 2))
    (buffer, rtt), same, fresh = (
        [values for _, values in each.coordinates.values()] for each in (space, again, other)
    )
    assert abs(np.corrcoef(buffer, rtt)[0, 1]) < 0.15
    for values, low, high in ((buffer, 5.0, 65.0), (rtt, 0.02, 0.08)):
        assert low <= values.min() < low + 0.02 * (high - low)
        assert high >= values.max() > high - 0.02 * (high - low)
        assert values.mean() == pytest.approx((low + high) / 2.0, rel=0.1)
    np.testing.assert_array_equal((buffer, rtt), same)
    assert not np.isin(fresh[0], buffer).any()


def test_a_block_is_done_only_if_each_of_its_points_is() -> None:
    status = np.array([[points.OK, points.NO_ANSWER, -1], [points.OK, points.OK, points.OK]])
    kept = store.Store({"status": status}, Path("nowhere"))
    for columns, row, done in ((2, 0, True), (3, 0, False), (3, 1, True)):
        assert kept.done((slice(row, row + 1), slice(0, columns))) is done


def test_the_status_of_a_block_is_written_after_all_else() -> None:
    """If the process is killed before, the block counts as missing, and is computed again."""
    written = []

    class Array:
        ndim = 1

        def __init__(self, name: str) -> None:
            self.name = name

        def __setitem__(self, block: object, values: object) -> None:
            written.append(self.name)

    names = ("status", "throughput", "reason", "broken", "share")
    kept = store.Store({name: Array(name) for name in names}, Path("nowhere"))
    kept.write((slice(0, 3),), {name: np.zeros(3) for name in names})
    assert sorted(written) == sorted(names)
    assert written[-1] == "status"
