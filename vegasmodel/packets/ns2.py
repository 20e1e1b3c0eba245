"""The packet-level simulator ns-2 as an engine: one ``Scenario`` in, one ``Prediction`` out.

``run`` writes a script, starts ``ns`` in a temporary folder of its own for each seed, reads what
it wrote and averages.  ns-2 comes from Debian's or Ubuntu's package ``ns2``.
"""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

from vegasmodel.packets import engine, ns2_script, ns2_support
from vegasmodel.packets.engine import (
    EngineFailed,
    EngineMissing,
    default_interval,
    few_packets,
)
from vegasmodel.packets.run_output import Output
from vegasmodel.prediction import Prediction
from vegasmodel.scenario import Scenario
from vegasmodel.support.children import Workplace, workplace

__all__ = [
    "EngineFailed",
    "EngineMissing",
    "available",
    "default_interval",
    "run",
    "run_trace",
    "version",
]


def available() -> bool:
    """Whether the command ``ns`` is there."""
    return shutil.which("ns") is not None


@functools.cache
def version() -> str:
    """ns-2's own version, such as ``2.35``.  Raises ``EngineMissing``, ``EngineFailed``."""
    script = "puts [lindex [ns-version] 0]; exit 0\n"
    with workplace() as place:
        return _ns([], place, 60.0, script).strip() or "unknown"


def run(
    scenario: Scenario,
    *,
    processes: int = 2,
    interval: float | None = None,
    rtts: bool | None = None,
    timeout: float | None = None,
    scratch: Path | None = None,
    spaced: bool = True,
) -> Prediction:
    """Simulate ``scenario`` ``run.times`` times and return means over the runs.

    Per flow: ``throughput``, packets delivered for the first time per second (by cumulative
    ACKs) between warm-up and end, within the time in which the flow is active;
    ``throughput_se``, its standard error over the runs; ACKed packets, retransmissions, dropped
    over sent packets; with ``rtts`` the mean RTT in that time and, for Vegas, baseRTT at its end
    (the smallest RTT of the flow so far).  Per link: mean number of waiting packets, utilisation.

    ``rtts=None`` records round-trip times if that means at most ``MAX_RECORDED`` packets a run.
    ``extra``: ``throughput_runs`` [runs, flows], ``version``, ``drops_links`` [links], and of the
    first run ``time`` [samples], ``window`` [samples, flows], ``queue`` [samples, links], sampled
    every ``interval`` seconds (default: ``default_interval``).  ``scratch``: the folder in which
    each run has its own while it lasts (default: the system's for temporary files).  ``timeout``:
    seconds after which a run is stopped (default: ``engine.patience``); a run may also have 16 GiB
    of memory and write files of 16 GiB.  ``spaced=False``: RED as Floyd and Jacobson published it
    in 1993, which may drop the next packet after a drop; ns-2 by itself lets 1/p packets pass
    (``wait_``).

    ``FieldError``: ns-2 cannot do what a field says; ``EngineMissing``; ``EngineFailed``.
    """
    ns2_support.check(scenario)
    one = functools.partial(
        run_trace,
        scenario,
        interval or default_interval(scenario),
        rtts=few_packets(scenario) if rtts is None else rtts,
        timeout=timeout,
        scratch=scratch,
        spaced=spaced,
    )
    return engine.run(
        "ns2",
        scenario,
        one,
        version=version(),
        assumptions=ns2_support.remarks(scenario),
        processes=processes,
    )


def run_trace(
    scenario: Scenario,
    interval: float,
    *,
    number: int = 0,
    rtts: bool = True,
    timeout: float | None = None,
    scratch: Path | None = None,
    spaced: bool = True,
) -> Output:
    """One run (with the seed of run ``number``) in detail.

    Windows and queues sampled every ``interval`` seconds, every dropped data packet with its
    time, link, flow and number, and with ``rtts`` every round-trip time.  ``spaced``: see ``run``.
    """
    made = ns2_script.script(scenario, number, interval=interval, rtts=rtts, spaced=spaced)
    with workplace(scratch) as place:
        (place.folder / "run.tcl").write_text(made.text, encoding="ascii")
        _ns(["run.tcl"], place, timeout or engine.patience(scenario))
        return engine.read("ns-2", place.folder, scenario, made.origin, rtts=rtts)


def _binary() -> str:
    path = shutil.which("ns")
    if path is None:
        raise EngineMissing("ns-2 is not installed: apt-get install ns2")
    return path


def _ns(arguments: list[str], place: Workplace, timeout: float, given: str = "") -> str:
    """Run ``ns`` in ``place`` on a script, or on ``given`` as its input; its standard output."""
    return engine.execute("ns-2", [_binary(), *arguments], place, timeout, given)
