"""Text with units in Python, buffers as times and BDPs, changed and written scenarios."""

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vegasmodel as vm
from vegasmodel.fields import toml_file

MIXED = vm.Scenario(
    links=[vm.Link("10 Mbit/s", buffer="1 BDP")],
    flows=[
        vm.Flow("vegas", "40 ms", start="2 s", max_window="30 kB"),
        vm.Flow("reno", "100 ms", count=3),
    ],
    packet_size="500 B",
    run=vm.Run(duration="60 s", warmup="10 s"),
)


def test_text_stands_for_the_numbers_it_says() -> None:
    link, (vegas, reno) = MIXED.links[0], MIXED.flows
    assert link.capacity == 2500.0  # 10e6 bit/s over 4000 bit
    assert (vegas.rtt, vegas.start, reno.rtt) == (0.04, 2.0, 0.1)
    assert vegas.max_window == 60.0
    assert MIXED.run == vm.Run(duration=60.0, warmup=10.0)


def test_whole_numbers_and_text_give_one_fingerprint() -> None:
    """Stored runs are found by the fingerprint, and JSON writes 60 and 60.0 differently."""
    flow = vm.Flow("vegas", "1 s", alpha=3, beta=3, start=2)
    text = vm.Scenario([vm.Link("250 pkt/s", buffer="20 pkt")], [flow], run=vm.Run("60 s", "9 s"))
    whole = vm.Flow("vegas", 1, alpha=3.0, beta=3.0, start="2 s")
    numbers = vm.Scenario([vm.Link(250, buffer=20)], [whole], 1000, run=vm.Run(60, 9))
    assert numbers == text
    assert numbers.fingerprint() == text.fingerprint()


def test_a_part_keeps_its_text_until_a_scenario_has_a_packet_size() -> None:
    link, flow = vm.Link("10 Mbit/s"), vm.Flow("reno", "40 ms", packet_size="1500 B", size="30 kB")
    assert link.capacity == "10 Mbit/s"
    for size, capacity in ((500.0, 2500.0), (1250.0, 1000.0)):
        s = vm.Scenario((link,), (flow,), packet_size=size)
        assert s.links[0].capacity == capacity
        assert s.flows[0].size == 20.0  # in its own packets
    access = vm.Flow("reno", "40 ms", packet_size="1500 B", access="10 Mbit/s")
    assert vm.Scenario((link,), (access,), packet_size=500.0).flows[0].access == 2500.0


def test_parts_in_parts_take_text_too() -> None:
    red = vm.Red(min_threshold="5 kB", max_threshold="15 pkt")
    s = vm.Scenario((vm.Link("250 pkt/s", queue=red),), (vm.Flow("reno", "40 ms"),))
    assert s.links[0].queue == vm.Red(5.0, 15.0)
    web = vm.Flow(
        "reno", "40 ms", size={"pareto": {"mean": "30 kB", "shape": 1.3}},
        arrivals={"poisson": "50 1/s"},
    )  # fmt: skip
    s = vm.Scenario((vm.Link("250 pkt/s"),), (web,), packet_size=1500.0)
    assert s.flows[0].size == vm.Pareto(20.0, 1.3)
    assert s.flows[0].arrivals == vm.Poisson(50.0)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: vm.Link("10 Mbit/sek"), "capacity: '10 Mbit/sek'"),
        (lambda: vm.Link("10 pkt/s", buffer="-1 BDP"), "buffer: '-1 BDP'"),
        (lambda: vm.Link("10 pkt/s", buffer="5 Hz"), '"1 BDP"'),
        (lambda: vm.Flow("reno", "40"), "a unit is needed"),
        (lambda: vm.Flow("reno", "40 ms", alpha="9 s"), "alpha: '9 s'"),
        (lambda: vm.Run(duration="60 pkt"), "duration: '60 pkt'"),
        (lambda: vm.Red("5 pkt", "4 pkt"), "more than min_threshold"),
        (
            lambda: vm.Scenario((vm.Link("1 Mbit/s", queue=vm.Red("5 kB", "4 kB")),), MIXED.flows),
            r"link 1, queue.max_threshold: '4 pkt'",
        ),
        (
            lambda: vm.Scenario((vm.Link("1 Mbit/s"),), (vm.Flow("vegas", "1 s", alpha="9 kB"),)),
            r"flow 1, beta: '3 pkt' is not allowed; at least alpha, 9 pkt",
        ),
    ],
)
def test_bad_text_is_one_line_that_names_the_field(make, said: str) -> None:
    with pytest.raises(vm.FieldError, match=said):
        make()


