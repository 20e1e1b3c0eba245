"""Sweeps: each point is the model's answer, in spite of kills, full disks and clusters."""

from __future__ import annotations

import errno
import filecmp
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import vegasmodel as vm
from vegasmodel.command_line import study
from vegasmodel.command_line.commands import run
from vegasmodel.fields.units import FieldError
from vegasmodel.study import fields, points, store
from vegasmodel.study import sweep as sweeps

MIXED = """
name = "mixed"
packet_size = "500 B"
[[link]]
capacity = "1080 pkt/s"
buffer = "20 pkt"
[[flow]]
law = "vegas"
variant = "VARIANT"
rtt = "60 ms"
send_jitter = "0 s"
alpha = 3
beta = 3
[[flow]]
law = "reno"
rtt = "60 ms"
send_jitter = "0 s"
[run]
duration = "20 s"
warmup = "5 s"
"""


def mixed(variant: str = "ns2") -> vm.Scenario:
    return vm.Scenario.from_toml(MIXED.replace("VARIANT", variant))


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
    text = MIXED.replace("VARIANT", base.flows[0].variant)
    for old, new in changes.values():
        text = text.replace(old, new)
    try:
        return vm.Scenario.from_toml(text)
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
        assert "beta: 4.0 is not allowed; at least alpha, 6 pkt" in str(reason.values[1, 0])
        why = "" if model != "bands" else "the equations do not have the law reno"
        assert str(reason.values[0, 0]) == why


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
    assert three is not None
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


def test_true_and_false_on_the_command_line(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["sweep", str(place / "s.toml"), "--model", "fluid", "--out", str(place / "m.zarr")]
    line += ["--over", "flow.delayed_ack=true,false"]
    assert run(line) == 0
    shown = [words[0] for words in map(str.split, capsys.readouterr().out.splitlines()) if words]
    assert [word for word in shown if word in ("true", "false")] == ["true", "false"]
    kept = xr.open_zarr(place / "m.zarr", chunks=None)
    assert kept["flow.delayed_ack"].values.tolist() == [True, False]
    assert run([*line[:-1], "flow.delayed_ack=yes,no"]) == 2
    assert "flow.delayed_ack: 'yes' is not allowed; true or false" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["minicycle", "fluid"])
def test_the_share_of_a_group_whose_count_varies_is_that_of_all_its_flows(model: str) -> None:
    data = vm.sweep(mixed(), {"flow.vegas.count": [1, 2, 4]}, model)
    assert data["share"].values.sum(axis=1) == pytest.approx([1.0] * 3)
    for i, count in enumerate((1, 2, 4)):
        answer = vm.predict(mixed().replace({"flow.vegas.count": count}), model)
        assert dict(zip(data["flow"].values, data["share"].values[i], strict=True)) == (
            pytest.approx(answer.shares)
        )
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
        ("link.buffer=5..60", {}, "give draw, the number of random points"),
        ("link.buffer=5:60:5", {"draw": 9}, "LOW..HIGH"),
        ("link.buffer=1:9999999:0.0001", {}, "at most 10000000 values"),
        ("link.buffer=5:60:5", {"model": "minicycel"}, "did you mean 'minicycle'"),
        ("link.buffer=5:60:5", {"engine": "dusk"}, "did you mean 'dask'"),
        ("link.buffer=5:60:5", {"scheduler": "tcp://x"}, "only with the engine dask"),
    ],
)
def test_bad_questions(over: str, more: dict[str, Any], says: str) -> None:
    with pytest.raises(FieldError, match=says):
        vm.sweep(mixed(), [over], **{"model": "minicycle", **more})


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def same_files(a: Path, b: Path) -> bool:
    _, different, missing = filecmp.cmpfiles(a, b, sorted(files(a)), shallow=False)
    return files(a) == files(b) and not different and not missing


