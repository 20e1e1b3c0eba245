"""Ends a command: with an exit status and, after a failure, one line about what went wrong.

The exit statuses are:

- 0: done.
- 1: the input was allowed, but the result is not what the user asked for. For example, a solver
  found no solution, a simulation ended early, or the command ``paper`` did not reproduce a printed
  value.
- 2: bad input, or something is not installed.
- 3: the machine or a program failed. For example, the disk is full, or ns-2 ended with an error.
- 129, 130 and 143: the command was ended by SIGHUP, Ctrl-C or SIGTERM.
- 141: the reader of the output, such as ``head``, ended first. This is the status of a program that
  SIGPIPE ends.

If the environment variable ``VEGASMODEL_TRACEBACK`` is set, an unexpected error in this package
also prints its traceback.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import logging
import os
import re
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from vegasmodel.fields.errors import printable
from vegasmodel.support import children, files

__all__ = ["Shortfall", "Stopped", "main", "status_of"]

# the exit statuses: the docstring of the module explains them
DONE, FELL_SHORT, BAD_INPUT, MACHINE, UNREAD = 0, 1, 2, 3, 128 + signal.SIGPIPE
GRACE = 0.5  # seconds for an orderly end after a signal; compiled code does not handle signals
SIGNALS = {  # the signals that end a command, and what it says then
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "the terminal went away",
}
# The exit status for each class of errors, by the name of the class: so no module is loaded only
# for its error classes.
_STATUS = {
    "Shortfall": FELL_SHORT,
    "Unsolved": FELL_SHORT,
    "FieldError": BAD_INPUT,
    "EngineMissing": BAD_INPUT,
    "ExtraMissing": BAD_INPUT,
    "EngineFailed": MACHINE,
    "DamagedError": MACHINE,
}
_received: list[int] = []  # numbers of the signals that asked this process to end
_SHOW_CURSOR = "\x1b[?25h"  # the terminal shows its cursor again, which a progress bar hides


class Shortfall(Exception):  # noqa: N818 - an outcome, not an error
    """Raised if a command has run, but its result fails a check that the user asked for."""


class Stopped(BaseException):
    """Raised if this process gets a signal that asks it to end, such as SIGINT.

    ``number`` is the signal's number.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(SIGNALS[signal.Signals(number)])


def main(command: Callable[[], int]) -> NoReturn:
    """Run ``command`` and exit with the status that it returns.

    If it raises an error instead, ``status_of`` reports the error and returns the exit status.
    """
    _prepare()
    with _stoppable():
        try:
            status = command()
            sys.stdout.flush()
        except BaseException as error:
            status = status_of(error)
            _discard_rest(sys.stdout)
        for number in SIGNALS:  # the command has ended, so a signal has nothing more to stop
            signal.signal(number, signal.SIG_IGN)
        if _received:  # exit at once, because the interpreter's own exit can take seconds
            atexit._run_exitfuncs()
            os._exit(status)
        try:
            sys.stderr.flush()
        except OSError:
            _discard_rest(sys.stderr)
        sys.exit(status)


def status_of(error: BaseException) -> int:
    """Print one line about an error on standard error, and return the exit status for it.

    Nothing is printed for ``SystemExit`` without a text, or if no process reads the output any more
    (``BrokenPipeError``). If ``VEGASMODEL_TRACEBACK`` is set, the traceback of an unexpected error
    is printed, too.

    After a signal, every error is reported as that signal.  The reason: a package that is being
    imported may catch ``Stopped`` and raise an error of its own.
    """
    if _received:
        error = Stopped(_received[0])
    names = {kind.__name__ for kind in type(error).__mro__}
    known = names & _STATUS.keys()
    usage = getattr(error, "format_message", None)  # click's own usage errors
    if isinstance(error, SystemExit):
        code = DONE if error.code is None else error.code
        if not isinstance(code, int):  # Python prints such a text, too, and exits with status 1
            code = _print_error(str(code), FELL_SHORT)
        return code
    if isinstance(error, Stopped):
        return _print_error(str(error), 128 + error.number)
    if isinstance(error, KeyboardInterrupt) or "Abort" in names:
        return _print_error(SIGNALS[signal.SIGINT], 130)
    if known:  # an error may be of several classes, and the most serious status is the greatest
        return _print_error(str(error), max(_STATUS[name] for name in known))
    if usage is not None:
        return _print_error(usage(), BAD_INPUT)
    if os.environ.get("VEGASMODEL_TRACEBACK"):
        traceback.print_exception(error)
    if isinstance(error, MemoryError):
        return _print_error("out of memory", MACHINE)
    if isinstance(error, OSError):
        if error.filename is None:  # writing the rest of the output would fail again
            _discard_rest(sys.stdout)
        if isinstance(error, BrokenPipeError) and error.filename is None:
            return UNREAD  # a reader such as `head` has what it wants; silent, as programs are
        return _print_error(_system_message(error), MACHINE)
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("vegasmodel"):
        return _print_error(f"the package {error.name} is not installed", BAD_INPUT)
    where = "VEGASMODEL_TRACEBACK=1 shows where"
    return _print_error(
        f"an error of vegasmodel: {type(error).__name__}: {error}; {where}", MACHINE
    )