@pytest.mark.parametrize(
    ("text", "packets"),
    [("1 BDP", 2500 * 0.085), ("0.5 BDP", 2500 * 0.0425), ("100 ms", 250.0), ("10 kB", 20.0)],
)
def test_a_buffer_as_a_time_or_a_bandwidth_delay_product(text: str, packets: float) -> None:
    """The mean RTT is over flows, not over groups: (40 + 3 * 100) / 4 = 85 ms."""
    for s in (
        MIXED.replace({"link.buffer": text}),
        vm.Scenario.from_toml(MIXED.to_toml().replace('"1 BDP"', f'"{text}"')),
    ):
        assert s.links[0].buffer == pytest.approx(packets, rel=1e-12)


def test_only_flows_that_cross_a_link_make_its_product() -> None:
    links = [vm.Link("100 pkt/s", n, buffer="2 BDP", delay=0.0) for n in ("a", "b")]
    near = vm.Flow("reno", "1 s", name="near", path=["a"])
    back = vm.Flow("reno", "3 s", name="back", direction="reverse")
    assert [k.buffer for k in vm.Scenario(links, [near, back]).links] == [400.0, 600.0]
    with pytest.raises(vm.FieldError, match=r"link 2, buffer: .*no flow crosses"):
        vm.Scenario(links, [near])


def test_replace_gives_what_the_changed_file_would() -> None:
    text = MIXED.to_toml()
    changed = text.replace('rtt = "100 ms"', 'rtt = "60 ms"').replace("500 B", "1000 B")
    s = MIXED.replace({"flow.reno.rtt": 0.06}, packet_size=1000.0)
    assert s == vm.Scenario.from_toml(changed)
    assert s.links[0].capacity == 1250.0  # 10 Mbit/s in the new packets
    assert s.links[0].buffer == pytest.approx(1250 * 0.055)  # and the BDP follows both
    plain = dataclasses.replace(MIXED, packet_size=1000.0)
    assert (plain.links[0].capacity, plain.links[0].buffer) == (2500.0, MIXED.links[0].buffer)


def test_what_was_left_out_follows_a_change() -> None:
    short = MIXED.replace({"flow.rtt": "2 ms"})  # the link's default delay of 1 ms shrinks
    assert short.links[0].delay < 1e-3 == MIXED.links[0].delay
    linux = MIXED.replace({"flow.vegas.variant": "linux"}).flows[0]
    assert (linux.alpha, linux.beta, linux.decrease) == (2.0, 4.0, 0.5)
    given = MIXED.replace({"flow.vegas.alpha": 3, "flow.vegas.beta": 3})
    assert given.replace({"flow.vegas.variant": "linux"}).flows[0].alpha == 3.0
    assert MIXED.replace({"flow.reno.law": "sack"}).flows[1].name == "sack"


def test_every_kind_of_key_can_be_replaced() -> None:
    s = MIXED.replace({"link.queue": vm.RateDelay(), "run.seed": 7, "flow.class": "rate"}, name="n")
    assert (s.run.seed, s.name, {f.service for f in s.flows}) == (7, "n", {"rate"})
    assert s.replace({"link.bottleneck.queue.k": 2.0}).links[0].queue == vm.RateDelay(2.0)
    assert s.replace(run=vm.Run(duration=9.0, warmup=1.0)).run.duration == 9.0
    dotted = MIXED.replace({"flow.vegas.name": "a.b"})
    assert dotted.replace({"flow.a.b.alpha": 2}).flows[0].alpha == 2.0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"link.bufer": 3}, "link.bufer: 'bufer' is neither .*did you mean 'buffer'"),
        ({"buffer": 3}, "'buffer' is no key of a scenario; did you mean link.buffer"),
        ({"flow.vegs.alpha": 3}, "did you mean 'vegas'"),
        ({"flow.vegas.alfa": 3}, "did you mean 'alpha'"),
        ({"flow.xyz.rtt": 3}, r"flow.KEY or flow.NAME.KEY; NAME is vegas, reno$"),
        ({"flow[1].rtt": 3}, r"is no key of a scenario; did you mean flow.reno.rtt"),
        ({"links[0].buffer": 3}, "did you mean link.bottleneck.buffer"),
        ({"flow[9].rtt": 3}, "is no key here"),
        ({"flow.vegas.alpha": 9}, r"flow.beta: '3 pkt' is not allowed; at least alpha, 9 pkt"),
        ({"flow.rtt.x": 3}, "flow.rtt.x: 'x' is no key here; flow.rtt is a single value"),
        ({"link.queue.k": 3}, "link.queue.k: 'k' is no key here; allowed keys: discipline$"),
        ({"link": 3}, "^link: 3"),
        ({"links": 3}, "^links: 3"),
        ({"flow": ()}, r"^flow: \[\] is not allowed; at least one group"),
        ({"flows": ()}, r"^flows: \[\] is not allowed; at least one group"),
        ({"flow.class": "x"}, "^flow.class: 'x'"),
        ({"nonsense": 3}, "nonsense"),
        ({"run.seed": -1}, "run.seed: -1"),
        ({"flow.rtt": "40 pkt"}, "flow.rtt: '40 pkt'"),
    ],
)
def test_a_bad_change_is_one_line(changes: dict[str, object], said: str) -> None:
    with pytest.raises(vm.FieldError, match=said):
        MIXED.replace(changes)


