"""Scenario files: their meaning, and a one-line refusal of every bad one."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vegasmodel as vm
from tests.helpers import scenario
from vegasmodel.scenario import DropTail, Flow, Link, Pareto, Poisson, RateDelay, Red, Run, Scenario

WHOLE = """
name = "all"
packet_size = "500 B"
ack_size = "40 B"
[[link]]
name = "a"
capacity = "1080 pkt/s"
buffer = "10 kB"
delay = "2 ms"
queue = { discipline = "red", min_threshold = "5 pkt", max_threshold = "15 pkt", ecn = true }
loss = 0.01
drops = [ { flow = "web", packets = [100, 101] } ]
[[link]]
name = "b"
capacity = "4 Mbit/s"
queue = { discipline = "rd", k = 2.0, delay_buffer = "10 %" }
[[flow]]
law = "vegas"
count = 3
rtt = { uniform = ["60 ms", "300 ms"] }
start = { first = "1 s", every = "2 s" }
alpha = 2
beta = 4
variant = "linux"
over_estimate = "3 ms"
initial_window = "1 kB"
path = ["b"]
[[flow]]
name = "web"
law = "reno"
rtt = "100 ms"
size = { pareto = { mean = "30 kB", shape = 1.3 } }
arrivals = { poisson = "50 1/s" }
packet_size = "1500 B"
direction = "reverse"
access = "10 Mbit/s"
class = "delay"
delay_noise = "1 ms"
send_jitter = "0.9 ms"
[run]
duration = "60 s"
warmup = "5 s"
seed = 7
"""


def test_every_key_is_read() -> None:
    s = Scenario.from_toml(WHOLE)
    a, b = s.links
    assert (a.capacity, a.buffer, a.delay, a.loss) == (1080.0, 20.0, 0.002, 0.01)
    assert a.queue == Red(5.0, 15.0, ecn=True)
    assert a.drops[0].packets == (100, 101)
    assert b.capacity == 1000.0
    assert b.queue == RateDelay(2.0, 0.1)
    vegas, web = s.flows
    assert (vegas.alpha, vegas.beta, vegas.gamma, vegas.decrease) == (2.0, 4.0, 1.0, 0.5)
    assert vegas.over_estimate == pytest.approx(0.003)
    assert (vegas.initial_window, web.initial_window) == (2.0, None)
    assert web.size == Pareto(mean=20.0, shape=1.3)  # 30 kB in its own packets of 1500 B
    assert web.arrivals == Poisson(50.0)
    assert web.access == 2500.0  # 10 Mbit/s in the scenario's packets
    assert web.service == "delay"
    assert (vegas.send_jitter, web.send_jitter) == (None, pytest.approx(0.0009))
    assert [m.name for m in s.members] == ["vegas[0]", "vegas[1]", "vegas[2]", "web"]
    assert [m.start for m in s.members] == [1.0, 3.0, 5.0, 0.0]
    assert [link.name for link in s.path(web)] == ["b", "a"]


def test_drawn_rtts_are_those_of_the_contract() -> None:
    s = Scenario.from_toml(WHOLE)
    drawn = np.random.default_rng([7, 0]).uniform(0.06, 0.3, 3)
    assert [m.rtt for m in s.members[:3]] == list(drawn)
    two = [vm.Flow(law, vm.Uniform(0.06, 0.3), count=3) for law in ("vegas", "reno")]
    rtts = [m.rtt for m in vm.Scenario([vm.Link(100.0)], two, run=Run(seed=7)).members]
    assert rtts == [*drawn, *np.random.default_rng([7, 1]).uniform(0.06, 0.3, 3)]


@pytest.mark.parametrize(
    ("link", "flow", "run", "random"),
    [
        ({}, {}, {}, False),
        ({"loss": 0.01}, {}, {}, True),
        ({"queue": Red(5.0, 15.0)}, {}, {}, True),
        ({}, {"send_jitter": 1e-3}, {}, True),
        ({}, {"send_jitter": None}, {}, True),  # the default waits
        ({}, {"delay_noise": 1e-3}, {}, True),
        ({}, {}, {"start_jitter": 1.0}, True),
        ({"loss": 0.01}, {"size": 10.0, "arrivals": Poisson(5.0)}, {}, False),  # one run averages
        ({}, {"size": 10.0, "arrivals": Poisson(5.0)}, {"start_jitter": 1.0}, True),
    ],
)
def test_runs_differ_by_chance_for_one_reason_at_a_time(
    link: dict[str, object], flow: dict[str, object], run: dict[str, object], random: bool
) -> None:
    still = Flow("vegas", 0.1, send_jitter=0.0)
    other = Flow("reno", 0.1, **{"send_jitter": 0.0, **flow})
    case = Scenario([Link(1000.0, **link)], [still, other], run=Run(**run))
    assert case.by_chance is random
    idle = Link(100.0, "idle", loss=0.5)  # no flow crosses it
    flows = [dataclasses.replace(each, path=("bottleneck",)) for each in case.flows]
    assert Scenario([*case.links, idle], flows, run=case.run).by_chance is random


def test_a_start_at_the_end_of_the_run_is_named_as_the_start() -> None:
    flow = Flow("reno", 0.1, start=60.0)
    with pytest.raises(
        vm.FieldError, match=r"^flow 1, start: '60 s' is not allowed; less than 60 s"
    ):
        Scenario([Link(100.0)], [flow], run=Run(duration=60.0, warmup=20.0))
    late = Flow("reno", 0.1, start=59.9)
    assert Scenario([Link(100.0)], [late], run=Run(60.0, 20.0)).members[0].stop == 60.0


def test_a_bandwidth_delay_product_is_that_of_the_mean_rtt_of_the_links_flows() -> None:
    """1000 packets/s and a mean of 85 ms: one flow of 40 ms, three of 100 ms."""
    links = [vm.Link(1000.0, "a", "1 BDP"), vm.Link(500.0, "b", "2 BDP")]
    flows = [
        vm.Flow("vegas", 0.04, path=("a",)),
        vm.Flow("reno", 0.1, count=3, path=("a",)),
        vm.Flow("sack", 0.3, path=("b",)),
    ]
    found = vm.Scenario(links, flows).links
    assert [link.buffer for link in found] == pytest.approx([85.0, 2.0 * 150.0])


def test_defaults() -> None:
    s = scenario({"law": "vegas"}, {"law": "reno"})
    vegas, reno = s.flows
    assert (vegas.alpha, vegas.beta, vegas.gamma, vegas.decrease) == (1.0, 3.0, 1.0, 0.75)
    assert (reno.decrease, reno.service, vegas.service) == (0.5, "rate", "delay")
    assert s.links[0].queue == DropTail()
    assert s.links[0].buffer == math.inf
    assert s.links[0].delay == 0.001
    assert s.run == Run(600.0, 200.0, 1, None, 0.0, "papers")
    assert s.access_rate(vegas) == 200 * 1080


def test_transmission_is_that_of_tsang_figure_1() -> None:
    # tsang 3.1: access links of 10 Mbit/s, 6 ms of propagation, 13.211 ms in all
    s = Scenario(links=(Link(capacity=187.5),), flows=(Flow("vegas", 0.0132107, access=1250.0),))
    assert 0.006 + s.transmission(s.flows[0]) == pytest.approx(0.013211, abs=5e-7)


def test_a_default_delay_never_exceeds_a_small_rtt() -> None:
    s = Scenario(links=(Link(capacity=1e6),), flows=(Flow("vegas", 1e-3),))
    propagation = 1e-3 - s.transmission(s.flows[0])
    assert 0 < s.links[0].delay <= propagation / 2 * (1 + 1e-12)


def test_python_objects_are_checked_too() -> None:
    with pytest.raises(vm.FieldError, match=r"^rtt: -1.0 is not allowed"):
        Flow("vegas", -1.0)
    with pytest.raises(vm.FieldError, match="capacity"):
        Link(capacity=math.nan)
    with pytest.raises(vm.FieldError, match="law"):
        Flow("vegs", 0.1)


def test_fingerprint_ignores_only_the_name() -> None:
    base = scenario({"law": "vegas"})
    import dataclasses

    assert dataclasses.replace(base, name="other").fingerprint() == base.fingerprint()
    changed = dataclasses.replace(base, run=Run(seed=2))
    assert changed.fingerprint() != base.fingerprint()


def test_an_initial_window_counts_in_the_fingerprint_where_it_is_given() -> None:
    """Runs that were stored before this key existed are thus still found."""
    import hashlib
    import json

    plain, one, two = (
        scenario({"law": "reno", "send_jitter": "0 s", **({"initial_window": w} if w else {})})
        for w in (0, 1, 2)
    )
    before = dataclasses.asdict(plain)
    del before["name"], before["estimated_from"], before["guesses"]
    before["run"]["runs"] = 1
    for younger in ("initial_window", "match", "send_jitter"):
        del before["flows"][0][younger]
    text = json.dumps(before, sort_keys=True)
    assert plain.fingerprint() == hashlib.sha256(text.encode()).hexdigest()[:16]
    assert len({s.fingerprint() for s in (plain, one, two)}) == 3


def test_a_wait_counts_in_the_fingerprint_where_packets_wait() -> None:
    """Stored runs without waits are thus still found."""
    zero, one, two = (scenario({"law": "reno", "send_jitter": w}) for w in ("0 s", "1 ms", "2 ms"))
    assert len({s.fingerprint() for s in (zero, one, two)}) == 3


def test_senders_wait_by_default_for_a_packets_time_on_the_slowest_link_of_their_path() -> None:
    s = Scenario(
        links=(Link(1000.0, "a"), Link(400.0, "b"), Link(50.0, "c")),
        flows=(
            Flow("reno", 0.2, name="all"),
            Flow("reno", 0.2, name="large", packet_size=1500.0, path=("a", "b")),
            Flow("reno", 0.2, name="exact", send_jitter=0.0),
        ),
    )
    assert [s.jitter(group) for group in s.flows] == pytest.approx([1 / 50, 1.5 / 400, 0.0])
    stated = dataclasses.replace(
        s, flows=tuple(dataclasses.replace(g, send_jitter=s.jitter(g)) for g in s.flows)
    )
    assert stated.fingerprint() == s.fingerprint()


@pytest.mark.parametrize("bad", ["-1 ms", "1 pkt", "inf", 0.5, True, [], {}])
def test_a_wait_is_a_time(bad: object) -> None:
    with pytest.raises(vm.FieldError, match=r"send_jitter: .*"):
        scenario({"law": "vegas", "send_jitter": bad})


@pytest.mark.parametrize("bad", ["0 pkt", "2.5 pkt", "-1 pkt", "inf", "2 s", "1e7 pkt", True, []])
def test_an_initial_window_is_a_whole_number_of_packets(bad: object) -> None:
    with pytest.raises(vm.FieldError, match=r"initial_window: .*packets"):
        scenario({"law": "vegas", "initial_window": bad})


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.data())
def test_a_damaged_file_is_read_or_refused_in_one_line(data: st.DataObject) -> None:
    text = WHOLE
    for _ in range(data.draw(st.integers(1, 3))):
        i = data.draw(st.integers(0, len(text) - 1))
        j = data.draw(st.integers(i, min(len(text), i + 12)))
        text = text[:i] + data.draw(st.text(max_size=4)) + text[j:]
    try:
        Scenario.from_toml(text)
    except vm.FieldError as error:
        assert "\n" not in str(error)  # noqa: PT017 - both outcomes are right


def test_load(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(WHOLE)
    assert vm.load(path) == Scenario.from_toml(WHOLE)
    for bad, reason in (
        (tmp_path / "none.toml", "there is no such file"),
        (tmp_path, "a regular file"),
        (tmp_path / "a\0b", "not a usable path"),
    ):
        with pytest.raises(vm.FieldError, match=reason):
            vm.load(bad)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(vm.FieldError, match="UTF-8"):
        vm.load(path)


@pytest.mark.parametrize(
    ("low", "high"), [("10 kB", "30 kB"), ("10 ms", "30 ms"), ("0.25 BDP", "0.75 BDP")]
)
def test_thresholds_of_red_take_the_units_of_a_buffer(low: str, high: str) -> None:
    """By hand: 20 packets of 500 B are 10 kB, 10 ms at 2000 packets/s, and 1/4 of 40 ms."""
    queue = f'{{ discipline = "red", min_threshold = "{low}", max_threshold = "{high}" }}'
    head = 'packet_size = "500 B"\n[[link]]\ncapacity = "2000 pkt/s"\nbuffer = "100 pkt"\n'
    text = f'{head}queue = {queue}\n[[flow]]\nlaw = "reno"\nrtt = "RTT"\n'
    rtt, each = "40 ms", 20.0
    made = Scenario.from_toml(text.replace("RTT", rtt))
    red = made.links[0].queue
    assert (red.min_threshold, red.max_threshold) == (each, 3 * each)
    assert Scenario.from_toml(made.to_toml()) == made
    if "BDP" in low:  # computed again
        wider = made.replace({"flow.rtt": "80 ms"}).links[0].queue
        assert wider.min_threshold == 2 * each
    with pytest.raises(vm.FieldError, match=r"^link 1, queue\.max_threshold: .* more than min"):
        Scenario.from_toml(text.replace("RTT", rtt).replace(high, "1 ms"))


def test_a_list_of_rtts_gets_the_hint_to_write_two_tables() -> None:
    flow = {"law": "vegas", "count": 2, "rtt": ["40 ms", "60 ms"]}
    with pytest.raises(vm.FieldError, match=r"flow 1, rtt.*a table for each RTT.* uniform = "):
        vm.Scenario.from_dict({"link": [{"capacity": "100 pkt/s"}], "flow": [flow]})


@pytest.mark.parametrize("rtt", [40, 10, np.int64(80)])
def test_a_whole_number_as_rtt_that_may_be_meant_in_ms_has_a_warning(rtt: int) -> None:
    said = f"rtt: {rtt} means {rtt} s; write '{rtt} ms' or '{rtt} s'"
    with pytest.warns(UserWarning, match=f"^{said}$") as told:
        assert Flow("vegas", rtt).rtt == rtt
    assert [each.filename for each in told] == [__file__]
    with pytest.warns(UserWarning, match="write"):
        Flow(law="vegas", rtt=rtt)


@pytest.mark.parametrize("rtt", ["40 s", "40 ms", 40.0, 9, 1, 0.08])
def test_other_rtts_have_no_warning(rtt: float) -> None:
    """Tests take a warning as an error. A scenario converts "40 s" to the number 40.0."""
    s = Scenario((Link(1000.0),), (Flow("vegas", rtt),))
    assert Scenario.from_toml(s.replace({"link.buffer": "1 BDP"}).to_toml()).flows == s.flows


def test_two_pairs_of_groups_cannot_have_ratios_of_the_same_name() -> None:
    """The ratio a/b/c would be that of a/b and c, and that of a and b/c; only one was reported."""
    flows = [vm.Flow("reno", 0.1, name=name) for name in ("a/b", "c", "a", "b/c")]
    with pytest.raises(vm.FieldError, match=r"flow 4, name: 'b/c' .* have the ratio a/b/c$"):
        vm.Scenario([vm.Link(100.0)], flows)
    assert len(vm.Scenario([vm.Link(100.0)], flows[:3]).flows) == 3


def test_a_flow_is_long_lived_one_transfer_or_a_group_of_short_flows() -> None:
    short = Flow("reno", 0.1, size=9.0, arrivals=Poisson(2.0))
    for flow, lasts, ends in (
        (Flow("reno", 0.1), True, False),
        (Flow("reno", 0.1, size=9.0), False, True),
        (short, False, False),
    ):
        assert (flow.long_lived, flow.one_transfer) == (lasts, ends)


def test_a_flow_says_which_delay_it_reads_and_whether_it_measures_its_base_rtt() -> None:
    vm.register_law("reads-the-rtt", lambda f: 1.0 if f.rtt < 1.0 else -1.0, delay_based=True)
    for law, reads, keeps in (
        ("vegas", True, True),
        ("reno", False, False),
        ("cubic", False, False),
        ("reads-the-rtt", True, False),
    ):
        flow = Flow(law, 0.1)
        assert (flow.delay_based, flow.keeps_backlog, flow.measures_base) == (reads, keeps, True)
    assert not Flow("vegas", 0.1, over_estimate=0.0).measures_base
