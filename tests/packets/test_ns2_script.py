"""Scripts for ns-2: their input, and what is refused.  These tests need no ns-2."""

import re
from pathlib import Path

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.engines.starts import start_times
from vegasmodel.fields.errors import FieldError
from vegasmodel.packets import ns2, ns2_script, ns2_support
from vegasmodel.packets.ns2_defaults import SETS

LINK = '[[link]]\nname = "l"\ncapacity = "1080 pkt/s"\n'
FLOW = '[[flow]]\nlaw = "vegas"\nrtt = "80 ms"\n'
RUN = '[run]\nduration = "10 s"\nwarmup = "2 s"\n'

EVIL = [
    "[exec touch x]",
    "$env(HOME)",
    "a; exec touch x",
    '"',
    "{",
    "}",
    "\\",
    "`touch x`",
    "$(touch x)",
    "../../x",
    "%s %n",
    "é[exit]",
]


def scenario(link: str = "", flow: str = "", run: str = "") -> vm.Scenario:
    return vm.Scenario.from_toml(LINK + link + FLOW + flow + RUN + run)


@pytest.mark.parametrize("name", EVIL)
def test_no_name_reaches_the_script(name: str) -> None:
    quoted = f"'''{name}'''"
    text = f"name = {quoted}\n[[link]]\nname = {quoted}\ncapacity = '1080 pkt/s'\n"
    text += f"drops = [{{ flow = {quoted}, packets = [3] }}]\n"
    text += f"{FLOW}name = {quoted}\npath = [{quoted}]\n{RUN}"
    plain = vm.Scenario.from_toml(text.replace(quoted, "'plain'"))
    assert ns2_script.script(vm.Scenario.from_toml(text)).text == ns2_script.script(plain).text


def test_the_same_seed_gives_the_same_script() -> None:
    s = scenario(flow="count = 3\n", run='start_jitter = "1 s"\n')
    assert ns2_script.script(s, 1) == ns2_script.script(s, 1)
    assert ns2_script.script(s, 1) != ns2_script.script(s, 2)


@pytest.mark.parametrize("seed", [1, 7])
def test_seed_and_number_of_a_run_decide_its_random_starts(seed: int) -> None:
    """The simulators draw the same starts (``start_times``)."""
    flows = [vm.Flow("vegas", "80 ms", count=3), vm.Flow("reno", "80 ms", start="1 s")]
    jittered = vm.Run(duration="60 s", warmup="20 s", seed=seed, start_jitter="5 s")
    scenario = vm.Scenario([vm.Link("1000 pkt/s", buffer=20)], flows, run=jittered)
    seen = set()
    for run in (0, 1):
        text = ns2_script.script(scenario, run).text
        starts = [float(at) for at in re.findall(r"^start \d+ (\S+) ", text, re.MULTILINE)]
        assert starts == pytest.approx(start_times(scenario, run).tolist(), rel=1e-12)
        assert max(np.subtract(starts, [0.0, 0.0, 0.0, 1.0])) <= 5.0
        expected = np.random.default_rng([seed, run]).integers(1, 2**31 - 1)
        assert re.findall(r"^begin (\d+)$", text, re.MULTILINE) == [str(expected)]
        seen |= set(starts)
    assert len(seen) == 8


def test_default_sets() -> None:
    names = {setting.variable for setting in SETS["papers"]}
    assert len(names) == len(SETS["papers"]) == 17
    assert all(setting.why for setting in SETS["papers"])
    old, stock = scenario(), scenario(run='ns2_defaults = "2.35"\n')
    assert "Agent/TCP set useHeaders_ false" in ns2_script.script(old).text
    assert "useHeaders_" not in ns2_script.script(stock).text


def test_the_docs_list_the_old_defaults() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ns2.md").read_text()
    rows = re.findall(r"^\| `(Agent\S+)` \| `(\w+)` \| `(\S+)` \|", page, re.MULTILINE)
    assert rows == [(s.cls, s.variable, s.value) for s in SETS["papers"]]


def test_an_initial_window_is_the_agents_own() -> None:
    assert "windowInit_ 4}" in ns2_script.script(scenario(flow="initial_window = 4\n")).text
    assert "windowInit_ 4" not in ns2_script.script(scenario()).text


def test_a_senders_wait_is_the_agents_overhead() -> None:
    text = ns2_script.script(scenario(flow='send_jitter = "0.5 ms"\n')).text
    assert "overhead_ 0.0005}" in text
    assert "overhead_" not in ns2_script.script(scenario(flow='send_jitter = "0 s"\n')).text


REFUSED = {
    "alpha": {"flow": "alpha = 1.5\nbeta = 3\n"},
    "beta": {"flow": "beta = 3.5\n"},
    "gamma": {"flow": "gamma = 0.5\n"},
    "variant": {"flow": 'variant = "linux"\ndecrease = 0.75\n'},
    "decrease": {"flow": "decrease = 0.5\n"},
    "over_estimate": {"flow": 'over_estimate = "5 ms"\n'},
    "max_window": {"flow": "max_window = 1\n"},
    "initial_window": {"flow": 'initial_window = 4\nover_estimate = "0 s"\n'},
    "buffer": {"link": 'buffer = "1 pkt"\n'},
    "link[0].buffer": {"link": 'buffer = "12 pkt"\nqueue = { discipline = "rd" }\n'},
    "[0].buffer": {
        "link": """buffer = "0.5 pkt"
            queue = { discipline = "red", min_threshold = "5 pkt", max_threshold = "9 pkt" }\n"""
    },
    "flow.count": {"flow": "count = 4001\n"},
    "drops.packets": {"link": 'drops = [{ flow = "vegas", packets = [2000000] }]\n'},
}


