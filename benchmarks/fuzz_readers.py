"""Fuzzes the trace readers: every mutated trace must be read or refused with a clear error.

    python benchmarks/fuzz_readers.py --count 1000000          # random edits of valid traces
    python benchmarks/fuzz_readers.py --guided --count 100000  # led by coverage: fuzz_guided.py

An input counts as "wrong" if its reader

- raises another exception than ``TraceError``, or a warning,
- gives an error message of several lines,
- takes over 2 s of CPU time, or over 500 MB of memory,
- starts a process, opens a connection, writes a file or compiles code.

Wrong inputs are kept in ``out/fuzz``, and the exit status is then 1.  One input in a thousand has
nearly a megabyte.

A process reads thousands of inputs, and its memory also holds the test tools and compiled code.  If
it exceeds 500 MB, the input is read again in a process that does nothing else, and the memory of
that process counts.  Memory that is not freed is measured for each batch; more than 50 MB in all is
wrong, too.
"""

import argparse
import codecs
import collections
import ctypes
import dataclasses
import gc
import importlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Generator, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pyarrow

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.packets import mutations, samples
from vegasmodel.packets import read
from vegasmodel.packets.reading import FORMATS
from vegasmodel.packets.trace import TraceError

BATCH = 1000  # inputs
SLOW = 2.0  # seconds of CPU time
MUCH = 500_000  # kB of memory, all that is loaded counted
KEPT = 50_000  # kB that all inputs together may leave behind in a process
LARGE = 0.001  # share of inputs of nearly a megabyte
KEEP = Path("out/fuzz")  # wrong inputs
# encodings of JSON files
JSON_IN = ("utf-8-sig", "utf-16", "utf-16-be", "utf-16-le", "utf-32", "utf-32-be", "utf-32-le")
# reads one file, and prints the peak memory of the process, kB
ALONE = """
import contextlib, pathlib, sys
from vegasmodel.packets import read
with contextlib.suppress(Exception):
    read(*sys.argv[1:])
print(pathlib.Path("/proc/self/status").read_text().partition("VmHWM:")[2].split(None, 1)[0])
"""
# how the names of audit events begin that a reader must not cause
FORBIDDEN = (
    "compile", "exec", "marshal.loads", "pickle.find_class", "os.exec", "os.fork", "os.posix_spawn",
    "os.system", "pty.spawn", "shutil.", "socket.", "subprocess.Popen", "ctypes.", "urllib.Request",
)  # fmt: skip


@dataclasses.dataclass
class Count:
    """Counts of inputs by outcome, and the greatest time and memory."""

    outcomes: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    slowest: float = 0.0
    largest: int = 0  # kB, the whole process while it read
    kept: int = 0  # kB that a process holds more than before its first input
    megabytes: int = 0  # inputs of more than half of one

    def add(self, other: "Count") -> None:
        """Add the counts of ``other``."""
        self.outcomes.update(other.outcomes)
        self.slowest = max(self.slowest, other.slowest)
        self.largest = max(self.largest, other.largest)
        self.kept = max(self.kept, other.kept)
        self.megabytes += other.megabytes

    def line(self, name: str) -> str:
        """The row of the summary table for the format ``name``."""
        counts = [self.outcomes[key] for key in ("read", "refused", "wrong")]
        figures = "".join(f"{value:10}" for value in (self.outcomes.total(), *counts))
        memory = "".join(f"{kilo / 1e3:10.0f}" for kilo in (self.largest, self.kept))
        return f"{name:10}{figures}{self.megabytes:10}{self.slowest:11.2f}{memory}"


TITLES = "".join(f"{title:>10}" for title in ("inputs", "read", "refused", "wrong", "> 0.5 MB"))
HEAD = f"{'':10}{TITLES}{'slowest, s':>11}{'peak, MB':>10}{'kept, MB':>10}"


