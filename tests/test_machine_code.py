"""Compiled functions follow changes of their sources, whatever caches and clocks say."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vegasmodel.support import machine_code

Answer = Callable[..., tuple[int, int]]

CALLEE = """
from pkg.support.machine_code import compiled
from pkg.deep.constants import FACTOR

@compiled
def part(x):
    return FACTOR * x
"""
CALLER = """
import sys
from pkg.deep.callee import part
from pkg.support.machine_code import compiled

@compiled
def whole(x):
    return part(x) + 1

print(whole(10), sum(whole.stats.cache_hits.values()))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A caller, its callee in another file and a constant in a third, compiled as ours are."""
    folder = tmp_path / "pkg"
    for place in (folder, folder / "deep", folder / "support"):
        place.mkdir()
        (place / "__init__.py").touch()
    shutil.copy(machine_code.__file__, folder / "support" / "machine_code.py")
    (folder / "deep" / "callee.py").write_text(CALLEE)
    (folder / "main.py").write_text(CALLER)
    constant(folder, 2)
    return folder


def constant(folder: Path, factor: int, age: float = 0.0) -> None:
    path = folder / "deep" / "constants.py"
    path.write_text(f"FACTOR = {factor}\n")
    then = time.time() - age
    os.utime(path, (then, then))


DRIVER = """
import importlib, json, os, resource, signal, sys
import numba

numba.njit(lambda x: 2 * x)(1)  # what the first compilation loads

for line in sys.stdin:  # a process each, and Numba loaded but once
    folder, cache, largest = json.loads(line)
    if os.fork() == 0:
        sys.dont_write_bytecode = True
        sys.path.insert(0, folder)
        numba.config.CACHE_DIR = cache
        if largest is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
        try:
            importlib.import_module("pkg.main")
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.wait()
    print("done", flush=True)
"""


@pytest.fixture(scope="module")
def driver() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", DRIVER],
        env={**os.environ, "HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


@pytest.fixture
def printed(package: Path, driver: subprocess.Popen[str]) -> Callable[..., str]:
    """The line that ``main.py`` of the package prints in a new process."""

    def ask(cache: str = "", largest: int | None = None) -> str:
        assert driver.stdin is not None
        print(json.dumps([str(package.parent), cache, largest]), file=driver.stdin, flush=True)
        line = driver.stdout.readline()
        assert driver.stdout.readline() == "done\n"
        return line

    return ask


@pytest.fixture
def answer(printed: Callable[..., str]) -> Answer:
    """The caller's result for 10 in a new process, and how often compiled code was found."""

    def ask(cache: str = "", largest: int | None = None) -> tuple[int, int]:
        value, hits = printed(cache, largest).split()
        return int(value), int(hits)

    return ask


@pytest.mark.parametrize("chosen", [False, True])
def test_a_change_two_files_away_is_seen_whatever_its_time(
    package: Path, answer: Answer, chosen: bool
) -> None:
    place = str(package.parent / "cache") if chosen else ""
    constant(package, 2, age=3600)
    assert answer(place) == (21, 0)
    assert answer(place) == (21, 1)  # kept
    constant(package, 3, age=1800)  # older than the compiled code
    assert answer(place) == (31, 0)
    constant(package, 2, age=7200)  # rolled back
    assert answer(place)[0] == 21
    assert answer(place) == (21, 1)


def test_a_source_from_the_future_is_compiled_once(package: Path, answer: Answer) -> None:
    constant(package, 2, age=-1e6)
    assert answer() == (21, 0)
    assert answer() == (21, 1)


def test_old_code_is_cleared_away_and_that_of_others_is_not(package: Path, answer: Answer) -> None:
    answer()
    kept = package / "__pycache__"
    foreign = kept / "other.f-1.py311.nbi"
    foreign.touch()
    before = {path.name for path in kept.glob("*.nb?")}
    assert len(before) == 3  # index and code of the caller; the callee's stand in its own folder
    constant(package, 3)
    answer()
    assert len({path.name for path in kept.glob("*.nb?")}) == 3
    assert {path.name for path in kept.glob("*.nb?")} & before == {foreign.name}