OVER = ["link.buffer=1:20:0.5", "flow.rtt=20ms:80ms:20ms", "flow.vegas.alpha=2,4"]
LARGE = "link.buffer=1:60:0.01"
SLOW = """
import sys
from pathlib import Path
import vegasmodel as vm
from vegasmodel.study import sweep
sweep.BLOCK["arrays"] = 8
vm.sweep(vm.load(sys.argv[1]), sys.argv[3:], "minicycle", sys.argv[2])
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "s.toml").write_text(MIXED.replace("VARIANT", "ns2"))
    return tmp_path


def started(place: Path, out: str) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-c", SLOW, "s.toml", out, *OVER]
    return subprocess.Popen(line, cwd=place)


def test_killed_at_any_moment_and_run_again_it_is_the_same(place: Path) -> None:
    """Equal bit for bit; blocks that were written are not written again."""
    assert started(place, "whole.zarr").wait() == 0
    rng = np.random.default_rng(5)
    status = place / "again.zarr" / "status" / "c"
    kills = 0
    for _ in range(2):
        begun = len(files(status)) if status.is_dir() else 0
        child = started(place, "again.zarr")
        while child.poll() is None and (len(files(status)) if status.is_dir() else 0) <= begun:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.1))
        child.send_signal(signal.SIGKILL)
        kills += child.wait() == -signal.SIGKILL
        data = xr.open_zarr(place / "again.zarr", chunks=None)
        done = data["status"].values != -1
        assert done.any()
        assert np.isfinite(data["throughput"].values[done]).all()
    assert kills > 0
    times = {name: (status / name).stat().st_mtime_ns for name in files(status)}
    assert started(place, "again.zarr").wait() == 0
    assert {name: (status / name).stat().st_mtime_ns for name in times} == times
    assert same_files(place / "whole.zarr", place / "again.zarr")


def test_a_full_disk(place: Path) -> None:
    """One line, status 3; written blocks stay readable, and the sweep can continue later."""
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000)); "
    code += "from vegasmodel.command_line.commands import main; main()"
    line = [sys.executable, "-c", code, "sweep", "s.toml", "--model", "minicycle"]
    line += ["--over", LARGE, "--out", "full.zarr"]
    done = subprocess.run(line, cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("\n") == 1
    assert "full.zarr: file too large; raise the limit" in done.stderr
    data = xr.open_zarr(place / "full.zarr", chunks=None)
    assert (data["status"] == -1).all()
    for name in ("full.zarr", "whole.zarr"):
        vm.sweep(mixed(), [LARGE], "minicycle", place / name)
    assert same_files(place / "whole.zarr", place / "full.zarr")


def test_a_disk_that_fills_on_the_way(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fourth block is incomplete: the first three can be read, and the sweep continues."""
    whole, blocks = store.Store.write, 0

    def write(kept: store.Store, block: Any, values: Any) -> None:
        nonlocal blocks
        blocks += 1
        if blocks < 4:
            return whole(kept, block, values)
        whole(kept, block, {"throughput": values["throughput"]})
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place / "full.zarr"))

    monkeypatch.setitem(sweeps.BLOCK, "arrays", 3)
    line = ["sweep", str(place / "s.toml"), "--over", "link.buffer=1:12:1"]
    line += ["--model", "minicycle", "--out", str(place / "full.zarr")]
    with monkeypatch.context() as filling:
        filling.setattr(store.Store, "write", write)
        assert run(line) == 3
    (said,) = capsys.readouterr().err.splitlines()
    assert "no space left" in said
    data = xr.open_zarr(place / "full.zarr", chunks=None)
    status = data["status"].values
    assert sorted(status) == [store.NOT_YET] * 3 + [points.OK] * 9
    assert np.isfinite(data["share"].values[status == points.OK]).all()
    assert run(line) == 0
    vm.sweep(mixed(), ["link.buffer=1:12:1"], "minicycle", place / "whole.zarr")
    assert same_files(place / "whole.zarr", place / "full.zarr")


def test_what_is_in_a_folder_already(place: Path) -> None:
    out = place / "a.zarr"
    kept = vm.sweep(mixed(), OVER[:1], "minicycle", out)
    xr.testing.assert_allclose(kept.load(), vm.sweep(mixed(), OVER[:1], "minicycle"))
    with pytest.raises(FieldError, match="the model differs, minicycle there and fluid now"):
        vm.sweep(mixed(), OVER[:1], "fluid", out)
    with pytest.raises(FieldError, match=r"what varies differs, link\.buffer="):
        vm.sweep(mixed(), ["link.buffer=1:61:0.5"], "minicycle", out)
    with pytest.raises(FieldError, match="the scenario differs, variant"):
        vm.sweep(mixed("paper"), OVER[:1], "minicycle", out)
    with pytest.raises(FieldError, match="a name in a folder that exists"):
        vm.sweep(mixed(), OVER[:1], "minicycle", place / "none" / "a.zarr")
    assert not (place / "none").exists()
    (place / "b").mkdir()
    with pytest.raises(FieldError, match="a new name"):
        vm.sweep(mixed(), OVER[:1], "minicycle", place / "b")
    before = {name: (out / name).read_bytes() for name in files(out)}
    vm.sweep(mixed(), OVER[:1], "minicycle", out)
    assert before == {name: (out / name).read_bytes() for name in files(out)}


