"""Runs of ns-2 and ns-3 for the records: read from ``reference.json``, or simulated.

``python -m paper_checks.record`` makes the file.  A run is found by the scenario's fingerprint, so
a stored result never answers for another scenario.  For scenarios with many flows only values per
group are stored.
"""

import dataclasses
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from vegasmodel.fields.errors import FieldError
from vegasmodel.metrics import Floats, jain
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Flow, Red, Scenario
from vegasmodel.support.files import atomic_write

__all__ = ["FILE", "Groups", "Measured", "NoRun", "Runs", "largest_swing", "mean_and_range"]

FILE = Path(__file__).with_name("reference.json")
ROUTER_RUNS = 3  # at most so many runs of ns-3: one takes half a minute of processor time

Kind = TypeVar("Kind", "Measured", "Groups")


class NoRun(LookupError):  # noqa: N818 - an outcome: the record gets the verdict "blocked"
    """There is no run that a record needs, or a model gives no such value; the message says why."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What ns-2 measured.  Arrays [runs, flows], or [flows] as means over the runs."""

    throughput: Floats  # [runs, flows] pkt/s
    acks: Floats  # [flows]
    retransmits: Floats  # [flows]
    loss_rate: Floats  # [flows]
    utilization: float  # of the slowest link
    queue: float  # mean number of packets waiting at the slowest link
    base_rtt: Floats | None  # [flows] seconds
    window: Floats  # [3, flows] mean, least and largest after warm-up, packets, first run
    rate: Floats  # [3, flows] the same of window over RTT, pkt/s, first run

    @property
    def mean(self) -> Floats:
        """Throughput per flow, mean over the runs."""
        return np.asarray(self.throughput.mean(axis=0))

    @property
    def jain(self) -> Floats:
        """Jain's index of each run."""
        return np.array([jain(row) for row in self.throughput])


def largest_swing(found: Measured) -> float:
    """By how many packets a window moves, from its least to its largest: the most of all flows."""
    _, least, largest = found.window
    return float((largest - least).max())


@dataclass(frozen=True, eq=False)
class Groups:
    """What ns-2 measured of groups of many flows.  A group's value is the mean over its flows."""

    throughput: Floats  # [runs, groups] pkt/s of one flow
    jain: Floats  # [runs] index over all flows
    loss_rate: Floats  # [groups] the fraction of the packets sent that was lost
    utilization: Floats  # [links]
    queue: Floats  # [links] mean number of waiting packets

    @property
    def mean(self) -> Floats:
        """Throughput per flow of each group, mean over the runs."""
        return np.asarray(self.throughput.mean(axis=0))


