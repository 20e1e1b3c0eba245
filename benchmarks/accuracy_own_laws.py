"""Compares laws that are registered as a user's own with the same laws in ns-2.

    python -m benchmarks.accuracy_own_laws

ns-2 contains the congestion controls of Linux 2.6 (``Agent/TCP/Linux``). Five of them are written
here with ``register_law``: H-TCP, TCP Illinois, Scalable TCP, TCP Veno and Reno (as "linux-reno").
Each of them meets a SACK, a Vegas and a CUBIC flow at a drop-tail link. The networks are random:
they are the first ``NETWORKS`` of each family of ``benchmarks.accuracy_cubic``, with the law in the
place of CUBIC. A measurement is the mean of 3 new runs of ns-2 of 120 s, with a warm-up of 40 s. A
model makes 3 runs, too, with starts of its own.

Linux's Reno lets the window grow and halves it as our law does. So the errors for "linux-reno" come
from the rest of ``Agent/TCP/Linux``, above all from its recovery.

The output has the law's share in each case, and then a table of the mean error of the share: the
mean of the absolute differences between the model and ns-2. The column "chance" has the mean error
that a perfect model would have whose runs scatter as those of ns-2, because both make three runs.

The laws follow the papers, and Linux 2.6 where it differs:

- H-TCP: R. N. Shorten, D. J. Leith, PFLDnet 2004; ``tcp_htcp.c``. Here the law measures RTT and
  throughput once per round trip.
- Illinois: S. Liu, T. Basar, R. Srikant, Performance Evaluation 65, 2008; ``tcp_illinois.c``.
  Here the law takes the last RTT, not the mean of a round trip, and the largest delay at a loss.
- Scalable: T. Kelly, ACM CCR 33(2), 2003; ``tcp_scalable.c`` has 50 in place of 100.
- Veno: C. P. Fu, S. C. Liew, IEEE JSAC 21(2), 2003; ``tcp_veno.c``.

Compound TCP of ``Agent/TCP/Linux`` is left out, because it is not that of its paper (Tan, Song,
Zhang, Sridharan, INFOCOM 2006).  With fewer than 12 packets queued, ns-2's window grew by about one
packet per round trip.  By the paper it would grow faster.
"""

import argparse
import dataclasses
import math
import re
from typing import Any
from unittest import mock

import numpy as np

import vegasmodel as vm
from benchmarks.accuracy_cubic import case
from benchmarks.arguments import at_least
from vegasmodel.packets import ns2, ns2_script

RIVALS = ("sack", "vegas", "cubic")
NETWORKS = 3  # of each family
MODELS = ("rounds", "fluid")


def _htcp_round(f: Any) -> tuple[float, ...]:
    """The numbers that the law H-TCP stores, after a round trip, in the order of ``state``.

    - ``most_rtt``: the largest RTT so far, s.  An RTT that exceeds it by more than 20 ms does not
      count, as in ``measure_rtt`` of Linux.
    - ``rate``: the filtered throughput, pkt/s, and ``most_rate``: the largest since the last loss.
      The filter gives the newest value a weight of a quarter.  It begins anew in the first three
      round trips after a loss.
    - ``factor``, ``old_rate`` and ``adapts`` change only at losses (``_htcp_loss``).
    """
    most, rate = max(f.most_rtt, f.base_rtt), f.window / f.rtt
    if most < f.rtt <= most + 0.02:
        most = f.rtt
    if f.elapsed <= 3.0 * f.base_rtt:  # seconds since the last loss
        return most, f.factor, rate, rate, f.old_rate, f.adapts
    rate = (3.0 * f.rate + rate) / 4.0
    return most, f.factor, rate, max(f.most_rate, rate), f.old_rate, f.adapts


