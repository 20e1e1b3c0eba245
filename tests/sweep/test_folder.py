"""The stored results of a sweep: killed and run again, on a full disk, by several processes."""

import errno
import filecmp
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import vegasmodel as vm
from tests.helpers import MIXED
from tests.sweep.scenes import OVER, RUN, file_of, mixed
from vegasmodel import laws
from vegasmodel.command_line.commands import run
from vegasmodel.fields.errors import FieldError
from vegasmodel.study import points, store
from vegasmodel.study import sweep as sweeps


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def same_files(a: Path, b: Path) -> bool:
    _, different, missing = filecmp.cmpfiles(a, b, sorted(files(a)), shallow=False)
    return files(a) == files(b) and not different and not missing


LARGE = "link.buffer=1:60:0.01"


SLOW = """
import sys
from pathlib import Path
import vegasmodel as vm
from vegasmodel.study import sweep
sweep.POINTS_PER_BLOCK["arrays"] = 8
vm.sweep(vm.load(sys.argv[1]), sys.argv[3:], "minicycle", sys.argv[2])
"""


def started(place: Path, out: str) -> subprocess.Popen[bytes]:
    line = [sys.executable, "-c", SLOW, "s.toml", out, *OVER]
    return subprocess.Popen(line, cwd=place)


def test_killed_at_any_moment_and_run_again_it_is_the_same(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal bit for bit; blocks that were written are not written again."""
    monkeypatch.setitem(sweeps.POINTS_PER_BLOCK, "arrays", 8)
    scenario = vm.load(place / "s.toml")
    vm.sweep(scenario, OVER, "minicycle", place / "whole.zarr")
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
    vm.sweep(scenario, OVER, "minicycle", place / "again.zarr")
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

    monkeypatch.setitem(sweeps.POINTS_PER_BLOCK, "arrays", 3)
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


OWN = """
import vegasmodel as vm
GAIN = {gain}
def grown(f):
    return {inner}
@vm.register_law("own", decrease={decrease})
def own(f):
    "{doc}"
    return GAIN * grown(f)
"""
UNUSED = """
@vm.register_law("unused")
def unused(f):
    return {0}
"""
FIRST = {"gain": 1.0, "inner": "1.0", "decrease": 0.5, "doc": "Grows."}


def with_own_law(place: Path, text: str) -> int:
    """The exit status of a sweep of a scenario with the law of a file, which has this text."""
    scenario = MIXED.replace('law = "reno"', 'law = "own"') + RUN
    (place / "own.toml").write_text(scenario)
    (place / "own.py").write_text(text)
    line = ["sweep", "own.toml", "--over", "link.buffer=10,20", "--model", "fluid"]
    return run([*line, "--laws", "own.py", "--out", "law.zarr"])


@pytest.mark.parametrize(
    "edited",
    [{"gain": 8.0}, {"inner": "8.0"}, {"inner": "f.window / 4"}, {"decrease": 0.75}],
    ids=str,
)
def test_a_sweep_does_not_go_on_with_an_edited_law(
    edited: dict[str, Any],
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The sweep goes on if only a comment, or a law that it does not use, has changed."""
    monkeypatch.chdir(place)
    assert with_own_law(place, OWN.format(**FIRST) + UNUSED.format(1)) == 0
    laws._files.clear()  # as in a new process
    commented = OWN.format(**(FIRST | {"doc": "It grows."})).replace("GAIN =", "# of ours\nGAIN =")
    assert with_own_law(place, commented + UNUSED.format(2)) == 0
    laws._files.clear()
    capsys.readouterr()
    assert with_own_law(place, OWN.format(**(FIRST | edited)) + UNUSED.format(1)) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "holds another sweep; give a new name: the code of a law differs, own=" in said


def test_a_sweep_with_a_law_of_unknown_code_is_not_continued(place: Path) -> None:
    """Earlier versions did not store the digests of laws. Other sweeps go on all the same."""
    vm.register_law("own", lambda f: 1.0)
    own = vm.Scenario.from_toml(file_of().replace('law = "reno"', 'law = "own"'))
    for name, scenario in (("own.zarr", own), ("reno.zarr", mixed())):
        out = place / name
        vm.sweep(scenario, {"link.buffer": [10, 20]}, "fluid", out)
        meta = json.loads((out / "zarr.json").read_text())
        known = meta["attributes"].pop("laws", None)
        assert (known is None) == (scenario is not own)
        (out / "zarr.json").write_text(json.dumps(meta))
    vm.sweep(mixed(), {"link.buffer": [10, 20]}, "fluid", place / "reno.zarr")
    with pytest.raises(FieldError, match="the code of a law differs, nothing there and own="):
        vm.sweep(own, {"link.buffer": [10, 20]}, "fluid", place / "own.zarr")


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        (
            "5:60:1",
            "5:61:1",
            r"link\.buffer=\.\.,60\.0 there and link\.buffer=\.\.,60\.0,61\.0 now",
        ),
        ("5:60:1", "5:60:2", r"link\.buffer=5\.0,6\.0,.* there and link\.buffer=5\.0,7\.0,.* now"),
        ("1:20:0.01", "1:21:0.01", r"=1\.0,\.\.,20\.0,.* there and link\.buffer=1\.0,\.\.,21\.0,"),
    ],
)
def test_the_first_difference_from_another_sweep_is_shown(
    first: str, then: str, said: str, place: Path
) -> None:
    """In one case the two lists begin alike, and are longer than the message."""
    vm.sweep(mixed(), [f"link.buffer={first}"], "minicycle", place / "a.zarr")
    with pytest.raises(FieldError, match=said):
        vm.sweep(mixed(), [f"link.buffer={then}"], "minicycle", place / "a.zarr")


