"""Runs other programs, such as ns-2, in temporary folders that are removed afterwards.

Each temporary folder has a process group for the programs that run in it. The group also contains a
small shell script, the watchman, which reads from a pipe. When this Python process ends, even by
SIGKILL, the kernel closes the pipe. The watchman then ends the whole group and removes the folder.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vegasmodel.support import files

__all__ = ["FOLDER", "Budget", "Done", "Workplace", "end_all", "interruptible", "workplace"]

FOLDER = "vegasmodel-"  # the names of our temporary folders begin with this
MAX_OUTPUT = 1 << 20  # bytes that are kept of each output stream of a child
# The watchman waits until its pipe is closed. Then it ends the other processes of its group (it
# ignores SIGTERM itself), removes the folder, and kills what is left of the group.
_WATCHMAN = """trap "" TERM INT HUP
read -r nothing
kill -TERM 0
for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$1" && break; sleep 0.1; done
kill -KILL 0
"""
_workplaces: set[Workplace] = set()  # those in use: their ``with`` block has not ended


@dataclass(frozen=True)
class Budget:
    """The time, memory and file size that a child process may use.

    A child that runs longer than ``seconds`` is ended.  If it asks for more than ``memory`` bytes,
    the request fails.  If it writes a file of more than ``file`` bytes, the system ends it with the
    signal SIGXFSZ.
    """

    seconds: float
    memory: int = 1 << 34  # bytes of address space
    file: int = 1 << 34  # bytes of any one file that it writes


@dataclass(frozen=True)
class Done:
    """How a child process ended, and what it printed.

    ``status`` is its exit status; if a signal ended it, the signal's number with a minus sign.
    ``out`` and ``err`` are the first ``MAX_OUTPUT`` bytes of its standard output and of its
    standard error.
    """

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Workplace:
    """A temporary folder, and the process group of the child processes that work in it."""

    folder: Path
    group: int  # number of the process group

    def run(
        self,
        command: Sequence[str],
        budget: Budget,
        *,
        given: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> Done:
        """Run a command in the temporary folder; return its exit status and what it printed.

        ``given`` is the text of its standard input.  ``environment`` holds environment variables
        that are added to those of this process.

        Raises ``subprocess.TimeoutExpired`` if the command runs longer than ``budget.seconds``; all
        processes that run in the folder are then ended.  Raises ``OSError`` if it cannot start.
        """
        source = self.folder / ".given"
        source.write_text(given, encoding="ascii")
        with (
            source.open("rb") as stdin,
            subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=None if environment is None else {**os.environ, **environment},
                process_group=self.group,
            ) as process,
        ):
            # no limits if the child has ended already, or the system allows none
            with contextlib.suppress(ProcessLookupError, PermissionError, ValueError):
                resource.prlimit(process.pid, resource.RLIMIT_AS, (budget.memory, budget.memory))
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (budget.file, budget.file))
            try:
                out, err = _read_output(process, budget.seconds)
            except BaseException:
                self.end()
                process.kill()
                raise
        return Done(process.returncode, out, err)

    def end(self) -> None:
        """End all child processes that run in this folder."""
        with contextlib.suppress(OSError):
            os.killpg(self.group, signal.SIGTERM)


def _read_output(process: subprocess.Popen[bytes], seconds: float) -> tuple[str, str]:
    """Read a child's standard output and standard error to their end; return the beginning of each.

    Raises ``subprocess.TimeoutExpired`` if that takes longer than ``seconds``.
    """
    deadline = time.monotonic() + seconds
    beginnings: dict[int, bytearray] = {}
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                beginnings[stream.fileno()] = bytearray()
                selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(deadline - time.monotonic(), 0.0))
            if not ready:
                raise subprocess.TimeoutExpired(process.args, seconds)
            for key, _ in ready:
                chunk = os.read(key.fd, 1 << 16)
                if not chunk:  # the stream has ended
                    selector.unregister(key.fileobj)
                beginnings[key.fd] += chunk[: MAX_OUTPUT - len(beginnings[key.fd])]
    process.wait(max(deadline - time.monotonic(), 1.0))
    out, err = (text.decode("utf-8", "replace") for text in beginnings.values())
    return out, err


@contextlib.contextmanager
def workplace(within: Path | None = None) -> Iterator[Workplace]:
    """Make a temporary folder and a process group for child processes.

    At the end of the ``with`` block, the processes of the group are ended and the folder is
    removed.  The watchman, a shell in this group, does so even if this process is killed.  The
    folder is made inside ``within`` (default: the system's folder for temporary files).
    """
    with tempfile.TemporaryDirectory(prefix=FOLDER, dir=within) as name, files.named(name):
        watchman = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHMAN, "watchman", name],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        place = Workplace(Path(name), watchman.pid)
        _workplaces.add(place)
        try:
            yield place
        finally:
            _workplaces.discard(place)
            watchman.communicate()


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """End all running child processes if a signal such as Ctrl-C interrupts the ``with`` block.

    If the children were not ended, threads that wait for them would go on waiting, and the program
    would not end.  The children are also ended if a generator that contains the block is closed,
    but not after an ordinary error.
    """
    try:
        yield
    except Exception:
        raise
    except BaseException:
        end_all()
        raise


def end_all() -> None:
    """End every running child process.

    A thread that waits for a child then gets the child's exit status.
    """
    for place in tuple(_workplaces):
        place.end()