def _htcp_loss(f: Any) -> tuple[float, ...]:
    """The numbers that the law H-TCP stores at a loss, in the order of ``state``.

    H-TCP chooses ``factor``, by which the loss multiplies the window, as ``htcp_beta_update`` of
    Linux does.  If the throughput is steady, the factor is baseRTT over the largest RTT, but at
    least 0.5 and at most 0.8.  Otherwise, and if baseRTT is at most 10 ms, it is 0.5.  The
    throughput is steady if at each of the last two losses it was within 20 % of that at the loss
    before.  H-TCP also makes the stored largest RTT smaller, so that old RTTs are forgotten.
    """
    # whether the throughput is steady at this loss; ``adapts`` says whether it was at the last one
    steady = 0.8 * f.old_rate <= f.most_rate <= 1.2 * f.old_rate
    factor = 0.5
    if steady and f.adapts == 1.0 and f.base_rtt > 0.01 and f.most_rtt > 0.0:
        factor = min(max(f.base_rtt / f.most_rtt, 0.5), 0.8)
    most = max(f.base_rtt, f.most_rtt)
    most = f.base_rtt + 0.95 * (most - f.base_rtt)
    return most, factor, f.rate, f.most_rate, f.most_rate, steady


@vm.register_law(
    "htcp",
    state={"most_rtt": 0, "factor": 0.5, "rate": 0, "most_rate": 0, "old_rate": 0, "adapts": 0},
    update=_htcp_round,
    remember=_htcp_loss,
    cut=lambda f: max(2.0, math.floor(f.factor * f.window)),
)
def htcp(f: Any) -> float:
    """H-TCP's growth of the window in a round trip, alpha, packets.

    It grows from one second after the last loss on, and is scaled with the RTT.
    """
    late = max(f.elapsed - 1.0, 0.0)  # s, the time since then
    growth = math.floor(1.0 + 10.0 * late + 0.25 * late**2)  # packets, at an RTT of 0.1 s
    scale = min(max(0.1 / f.base_rtt, 0.5), 10.0)
    return 2.0 * (1.0 - f.factor) * max(1.0, math.floor(growth / scale))


def _largest_delay(f: vm.Source) -> float:
    """What Illinois stores at a loss: the largest queueing delay at a loss so far, s."""
    return max(f.memory, f.rtt - f.base_rtt)


def _illinois_cut(f: vm.Source) -> float:
    """Illinois's window after a loss, W (1 - beta); beta grows with the delay from 1/8 to 1/2.

    It is 1/8 up to a tenth of the largest delay, and 1/2 from eight tenths on, and with a window
    below 15 packets.  ``f.memory`` is the largest queueing delay at an earlier loss, in s
    (``_largest_delay``).
    """
    delay, most = f.rtt - f.base_rtt, max(f.memory, f.rtt - f.base_rtt)
    part = min(max((delay - 0.1 * most) / (0.7 * most), 0.0), 1.0) if most > 0.0 else 1.0
    beta = 0.125 + 0.375 * part if f.window >= 15.0 else 0.5
    return max(2.0, math.floor(f.window * (1.0 - beta)))


@vm.register_law("illinois", cut=_illinois_cut, remember=_largest_delay)
def illinois(f: vm.Source) -> float:
    """Illinois's growth in a round trip, alpha: 10 packets without delay, 0.3 at the largest.

    The largest delay is the present one or ``f.memory``, the largest at a loss so far, in s. With a
    window below 15 packets, and as long as ``f.memory`` is 0, alpha is 1.
    """
    delay, most = f.rtt - f.base_rtt, max(f.memory, f.rtt - f.base_rtt)
    low = 0.01 * most  # up to this delay alpha is 10
    if f.window < 15.0 or f.memory == 0.0:
        return 1.0
    if delay <= low:
        return 10.0
    k = (most - low) * 0.3 / (10.0 - 0.3)  # so that alpha is 0.3 at the largest delay
    return 10.0 * k / (k + delay - low)


@vm.register_law("scalable", decrease=0.875)
def scalable(f: vm.Source) -> float:
    """Scalable's growth: one packet for 50 ACKs, or per round trip if the window is smaller."""
    return max(1.0, f.window / 50.0)


