"""Derivatives of closed forms against symbolic ones; carried errors against random draws."""

import ast
import json
import re

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.command_line import predictions
from vegasmodel.command_line.commands import run
from vegasmodel.equilibrium import red
from vegasmodel.equilibrium import sensitivity as boutremans


def scenario(flows, **link):
    return vm.Scenario.from_dict({"link": [{"capacity": "1080 pkt/s"} | link], "flow": flows})


def vegas(name="vegas", **more):
    return {"law": "vegas", "name": name, "rtt": "80 ms", "alpha": 3, "beta": 3} | more


MIXED = scenario([vegas(), {"law": "reno", "rtt": "80 ms"}], buffer="20 pkt")
RED = {"discipline": "red", "min_threshold": 5.0, "max_threshold": 25.0}


def test_by_over_estimates_they_are_equations_7_and_8():
    x = [0.0, 0.004, 0.002]
    case = scenario([vegas(f"v{i}", over_estimate=f"{x[i]!r} s") for i in range(3)])
    found = vm.sensitivity(case, "equilibrium", [f"flow.v{i}.over_estimate" for i in range(3)])
    np.testing.assert_allclose(found.slopes, boutremans.cross(3.0, x, 1080.0), rtol=1e-6)
    assert all(found.smooth)


def test_one_field_may_be_given_without_a_list():
    case = scenario([vegas("v0"), vegas("v1")])
    alone = vm.sensitivity(case, "equilibrium", "link.capacity")
    assert alone.fields == ("link.capacity",)
    in_list = vm.sensitivity(case, "equilibrium", ["link.capacity"])
    np.testing.assert_array_equal(alone.slopes, in_list.slopes)


def test_of_red_they_are_those_of_the_implicit_function():
    flows = [vegas(alpha=2, beta=2, over_estimate="0 s"), {"law": "reno", "rtt": "60 ms"}]
    case = scenario(flows, queue=RED)
    found = vm.sensitivity(case, "red", ["flow.vegas.alpha"])
    curve, c = red.Curve(5.0, 25.0), 1080.0

    def rates(alpha, queue):  # on the rising piece
        p = float(red.effective(0.1 * (queue - 5.0) / 20.0))
        both = red.Flows([True, False], [0.08, 0.06], alpha)
        return red.demand(both, curve, queue, p, c)

    q, h = vm.predict(case, "red").queue_mean[0], 1e-5
    by_alpha = (rates(2.0 + h, q) - rates(2.0 - h, q)) / (2 * h)
    by_queue = (rates(2.0, q + h) - rates(2.0, q - h)) / (2 * h)
    # the sum stays c: dq/dalpha = - sum by alpha / sum by q
    whole = by_alpha - by_queue * by_alpha.sum() / by_queue.sum()
    expected = whole / rates(2.0, q)
    assert abs(expected).min() > 1e-3
    # alpha and beta move together, and the model takes their middle
    np.testing.assert_allclose(found.slopes[:, 0], expected, rtol=1e-5)


@pytest.mark.parametrize("model", ["minicycle", "network", "equilibrium"])
def test_packets_per_second_have_the_dimension_that_they_have(model):
    # windows depend on capacity times times only: c d/dc - T d/dT - x d/dx of ln(rate) is 1
    names = ["link.capacity", "flow.rtt"]
    if model == "minicycle":
        case = MIXED
    else:
        case = scenario([vegas(f"v{i}", over_estimate=f"{i} ms") for i in range(2)])
        names += ["flow.v0.over_estimate", "flow.v1.over_estimate"]
    e = vm.sensitivity(case, model, names).elasticities
    np.testing.assert_allclose(e[:, 0] - e[:, 1:].sum(axis=1), 1.0, rtol=1e-6)


