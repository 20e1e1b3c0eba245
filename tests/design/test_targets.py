"""Targets: shares and ratios of groups and laws; wrong ones are refused in one line."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import vegasmodel as vm
from tests.design.scenes import SHORT, mixed
from vegasmodel.fields.errors import FieldError
from vegasmodel.study import fields, models, points, targets
from vegasmodel.study.search import sides

FAR = """
[[flow]]
name = "far"
law = "vegas"
variant = "ns2"
rtt = "60 ms"
send_jitter = "0 s"
alpha = 3
beta = 3
"""


@pytest.mark.parametrize(
    ("solve", "target", "says"),
    [
        ("link.bufer", "jain=0.9", "did you mean 'link.buffer'"),
        ("flow.vega.alpha", "jain=0.9", "did you mean 'flow.vegas.alpha'"),
        ("link.queue.k", "jain=0.9", "link.buffer"),
        ("flow.vegas.law", "jain=0.9", "a number"),
        ("link.buffer", "share:vega=0.3", "did you mean 'vegas'"),
        ("link.buffer", "share:vegas+ren=0.3", "did you mean 'reno'"),
        ("link.buffer", "share:law:vega=0.3", "laws of this scenario: reno, vegas; did you mean"),
        ("link.buffer", "share:vegas=1.3", "at most 1"),
        ("link.buffer", "ratio:vegas=1", "ratio:a/b"),
        ("link.buffer", "jane=1", "one of ratio, share, jain, .*; did you mean 'jain'"),
        ("link.buffer", "delay=20", "a unit is needed"),
        ("link.buffer", "throughput:vega=1Mbit/s", "throughput:GROUP=VALUE.*did you mean 'vegas'"),
        ("link.buffer", "share:vegas>=5Mbit/s", "a share .* write throughput:vegas>=5Mbit/s$"),
        ("link.buffer", "throughput=1Mbit/s", "allowed; throughput:GROUP=VALUE with one"),
        ("link.buffer", "share=0.3", "allowed; share:GROUP=VALUE with one of the groups"),
        ("link.buffer", "throughput:vegas=1", "a unit is needed: a rate such as"),
        ("link.buffer", "throughput:vegas", "lacks =VALUE; write throughput:GROUP=5Mbit/s"),
        ("link.buffer", "jain", "'jain' lacks =VALUE; write jain=0.95"),
        ("link.buffer", "share:vegas", "'share:vegas' lacks =VALUE; write share:GROUP=0.3"),
        ("link.buffer", "share:vegas>0.3", "lacks =VALUE.*for a bound write >= or <="),
        ("link.buffer", "share:vega>=0.3", "did you mean 'vegas'"),
        ("link.buffer", "share:vega>=0.3", "share:GROUP>=VALUE with one of the groups"),
        ("link.buffer", "share:law:veg<=0.3", "share:law:LAW<=VALUE with one of the laws"),
        ("link.buffer", "ratio:vegas/ren>=1", "ratio:a/b>=VALUE with one of the groups"),
        ("link.buffer", "ratio:vegas>=1", "ratio:a/b>=VALUE with two groups"),
        ("link.buffer", "delay:far<=20ms", "delay<=VALUE, or delay:LINK<=VALUE with a link"),
        ("link.buffer", "share:vegas<>=0.3", "one of the groups of this scenario: vegas, reno"),
    ],
)
def test_bad_questions(solve: str, target: str, says: str) -> None:
    with pytest.raises(FieldError, match=says):
        vm.design(mixed(), solve, target, "minicycle")


@pytest.mark.parametrize("whom", ["law:vegas", "vegas+far", "law:vegas+far"])
def test_a_share_of_several_groups(whom: str) -> None:
    base = mixed(FAR)
    (one,) = vm.design(base, "link.buffer", "share:reno=0.6", "minicycle", verify=()).solutions
    found = vm.design(base, "link.buffer", f"share:{whom}=0.4", "minicycle", verify=())
    assert found.target == f"share:{whom}"
    assert not [note for note in found.notes if "not counted" in note]
    assert [each.value for each in found.solutions] == pytest.approx([one.value], rel=1e-5)


def test_a_ratio_of_several_groups() -> None:
    """The ratio divides the mean throughput of a flow on one side by that on the other."""
    base = mixed(FAR).replace({"flow.far.count": 3, "flow.far.rtt": "90 ms"})
    p = vm.predict(base.replace({"link.buffer": 25}), "fluid")
    rates = np.asarray(p.throughput)  # vegas, reno, three of far
    wanted = {
        "law:vegas/law:reno": rates[[0, 2, 3, 4]].mean() / rates[1],
        "vegas+far/reno": rates[[0, 2, 3, 4]].mean() / rates[1],
        "far/vegas+reno": rates[2:].mean() / rates[:2].mean(),
    }
    field = fields.find(base, "link.buffer")
    figures = models.answers(points.Points(base, (field,), (np.array([25.0]),)), "fluid")
    counts = points.Points(base, (fields.find(base, "flow.far.count"),), (np.array([1, 3]),))
    several = models.answers(counts, "fluid")
    alone = np.asarray(vm.predict(base.replace({"flow.far.count": 1}), "fluid").throughput)
    for whom, value in wanted.items():
        aim = targets.read(f"ratio:{whom}={float(value)!r}", base)
        assert aim.of(figures, base)[0] == pytest.approx(value, rel=1e-9)
        assert not aim.notes(base)
    aim = targets.read("ratio:law:vegas/reno=1", base)
    assert aim.of(several, base)[0] == pytest.approx(alone[[0, 2]].mean() / alone[1], rel=1e-9)


@pytest.mark.parametrize(
    ("whom", "said"),
    [
        ("law:vegas/vegas", "different groups on the two sides; vegas would be on both"),
        ("law:vega/reno", "laws of this scenario: reno, vegas; did you mean 'vegas'"),
        ("vegas/ren", "ratio:a/b=VALUE with one of the groups .* did you mean 'reno'"),
    ],
)
def test_a_ratio_of_wrong_groups(whom: str, said: str) -> None:
    with pytest.raises(FieldError, match=said):
        targets.read(f"ratio:{whom}=1", mixed(FAR))


def test_the_name_of_a_law_that_no_group_has_is_no_dead_end() -> None:
    base = mixed()
    named = dataclasses.replace(base.flows[0], name="backup")
    base = dataclasses.replace(base, flows=(named, base.flows[1]))
    said = "groups of this scenario: backup, reno; law:vegas means all flows with this law"
    for text in ("share:vegas=0.2", "ratio:vegas/reno=1"):
        with pytest.raises(FieldError, match=said):
            targets.read(text, base)


def test_a_group_that_has_the_name_of_a_law_is_noted() -> None:
    """The flow ``far`` is a Vegas flow, too: the user may have meant both."""
    for text, said in (
        ("share:vegas=0.2", "share:law:vegas has all"),
        ("ratio:vegas/reno=1", "; law:vegas has all"),
    ):
        found = vm.design(mixed(FAR), "link.buffer", text, "minicycle", verify=())
        (note,) = [each for each in found.notes if "not counted: far" in each]
        assert said in note
        alone = vm.design(mixed(), "link.buffer", text, "minicycle", verify=())
        assert not [each for each in alone.notes if "not counted" in each]


def test_a_target_of_a_link_is_of_the_link_that_it_names() -> None:
    """5 packets wait at 500 packets/s, and 2 at 400 packets/s."""
    links = [vm.Link(500.0, "a"), vm.Link(400.0, "b")]
    case = vm.Scenario(links, [vm.Flow("reno", "80 ms", "f")])
    answer = vm.Prediction(
        "rounds", case, np.array([300.0]),
        queue_mean=np.array([5.0, 2.0]), utilization_links=np.array([0.6, 0.75]),
    )  # fmt: skip
    figures = points.collected(points.Points(case, (), (np.zeros(1),)), [answer])
    for text, value in (
        ("delay=20ms", 0.01),
        ("delay:a=20ms", 0.01),
        ("delay:b=20ms", 0.005),
        ("utilization=0.5", 0.6),
        ("utilization:b=0.5", 0.75),
    ):
        assert targets.read(text, case).of(figures, case) == pytest.approx([value])


def test_a_target_is_met_within_a_millionth_of_it() -> None:
    """For a delay of 20 ms this is 20 ns."""
    case = mixed()
    delay = SimpleNamespace(
        target=targets.read("delay=20ms", case), differences=np.array([1.9e-8, -2.1e-8])
    )
    assert sides.exact(delay).tolist() == [True, False]
    ratio = SimpleNamespace(
        target=targets.read("ratio:vegas/reno=4", case), differences=np.array([-3.9e-6, 4.1e-6])
    )
    assert sides.exact(ratio).tolist() == [True, False]


@pytest.mark.parametrize("model", ["minicycle", "rounds"])
def test_a_throughput_is_of_all_flows_of_the_group(model: str) -> None:
    """Reno is active for half of the time from warm-up to end, and its packets have 250 bytes."""
    more = {"flow.reno.stop": "40 s", "flow.reno.packet_size": "250 B"}
    base = mixed(SHORT)
    base = base.replace(more) if model == "rounds" else base
    p = vm.predict(base, model)
    rates = np.asarray(p.throughput)
    halved, size = (0.5, 250) if model == "rounds" else (1.0, 500)
    wanted = {
        "reno": rates[1] * size * 8 * halved / 1e6,
        "law:vegas+reno": (rates[0] * 500 + rates[1] * size * halved) * 8 / 1e6,
    }
    field = fields.find(base, "link.buffer")
    asked = points.Points(base, (field,), (np.array([field.of(base)]),))
    figures = models.answers(asked, model)
    for whom, value in wanted.items():
        aim = targets.read(f"throughput:{whom}>={float(value)!r} Mbit/s", base)
        assert (aim.value, aim.unit) == (pytest.approx(value, rel=1e-12), "Mbit/s")
        assert aim.of(figures, base)[0] == pytest.approx(value, rel=1e-9)
    in_packets = targets.read("throughput:reno=100pkt/s", base)  # of 500 bytes
    assert in_packets.value == pytest.approx(0.4, rel=1e-12)


def test_a_throughput_is_met_where_it_was_asked_for() -> None:
    """Half of the link of 1080 packets of 500 bytes per second, which is 2.16 Mbit/s."""
    found = vm.design(
        mixed(), "link.buffer", "throughput:vegas=2.16 Mbit/s", "minicycle", verify=()
    )
    assert found.asked == "throughput:vegas = 2.16 Mbit/s"
    assert found.to_json()["target_unit"] == "Mbit/s"
    for each in found.solutions:
        rates = np.asarray(vm.predict(each.scenario, "minicycle").throughput)
        assert rates[0] == pytest.approx(540.0, rel=1e-5)
    assert found.solutions


def test_a_wrong_name_among_many_groups_says_how_many_names_are_left_out() -> None:
    """Eight of twenty names were shown, as if there were no others."""
    base = mixed()
    flows = [dataclasses.replace(base.flows[1], name=f"f{i}") for i in range(20)]
    base = dataclasses.replace(base, flows=tuple(flows))
    said = r"of this scenario: f0, f1, f2, f3, f4, f5, f6, f7 and 12 more"
    for text in ("share:nobody=0.2", "ratio:nobody=1", "ratio:nobody/f0=1"):
        with pytest.raises(FieldError, match=said):
            targets.read(text, base)