class Watch:
    """Reads one input of a format after another, and counts the outcomes.

    ``feed`` reads an input.  Before the first one, valid samples are read, so that imports and
    compilation do not count for an input.  An audit hook notes what a reader must not do, such as
    opening a connection.  Make only one ``Watch`` in each process, because the hook cannot be
    removed.
    """

    def __init__(self, name: str, folder: Path) -> None:
        """Prepare to read inputs of the format ``name``; ``folder`` is for the files."""
        self.name, self.path, self.count = name, folder / "trace", Count()
        self.reading, self.forbidden = False, ""
        for reader in FORMATS:  # "auto" may take an input for another format's
            importlib.import_module(f"vegasmodel.packets.readers.{reader}")
        every = samples.every_format()
        # with "auto", a trace of one of these two formats may be read by the other one's reader
        lines = every["ns2_tr"] if name in ("ns3_ascii", "ns2_tr") else []
        for sample in [*lines, *every[name]]:  # imports and compiled code come first
            for data in (sample, sample[: len(sample) // 2], b"\0" + sample, b""):
                for form in ("auto", name):
                    self.path.write_bytes(data)
                    self.outcome(form)
        for encoding in JSON_IN:  # Python loads a module when it first meets one
            codecs.lookup(encoding)
        self.resting = _resting()  # kB in use before the first input
        sys.addaudithook(self.hook)
        warnings.simplefilter("error")  # a warning counts as an exception

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note an action that a reader must not do, such as starting a process (an audit hook)."""
        if not self.reading:
            return
        writes = (
            event == "open" and isinstance(arguments[1], str) and set("wax+") & set(arguments[1])
        )
        if writes or event.startswith(FORBIDDEN):
            self.forbidden = f"{event} {arguments[0]!r:.80}"

    def outcome(self, form: str) -> tuple[str, str]:
        """The outcome of one reading: ``read``, ``refused`` or ``wrong``, and why it is wrong."""
        try:
            read(self.path, form)
        except TraceError as error:
            message = str(error)
            clear = message.isascii() and message.isprintable() and len(message) <= 600
            return ("refused", "") if clear else ("wrong", f"message {message[:200]!r}")
        except Exception as error:
            return "wrong", repr(error)[:200]
        return "read", ""

    def feed(self, data: bytes, form: str) -> str:
        """Read one input; return what went wrong, or an empty text."""
        self.path.write_bytes(data)
        _forget_peak()
        self.reading, self.forbidden, begun = True, "", time.process_time()
        outcome, reason = self.outcome(form)
        took, self.reading = time.process_time() - begun, False
        memory = _peak()
        if memory > MUCH:
            memory = self.alone(form)
        if self.forbidden:
            outcome, reason = "wrong", self.forbidden
        elif took > SLOW:
            outcome, reason = "wrong", f"{took:.1f} s"
        elif memory > MUCH:
            outcome, reason = "wrong", f"{memory / 1e3:.0f} MB"
        self.count.outcomes[outcome] += 1
        self.count.slowest = max(self.count.slowest, took)
        self.count.largest = max(self.count.largest, memory)
        self.count.megabytes += len(data) > 500_000
        return reason

    def alone(self, form: str) -> int:
        """The memory, kB, of a new process that reads only this input."""
        command = [sys.executable, "-c", ALONE, str(self.path), form]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    def left(self) -> str:
        """A text if the inputs so far have left too much memory allocated, else an empty text."""
        self.count.kept = max(0, _resting() - self.resting)
        return f"{self.count.kept / 1e3:.0f} MB left behind" if self.count.kept > KEPT else ""


Batch = tuple[str, Count, list[str]]  # format, count, what went wrong


def _forget_peak() -> None:
    """Reset the process's peak memory, so that making the input does not count for its reader."""
    Path("/proc/self/clear_refs").write_text("5")


def _peak(field: str = "VmHWM") -> int:
    """The process's peak memory, kB, or with the field ``VmRSS`` its present memory."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{field}:")[2].split(None, 1)[0])


def _resting() -> int:
    """The memory in use, kB, after the allocators have returned free memory to the system."""
    gc.collect()
    pyarrow.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    return _peak("VmRSS")


def keep(data: bytes, name: str, number: str, reason: str) -> str:
    """Store an input that went wrong; return the line to print."""
    KEEP.mkdir(parents=True, exist_ok=True)
    path = KEEP / f"{name}-{number}"
    path.write_bytes(data)
    return f"{path}: {reason}"


_watches: dict[str, Watch] = {}  # the watch over each format's reader in this process


def made(name: str, sample: bytes, rng: random.Random) -> bytes:
    """A random input for the reader of the format ``name``.

    Mostly it is ``sample`` with random edits, and sometimes a trace of nearly a megabyte, with
    edits or without.
    """
    if rng.random() >= LARGE:
        return mutations.mutate(name, sample, rng)
    # pyarrow's usual pool keeps freed memory, which would count as left behind by a reader
    usual = pyarrow.default_memory_pool()
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    data = mutations.large(name, sample, rng)
    pyarrow.set_memory_pool(usual)
    return data if rng.random() < 0.5 else mutations.mutate(name, data, rng)


def batch(seed: int, name: str, folder: str) -> Batch:
    """Read ``BATCH`` mutated inputs of the format ``name``; return counts and what went wrong."""
    rng, wrong = random.Random(f"{seed} {name}"), []
    if name not in _watches:
        place = Path(folder) / f"{name}-{os.getpid()}"
        place.mkdir()
        _watches[name] = Watch(name, place)
    watch, valid = _watches[name], samples.every_format()[name]
    small = samples.every_format(packets=12, lines=30)[name]  # these are read faster
    watch.count = Count()
    for i in range(BATCH):
        data = made(name, rng.choice(small if rng.random() < 0.8 else valid), rng)
        # in one case of five the reader must find out the format itself
        reason = watch.feed(data, "auto" if rng.random() < 0.2 else name)
        if reason:
            wrong.append(keep(data, name, f"{seed}-{i}", reason))
    if reason := watch.left():
        wrong.append(f"{name}, batch {seed}: {reason}")
    return name, watch.count, wrong


def mutated(names: list[str], options: argparse.Namespace, folder: Path) -> Generator[Batch]:
    """Fuzz with random edits of valid traces, in several processes with one format each."""
    batches = -(-options.count // len(names) // BATCH)  # of each format, rounded up
    for name in names:
        yield from _of_format(name, batches, options, folder)


def _of_format(
    name: str, batches: int, options: argparse.Namespace, folder: Path
) -> Iterator[Batch]:
    """Run ``batches`` batches of the format ``name`` in parallel processes.

    If a process dies, the input that it was reading is stored.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.processes, context) as pool:
        seeds = (options.seed * 10**6 + i for i in range(batches))
        jobs = [pool.submit(batch, seed, name, str(folder)) for seed in seeds]
        try:
            for job in as_completed(jobs):
                yield job.result()
        except BrokenProcessPool:
            for left in folder.glob("*/trace"):
                print(keep(left.read_bytes(), left.parent.name, "killed", "a process died"))
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def guided(names: list[str], options: argparse.Namespace, folder: Path) -> Generator[Batch]:
    """Fuzz guided by coverage (``fuzz_guided.py``), in one process for each format."""
    share = -(-options.count // len(names))

    def one(name: str) -> Batch:
        """Fuzz one format in a new process, and read the counts that it has written."""
        (folder / name).mkdir()
        script = str(Path(__file__).with_name("fuzz_guided.py"))
        command = [sys.executable, script, name, str(share), str(options.seed), str(folder / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{name}: {done.stderr[-2000:]}")
        found = json.loads((folder / name / "count.json").read_text())
        return name, Count(collections.Counter(found[0]), *found[1:3]), found[3]

    with ThreadPoolExecutor(options.processes) as pool:
        yield from pool.map(one, names)


def main() -> int:
    """Fuzz all formats, add up the counts and print them; return 1 if an input went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument(
        "--guided", action="store_true", help="choose inputs by the code they reach; needs atheris"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this time")
    parser.add_argument(
        "--format", choices=list(samples.every_format()), help="test this format only"
    )
    options = parser.parse_args()
    if options.processes < 1:
        parser.error(f"--processes: '{options.processes}' is not allowed; 1 or more")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    names = [options.format] if options.format else list(samples.every_format())
    counts = {name: Count() for name in names}
    failed, begun = 0, time.perf_counter()
    memory = "/dev/shm"  # noqa: S108 - a folder of its own is made there
    with tempfile.TemporaryDirectory(dir=memory if Path(memory).is_dir() else None) as folder:
        batches = (guided if options.guided else mutated)(names, options, Path(folder))
        try:
            for name, count, wrong in batches:
                counts[name].add(count)
                failed += len(wrong)
                print(*wrong, sep="\n", end="\n" * bool(wrong), flush=True)
                if time.perf_counter() - begun > 60 * options.minutes:
                    break
        except KeyboardInterrupt:
            print("interrupted")
        batches.close()
    print(HEAD)
    total = Count()
    for name in names:
        print(counts[name].line(name))
        total.add(counts[name])
    print(total.line("all"))
    print(f"seed {options.seed}, {time.perf_counter() - begun:.0f} s; allowed: {SLOW:g} s, 500 MB")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