class Runs:
    """Results of ns-2 and ns-3, of which the records ask for those that they need.

    Stored results are read; if there is none, ``NoRun`` is raised.  With ``live``, all scenarios
    are simulated again.  With ``keep``, those without a stored result are simulated, and each new
    result is stored at once.  ``scenarios`` are those that were requested from ns-2, by the key of
    their entry in the file.
    """

    def __init__(self, live: bool = False, keep: bool = False) -> None:
        """Read the stored results, but not with ``live``, by which all are simulated again."""
        self.live = live
        self.keep = keep
        # by key: the entries of the file; those that records have requested; their scenarios
        self.stored: dict[str, Any] = {}
        self.used: dict[str, Any] = {}
        self.scenarios: dict[str, Scenario] = {}
        if FILE.exists() and not live:
            self.stored = json.loads(FILE.read_text(encoding="utf-8"))["runs"]

    def __call__(self, scenario: Scenario) -> Measured:
        """The measurement of ``scenario`` per flow.  Raises ``NoRun``."""
        return self._found(Measured, scenario, "", _simulate)

    def groups(self, scenario: Scenario) -> Groups:
        """The measurement of ``scenario`` per group of flows.  Raises ``NoRun``."""
        return self._found(Groups, scenario, "-groups", _simulate_groups)

    def unspaced(self, scenario: Scenario) -> Measured:
        """The measurement per flow with RED as published in 1993, without ns-2's ``wait_``.

        Raises ``NoRun``.
        """
        return self._found(Measured, scenario, "-unspaced", partial(_simulate, spaced=False))

    def automatic(self, scenario: Scenario) -> Measured:
        """The measurement per flow with RED's ``gentle_`` and weight by the defaults of ns-2 2.35.

        Raises ``NoRun``.
        """
        return self._found(Measured, scenario, "-automatic", lambda s: _simulate(_automatic(s)))

    def groups_automatic(self, scenario: Scenario) -> Groups:
        """``automatic`` per group of flows.  Raises ``NoRun``."""
        suffix = "-groups-automatic"
        return self._found(Groups, scenario, suffix, lambda s: _simulate_groups(_automatic(s)))

    def later_timers(self, scenario: Scenario) -> Measured:
        """The measurement per flow with the timers of ns-2 2.35, not those of the papers' years.

        Raises ``NoRun``.
        """
        return self._found(Measured, scenario, "-later-timers", partial(_simulate, stock=TIMERS))

    def with_router(self, scenario: Scenario) -> Groups:
        """``groups`` by ns-3, which has the Rate-Delay router of `podlesny`; at most 3 runs.

        Vegas's alpha is one larger there, which makes ns-3's rule that of the papers (docs/ns3.md).
        Raises ``NoRun``.
        """
        scenario = dataclasses.replace(
            scenario,
            flows=tuple(map(_alpha_in_ns3, scenario.flows)),
            run=dataclasses.replace(scenario.run, runs=min(ROUTER_RUNS, scenario.run.times)),
        )
        key = scenario.fingerprint() + "-groups-ns3"
        return _arrays(Groups, self._entry(key, scenario, _simulate_groups_ns3))

    def _found(
        self,
        kind: type[Kind],
        scenario: Scenario,
        suffix: str,
        simulate: Callable[[Scenario], dict[str, Any]],
    ) -> Kind:
        """What ns-2 measured, stored under the scenario's fingerprint and ``suffix``.

        The suffix tells apart results of one scenario, such as those with other settings of RED.
        ``simulate`` runs ns-2 with these settings and returns the entry of the file.
        """
        key = scenario.fingerprint() + suffix
        self.scenarios[key] = scenario
        return _arrays(kind, self._entry(key, scenario, simulate))

    def _entry(
        self, key: str, scenario: Scenario, simulate: Callable[[Scenario], Any]
    ) -> dict[str, Any]:
        """The results for ``scenario``, an entry of the file of stored results under ``key``.

        If a record has requested this entry before, it is returned again.  Otherwise the stored
        entry is returned.  If there is none, and the class may make runs (``live`` or ``keep``),
        ``simulate`` makes it.  Raises ``NoRun`` if the class may not.
        """
        if key not in self.used:
            if key in self.stored:
                self.used[key] = self.stored[key] | {"name": scenario.name}
            elif self.live or self.keep:
                self.used[key] = simulate(scenario)
                if self.keep:  # so that a later failure does not lose it
                    _write(self.stored | self.used)
            else:
                raise NoRun("no stored run: use --live")
        found: dict[str, Any] = self.used[key]
        return found

    def save(self) -> None:
        """Write the runs that were used and no others, so that stale runs are dropped."""
        _write(self.used)


def _write(runs: dict[str, Any]) -> None:
    """Write the file, with one run a line."""
    entries = ",\n".join(f'"{key}": {json.dumps(runs[key])}' for key in sorted(runs))
    with atomic_write(FILE) as part:
        part.write_text('{"schema": 1, "runs": {\n' + entries + "\n}}\n", encoding="utf-8")


def _run(scenario: Scenario, rtts: bool | None = None, **options: Any) -> Prediction:
    """The result of ``ns2.run``.  Raises ``NoRun`` if ns-2 cannot run the scenario."""
    from vegasmodel.packets import ns2

    try:
        return ns2.run(scenario, rtts=rtts, **options)
    except FieldError as error:
        raise NoRun(f"the ns-2 driver cannot run this: {error}") from None


def _alpha_in_ns3(flow: Flow) -> Flow:
    """A Vegas flow with alpha + 1, since ns-3 rounds the backlog up; other flows do not change."""
    return dataclasses.replace(flow, alpha=flow.alpha + 1) if flow.law == "vegas" else flow


def _simulate_groups_ns3(scenario: Scenario) -> dict[str, Any]:
    """Run ns-3; return the entry for the file.  Raises ``NoRun`` if ns-3 is not installed."""
    from vegasmodel.packets import ns3

    try:
        return _by_group(scenario, ns3.run(scenario, rtts=False), "ns-3")
    except ns3.EngineMissing as error:
        raise NoRun(str(error)) from None


def _simulate_groups(scenario: Scenario) -> dict[str, Any]:
    """Run ns-2; return the entry for the file, with means over the flows of each group."""
    return _by_group(scenario, _run(scenario, rtts=False), "ns-2")