def test_an_error_names_a_field_as_replace_got_it() -> None:
    """The error named ``flow``, the key of a file."""
    with pytest.raises(vm.FieldError, match=r"^flows: \[\] is not allowed; at least one group"):
        MIXED.replace(flows=())


def test_a_written_scenario_is_short_and_holds_what_was_given() -> None:
    text = MIXED.to_toml()
    assert 'capacity = "10 Mbit/s"\nbuffer = "1 BDP"\n' in text
    assert "alpha" not in text
    assert vm.Scenario.from_toml(text) == MIXED


NAMES = st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1, max_size=9)
TIMES = st.floats(1e-3, 10.0)
QUEUES = st.one_of(
    st.just(vm.DropTail()),
    st.builds(vm.RateDelay, st.floats(0.1, 9.0), st.floats(0.01, 1.0)),
    st.builds(vm.Red, st.floats(0.0, 5.0), st.sampled_from([6.5, "9 kB"]), ecn=st.booleans()),
)


@st.composite
def scenarios(draw: st.DrawFn) -> vm.Scenario:
    """Every key, given as a number or as text."""
    names = draw(st.lists(NAMES, min_size=2, max_size=2, unique=True))
    link = vm.Link(
        draw(st.one_of(st.floats(10.0, 1e6), st.sampled_from(["1.5 Mbit/s", "300 kB/s"]))),
        name=draw(NAMES),
        buffer=draw(st.sampled_from([math.inf, 12.25, "30 kB", "1.5 BDP", "70 ms"])),
        queue=draw(QUEUES),
        loss=draw(st.floats(0.0, 1.0)),
        drops=(vm.Drop(names[1], (3, 5)),) if draw(st.booleans()) else (),
    )
    first = vm.Flow(
        "vegas",
        draw(st.one_of(st.just("11 s"), st.just(vm.Uniform(11.0, 12.5)))),
        name=names[0],
        count=draw(st.integers(2, 3)),
        start=draw(st.one_of(TIMES, st.builds(vm.Staggered, TIMES, TIMES))),
        alpha=draw(st.one_of(st.none(), st.floats(0.1, 2.0))),
        variant=draw(st.sampled_from(["paper", "ns2", "linux"])),
        over_estimate=draw(st.one_of(st.just("measured"), TIMES)),
        path=draw(st.one_of(st.none(), st.just((link.name,)))),
    )
    second = vm.Flow(
        draw(st.sampled_from(["reno", "sack"])),
        draw(st.floats(10.0, 20.0)),
        name=names[1],
        size=draw(st.sampled_from([math.inf, "30 kB", vm.Pareto(7.5, 1.3)])),
        delayed_ack=draw(st.booleans()),
        service=draw(st.sampled_from([None, "rate", "delay"])),
        packet_size=draw(st.sampled_from([None, 52.5, "1500 B"])),
    )
    return vm.Scenario(
        (link,), (first, second), packet_size=draw(st.sampled_from([1000.0, 500.0, "52 B"]))
    )


@settings(max_examples=200, derandomize=True, deadline=None)
@given(scenarios())
def test_what_is_written_is_read_as_the_same_scenario(s: vm.Scenario) -> None:
    again = vm.Scenario.from_toml(s.to_toml())
    assert again == s
    assert again.fingerprint() == s.fingerprint()
    assert again.to_toml() == s.to_toml()
    assert vm.Scenario.from_dict(s.to_dict()) == s
    assert s.replace() == s


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    st.recursive(
        st.one_of(st.integers(-99, 99), st.floats(allow_nan=False), st.booleans(), NAMES),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
        ),
        max_leaves=6,
    ).flatmap(lambda value: st.just({"key": value, "other": [{"x": value}], "z": 1}))
)
def test_the_toml_that_is_written_is_read_by_the_standard_library(table) -> None:
    text = toml_file.write(table)
    assert toml_file.parse(text, "x", "x") == table
