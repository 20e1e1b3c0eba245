"""Tests every command of the bare wheel: without extras, simulators, HOME, terminal or UTF-8.

    scripts/bare_wheel.py

The script builds the wheel and installs it with its locked dependencies, and nothing else, into an
empty environment.  It runs the commands in a folder with a space in its name.  A command must
answer, or say in one line what is missing and end with exit status 2.  Then it installs the paper
checks beside the library and runs their command.  The machine code and the bytecode that this
checkout has compiled are copied into the environment, because compiling takes a minute and is not
part of the test.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
LIMIT = 900  # s a command, which may compile on a busy machine
RUN = '[run]\nduration = "10 s"\nwarmup = "3 s"\n'
VEGAS = '[[flow]]\nname = "Végas"\nlaw = "vegas"\nrtt = "40 ms"\nvariant = "ns2"\n'
RENO = '[[flow]]\nlaw = "reno"\nrtt = "40 ms"\n'
SCENARIOS = {
    "one.toml": f'[[link]]\ncapacity = "250 pkt/s"\nbuffer = "9 pkt"\n{VEGAS}{RENO}{RUN}',
    "two.toml": '[[link]]\nname = "a"\ncapacity = "250 pkt/s"\n'
    f'[[link]]\nname = "b"\ncapacity = "300 pkt/s"\n{VEGAS}{RUN}',
}
POOR = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}  # ASCII; HOME is not set
NOWHERE = {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}  # nobody can write there
# prints the names of all commands
COMMANDS = """
from vegasmodel.command_line.commands import app
for name in app.commands:
    print(name)
"""
# calls Python functions that need an extra, which must say so
NEED_EXTRAS = """
import vegasmodel as vm
from vegasmodel.engines.fluid import batch
from vegasmodel.equilibrium import network
def missed(ask):
    try:
        ask()
    except ImportError as missing:
        assert "pip install 'vegasmodel[" in str(missing), missing
    else:
        raise SystemExit("an extra is there that should not be")
missed(lambda: vm.plots.save)
missed(lambda: vm.symbolic)
missed(lambda: network.solve([[1.0], [1.0]], [1.0, 2.0], [1.0]))
missed(lambda: vm.predict(vm.load("two.toml"), "network"))
missed(lambda: batch.run([vm.load("one.toml")], engine="jax"))
"""


class Try(NamedTuple):
    """A command line, its expected exit status, and a text expected in its line of error."""

    line: str
    status: int = 0
    says: str = ""


TRIES = (  # without extras and simulators
    Try("--version"),
    Try("completion bash"),
    Try("ratio --capacity 1080pkt/s --buffer 20pkt vegas:alpha=3,beta=3 reno"),
    Try("ratio --capacity 1080pkt/s vegas reno --plot p.png", 2, "vegasmodel[plot]"),
    Try("predict one.toml"),
    Try("predict one.toml --model all --json"),
    Try("predict one.toml --plot p.png", 2, "vegasmodel[plot]"),
    Try("predict two.toml"),
    Try("predict two.toml --model network", 2, "vegasmodel[network]"),
    Try("design one.toml --solve link.buffer --for jain=0.9 --model minicycle --verify none"),
    Try("design one.toml --solve link.buffer --for jain=0.9 --model ns2", 2, "ns-2 is not inst"),
    Try("sweep one.toml --over link.buffer=5,6 --out a.zarr", 2, "vegasmodel[sweep]"),
    Try("sweep one.toml --over link.buffer=5,6 --out a --engine dask", 2, "vegasmodel[dask]"),
    Try("basins one.toml --starts 5 --model fluid"),
    Try("basins one.toml --starts 5 --model fluid --against ns2", 2, "ns-2 is not installed"),
    Try("stability one.toml --json"),
    Try("map rtt-bias --out p.png", 2, "vegasmodel[plot]"),
    Try("simulate one.toml --out a.parquet"),
    Try("simulate one.toml --model fluid"),
    Try("simulate one.toml --model delayed --json"),
    Try("simulate one.toml --plot p.png", 2, "vegasmodel[plot]"),
    Try("measure one.toml", 2, "ns-2 is not installed"),
    Try("measure one.toml --engine ns3", 2, "g++"),  # ns-3 itself may be the machine's
    Try("measure one.toml --plot p.png", 2, "vegasmodel[plot]"),
    Try("compare one.toml", 2, "ns-2 is not installed"),
    Try("compare one.toml --plot p.png", 2, "vegasmodel[plot]"),
    Try("compare one.toml --trace given.parquet"),
    Try("convert given.parquet --out b.parquet"),
    Try("new mine.toml"),
    Try("predict mine.toml --model rounds"),
    Try("inspect given.parquet --json"),
    Try("explain minicycle"),
    Try("paper devendictis", 2, "pip install ./paper_checks"),
    Try("equilibrium --capacity 250pkt/s --over-estimate 0ms,16.2ms"),
    Try("arrivals --n 20"),
    Try("rd --rate 100 --delay 100 --capacity 100Mbit/s --buffer 3125pkt"),
)

WITH_PAPERS = (  # with the paper checks installed, too
    Try("paper devendictis", 1, "discrepant"),
    Try("paper devendictis --html p.html", 2, "vegasmodel[report]"),
    Try("paper boutremans --live", 2, "ns-2 is not installed"),
)


def main() -> int:
    """Build, install and run all commands; return 1 if anything went wrong."""
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="bare wheel ") as name,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        papers = pool.submit(build_papers, Path(name))
        python = install(Path(name))
        folder = Path(name) / "of its own"
        folder.mkdir()
        for file, text in SCENARIOS.items():
            (folder / file).write_text(text, encoding="utf-8")
        complaints = judge(python, folder, Try("simulate one.toml --out given.parquet"))
        for found in pool.map(lambda one: judge(python, folder, one), TRIES):
            complaints += found
        add = [str(BIN / "uv"), "pip", "install", "--python", str(python), "--no-deps", "--offline"]
        work([*add, str(papers.result())])
        last = [pool.submit(judge, python, folder, one) for one in WITH_PAPERS]
        last.append(pool.submit(judge, python, folder, Try("predict one.toml"), NOWHERE))
        last.append(pool.submit(inside, python, folder))
        for job in last:
            complaints += job.result()
    for complaint in complaints:
        print(f"bare wheel: {complaint}", file=sys.stderr)
    seconds = time.monotonic() - began
    tries = len(TRIES) + len(WITH_PAPERS)
    print(f"bare wheel: {tries} command lines, {len(complaints)} faults, {seconds:.0f} s")
    return int(bool(complaints))


def install(place: Path) -> Path:
    """Make an environment with the bare wheel of this working tree; return its Python.

    The environment, the wheel and all files that are needed for them are made in ``place``.
    """
    source, venv, uv = place / "source", place / "venv", str(BIN / "uv")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "vegasmodel", source / "vegasmodel", ignore=ignored)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / file, source)
    python = ["--python", sys.executable]
    work([uv, "build", "--wheel", "--no-build-isolation", *python, "-o", str(place), str(source)])
    (wheel,) = place.glob("*.whl")
    wanted = place / "wanted.txt"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    wanted.write_text(f"vegasmodel @ {wheel.as_uri()} --hash=sha256:{digest}\n")
    work([uv, "venv", *python, str(venv)])
    lock = ["--require-hashes", "--constraint", str(ROOT / "requirements.lock")]
    pip = [uv, "pip", "install", "--python", str(venv / "bin" / "python"), *lock]
    pip += ["--requirement", str(wanted)]
    try:
        work([*pip, "--offline"])  # the set-up has fetched what is needed
    except subprocess.CalledProcessError:
        work(pip)
    (package,) = venv.glob("lib/python*/site-packages/vegasmodel")
    for file in package.rglob("*.py"):  # compiled code is valid only for sources of the same time
        shutil.copystat(ROOT / "vegasmodel" / file.relative_to(package), file)
    copy_compiled_code(ROOT / "vegasmodel", package)
    libraries = Path(sysconfig.get_path("purelib"))
    for folder in package.parent.iterdir():
        if folder.is_dir() and folder != package:
            copy_compiled_code(libraries / folder.name, folder)
    return venv / "bin" / "python"


def copy_compiled_code(source: Path, target: Path) -> None:
    """Copy the bytecode and the machine code of a package to another copy of the package.

    ``source`` and ``target`` are the folders of the two copies.
    """
    for made in source.rglob("__pycache__/*"):
        place = target / made.relative_to(source)
        if place.parent.parent.is_dir():  # the source may have folders that no longer exist
            place.parent.mkdir(exist_ok=True)
            shutil.copy2(made, place)


def build_papers(place: Path) -> Path:
    """Build the wheel of the paper checks, which are a separate distribution; return its path.

    The sources are copied to ``place`` and built there.
    """
    source, uv = place / "papers", str(BIN / "uv")
    shutil.copytree(ROOT / "paper_checks", source, ignore=shutil.ignore_patterns("__pycache__"))
    build = [uv, "build", "--wheel", "--no-build-isolation", "--python", sys.executable]
    work([*build, "-o", str(place / "built"), str(source)])
    (wheel,) = (place / "built").glob("*.whl")
    return wheel


def work(command: Sequence[str]) -> None:
    """Run a command of the set-up; print its output if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
        done.check_returncode()


