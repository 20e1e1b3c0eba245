"""Tables and JSON documents name the keys of a scenario that have no effect."""

import json
from pathlib import Path

import numpy as np
import pytest

from vegasmodel.command_line.commands import run
from vegasmodel.comparison import Comparison
from vegasmodel.laws import register_law
from vegasmodel.report import tables
from vegasmodel.report.notes import on_keys, without_effect
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import DropTail, Flow, Link, RateDelay, Red, Scenario


def scenario(link: Link | None = None, other: Flow | None = None) -> Scenario:
    link = link or Link(1080.0, buffer=20.0)
    return Scenario((link,), (Flow("vegas", 0.06), other or Flow("reno", 0.06)))


def red(buffer: float, *, gentle: bool = False) -> Scenario:
    return scenario(Link(1080.0, buffer=buffer, queue=Red(5, 15, gentle=gentle)))


@pytest.mark.parametrize("buffer", [15.0, 15.5, 40.0, np.inf])
def test_nothing_is_said_if_the_buffer_holds_the_upper_threshold_of_red(buffer: float) -> None:
    assert without_effect(red(buffer)) == []
    assert without_effect(red(buffer, gentle=True)) == []


def test_a_buffer_below_the_upper_threshold_of_red_is_told() -> None:
    (said,) = without_effect(red(14.9))  # 14 packets
    assert said == (
        "bottleneck: the buffer holds only 14 packets, so RED's mean queue never reaches "
        "max_threshold, 15 pkt: the probability of a drop or mark stays below max_probability."
    )
    (said,) = without_effect(red(14.9, gentle=True))
    assert said.endswith("stays below max_probability, and gentle has no effect.")


@pytest.mark.parametrize("buffer", [1.0, 5.0])
def test_a_buffer_up_to_the_lower_threshold_makes_red_a_drop_tail_queue(buffer: float) -> None:
    (said,) = without_effect(red(buffer))
    assert said == (
        f"bottleneck: the buffer holds only {buffer:g} packets, so RED's mean queue never exceeds "
        "min_threshold, 5 pkt: RED drops or marks no packet, and packets are lost at the full "
        "buffer only."
    )


def test_thresholds_in_other_units_count_as_packets() -> None:
    queue = Red("5 ms", "15 ms")  # 5.4 and 16.2 packets of this link
    (said,) = without_effect(scenario(Link(1080.0, buffer=10.0, queue=queue)))
    assert "max_threshold, 16.2 pkt" in said


def test_keys_of_vegas_and_of_rate_delay_services_are_told_if_nothing_uses_them() -> None:
    given = Flow("reno", 0.06, alpha=3, beta=3, over_estimate=0.001, service="rate")
    assert without_effect(scenario(other=given)) == [
        "reno: alpha, beta have no effect; reno has no thresholds.",
        "reno: over_estimate has no effect; reno uses no baseRTT.",
        "reno: class has no effect; no link on its path has the queue discipline rd.",
    ]
    used = Flow("vegas", 0.06, "other", alpha=2, over_estimate=0.001, service="rate")
    link = Link(1080.0, buffer=20.0, queue=RateDelay())
    assert without_effect(scenario(link, used)) == []


def test_a_decrease_is_told_if_a_function_of_the_law_cuts_the_window() -> None:
    register_law("cuts", lambda f: 1.0, cut=lambda f: 0.8 * f.window)
    assert without_effect(scenario(other=Flow("cuts", 0.06, alpha=3, beta=3))) == []
    assert without_effect(scenario(other=Flow("cuts", 0.06, decrease=0.9))) == [
        "cuts: decrease has no effect; the function cut of cuts returns the window after a loss."
    ]
    register_law("multiplies", lambda f: 1.0)
    assert without_effect(scenario(other=Flow("multiplies", 0.06, decrease=0.9))) == []


def test_a_class_is_used_if_one_link_of_the_path_has_the_services() -> None:
    links = (Link(1080.0, "a", queue=DropTail()), Link(900.0, "b", queue=RateDelay()))
    flows = (
        Flow("vegas", 0.06, "both", service="rate"),
        Flow("vegas", 0.06, "one", service="rate", path=("a",)),
    )
    (said,) = without_effect(Scenario(links, flows))
    assert said.startswith("one: class has no effect")


def test_the_documents_of_all_commands_have_the_notes() -> None:
    case = red(10.0)
    answer = Prediction("red", case, np.array([500.0, 500.0]))
    (said,) = without_effect(case)
    document = tables.results_json(case, [answer])  # of predict, measure and ratio
    assert document["notes"] == [said]
    both = Comparison(case, answer, (answer,))
    assert both.to_json()["notes"] == [said]
    assert said in " ".join(both.table().split())
    plain = scenario()
    answer = Prediction("red", plain, np.array([500.0, 500.0]))
    assert "notes" not in tables.results_json(plain, [answer])
    assert "notes" not in Comparison(plain, answer, (answer,)).to_json()


def test_the_command_predict_prints_the_notes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "red.toml"
    path.write_text(red(10.0).to_toml(), encoding="utf-8")
    (said,) = without_effect(red(10.0))
    assert run(["predict", str(path), "--model", "red", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == [said]
    assert run(["predict", str(path), "--model", "red"]) == 0
    assert said in " ".join(capsys.readouterr().out.split())


def test_a_vegas_flow_with_the_default_variant_beside_others_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Vegas flows that a user added without ``variant`` ran the papers' Vegas without a word."""
    base = scenario().replace({"flow.vegas.variant": "ns2"})
    assert on_keys(base) == []  # a Reno flow runs the TCP of the other flow
    late = Flow("vegas", 0.06, "late")
    mixed = Scenario(base.links, (*base.flows, late))
    (said,) = on_keys(mixed)
    assert said.startswith("late has the variant paper, which is the default; other Vegas flows ")
    assert said.endswith(": vegas ns2.")
    path = tmp_path / "s.toml"
    path.write_text(mixed.to_toml(), encoding="utf-8")
    line = ["predict", str(path), "--model", "equilibrium"]
    assert run([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == [said]
    run(line)
    assert said in " ".join("".join(capsys.readouterr()).split())
    for variant in ("paper", "ns2"):
        same = [Flow("vegas", 0.06, name, variant=variant) for name in ("one", "two")]
        assert on_keys(Scenario(base.links, same)) == []
    other = [Flow("vegas", 0.06, name, variant=name) for name in ("ns2", "linux")]
    assert on_keys(Scenario(base.links, other)) == []  # both are given
