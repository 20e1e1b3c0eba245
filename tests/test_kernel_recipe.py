"""The measurement of the running kernel: its steps, its refusals, and one short real run."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import vegasmodel as vm
from vegasmodel.fields.errors import FieldError

RECIPE = Path(__file__).parents[1] / "scripts" / "kernel"
SCENARIO = """
name = "short"
packet_size = "1000 B"
[[link]]
capacity = "2 Mbit/s"
buffer = "20 pkt"
[[flow]]
name = "one"
law = "reno"
variant = "linux"
send_jitter = "0 s"
rtt = "40 ms"
[[flow]]
name = "two"
law = "reno"
variant = "linux"
send_jitter = "0 s"
rtt = "80 ms"
start = "1 s"
[run]
duration = "3 s"
warmup = "1 s"
"""


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    monkeypatch.syspath_prepend(str(RECIPE))
    return importlib.import_module("job")


def scenario(old: str = "", new: str = "") -> vm.Scenario:
    return vm.Scenario.from_toml(SCENARIO.replace(old, new))


def test_a_job_has_the_scenarios_numbers(recipe: types.ModuleType) -> None:
    made = recipe.job(scenario(), instead={"two": "cubic"})
    assert made["rate"] == 2e6
    assert made["buffer"] == 20
    assert made["vegas"] is None
    assert [flow["control"] for flow in made["flows"]] == ["reno", "cubic"]
    assert [flow["rtt"] for flow in made["flows"]] == [0.04, 0.08]
    assert [flow["initial_window"] for flow in made["flows"]] == [0, 0]  # the kernel's own
    two = recipe.job(scenario('rtt = "40 ms"', 'rtt = "40 ms"\ninitial_window = 2'))
    assert [flow["initial_window"] for flow in two["flows"]] == [2, 0]
    assert [flow["start"] for flow in made["flows"]] == [0.0, 1.0]
    assert [flow["send_jitter"] for flow in made["flows"]] == [0.0, 0.0]
    waits = recipe.job(scenario('send_jitter = "0 s"\nrtt = "80 ms"', 'rtt = "80 ms"'))
    assert [flow["send_jitter"] for flow in waits["flows"]] == [0.0, 0.004]  # 1000 B at 2 Mbit/s
    assert json.loads(json.dumps(made)) == made


def test_jittered_starts_are_those_of_the_fluid_model(recipe: types.ModuleType) -> None:
    from vegasmodel.engines.starts import start_times

    jittered = scenario('warmup = "1 s"', 'warmup = "1 s"\nruns = 3\nstart_jitter = "0.5 s"')
    for k in range(3):
        starts = [flow["start"] for flow in recipe.job(jittered, k)["flows"]]
        assert starts == pytest.approx(start_times(jittered, k), abs=1e-12)


def test_vegas_parameters_are_one_set_of_whole_numbers(recipe: types.ModuleType) -> None:
    vegas = 'law = "vegas"\nalpha = 3\nbeta = 5'
    made = recipe.job(scenario('law = "reno"', vegas))
    assert made["vegas"] == {"alpha": 3, "beta": 5, "gamma": 1}
    two = SCENARIO.replace('law = "reno"', vegas, 1).replace('law = "reno"', 'law = "vegas"')
    with pytest.raises(FieldError, match="alpha"):
        recipe.job(vm.Scenario.from_toml(two))
    with pytest.raises(FieldError, match="alpha"):
        recipe.job(scenario('law = "reno"', vegas.replace("5", "5.5")))


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('law = "reno"', 'law = "tahoe"', "flow.law"),
        ('buffer = "20 pkt"', 'buffer = "20 pkt"\nloss = 0.01', "link.queue"),
        ('rtt = "40 ms"', 'rtt = "40 ms"\nsize = "30 pkt"', "flow.size"),
        ('rtt = "40 ms"', 'rtt = "40 ms"\nmax_window = "9 pkt"', "flow"),
        ('send_jitter = "0 s"', 'send_jitter = "2 s"', "flow.send_jitter"),
        ('packet_size = "1000 B"', 'packet_size = "100 B"', "packet_size"),
    ],
)
def test_what_the_rig_lacks_is_refused(
    recipe: types.ModuleType, old: str, new: str, named: str
) -> None:
    with pytest.raises(FieldError) as error:
        recipe.job(scenario(old, new))
    assert error.value.field == named


def test_waits_are_judged_by_order_and_by_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RECIPE))
    waits = importlib.import_module("waits")
    draws = np.random.default_rng(1).uniform(0.0, 1e6, 500)  # ns, one packet every 2 ms
    came = [(k, 2_000_000 * k, int(2_000_000 * k + wait)) for k, wait in enumerate(draws)]
    good = waits.summary(500, came)
    assert good["overtaken"] == 0
    assert good["alone"] == 500
    assert good["distance"] < good["distance_at_5_percent"]
    assert good["mean_ms"] == pytest.approx(0.5, abs=0.05)
    assert waits.summary(500, [came[1], came[0], *came[2:]])["overtaken"] == 1
    squared = [(k, sent, int(sent + (at - sent) ** 2 / 1e6)) for k, sent, at in came]
    bad = waits.summary(500, squared)
    assert bad["distance"] > 2.0 * bad["distance_at_5_percent"]


def measure(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "s.toml").write_text(SCENARIO)
    line = [sys.executable, str(RECIPE / "measure.py"), str(folder / "s.toml"), *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        ("-c", "three=cubic", "--control: 'three'"),
        ("-c", "one", "--control: 'one'"),
        ("-c", "one=$(id)", "congestion control '$(id)'"),
        ("--interval", "0", "--interval: 0.0"),
    ],
)
def test_bad_options_are_one_line_and_write_nothing(
    option: str, value: str, named: str, tmp_path: Path
) -> None:
    """The line names the option and its value, so no other error has stopped the command."""
    done = measure(tmp_path, "--out", str(tmp_path / "run.log"), option, value)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert named in line
    assert not (tmp_path / "run.log").exists()


def able() -> bool:
    """Root, the tools, and permission to make a namespace."""
    if os.geteuid() or not all(map(shutil.which, ("ip", "tc", "ss", "ethtool"))):
        return False
    if not Path("/dev/net/tun").exists():
        return False
    test = ["ip", "netns", "add", f"vegasmodel-test-{os.getpid()}"]
    made = subprocess.run(test, capture_output=True, check=False).returncode == 0
    subprocess.run([*test[:2], "delete", test[3]], capture_output=True, check=False)
    return made


@pytest.mark.skipif("not able()", reason="needs root, iproute2, ethtool and network namespaces")
@pytest.mark.parametrize("sampler", ["ss", "tcp_info"])
def test_a_real_run_fills_the_link_and_leaves_nothing(tmp_path: Path, sampler: str) -> None:
    log = tmp_path / "run.log"
    done = measure(tmp_path, "--out", str(log), "--sampler", sampler, "--delay", "user")
    assert done.returncode == 0, done.stderr
    counted = json.loads(done.stdout)
    assert counted["delay"] == "user"
    trace = vm.packets.read(log)
    rates = np.nanmean(trace.data.throughput.sel(time=slice(1.0, 3.0)), axis=0)
    assert rates.shape == (2,)
    assert 0 < rates.sum() < 1.1 * 250
    shortest = trace.data.rtt.min("time").to_numpy()
    assert shortest[0] >= 0.040  # nothing is faster than its delay, however busy the machine
    assert shortest[1] >= 0.080
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    left = re.findall(r"vegasmodel-(\d+)-", listed.stdout)  # another run's may be there
    assert all(Path("/proc", pid).exists() for pid in left)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.log", "s.toml"]
