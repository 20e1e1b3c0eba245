"""Fixtures for all tests, and an option to run them as on a machine without simulators."""

import os

# NumPy's library of linear algebra (OpenBLAS) starts a thread for each core, and an idle thread
# keeps its core busy for a while. The tests start hundreds of processes, so each gets one thread.
# OpenBLAS reads the variable when it is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

from vegasmodel import laws
from vegasmodel.packets import ns3_build

# What compiles or lasts longest begins: two workers then seldom compile the same code at once, and
# none is left alone at the end.
FIRST = (
    "tests/test_predictor.py",  # `rounds`
    "tests/fluid/test_continuous.py",  # `fluid`, `delayed`
    "tests/equilibrium/test_secular.py",
    "tests/sweep/test_folder.py",
    "tests/fluid/test_batch.py",
    "tests/test_paper_checks.py",
    "tests/test_notebooks.py",
    "tests/packets/test_ns3_run.py",
)
ENGINES = ("ns", "g++", "c++", "gcc", "cc", "qemu-system-x86_64")  # programs


@pytest.fixture(autouse=True)
def no_own_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins without user-defined laws, and leaves none behind."""
    monkeypatch.setattr(laws, "_registered", {})
    monkeypatch.setattr(laws, "_files", {})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--hide-engines",
        action="store_true",
        help="run as if ns-2, ns-3 and a compiler were not installed",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Hide the simulators from this process and from the processes that it starts.

    A background job of a shell ignores Ctrl-C, and so would the processes that it starts; but tests
    send Ctrl-C to them.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not config.getoption("--hide-engines"):
        return
    sys.modules["ns3"] = None  # an import finds nothing
    ns3_build.find = lambda: None  # ns-3 of the machine is not found
    if hasattr(config, "workerinput"):
        return  # the first process has hidden the programs already
    folder = tempfile.TemporaryDirectory(prefix="vegasmodel-bin-")
    config.add_cleanup(folder.cleanup)
    for place in reversed(os.environ["PATH"].split(os.pathsep)):  # the first one counts
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            link = Path(folder.name) / program.name
            link.unlink(missing_ok=True)
            if program.name not in ENGINES:
                link.symlink_to(program)
    os.environ["PATH"] = folder.name


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let every second worker import the test files in the opposite order.

    In a new clone, Python and pytest compile each file at its first import and keep the result. Two
    workers that import in the same order would compile every file twice.
    """
    report = yield
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    if isinstance(collector, pytest.Directory) and int(worker.removeprefix("gw")) % 2:
        report.result.reverse()
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files.

    If a real simulator is missing, one line says so for all tests that need it.
    """
    file = {item: item.nodeid.partition("::")[0] for item in items}
    tests = Counter(file.values())
    rank = {name: i for i, name in enumerate(FIRST)}
    items.sort(key=lambda item: (rank.get(file[item], len(FIRST)), -tests[file[item]], file[item]))
    missing = {
        "ns2": shutil.which("ns") is None and "ns-2 is not installed: apt-get install ns2",
        "ns3": not (ns3_build.find() and shutil.which("g++"))
        and "ns-3 is not installed: apt-get install libns3-dev g++",
    }
    for item in items:
        for engine, reason in missing.items():
            if reason and engine in item.keywords:
                item.add_marker(pytest.mark.skip(reason=reason))  # that of ``missing``