def test_functions_of_one_folder_leave_each_other_s_code_alone(
    package: Path, answer: Answer
) -> None:
    """The caller depends on more files than its callee, so their digests differ."""
    (package / "callee.py").write_text(CALLEE)
    (package / "main.py").write_text(CALLER.replace("pkg.deep.callee", "pkg.callee"))
    assert answer() == (21, 0)
    assert len(list((package / "__pycache__").glob("*.nbi"))) == 2
    (package / "other.py").write_text(CALLEE.replace("FACTOR * x", "x"))
    (package / "main.py").write_text(
        (package / "main.py").read_text() + "import pkg.other\npkg.other.part(1)\n"
    )
    answer()
    assert answer() == (21, 1)


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", b"\x80\x05garbage", None])
def test_damaged_code_is_compiled_again(
    package: Path, answer: Answer, suffix: str, content: bytes | None
) -> None:
    answer()
    for path in (package / "__pycache__").glob(f"*.{suffix}"):
        path.write_bytes(path.read_bytes()[:-100] if content is None else content)
    assert answer() == (21, 0)
    assert answer() == (21, 1)


def test_no_place_for_compiled_code_costs_time_only(package: Path, answer: Answer) -> None:
    for folder in (package, package / "deep"):
        (folder / "__pycache__").touch()  # a file: no folder can stand there
    assert answer(cache="/proc/none") == (21, 0)


def test_a_full_place_for_compiled_code_costs_time_only(answer: Answer) -> None:
    assert answer(largest=0) == (21, 0)


def test_a_file_that_changes_while_a_process_runs_is_read_again(tmp_path: Path) -> None:
    file, found = tmp_path / "source.py", set()
    for k in (1, 22, 333):
        file.write_text(f"FACTOR = {k}\n")
        machine_code.digest.cache_clear()
        found.add(machine_code.digest(file))
    assert len(found) == 3


def test_a_file_that_is_not_imported_does_not_matter(package: Path, answer: Answer) -> None:
    answer()
    (package / "deep" / "other.py").write_text("FACTOR = 7\n")
    assert answer() == (21, 1)


@pytest.mark.parametrize(
    "line",
    [
        "from pkg.deep import constants",
        "from . import constants",
        "from .constants import *",
        "from pkg.deep import (  # (a remark)\n    constants,\n)",
        "from pkg.deep import \\\n    constants",
        "if True: import pkg.deep.constants",
        "ONE = 1; import pkg.deep.constants",
        '"""\nimport of constants\n"""\nfrom . import constants',
    ],
)
def test_whatever_way_a_file_is_imported(
    package: Path, printed: Callable[..., str], line: str
) -> None:
    (package / "main.py").write_text(
        "import pkg.deep.callee, pkg.support.machine_code as m\n"
        "print(m.digest(pkg.deep.callee.__file__))\n"
    )
    callee = package / "deep" / "callee.py"
    callee.write_text(
        CALLEE.replace("from pkg.deep.constants import FACTOR", f"{line}\nFACTOR = 1")
    )
    digests = set()
    for factor in (2, 3):
        constant(package, factor)
        digests.add(printed())
    assert len(digests) == 2


def test_no_kernel_depends_on_what_people_edit_daily() -> None:
    """An edit of the command line or of a closed form never recompiles the simulators."""
    from vegasmodel.engines.rounds import kernel
    from vegasmodel.packets.readers import ns2_kernel

    for module in (kernel, ns2_kernel):
        sources = machine_code.sources(Path(str(module.__file__)))
        assert Path(str(module.__file__)) in sources
        folders = {path.relative_to(machine_code.ROOT).parts[0] for path in sources}
        assert not folders & {"command_line", "report", "adapters", "equilibrium", "scenario"}