@vm.register_law("veno", cut=lambda f: math.floor(f.window * (0.8 if f.backlog < 3.0 else 0.5)))
def veno(f: vm.Source) -> float:
    """Veno's growth: as Reno's, but half as fast while 3 packets or more are queued."""
    return 1.0 if f.backlog < 3.0 else 0.5


vm.register_law("linux-reno", lambda _: 1.0)

LAWS = ("htcp", "illinois", "scalable", "veno", "linux-reno")


def network(law: str, rival: str, index: int) -> vm.Scenario:
    """The ``index``-th random network, with flows of ``law`` and of ``rival``.

    It is the network of ``accuracy_cubic.case``, in which ``law`` replaces CUBIC. The group of
    these flows is called "own".
    """
    return case(rival, index).replace({"flow.cubic.name": "own"}).replace({"flow.own.law": law})


def in_ns2(law: str, rival: str, index: int) -> np.ndarray:
    """The share of the law in each run of ns-2, with ns-2's own module of this law.

    The flows of ``law`` share the ``index``-th random network with flows of ``rival``.  vegasmodel
    knows CUBIC's module only.  So it writes the script for CUBIC, and the name of the module is
    replaced in it.
    """
    write = ns2_script.script  # ns-2's runs are threads of this process, so the patch reaches them

    def with_module(*given: object, **options: object) -> ns2_script.Script:
        """The script that ``write`` makes, but with the module of ``law`` in place of CUBIC's."""
        made = write(*given, **options)
        text, found = re.subn(
            r"module cubic cubic_beta \d+",
            f"module {law.removeprefix('linux-')}",
            made.text,
            count=1,
        )
        if not found:
            raise ValueError("the script of ns-2 selects no module")
        return dataclasses.replace(made, text=text)

    with mock.patch.object(ns2_script, "script", with_module):
        rates = ns2.run(network("cubic", rival, index)).extra["throughput_runs"]
    return np.asarray(rates[:, 0] / rates.sum(axis=1))


def row(law: str, rival: str, networks: int) -> str:
    """A row of the table: mean errors of the share of ``law`` beside ``rival``; prints each case.

    The means are over as many random networks as ``networks`` says. The last number is the mean
    error that chance alone would make.
    """
    errors: dict[str, list[float]] = {model: [] for model in MODELS}
    by_chance = []
    for index in range(networks):
        runs, scenario = in_ns2(law, rival, index), network(law, rival, index)
        variance = 2.0 * runs.var(ddof=1) / len(runs)  # of the difference of two means of such runs
        said = f"{law} {rival} {index}: ns-2 {runs.mean():.3f}"
        for model in MODELS:
            found = vm.predict(scenario, model)
            share = found.shares["own"]
            if share is None:
                raise ValueError(f"{law} beside {rival}: {model} has no share")
            errors[model].append(abs(share - runs.mean()))
            said += f", {model} {share:.3f}"
        # the mean magnitude of a normal error with this variance
        by_chance.append(math.sqrt(2.0 / math.pi * variance))
        print(said, flush=True)
    means = [f"{np.mean(each):.3f}" for each in (*errors.values(), by_chance)]
    return f"| {law} | {rival} | {' | '.join(means)} |"


def main() -> None:
    """Print each case, then the table of mean errors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--networks",
        type=at_least(1),
        default=NETWORKS,
        help="how many networks of each family to draw",
    )
    parser.add_argument(
        "laws", nargs="*", default=LAWS, help=f"which of {', '.join(LAWS)}; default: all"
    )
    given = parser.parse_args()
    for law in given.laws:
        if law not in LAWS:
            parser.error(f"'{law}' is not allowed; one of {', '.join(LAWS)}")
    table = [row(law, rival, given.networks) for law in given.laws for rival in RIVALS]
    print("\n| law | beside | rounds | fluid | chance |\n| --- | --- | ---: | ---: | ---: |")
    print("\n".join(table))


if __name__ == "__main__":
    main()
