"""Tests every command under faults: signals at random moments, full disk, no home, no output.

    python scripts/fault_campaign.py --times 20

A run is wrong in these cases:

- It prints a traceback, or more than one line on standard error.
- It ends with an exit status that is not specified for the fault.
- It takes more than 2 s to end after a signal.
- It leaves a process, a temporary file or an incomplete result behind.

The exit status of the script is 1 if a run is wrong.

To test a full disk, the script mounts a small disk and fills it.  Only root may do so; for other
users a limit keeps files from growing instead.  A signal is sent only when the command has
installed its signal handlers: before that, Python itself handles the signal.
"""

import argparse
import contextlib
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from scripts.kill_campaign import SCENARIO
from vegasmodel.command_line.commands import app

ROOT = Path(__file__).resolve().parent.parent
PROMPT = 2.0  # s that a command may take to end after a signal, without waits for the processor
PATIENCE = 120.0  # s after which a command that does not end after a signal is killed
TRACE = ROOT / "vegasmodel/packets/reference/linux/e1a_2M_40ms_a3b3.parquet"
LINUX = ROOT / "paper_checks/linux/e1a_2M_40ms_a3b3.toml"
COMMANDS = (
    "ratio --capacity 1080pkt/s --buffer 20pkt vegas reno --plot out.png",
    "predict s.toml",
    "predict s.toml --model all --json",
    "simulate s.toml --model fluid --out out.parquet --plot out.png",
    "simulate long.toml --model rounds --out out.parquet",
    "measure long.toml --json",
    "measure s.toml --out out.parquet",
    "compare s.toml --json --plot out.svg",
    f"compare {shlex.quote(str(LINUX))} --trace {shlex.quote(str(TRACE))}",
    f"convert {shlex.quote(str(TRACE))} --out out.parquet",
    "equilibrium --capacity 250pkt/s --over-estimate 0ms,16.2ms",
    "arrivals --n 2000",
    "rd --rate 100 --delay 100 --capacity 100Mbit/s --buffer 3125pkt",
    "paper boutremans",
    "sweep s.toml --over link.buffer=5:20:5 --model minicycle --out out.zarr",
    "design s.toml --solve link.buffer --for jain=0.9 --model minicycle --verify none --json",
    "new out.toml",
    f"inspect {shlex.quote(str(TRACE))} --json",
    "explain minicycle",
    "basins s.toml --starts 5 --model fluid",
    "stability s.toml --json",
    "map rtt-bias --out out.png",
    "completion bash",
)
# the exit status of a command that a signal has ended
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}
# the signals of successive runs, in turn
TURNS = (signal.SIGINT, signal.SIGTERM) * 2 + (signal.SIGKILL,)


class End(NamedTuple):
    """The end of a run: exit status, text on standard error, and seconds taken."""

    status: int
    said: str  # on standard error
    seconds: float  # from the signal, or from the start