def _by_group(scenario: Scenario, found: Prediction, engine: str) -> dict[str, Any]:
    """The entry for the file: means over the flows of each group of the scenario.

    ``found`` is the result of the simulator ``engine``, "ns-2" or "ns-3".
    """
    assert found.loss_rate is not None
    throughput = found.extra["throughput_runs"]
    group = np.array([member.group for member in scenario.members])
    groups = [group == g for g, _ in enumerate(scenario.flows)]  # which flows belong to each
    return {
        "name": scenario.name,
        "engine": f"{engine} {found.extra['version']}",
        "seed": scenario.run.seed,
        "throughput": _digits([[row[flows].mean() for flows in groups] for row in throughput]),
        "jain": _digits([jain(row) for row in throughput]),
        "loss_rate": _digits([found.loss_rate[flows].mean() for flows in groups]),
        "utilization": _digits(found.extra["busy_links"]),
        "queue": _digits(found.queue_mean),
    }


def _simulate(scenario: Scenario, **options: Any) -> dict[str, Any]:
    """Run ns-2; return the entry for the file.  ``options`` are those of ``ns2.run``."""
    found = _run(scenario, **options)
    assert found.acks is not None
    assert found.retransmits is not None
    assert found.loss_rate is not None
    slowest = _slowest(scenario)
    window, rate = _windows_and_rates(scenario, found.extra)
    return {
        "name": scenario.name,
        "engine": f"ns-2 {found.extra['version']}",
        "seed": scenario.run.seed,
        "throughput": _digits(found.extra["throughput_runs"]),
        "acks": _digits(found.acks),
        "retransmits": _digits(found.retransmits),
        "loss_rate": _digits(found.loss_rate),
        "utilization": _digits(found.extra["busy_links"])[slowest],
        "queue": None if found.queue_mean is None else _digits(found.queue_mean)[slowest],
        "base_rtt": None if found.base_rtt is None else _digits(found.base_rtt),
        "window": _digits(window),
        "rate": _digits(rate),
    }


def _automatic(scenario: Scenario) -> Scenario:
    """The scenario with RED's ``gentle_`` on, and the weight that ns-2 computes from a link's rate.

    The link is the first one.  ns-2 takes three times its delay and a packet's transmission, but at
    least 0.1 s, for an RTT, and averages over 10 such RTTs (queue/red.cc, initialize_params).
    """
    first, *others = scenario.links
    assert isinstance(first.queue, Red)
    assert first.delay is not None
    rtt = max(3 * (first.delay + 1 / first.capacity), 0.1)
    weight = 1 - math.exp(-1 / (10 * rtt * first.capacity))
    link = dataclasses.replace(
        first, queue=dataclasses.replace(first.queue, weight=weight, gentle=True)
    )
    return dataclasses.replace(scenario, links=(link, *others))


TIMERS = (  # the parameters of ns-2 that set the retransmission timer
    "tcpTick_",
    "minrto_",
    "maxrto_",
    "rfc2988_",
    "rtxcur_init_",
    "updated_rttvar_",
    "timerfix_",
)


def _slowest(scenario: Scenario) -> int:
    """The index of the slowest link."""
    return int(np.argmin([link.capacity for link in scenario.links]))


def _windows_and_rates(scenario: Scenario, extra: dict[str, Any]) -> tuple[Floats, Floats]:
    """Mean, least and largest window and rate of each flow, from the samples after the warm-up.

    Both arrays are [3, flows].  ``extra`` has the course of a run of ns-2 over time.  The rate is
    the papers' actual rate, window over RTT.  The RTT is that of a packet sent at the time of the
    sample: the flow's own RTT plus the wait behind the packets in the queue.
    """
    late = np.asarray(extra["time"]) >= scenario.run.warmup
    windows = np.asarray(extra["window"])[late]  # [times, flows]
    slowest = _slowest(scenario)
    wait = np.asarray(extra["queue"])[late, slowest] / scenario.links[slowest].capacity
    rtts = np.array([member.rtt for member in scenario.members])
    rates = windows / (rtts + wait[:, None])
    return mean_and_range(windows), mean_and_range(rates)


def mean_and_range(samples: Floats) -> Floats:
    """The mean, the least and the greatest of each flow's samples, [3, flow]."""
    return np.array([samples.mean(axis=0), samples.min(axis=0), samples.max(axis=0)])


def _digits(values: Any) -> Any:
    """Rounds to nine digits: enough for counts of millions, and readable in the file."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim:
        return [_digits(entry) for entry in array]
    return None if np.isnan(array) else float(f"{float(array):.9g}")


def _arrays(kind: type[Kind], entry: dict[str, Any]) -> Kind:
    """An entry of the file as ``Measured`` or ``Groups``, with lists as arrays."""
    arrays: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        value = entry[field.name]
        scalar = value is None or isinstance(value, float)
        arrays[field.name] = value if scalar else np.array(value, dtype=np.float64)
    return kind(**arrays)