def judge(python: Path, folder: Path, one: Try, more: dict[str, str] | None = None) -> list[str]:
    """Run a command line; return what is wrong with its exit status and its output.

    A command that fails must print one line on standard error, and one that succeeds none.  Only
    after bad input (status 2) standard output must be empty.  ``python`` is that of the environment
    with the wheel, and the command runs in ``folder``.  ``more`` are additional environment
    variables.
    """
    command = [str(python.with_name("vegasmodel")), *one.line.split()]
    done = call(command, folder, more or {})
    said = done.stderr.splitlines()
    wrong = []
    if done.returncode != one.status:
        wrong.append(f"exit status {done.returncode}, not {one.status}")
    if len(said) != (1 if one.status else 0) or one.says not in done.stderr:
        wrong.append(f"{len(said)} lines on standard error, the last: {said[-1:]}")
    if (done.stdout == "") != (one.status == 2):
        wrong.append(f"{len(done.stdout.splitlines())} lines on standard output")
    return [f"{one.line}: {fault}" for fault in wrong]


def inside(python: Path, folder: Path) -> list[str]:
    """Faults outside the command lines: Python functions that need extras, untested commands.

    ``python`` is that of the environment with the wheel; it runs in ``folder``.
    """
    functions = call([str(python), "-c", NEED_EXTRAS], folder, {})
    names = call([str(python), "-c", COMMANDS], folder, {}).stdout.split()
    tried = {one.line.split()[0] for one in TRIES}
    faults = [f"no try of the command {name!r}" for name in names if name not in tried]
    if not names:
        faults.append("the commands are not known")
    if functions.returncode:
        faults.append(f"from Python: {functions.stderr.splitlines()[-1:]}")
    return faults


def call(
    command: Sequence[str], folder: Path, more: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command in ``folder``, without a terminal and with few environment variables.

    These are a short list, and those in ``more``.
    """
    return subprocess.run(
        command,
        cwd=folder,
        env={"PATH": str(Path(command[0]).parent), **POOR, **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=LIMIT,
        check=False,
    )


if __name__ == "__main__":
    raise SystemExit(main())