class Place:
    """The folders of one run: the working folder, and the folder for temporary files.

    ``mark`` is in the environment of the run's processes, by which they are found; ``given`` has
    the names of the files that are there before the run.
    """

    def __init__(self, folder: Path) -> None:
        self.work, self.scratch = folder / "work", folder / "scratch"
        self.mark = f"vegasmodel-fault-{uuid.uuid4().hex}"
        for path in (self.work, self.scratch):
            path.mkdir(parents=True)
        (self.work / "s.toml").write_text(SCENARIO.format(seconds=60))
        (self.work / "long.toml").write_text(SCENARIO.format(seconds=2000))
        self.given = {path.name for path in self.work.iterdir()}

    def start(self, line: str, fault: str = "") -> subprocess.Popen[str]:
        """Start the command ``line`` under a fault; without a fault if ``fault`` is empty."""
        command = [sys.executable, "-m", "vegasmodel", *shlex.split(line)]
        environment = {**os.environ, "TMPDIR": str(self.scratch), "FAULT_MARK": self.mark}
        if fault == "read-only home":
            nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), "/proc/none")
            environment |= nowhere
        if fault == "files may not grow":
            command = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *command]
        if fault == "standard output closed":
            command = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
        return subprocess.Popen(
            command,
            cwd=self.work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=Path("/dev/full").open("w") if fault == "full output" else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def alive(self) -> list[int]:
        """The ids of processes that this run has left."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (process / "environ").read_bytes():
                    found.append(int(process.name))
            except OSError:  # gone, or another user's
                continue
        return found

    def left(self) -> list[str]:
        """The processes and files that the run should not have left; waits up to a second."""
        deadline = time.monotonic() + 1.0
        while (self.alive() or any(self.scratch.iterdir())) and time.monotonic() < deadline:
            time.sleep(0.02)
        wrong = [f"process {number} lives" for number in self.alive()]
        wrong += [f"{path.name} in the temporary folder" for path in self.scratch.iterdir()]
        made = {path.name for path in self.work.iterdir()} - self.given
        wrong += [f"{name} left behind" for name in made if not name.startswith("out.")]
        wrong += [f"half of {name}" for name in made if not _is_whole(self.work / name)]
        return wrong


def _is_whole(path: Path) -> bool:
    """Whether a result file ends as its format requires."""
    ends = {".parquet": b"PAR1", ".png": b"IEND\xaeB`\x82", ".svg": b"</svg>\n", ".toml": b"\n"}
    return path.suffix not in ends or path.read_bytes().endswith(ends[path.suffix])


@contextlib.contextmanager
def full_disk(folder: Path) -> Iterator[bool]:
    """Mount a file system of 256 kB on ``folder``; yield whether that was permitted."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    try:
        allowed = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        allowed = False
    try:
        yield allowed
    finally:
        if allowed:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def judged(end: End, place: Place, allowed: set[int]) -> list[str]:
    """What is wrong with a run that has ended in ``place``; ``allowed`` are the right statuses."""
    wrong = place.left()
    if end.status not in allowed:
        wrong.append(f"status {end.status}, not {sorted(allowed)}: {end.said[-300:]!r}")
    said = [line for line in end.said.splitlines() if not line.endswith(" left")]  # of progress
    if "Traceback" in end.said or len(said) > 1:
        wrong.append(f"said {end.said[-300:]!r}")
    return wrong


def undisturbed(line: str, folder: Path) -> tuple[float, int]:
    """Run the command ``line`` in ``folder`` without a fault.

    Returns the seconds that it ran after it had installed its signal handlers, and its exit status.
    """
    place = Place(folder)
    process = place.start(line)
    listens(process)
    begun = time.monotonic()
    process.communicate()
    return time.monotonic() - begun, process.returncode


def listens(process: subprocess.Popen[str]) -> bool:
    """Wait until a process has a handler for SIGTERM; ``False`` if it ends before that."""
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        caught = int(status.partition("SigCgt:")[2].split(None, 1)[0] or "0", 16)
        if caught >> (signal.SIGTERM - 1) & 1:
            return True
        time.sleep(0.005)
    return False


def killed(line: str, folder: Path, moment: float, number: signal.Signals, done: int) -> list[str]:
    """Run a command in ``folder``, send it a signal, and return what is wrong with the run.

    ``line`` is the command and ``number`` the signal, which is sent ``moment`` seconds after the
    command has installed its signal handlers.  ``done`` is the exit status of the command without a
    signal; it is right, too, because the command may end before the signal.
    """
    place = Place(folder)
    process = place.start(line)
    if listens(process):
        time.sleep(moment)
    waited_before = waited(process.pid)
    process.send_signal(number)
    sent = time.monotonic()
    # asks whether the process has ended, but keeps its entry in /proc, which ``waited`` reads
    ended = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while process.returncode is None and not os.waitid(os.P_PID, process.pid, ended):
        time.sleep(0.01)
        if time.monotonic() > sent + PATIENCE:
            process.kill()
            return [f"{PATIENCE:g} s after the signal it still ran", *place.left()]
    took = time.monotonic() - sent
    own = took - max(waited(process.pid) - waited_before, 0.0)
    _, said = process.communicate()
    wrong = judged(End(process.returncode, said, own), place, {SIGNALS[number], done})
    return [*wrong, *([f"{took:.1f} s after the signal, {own:.1f} s its own"] * (own > PROMPT))]


def waited(pid: int) -> float:
    """Seconds for which a process was ready but other processes had the CPU; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


def faulty(line: str, folder: Path, fault: str, done: int) -> list[str]:
    """Run a command to its end under a fault; return what is wrong with the run.

    ``done`` is the exit status of the command without a fault.
    """
    allowed = {
        "read-only home": {done},
        "full output": {3},
        "standard output closed": {3},
        "files may not grow": {done, 3},
        "disk full": {done, 3},
    }[fault]
    if fault == "disk full":
        with full_disk(folder) as mounted:
            if not mounted:
                return faulty(line, folder / "instead", "files may not grow", done)
            place = Place(folder)
            fill = place.work / "filling"
            with contextlib.suppress(OSError), fill.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
            place.given.add(fill.name)
            return _ended(line, place, fault, allowed)
    return _ended(line, Place(folder), fault, allowed)


def _ended(line: str, place: Place, fault: str, allowed: set[int]) -> list[str]:
    """Run a command with ``fault`` to its end; return what was wrong."""
    process = place.start(line, fault)
    _, said = process.communicate()
    return judged(End(process.returncode, said, 0.0), place, allowed)


def main() -> int:
    """Test all commands under all faults and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=20, help="how many signals each command gets")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only", default="", help="test only the command lines that begin with this text"
    )
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    rng = random.Random(options.seed)  # noqa: S311 - moments, no secrets
    runs, faults = Counter[str](), Counter[str]()
    listed, existing = {line.split()[0] for line in COMMANDS}, set(app.commands)
    if listed != existing:
        print(f"missing in COMMANDS, or no commands: {', '.join(sorted(listed ^ existing))}")
        return 1
    chosen = [line for line in COMMANDS if line.startswith(options.only)]
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)

        def note(fault: str, wrong: list[str]) -> None:
            """Count a run under ``fault``, and print what was ``wrong`` with it."""
            runs[fault] += 1
            faults[fault] += bool(wrong)
            if wrong:
                print(f"  {fault}: {'; '.join(wrong)}", flush=True)

        for line in chosen:
            undisturbed(line, base / uuid.uuid4().hex)  # compiles
            length, done = undisturbed(line, base / uuid.uuid4().hex)
            print(f"{line[:70]}: {length:.1f} s, status {done}", flush=True)
            for i in range(options.times):
                number = TURNS[i % len(TURNS)]
                moment, folder = rng.uniform(0.0, length), base / uuid.uuid4().hex
                note(number.name, killed(line, folder, moment, number, done))
                shutil.rmtree(folder, ignore_errors=True)
            for fault in ("disk full", "full output", "read-only home", "standard output closed"):
                folder = base / uuid.uuid4().hex
                note(fault, faulty(line, folder, fault, done))
    for fault, count in runs.items():
        print(f"{fault:24}{count:6} runs{faults[fault]:6} wrong")
    return int(bool(faults.total()))


if __name__ == "__main__":
    sys.exit(main())