def test_blocks_do_not_change_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = vm.sweep(mixed(), OVER, "minicycle")
    monkeypatch.setitem(sweeps.BLOCK, "arrays", 37)
    xr.testing.assert_identical(whole, vm.sweep(mixed(), OVER, "minicycle"))


def test_two_processes_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sweeps.BLOCK, "closed", 3)
    over = ["flow.vegas.count=1:10:1"]
    one = vm.sweep(mixed(), over, "minicycle")
    xr.testing.assert_identical(one, vm.sweep(mixed(), over, "minicycle", processes=2))


def test_a_cluster_gives_the_same_though_a_worker_dies(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setitem(sweeps.BLOCK, "closed", 2)
    over = ["flow.vegas.count=1:24:1"]
    one = vm.sweep(mixed(), over, "minicycle")
    killed: list[int] = []
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:

        def kill(done: int, total: int) -> None:
            if done >= total // 4 and not killed:
                worker = next(iter(cluster.workers.values()))
                killed.append(worker.pid)
                os.kill(worker.pid, signal.SIGKILL)

        data = vm.sweep(
            mixed(), over, "minicycle", place / "dask.zarr", engine="dask",
            scheduler=cluster.scheduler_address, progress=kill,
        )  # fmt: skip
    assert killed
    xr.testing.assert_equal(one, data.load())


def test_the_command(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["sweep", str(place / "s.toml"), "--over", "link.buffer=5:60:5", "--model", "minicycle"]
    line += ["--over", "flow.vegas.beta=2,3", "--out", str(place / "m.zarr")]
    assert run([*line, "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert err == ""
    assert document["dims"] == {"link.buffer": 12, "flow.vegas.beta": 2}
    assert (document["points"], document["computed"]) == (24, 24)
    assert document["status"]["values not allowed together"] == 12, "beta below alpha"
    assert run([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["computed"] == 0
    assert run(line) == 0
    out = capsys.readouterr().out
    assert "24 of them there already" in out.replace("\n", " ")
    (row,) = (words for words in map(str.split, out.splitlines()) if words[:2] == ["20", "3"])
    part = vm.predict(mixed().replace({"flow.vegas.beta": 3}), "minicycle").shares["vegas"]
    assert row[row.index("%") - 1] == f"{100 * part:.1f}"
    (row,) = (words for words in map(str.split, out.splitlines()) if words[:2] == ["20", "2"])
    assert row[2:] == ["-", "-", "-"]  # beta below alpha: no assumptions and no shares
    assert "No answer at 12 points: flow.beta: 2.0 is not allowed; at least alpha, 3 pkt" in (
        " ".join(out.split())
    )


def test_the_map_is_of_the_group_that_is_named(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(vm.plots, "sweep", lambda _, group: asked.append(group))
    monkeypatch.setattr(vm.plots, "save", lambda *_: None)
    line = ["sweep", str(place / "s.toml"), "--model", "minicycle", "--over", "link.buffer=5,9"]
    line += ["--out", str(place / "m.zarr"), "--plot", str(place / "m.png")]
    two = [*line, "--over", "flow.rtt=40ms,60ms"]
    assert run([*two, "--map-of", "reno"]) == run(two) == 0
    assert asked == ["reno", None]
    assert run([*two, "--map-of", "ren"]) == run([*line, "--map-of", "reno"]) == 2
    said = capsys.readouterr().err
    assert "--map-of: 'ren' is not allowed; with --plot and two fields, one of vegas, reno" in said
    assert said.count("--map-of: ") == 2


def test_many_points_have_no_table_but_reasons(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command says that it prints no table, and why points have no answer."""
    line = ["sweep", str(place / "s.toml"), "--over", "link.buffer=5:12:1", "--model", "minicycle"]
    line += ["--over", "flow.vegas.alpha=1:6:1", "--over", "flow.vegas.beta=1:3:1"]
    assert run([*line, "--out", str(place / "many.zarr")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "No table is printed for more than 30 points" in said
    assert "many.zarr has their results" in said
    # beta below alpha: (alpha, beta) has 12 such pairs, each at 8 buffers, with 9 texts
    assert "96 of them: values not allowed together." in said
    assert said.count("No answer at 8 points: flow.beta: ") == 3
    assert "9 more reasons are in the variable reason." in said


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
    assert changed.links[0].queue.k == 3.0  # type: ignore[union-attr]
    assert changed.links[1].buffer == 9.0
    assert changed.flows[0].alpha == 2.0
    assert [member.rtt for member in changed.members] == [0.05, 0.05]
    assert changed.run.seed == 5
    with pytest.raises(FieldError, match="field"):
        fields.find(base, "link.queue.k")  # the two queues differ


def test_a_buffer_in_bandwidth_delay_products_follows_the_rtt() -> None:
    """It does in the file and along an axis."""
    text = MIXED.replace("VARIANT", "paper").replace('"20 pkt"', '"0.5 BDP"')
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
    ("flows", "name", "said"),
    [
        (5, "v", ""),
        (6, "v", "1 more flow is"),
        (9, "v", "4 more flows"),
        (5, "of_a_name_with_28_characters_", "3 more flows"),  # two columns of 31 fit 80 characters
    ],
)
def test_flows_without_a_column_are_counted(
    flows: int, name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = '[[link]]\ncapacity = "1000 pkt/s"\n'
    flow = '[[flow]]\nlaw = "vegas"\nname = "{}{}"\nrtt = "60 ms"\n'
    text = link + "".join(flow.format(name, i) for i in range(flows))
    (tmp_path / "s.toml").write_text(text)
    line = ["--over", "flow.rtt=40ms,60ms", "--out", str(tmp_path / "m.zarr"), "--model", "bands"]
    assert run(["sweep", str(tmp_path / "s.toml"), *line]) == 0
    out = capsys.readouterr().out
    rows = [line.split()[:2] for line in out.splitlines() if line.endswith("% ")]
    assert rows == [["40", "ms"], ["60", "ms"]]  # the field has a column
    shown = " ".join(out.split())
    assert ("not in the table" in shown) is bool(said)
    assert said in shown


def test_a_table_has_groups_if_not_all_flows_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three like flows share a column, so that the flow of the last group has one, too."""
    flow = (
        '[[flow]]\nlaw = "vegas"\nname = "{}"\nrtt = "60 ms"\ncount = {}\nalpha = {}\nbeta = {}\n'
    )
    groups = (("many", 3, 2, 2), ("two", 2, 3, 3), ("last", 1, 4, 4))
    text = '[[link]]\ncapacity = "1000 pkt/s"\n' + "".join(flow.format(*g) for g in groups)
    (tmp_path / "s.toml").write_text(text)
    line = ["sweep", str(tmp_path / "s.toml"), "--over", "flow.rtt=40ms", "--model", "equilibrium"]
    assert run([*line, "--out", str(tmp_path / "m.zarr")]) == 0
    out = capsys.readouterr().out
    (head,) = (words.split() for words in out.splitlines() if "many" in words and "two" in words)
    assert head[-5:] == ["many", "(3)", "two", "(2)", "last"]
    (row,) = (words.split() for words in out.splitlines() if words.endswith("% "))
    assert row[-6::2] == ["37.5", "37.5", "25.0"]  # rates are as alpha: 2, 2, 2, 3, 3 and 4 of 16
    assert "NAME (N) is a group of N flows" in " ".join(out.split())
    assert "not in the table" not in out


def test_points_with_too_few_runs_are_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark stands where ``predict`` says that ``enough-runs`` does not hold."""
    text = MIXED.replace("VARIANT", "ns2").replace('send_jitter = "0 s"\n', "")
    (tmp_path / "s.toml").write_text(text)
    line = ["sweep", str(tmp_path / "s.toml"), "--over", "link.buffer=3,12", "--model", "rounds"]
    line += ["--out", str(tmp_path / "m.zarr")]
    assert run(line) == 0
    shown = capsys.readouterr().out
    marked = [words[0] for words in map(str.split, shown.splitlines()) if "%*" in words]
    base, unsure = vm.Scenario.from_toml(text), []
    for buffer in ("3", "12"):
        found = vm.predict(base.replace({"link.buffer": float(buffer)}), "rounds")
        (note,) = (a for a in found.assumptions if a.name == "enough-runs")
        unsure += [] if note.holds else [buffer]
    assert marked == unsure
    assert len(unsure) == 1, "the test needs a point of each kind"
    assert run([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["too_few_runs"] == 1
    for most, said in ((2, "at 1 point (*): the 95 %"), (1, "at 1 point: the 95 %")):
        monkeypatch.setattr(study, "MAX_POINTS_SHOWN", most)  # with 1 there is no table, so no mark
        assert run(line) == 0
        assert said in " ".join(capsys.readouterr().out.split())


def test_the_assumptions_that_do_not_hold_are_named(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row has the letters of those that ``predict`` names there, and lines say which they are."""
    line = ["sweep", str(place / "s.toml"), "--over", "link.buffer=5,20", "--model", "minicycle"]
    line += ["--out", str(place / "m.zarr")]
    assert run(line) == 0
    shown = capsys.readouterr().out
    case = mixed().replace({"name": "s"})
    broken = {
        buffer: {
            each.name
            for each in vm.predict(case.replace({"link.buffer": buffer}), "minicycle").broken
        }
        for buffer in (5.0, 20.0)
    }
    assert "buffer-holds-bursts" in broken[5.0] - broken[20.0]
    meant = {
        words[0].removesuffix(":"): words[1]
        for words in map(str.split, shown.splitlines())
        if "does not hold at" in " ".join(words)
    }
    for words in map(str.split, shown.splitlines()):
        if words[:1] in (["5"], ["20"]):
            letters = [word for word in words[1:] if word in meant]
            assert {meant[letter] for letter in letters} == broken[float(words[0])]
    assert "buffer-holds-bursts does not hold at 1 of 2 points" in " ".join(shown.split())
    assert run([*line, "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["broken"]
    assert counts == {
        name: sum(name in names for names in broken.values()) for name in broken[5.0] | broken[20.0]
    }


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
    base = vm.Scenario([vm.Link(1000.0, buffer=20)], flows, run=vm.Run(200.0, 60.0))
    over = {key: values, "link.buffer": [4.0, 20.0, 60.0]}
    data = vm.sweep(base, over, "minicycle")
    assert len(set(data["broken"].values.flat)) > 1
    for i in np.ndindex(2, 3):
        made = base.replace({key: values[i[0]], "link.buffer": over["link.buffer"][i[1]]})
        names = sorted(each.name for each in vm.predict(made, "minicycle").broken)
        assert data["broken"].values[i] == " ".join(names)


def test_the_folder_of_a_version_without_the_names_is_refused(place: Path) -> None:
    out = place / "m.zarr"
    vm.sweep(mixed(), OVER[:1], "minicycle", out)
    shutil.rmtree(out / "broken")
    document = json.loads((out / "zarr.json").read_text())
    del document["consolidated_metadata"]["metadata"]["broken"]
    (out / "zarr.json").write_text(json.dumps(document))
    with pytest.raises(FieldError, match="another version wrote the sweep there"):
        vm.sweep(mixed(), OVER[:1], "minicycle", out)


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


def test_a_flow_that_sends_after_the_warm_up_in_some_runs_only_is_not_certain() -> None:
    """Its 700 packets last past the warm-up in one run of five; in the others it delivers none."""
    flows = (
        vm.Flow("reno", 0.05, name="reno", variant="ns2"),
        vm.Flow("cubic", 0.15, name="cubic", size=700.0, variant="ns2"),
    )
    run = vm.Run(30.0, 9.0, start_jitter=4.0)
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
        vm.sweep(case, over, models)  # type: ignore[arg-type]
    joined = xr.concat([vm.sweep(case, over, each) for each in models], "model")
    assert dict(joined["share"].sizes) == {"model": 2, "flow.rtt": 2, "flow": 1}