def _system_message(error: OSError) -> str:
    """The message for an error of the operating system; for a full disk it says what to do."""
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    if error.errno not in files.FULL:
        return f"{error.filename}: {reason}" if error.filename is not None else reason
    # errors of all other writes have a file name: see ``files.named``
    place = "standard output" if error.filename is None else str(error.filename)
    temporary = Path(place).name.startswith(children.FOLDER)
    other = "let TMPDIR name another folder" if temporary else "choose another place"
    remedy = "raise the limit (ulimit -f)" if error.errno == errno.EFBIG else "free some space"
    return f"{place}: {reason}; {remedy}, or {other}"


def _print_error(message: str, status: int) -> int:
    """Print a message as one line on standard error, and return ``status``."""
    line = printable(" ".join(message.split()))
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"vegasmodel: {line}\n")
        sys.stderr.flush()
    return status


def _prepare() -> None:
    """Prepare the process for a command.

    Afterwards standard output and standard error accept any text. An invalid terminal size is
    removed from the environment. Log messages up to the level WARNING are not shown, nor are errors
    in threads and destructors. Python's warnings are shown only if its option ``-W`` asks for them.

    If standard output is closed, the process exits with status 3.
    """
    for stream, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # closed: the next opened file would get its number
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(stream, "w", closefd=False))  # noqa: SIM115 - stays open
            if name == "stdout":
                sys.exit(_print_error("standard output is closed", MACHINE))
    for out in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            out.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # or no such method
    for key in ("COLUMNS", "LINES"):
        if not re.fullmatch("[1-9][0-9]{1,3}", os.environ.get(key, "80")):
            del os.environ[key]
    logging.disable(logging.WARNING)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
    # Python would print tracebacks of errors in destructors and threads
    sys.unraisablehook = lambda _: None
    threading.excepthook = lambda _: None


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """Make SIGINT, SIGTERM and SIGHUP end the child processes and raise ``Stopped``.

    If the process still runs ``GRACE`` seconds after such a signal, it is ended.  A signal that the
    process ignored before stays ignored.  All this stays in force after the ``with`` block.
    """
    handled = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    # Python writes the number of each signal into the pipe, even while compiled code runs
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(read_end,), daemon=True).start()
    for number in handled:
        signal.signal(number, _stop)
    yield


def _stop(number: int, frame: Any) -> NoReturn:  # noqa: ARG001 - Python's signature
    """Handle a signal that asks the process to end: end its children and raise ``Stopped``."""
    for other in SIGNALS:  # a second signal must not interrupt the end
        signal.signal(other, signal.SIG_IGN)
    _received.append(number)
    children.end_all()
    raise Stopped(number)


def _watch(pipe: int) -> None:
    """Wait for a signal that asks the process to end, and end the process ``GRACE`` seconds later.

    The process usually ends by itself before that.  It cannot while it executes compiled code,
    because Python's main thread then handles no signal.  So ``_watch`` runs in another thread.  It
    reads the numbers of the signals from the file descriptor ``pipe``.
    """
    while (number := os.read(pipe, 1)[0]) not in SIGNALS:
        pass
    time.sleep(GRACE)
    files.forget_parts()
    if sys.stderr.isatty():
        sys.stderr.write(_SHOW_CURSOR)
    os._exit(_print_error(SIGNALS[signal.Signals(number)], 128 + number))


def _discard_rest(stream: Any) -> None:
    """Send the unwritten rest of ``stream`` to /dev/null.

    Otherwise Python would try to write it at exit, and would print an error if no process reads
    the stream any more.
    """
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