def test_errors_are_carried_on_as_draws_have_them():
    errors = {"rtt": 0.03, "capacity": 0.05, "flow.vegas.alpha": 0.04}
    found = vm.uncertainty(MIXED, "minicycle", errors)
    assert found.smooth
    rng = np.random.default_rng(7)
    rtt, c, alpha = (1 + rng.normal(size=(4000, 3)) * list(errors.values())).T
    both = vm.equilibrium.minicycle.throughput(1080 * c, 0.08 * rtt, 20.0, alpha=3 * alpha)
    draws = both[0] / both[1]
    value, sd = found.ratios["vegas/reno"]
    assert value == pytest.approx(np.mean(draws), rel=0.01)
    assert sd == pytest.approx(np.std(draws), rel=0.05)  # their own error is 1 %
    assert found.parts["vegas/reno"].sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("buffer", "name", "error", "rough"),
    [
        (20, "link.buffer", 0.3, True),
        (3, "flow.vegas.alpha", 0.3, True),  # constant over one deviation, but not over two
        (40, "flow.vegas.alpha", 0.3, True),  # reno/vegas is not linear
        (40, "flow.vegas.alpha", 0.1, False),
    ],
)
def test_an_error_that_is_not_linear_over_its_range_is_called_rough(buffer, name, error, rough):
    case = MIXED.replace({"link.buffer": buffer})
    found = vm.uncertainty(case, "minicycle", {name: error})
    assert found.rough == ((name,) if rough else ())
    assert found.smooth is not rough
    value = {"link.buffer": 20.0, "flow.vegas.alpha": 3.0}[name]
    factors = 1 + error * np.random.default_rng(3).normal(size=300)
    draws = vm.batch([case.replace({name: value * x}) for x in factors if x > 0.2], "minicycle")
    off = [
        abs(sd / np.std([each.ratios[pair] for each in draws]) - 1)
        for pair, (_, sd) in found.ratios.items()
    ]
    assert max(off) > 0.2 if rough else max(off) < 0.12  # the draws' own error is 4 %


def test_an_error_to_one_side_is_rough_where_the_ratio_depends_on_it():
    """Below 0 no over-estimate is allowed, so the standard deviation is not that of the draws."""
    case = scenario([vegas(f"v{i}", over_estimate=f"{i} ms") for i in range(2)])
    name, sd = "flow.v0.over_estimate", 1e-4
    alone = vm.uncertainty(case, "equilibrium", {name: f"{sd} s"})
    assert alone.rough == (name,)
    errors = sd * np.random.default_rng(5).normal(size=2000)
    drawn = vm.batch([case.replace({name: x}) for x in errors if x >= 0.0], "equilibrium")
    off = np.std([each.ratios["v0/v1"] for each in drawn]) / alone.ratios["v0/v1"][1]
    assert off == pytest.approx(np.sqrt(1 - 2 / np.pi), rel=0.05)  # half of a normal distribution
    # the same error in both leaves the ratio as it is; half a deviation below nothing is cut off
    assert vm.uncertainty(case, "equilibrium", {"over_estimate": f"{sd} s"}).smooth
    assert vm.uncertainty(case, "equilibrium", {"flow.v1.over_estimate": "0.6 ms"}).smooth


def test_a_change_without_an_answer_is_rough():
    found = vm.uncertainty(MIXED, "minicycle", {"flow.vegas.rtt": "5 %"})
    assert found.rough == ("flow.vegas.rtt",)
    data = found.to_json()
    assert (data["smooth"], data["rough"], data["method"]) == (
        False,
        ["flow.vegas.rtt"],
        "first order",
    )