@pytest.mark.parametrize("field", REFUSED)
def test_what_ns2_cannot_do_is_refused_by_name(field: str) -> None:
    with pytest.raises(FieldError, match="ns-2") as caught:
        ns2_support.check(scenario(**REFUSED[field]))
    assert caught.value.field.endswith(field)


@pytest.mark.parametrize(
    ("field", "shown"),
    [("alpha", "1.5 pkt"), ("over_estimate", "5 ms"), ("max_window", "1 pkt")],
)
def test_what_ns2_cannot_do_is_shown_with_its_unit(field: str, shown: str) -> None:
    """The messages had 0.005 for 5 ms, and 1.0 for a packet."""
    with pytest.raises(FieldError, match=f"{field}: '{shown}' is not allowed; "):
        ns2_support.check(scenario(**REFUSED[field]))


def test_a_buffer_that_ns2_cannot_have_is_shown_as_the_user_wrote_it() -> None:
    """The link sends 1000 packets/s, so the buffer holds 1 packet, which the user did not write."""
    case = vm.Scenario([vm.Link(1000.0, buffer="1 ms")], [vm.Flow("vegas", 0.1)])
    with pytest.raises(FieldError, match=r"^link 1, buffer: '1 ms' is not allowed; at least 2 pa"):
        ns2_support.check(case)


def test_what_ns2_does_differently_is_said() -> None:
    finite = scenario('buffer = "20 pkt"\n', 'over_estimate = "0 s"\n')
    assert [r.name for r in ns2_support.remarks(finite)] == ["ns2-buffer", "ns2-slow-start"]
    assert ns2_support.remarks(scenario()) == ()  # no buffer to fill, nothing special
    stock = scenario(flow="initial_window = 4\n", run='ns2_defaults = "2.35"\n')
    assert [r.name for r in ns2_support.remarks(stock)] == ["ns2-initial-window"]
    services = scenario('buffer = "60 pkt"\nqueue = { discipline = "rd" }\n')
    assert [r.name for r in ns2_support.remarks(services)] == ["ns2-buffer", "ns2-rate-delay"]
    noisy = scenario(flow='delay_noise = "1 ms"\n')
    assert [r.name for r in ns2_support.remarks(noisy)] == ["ns2-placement"]


def test_the_remark_on_headers_has_the_size_of_the_packets_that_ns2_sends() -> None:
    flows = [vm.Flow("vegas", 0.1), vm.Flow("reno", 0.1), vm.Flow("sack", 0.1, packet_size=500)]
    run = vm.Run(ns2_defaults="2.35")
    case = vm.Scenario([vm.Link(100.0)], flows, packet_size=1040, run=run)
    [said] = [r.detail for r in ns2_support.remarks(case) if r.name == "ns2-headers"]
    assert said.endswith(": reno 1080 B, sack 540 B")


def test_other_laws_have_their_own_decrease() -> None:
    s = vm.Scenario.from_toml(LINK + '[[flow]]\nlaw = "reno"\nrtt = "80 ms"\ndecrease = 0.7\n')
    with pytest.raises(FieldError, match="decrease"):
        ns2_support.check(s)


def test_a_parameter_may_keep_the_value_of_the_last_release() -> None:
    """``stock`` only leaves lines out, and only those; the sets themselves cannot be changed."""
    usual = ns2_script.script(scenario()).text.splitlines()
    kept = ns2_script.script(scenario(), stock=["minrto_", "tcpTick_"]).text.splitlines()
    gone = [line for line in usual if line not in kept]
    assert len(usual) - len(kept) == len(gone) == 2
    assert {line.split()[2] for line in gone} == {"minrto_", "tcpTick_"}
    with pytest.raises(TypeError):
        SETS["papers"] = ()


def test_missing_engine_says_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert not ns2.available()
    with pytest.raises(ns2.EngineMissing, match="apt-get install ns2"):
        ns2.run(scenario())


def test_red_waits_after_a_drop_unless_it_is_that_of_1993() -> None:
    red = 'queue = { discipline = "red", min_threshold = "5 pkt", max_threshold = "15 pkt" }\n'
    line = "Queue/RED set wait_ false"
    assert line not in ns2_script.script(scenario(link=red)).text.splitlines()
    assert line in ns2_script.script(scenario(link=red), spaced=False).text.splitlines()


def test_a_kernels_vegas_is_measured_with_a_trace() -> None:
    """ns-2 lacks Linux's Vegas; the error says what can measure it instead."""
    linux = vm.Flow("vegas", 0.05, variant="linux")
    with pytest.raises(vm.FieldError, match=r"docs/linux\.md says how to record a trace"):
        ns2_support.check(vm.Scenario([vm.Link(1000.0)], [linux]))