def test_the_first_difference_of_a_long_line_of_the_scenario_is_shown(place: Path) -> None:
    name = "a long name of a scenario, which is longer than the message may be: "
    for last in ("one", "two"):
        scenario = mixed().replace(name=name + last)
        if last == "one":
            vm.sweep(scenario, OVER[:1], "minicycle", place / "a.zarr")
    with pytest.raises(FieldError, match=r'name = ?\.\..*one" there and name = ?\.\..*two" now'):
        vm.sweep(scenario, OVER[:1], "minicycle", place / "a.zarr")


def test_blocks_do_not_change_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = vm.sweep(mixed(), OVER, "minicycle")
    monkeypatch.setitem(sweeps.POINTS_PER_BLOCK, "arrays", 37)
    xr.testing.assert_identical(whole, vm.sweep(mixed(), OVER, "minicycle"))


def test_two_processes_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sweeps.POINTS_PER_BLOCK, "closed", 3)
    over = ["flow.vegas.count=1:10:1"]
    one = vm.sweep(mixed(), over, "minicycle")
    xr.testing.assert_identical(one, vm.sweep(mixed(), over, "minicycle", processes=2))


def test_a_cluster_gives_the_same_though_a_worker_dies(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setitem(sweeps.POINTS_PER_BLOCK, "closed", 2)
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


def test_the_folder_of_a_version_without_the_names_is_refused(place: Path) -> None:
    out = place / "m.zarr"
    vm.sweep(mixed(), OVER[:1], "minicycle", out)
    shutil.rmtree(out / "broken")
    document = json.loads((out / "zarr.json").read_text())
    del document["consolidated_metadata"]["metadata"]["broken"]
    (out / "zarr.json").write_text(json.dumps(document))
    with pytest.raises(FieldError, match="another version wrote the sweep there"):
        vm.sweep(mixed(), OVER[:1], "minicycle", out)


def test_random_points_of_another_seed_are_another_sweep(tmp_path: Path) -> None:
    over, out = {"link.buffer": "5..60"}, tmp_path / "random.zarr"
    first = vm.sweep(mixed(), over, "minicycle", out, draw=20, seed=1)
    assert (first.attrs["draw"], first.attrs["seed"]) == (20, 1)
    again = vm.sweep(mixed(), over, "minicycle", out, draw=20, seed=1)
    np.testing.assert_array_equal(again["link.buffer"], first["link.buffer"])
    with pytest.raises(FieldError, match="the seed differs, 1 there and 2 now"):
        vm.sweep(mixed(), over, "minicycle", out, draw=20, seed=2)
    with pytest.raises(FieldError, match=r"the number of random points \(draw\) differs, 20 there"):
        vm.sweep(mixed(), over, "minicycle", out, draw=21, seed=1)
