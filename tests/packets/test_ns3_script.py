"""The input of the ns-3 program: numbers only; what it cannot do is refused in one line."""

import re

import pytest

import vegasmodel as vm
from vegasmodel.packets import ns2_script, ns3, ns3_build, ns3_script, ns3_support

TEXT = """
name = "system(\\"rm\\"); $(id)"
packet_size = "500 B"
[[link]]
name = "a; b"
capacity = "1080 pkt/s"
buffer = "20 pkt"
[[link]]
name = "'c'"
capacity = "500 pkt/s"
buffer = "30 pkt"
queue = { discipline = "rd" }
[[flow]]
name = "$(touch x) \\\\n"
law = "vegas"
rtt = "80 ms"
[[flow]]
law = "newreno"
count = 2
rtt = "80 ms"
direction = "reverse"
[run]
duration = "20 s"
warmup = "10 s"
start_jitter = "1 s"
"""
ONE = """
packet_size = "500 B"
[[link]]
capacity = "1080 pkt/s"
buffer = "20 pkt"
%s
[[flow]]
law = "vegas"
rtt = "80 ms"
%s
"""


def test_numbers_only_whatever_the_names() -> None:
    text = ns3_script.script(vm.Scenario.from_toml(TEXT), interval=1.0)
    for line in text.splitlines():
        assert re.fullmatch(r"(run|link|flow)( -?[\d.e+-]+)+", line), line
    kinds = [line.split()[0] for line in text.splitlines()]
    assert kinds == ["run"] + ["link"] * 4 + ["flow"] * 3


@pytest.mark.parametrize(("flow", "last"), [("", " 2"), ("initial_window = 7", " 7")])
def test_the_initial_window_is_the_flows_last_number(flow: str, last: str) -> None:
    text = ns3_script.script(vm.Scenario.from_toml(ONE % ("", flow)), interval=1.0)
    assert text.splitlines()[-1].endswith(last)


@pytest.mark.parametrize(("start", "stop", "begin"), [(0, 20, 10), (14, 20, 14), (0, 5, 5)])
def test_a_flow_is_measured_from_the_warm_up_on_while_it_sends(
    start: int, stop: int, begin: int
) -> None:
    """``begin``: when its measurement begins; a flow that stops in the warm-up has none."""
    times = f"start = '{start} s'\nstop = '{stop} s'\n"
    text = ONE % ("", times) + "[run]\nduration = '20 s'\nwarmup = '10 s'\n"
    flow = ns3_script.script(vm.Scenario.from_toml(text), interval=1.0).splitlines()[-1].split()
    assert [float(number) for number in flow[7:10]] == [start, stop, begin]


def test_short_flows_come_as_in_ns2() -> None:
    """Both simulators get the same times and sizes, one line per short flow, after the flows."""
    crowd = "arrivals = { poisson = '5 1/s' }\nsize = { pareto = { mean = '20 pkt', shape = 1.3 } }"
    s = vm.Scenario.from_toml(
        ONE % ("", crowd) + '[run]\nduration = "20 s"\nwarmup = "0 s"\nstart_jitter = "1 s"\n'
    )
    lines = ns3_script.script(s, interval=1.0).splitlines()
    shorts = [line.split()[1:] for line in lines if line.startswith("short ")]
    expected = re.findall(r"at (\S+) .*arrive (\d+) (\d+)", ns2_script.script(s, interval=1.0).text)
    assert len(shorts) > 50
    assert [(f, int(size)) for f, _, size in shorts] == [(f, int(size)) for _, f, size in expected]
    times = [float(time) for _, time, _ in shorts]
    origin = float(expected[0][0]) - times[0]
    assert times == pytest.approx([float(time) - origin for time, _, _ in expected])
    assert lines[-len(shorts) - 1].startswith("flow ")


def test_legs_hold_what_is_left_of_the_round_trip() -> None:
    s = vm.Scenario.from_toml(ONE % ('delay = "5 ms"', 'access = "2160 pkt/s"'))
    leg = float(ns3_script.script(s, interval=1.0).splitlines()[3].split()[5])
    # data of 500 B and an ACK of 42 B over one link and two access links
    transmission = (542 / 500) * (1 / 1080 + 2 / 2160)
    assert 4 * leg == pytest.approx(0.08 - 2 * 0.005 - transmission, abs=1e-12)


def test_seeds_are_of_the_run() -> None:
    s = vm.Scenario.from_toml(TEXT)
    first, again, second = (ns3_script.script(s, n, interval=1.0) for n in (0, 0, 1))
    assert first == again
    assert first != second


@pytest.mark.parametrize(
    ("link", "flow", "field"),
    [
        ("", "law = 'tahoe'", r"flow 1, law"),
        ("drops = [{ flow = 'vegas', packets = [3] }]", "", r"link 1, drops"),
        ("", "alpha = 1.5", r"flow 1, alpha"),
        ("", "decrease = 0.6", r"flow 1, decrease"),
        ("", "over_estimate = '0 s'", r"flow 1, over_estimate"),
        ("", "delay_noise = '1 ms'", r"flow 1, delay_noise"),
        ("", "size = '20 pkt'\narrivals = { poisson = '5000 1/s' }", r"flow\.arrivals"),
        ("", "packet_size = '42 B'", r"packet_size"),
        ("", "max_window = 9e6", r"flow 1, max_window"),
        ("queue = { discipline = 'rd', delay_buffer = 0.01 }", "", r"link 1, buffer"),
    ],
)
def test_what_ns3_cannot_do(link: str, flow: str, field: str) -> None:
    text = ONE % (link, flow)
    if "tahoe" in flow:
        text = text.replace('law = "vegas"\n', "")
    with pytest.raises(vm.FieldError, match=f"^{field}") as raised:
        ns3.run(vm.Scenario.from_toml(text))
    assert "\n" not in str(raised.value)


def test_links_in_another_order_than_the_files() -> None:
    path = """path = ["'c'", "a; b"]\n"""
    with pytest.raises(vm.FieldError, match=r"^flow\.path"):
        ns3.run(vm.Scenario.from_toml(TEXT.replace('law = "vegas"\n', f'law = "vegas"\n{path}')))


def test_without_ns3_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ns3_build, "find", lambda: None)
    with pytest.raises(ns3.EngineMissing, match=r"^ns-3 is not installed: apt-get install"):
        ns3.run(vm.Scenario.from_toml(ONE % ("", "")))


RED = "queue = { discipline = 'red', min_threshold = '5 pkt', max_threshold = '15 pkt' }"


@pytest.mark.parametrize(
    ("law", "link", "said"),
    [
        ("vegas", "", ["ns3-vegas"]),
        ("cubic", "", ["ns3-cubic"]),
        ("reno", "", ["ns3-recovery"]),
        ("newreno", "", ["ns3-recovery"]),
        ("sack", RED, ["ns3-red"]),
        ("sack", "", []),
    ],
)
def test_what_ns3_does_differently_is_said(law: str, link: str, said: list[str]) -> None:
    case = vm.Scenario.from_toml((ONE % (link, "")).replace('"vegas"', f'"{law}"'))
    assert [remark.name for remark in ns3_support.remarks(case)] == ["ns3-packets", *said]