def test_the_command_shows_them(capsys):
    line = "ratio --capacity 1080pkt/s --rtt 80ms --buffer 20pkt --uncertain rtt=5% "
    line += "--uncertain capacity=54pkt/s vegas:alpha=3,beta=3 reno"
    assert run([*line.split(), "--json"]) == 0
    (said,) = json.loads(capsys.readouterr().out)["uncertainty"]
    known = vm.uncertainty(MIXED, "minicycle", {"rtt": 0.05, "capacity": "5 %"})
    one = said["ratios"]["vegas/reno"]
    assert one["sd"] == pytest.approx(known.ratios["vegas/reno"][1], rel=1e-6)
    assert run(line.split()) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "sd: to first order in the errors. It does not count the model's own error." in said
    assert run([*line.split(), "--uncertain", "link.buffer=6pkt"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "own error, and is rough: over two sd of link.buffer a ratio is not linear, or" in said


def test_a_value_at_its_highest_has_the_slope_from_below():
    """RED's largest probability is 1: above it nothing is allowed, below it both sides are."""
    name = "link.queue.max_probability"
    flows = [vegas(), {"law": "reno", "rtt": "80 ms", "count": 20}]
    case = scenario(flows, buffer="60 pkt", queue=RED, capacity="250 pkt/s")
    most, nearby = (vm.sensitivity(case.replace({name: p}), "red", [name]) for p in (1.0, 0.99))
    np.testing.assert_allclose(most.elasticities, nearby.elasticities, rtol=0.02)
    assert abs(most.slopes[0, 0]) > 0.01


def test_groups_with_different_values_keep_them():
    """All groups were given the value of the first, so the answers were of another scenario.

    Each Vegas flow keeps its alpha in the queue, so the throughputs are as 5 is to 3.
    """
    flows = [vegas("a", alpha=5, beta=5), vegas("b", rtt="60 ms")]
    case = scenario(flows)
    with pytest.raises(vm.FieldError, match=r"flow.alpha: \[5.0, 3.0\] .* such as flow.a.alpha"):
        vm.sensitivity(case, "equilibrium", "flow.alpha")
    alone = vm.sensitivity(case, "equilibrium", "flow.a.alpha")
    assert alone.elasticities[:, 0] == pytest.approx([3 / 8, -5 / 8], rel=1e-9)
    found = vm.uncertainty(case, "equilibrium", {"flow.alpha": "0.1 pkt"})
    # one error in both: the derivative of (5 + e)/(3 + e) is (3 - 5)/3^2
    assert found.ratios["a/b"] == pytest.approx((5 / 3, 0.1 * 2 / 9), rel=1e-9)
    assert found.smooth
    with pytest.raises(vm.FieldError, match="it means the same as rtt"):
        vm.uncertainty(case, "equilibrium", {"rtt": 0.1, "flow.rtt": 0.1})


def test_a_slope_that_jumps_exactly_at_the_value_is_not_smooth():
    """Differences to both sides give the mean of the two slopes, whatever the step."""
    flow = {"law": "newreno", "rtt": "180 ms", "decrease": 0.5}
    case = scenario([flow], loss=0.00125)
    name, h = "flow.newreno.decrease", 1e-5

    def log_rate(decrease):
        return np.log(vm.predict(case.replace({name: decrease}), "random-loss").throughput[0])

    for value, smooth in ((0.5, False), (0.437, True)):
        below = (log_rate(value) - log_rate(value - h)) / h
        above = (log_rate(value + h) - log_rate(value)) / h
        assert (abs(below - above) < 2e-3) == smooth
        found = vm.sensitivity(case.replace({name: value}), "random-loss", name)
        assert found.smooth == (smooth,)
        assert found.slopes[0, 0] == pytest.approx((below + above) / 2, rel=2e-3)


def test_where_a_flow_gets_nothing_no_slope_is_a_number():
    starved = MIXED.replace({"link.buffer": 2, "flow.vegas.decrease": 1.0})
    assert vm.predict(starved, model="minicycle").throughput[1] == 0.0
    found = vm.sensitivity(starved, "minicycle", ["link.capacity"])
    assert np.isnan(found.slopes[1]).all()
    assert found.smooth == (False,)
    ratio = vm.uncertainty(starved, "minicycle", {"capacity": "5 %"}).to_json()["ratios"]
    assert ratio["reno/vegas"] == {"value": 0.0, "sd": None, "parts": {"capacity": None}}
    assert found.reason == "the throughput of reno is not above 0"


def test_the_examples_of_the_documentation_give_numbers():
    """For Vegas and Reno on one link, by ``minicycle``."""
    fields = ast.literal_eval(re.search(r"\[.*?\]", vm.sensitivity.__doc__)[0])
    assert np.isfinite(vm.sensitivity(MIXED, "minicycle", fields).slopes).all()
    errors = ast.literal_eval(re.search(r"\{.*?\}", vm.uncertainty.__doc__)[0])
    found = vm.uncertainty(MIXED, "minicycle", errors)
    assert np.isfinite(list(found.ratios.values())).all()


def test_what_is_nan_has_a_reason(capsys):
    """NaN came without a word."""
    endless, one = MIXED.replace({"link.buffer": "inf"}), "flow.vegas.rtt"
    said = "minicycle has no answer: the buffer is infinite"
    assert vm.uncertainty(endless, "minicycle", {"rtt": "5 %"}).reason.startswith(said)
    assert vm.sensitivity(endless, "minicycle", [one]).reason.startswith(said)
    beside = vm.sensitivity(MIXED, "minicycle", ["link.buffer", one])
    assert np.isfinite(beside.slopes[:, 0]).all()
    assert np.isnan(beside.slopes[:, 1]).all()
    said = "if flow.vegas.rtt changes by -0.00016 s, minicycle has no answer: the"
    assert beside.reason.startswith(said)
    assert vm.sensitivity(MIXED, "minicycle", ["link.buffer"]).reason is None
    share = vm.uncertainty(MIXED, "minicycle", {one: "5 %"})
    assert share.reason.startswith("if flow.vegas.rtt changes by -0.2 %, ")
    assert share.to_json()["reason"] == share.reason
    line = "ratio --capacity 1080pkt/s --rtt 80ms --buffer 20pkt --uncertain flow.vegas.rtt=5% "
    assert run([*line.split(), "vegas:alpha=3,beta=3", "reno", "--model", "minicycle"]) == 0
    assert "No sd: if flow.vegas.rtt changes by" in " ".join(capsys.readouterr().out.split())


def test_bad_errors_are_refused_before_a_model_runs(monkeypatch, capsys, tmp_path):
    def never(*_, **__):
        pytest.fail("a model ran")

    monkeypatch.setattr(predictions, "_predictions", never)
    line = ["ratio", "vegas", "reno", "--buffer", "20pkt", "--capacity", "1080pkt/s"]
    for model, error in (("rounds", "rtt=5%"), ("minicycle", "rtt")):
        assert run([*line, "--model", model, "--uncertain", error]) == 2
        assert f"--uncertain: '{error}' is not allowed" in capsys.readouterr().err
    path = tmp_path / "mixed.toml"
    path.write_text(MIXED.to_toml())
    for command in (line, ["predict", str(path)]):
        for error, said in (
            ("rttt=5%", "--uncertain: 'rttt' is not allowed; rtt, over_estimate, capacity, or a"),
            ("buffer=5%", "did you mean 'link.buffer'?"),
            ("rtt=0%", "--uncertain, rtt: '0%' is not allowed; a share above 0"),
            ("link.loss=1%", "an amount in its unit: link.loss is 0, and a share of 0 is 0"),
            ("rtt=0.05", '1e+07 s; or a share of the value such as "5 %"\n'),
        ):
            asked = ["--model", "minicycle", "--model", "rounds", "--uncertain", error]
            assert run([*command, *asked]) == 2
            assert said in capsys.readouterr().err


def apart(**more):
    """Two Vegas flows with alpha 2 and 3 and known baseRTTs."""
    flows = [vegas(f"v{a}", alpha=a, beta=a, **({"over_estimate": "0 s"} | more)) for a in (2, 3)]
    return scenario(flows)


def test_an_error_without_effect_gives_a_deviation_of_0():
    """Both rates are alpha / (queueing delay + over-estimate): one error of both has no effect."""
    both = vm.uncertainty(apart(), "equilibrium", {"over_estimate": "2 ms"})
    assert [sd for _, sd in both.ratios.values()] == [0.0, 0.0]
    assert "±" not in repr(both)
    assert "; standard deviations of 0 to first order" in repr(both)
    one = vm.uncertainty(apart(), "equilibrium", {"flow.v2.over_estimate": "1 us"})
    assert all(sd > 0.0 for _, sd in one.ratios.values())
    assert "; ±: standard deviation to first order" in repr(one)


def test_a_word_is_refused_with_what_to_write_instead():
    asked = r"'measured' is not allowed; .*: set over_estimate to a time such as \"80 ms\""
    with pytest.raises(vm.FieldError, match=asked):
        vm.uncertainty(apart(over_estimate="measured"), "equilibrium", {"over_estimate": "2 ms"})
    with pytest.raises(vm.FieldError, match=r"'vegas' is not allowed; a finite number.* error$"):
        vm.sensitivity(apart(), "equilibrium", "flow.v2.law")


def test_each_column_that_the_option_prints_is_explained(capsys, tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(apart().to_toml())
    asked = ["--model", "equilibrium", "--uncertain", "rtt=5%"]
    assert run(["predict", str(path), *asked]) == 0
    (head,) = re.findall(r"^ equilibrium +(ratio.*)$", capsys.readouterr().out, re.MULTILINE)
    columns = re.split(r"  +", head.strip())
    assert columns == ["ratio", "sd", "sd, %"]
    for column in columns:
        assert run(["explain", column]) == 0


def test_what_has_no_error_is_refused():
    for errors, word in (
        ({"rtt": "0 %"}, "uncertain rtt"),
        ({"rtt": "often %"}, "uncertain rtt"),
        ({"rtt": "5 pkt"}, "rtt"),
        ({"over_estimate": 0.05}, "over_estimate"),
        ({"flow.vegas.law": 0.1}, "law"),
        ({"link.buffer": 3}, r'3 is not allowed; .*0.05 is 5 %.*an amount is .* "3 pkt"'),
        ({"flow.vegas.alpha": 1.5}, r'is a share of the value, at most 1 .* "1.5'),
        ({"flow.nobody.rtt": 0.1}, "nobody"),
        (
            {"flow.vegas.count": 0.1},
            "flow.vegas.count: 1 is not allowed; a number that need not be whole",
        ),
    ):
        with pytest.raises(vm.FieldError, match=word):
            vm.uncertainty(MIXED, "minicycle", errors)
    with pytest.raises(vm.FieldError, match="model"):
        vm.uncertainty(MIXED, "rounds", {"rtt": 0.1})


def test_alpha_and_beta_that_move_together_are_one_error():
    """The error of alpha moves beta, too, where they are equal; that of beta counted twice."""
    errors = {"flow.vegas.beta": "0.1 pkt", "flow.alpha": "0.1 pkt"}
    with pytest.raises(vm.FieldError, match=r"'flow.vegas.beta' moves with flow.alpha, .*; give"):
        vm.uncertainty(MIXED, "minicycle", errors)
    apart = MIXED.replace({"flow.vegas.beta": 4.0})
    both = vm.uncertainty(apart, "minicycle", errors)
    each = [vm.uncertainty(apart, "minicycle", {name: errors[name]}) for name in errors]
    sds = [one.ratios["vegas/reno"][1] for one in each]
    assert both.ratios["vegas/reno"][1] == pytest.approx(np.hypot(*sds), rel=1e-9)


def test_a_field_that_the_model_ignores_is_told():
    """The slope in this field is 0, as if nothing depended on the field."""
    name = "link.loss"
    assert "no-random-loss" not in [each.name for each in vm.predict(MIXED, "minicycle").broken]
    slopes = vm.sensitivity(MIXED, "minicycle", name)
    sds = vm.uncertainty(MIXED, "minicycle", {name: "0.01"})
    for found in (slopes, sds):
        assert "no-random-loss" in found.broken
    assert abs(slopes.slopes).max() < 1e-8  # rounding
    other = vm.sensitivity(MIXED, "minicycle", "link.capacity")
    assert "no-random-loss" not in other.broken


def test_slopes_as_plain_data():
    found = vm.sensitivity(MIXED, "minicycle", ["link.buffer", "flow.vegas.rtt"])
    data = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert data["fields"]["link.buffer"]["value"] == 20.0
    assert data["fields"]["link.buffer"]["slopes"] == {
        "vegas": found.slopes[0, 0], "reno": found.slopes[1, 0],
    }  # fmt: skip
    assert data["fields"]["flow.vegas.rtt"]["slopes"] == {"vegas": None, "reno": None}
    assert "rtt" in data["reason"]


def test_they_are_a_line_and_a_table_as_other_results_are():
    fields = ["link.buffer", "flow.vegas.rtt"]
    slopes = vm.sensitivity(MIXED, "minicycle", fields)
    errors = vm.uncertainty(MIXED, "minicycle", {"link.buffer": "30 %", "rtt": "1 %"})
    for found in (slopes, errors):
        line, text, page = repr(found), found.table(), found._repr_html_()
        assert "\n" not in line
        assert line.startswith(f"<{type(found).__name__} minicycle")
        assert "array" not in line
        assert page.startswith("<table>")
        assert "nan" not in line + text + page
    (title, head, first, _) = slopes.table().splitlines()
    assert slopes.reason in title
    assert head.split() == ["flow", *fields]
    assert first.split() == ["vegas", f"{slopes.slopes[0, 0]:.4g}", "-"]
    title, _, first, _ = errors.table().splitlines()
    assert "standard deviation to first order, rough in link.buffer, without the model" in title
    assert first.split()[:4] == ["vegas/reno", "0.3186", "±", "0.086"]
    assert [float(x) for x in re.findall(r"([\d.]+) %", first)][1] > 99.0
    assert "vegas/reno 0.3186 ± 0.086" in repr(errors)


def test_they_name_the_assumptions_that_do_not_hold(capsys):
    """A small ± stood alone where an assumption fails, and ns-2 is far from the model."""
    case = MIXED
    names = [each.name for each in vm.predict(case, "minicycle").broken]
    assert "synchronised-losses" in names
    fields = {"link.buffer": "1 %"}
    for found in (
        vm.uncertainty(case, "minicycle", fields),
        vm.sensitivity(case, "minicycle", list(fields)),
    ):
        assert found.broken == tuple(names)
        assert found.to_json()["broken"] == names
        for text in (repr(found), found.table().splitlines()[0]):
            assert f"; does not hold: {', '.join(names)}" in text
    assert "without the model's own error" in vm.uncertainty(case, "minicycle", fields).table()
    line = "ratio --capacity 1080pkt/s --rtt 80ms --buffer 20pkt --uncertain rtt=5% "
    assert run([*line.split(), "vegas:alpha=3,beta=3", "reno"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"own error. Does not hold: {', '.join(names)}." in said
    held = scenario([vegas("v0", over_estimate="0 s")])
    fields = {"flow.v0.over_estimate": "0.01 ms"}
    assert vm.uncertainty(held, "equilibrium", fields).broken == ()
