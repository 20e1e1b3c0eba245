"""Measures the simulators' errors for CUBIC against ns-2 or ns-3.

    python -m benchmarks.accuracy_cubic

The cases are random, at a drop-tail link, with the variant ``ns2``: CUBIC alone, and CUBIC against
one source of another law. Capacities are 200 to 3000 packets per second, RTTs 30 to 200 ms, buffers
12 to 80 packets. ns-2 is run anew with Agent/TCP/Linux: this is CUBIC of Linux 2.6, with the
scenario's factor for a loss.  Starts are jittered by up to 0.5 s; the models draw their own starts,
and ``rounds`` is also asked with the starts of the measured runs.  A measurement is the mean of 3
runs, or of 20 if the standard error of CUBIC's share is above 1 % after 3.  A model makes as many
runs.  Each family is run with senders that wait up to a transmission time before they send
(``send_jitter``), and without.

``--engine ns3`` measures the same networks with ns-3's TcpCubic and senders that wait, in 2 runs
of 80 s.  The simulators then follow the variant ``linux``.  It agrees with ns-3 in three points:
windows are whole packets, every law recovers by SACK, and the buffer's limit does not count the
packet in transmission.  ns-3's Vegas rounds its backlog up and Linux's rounds it down, so ns-3 gets
thresholds larger by 1.

The error is CUBIC's share of the throughput in the model, minus the measured share. For CUBIC alone
it is the error of the utilization. The output has the rates of each case, and then the table of
``docs/ns2.md`` or ``docs/ns3.md``.  The table's column "chance" has the mean error that a perfect
model would have, because the means of ``rounds`` and of the measurement are of few runs.
"""

import argparse
import dataclasses

import numpy as np

from benchmarks.arguments import at_least
from vegasmodel.metrics import Floats, standard_error
from vegasmodel.packets import ns2, ns3
from vegasmodel.predictor import predict
from vegasmodel.results.prediction import Prediction
from vegasmodel.scenario import Flow, Link, Run, Scenario

SEED = 9438
# run.seed for a model: so its start times differ from those of the measured runs
OTHER_DRAWS = 7
AGAINST = ("cubic", "reno", "sack", "vegas")  # the law of the other source
FAMILIES = (*AGAINST, "alone")
MODELS = ("rounds", "fluid")
SAME_STARTS = "rounds, same starts"  # ``rounds`` with the start times of the measured runs
GOAL = 0.05  # goal for the mean error of CUBIC's share by rounds
# if the standard error of CUBIC's share is larger than this after 3 runs, ns-2 makes MANY_RUNS
PRECISE = 0.01
MANY_RUNS = 20


def case(law: str, index: int, waits: bool = True) -> Scenario:
    """The ``index``-th random network of CUBIC beside a flow of ``law``, or of CUBIC "alone".

    With ``waits`` senders wait at random before they send, up to a packet's transmission time.
    """
    rng = np.random.default_rng([SEED, FAMILIES.index(law), index])
    capacity = float(np.round(np.exp(rng.uniform(np.log(200), np.log(3000)))))
    rtt, buffer = float(np.round(rng.uniform(0.03, 0.2), 4)), float(rng.integers(12, 81))
    alpha, wait = float(rng.integers(2, 6)), 1.0 / capacity if waits else 0.0
    flows = [Flow("cubic", rtt, name="cubic", variant="ns2", send_jitter=wait)]
    if law != "alone":
        other = Flow(law, rtt, name="other", variant="ns2", alpha=alpha, beta=alpha)
        flows.append(dataclasses.replace(other, send_jitter=wait))
    link = Link(capacity=capacity, buffer=buffer)
    return Scenario(
        (link,), tuple(flows), run=Run(duration=120.0, warmup=40.0, runs=3, start_jitter=0.5)
    )


def in_ns3(scenario: Scenario, more: float = 0.0) -> Scenario:
    """The case ``scenario`` as it is measured with ns-3: a shorter run with the variant ``linux``.

    ``more`` is added to the thresholds of Vegas: 1 for ns-3, which rounds the backlog up, and 0 for
    the models.
    """
    flows = tuple(
        dataclasses.replace(
            flow,
            variant="linux",
            initial_window=2.0,
            decrease=None,
            alpha=flow.alpha + more,
            beta=flow.beta + more,
        )
        for flow in scenario.flows
    )
    return scenario.replace({"run.duration": 80, "run.warmup": 20, "run.runs": 2}, flows=flows)


def part(scenario: Scenario, rates: Floats) -> float:
    """CUBIC's share of the throughput; if it is alone, its part of the capacity."""
    return float(rates[0] / (rates.sum() if len(rates) > 1 else scenario.links[0].capacity))


def chance(scenario: Scenario, runs: Floats) -> float:
    """The standard error of ``part``, from the rates of each run, [runs, flows]."""
    return float(standard_error(np.array([part(scenario, rates) for rates in runs])))


def measured_by_ns2(scenario: Scenario) -> tuple[Scenario, Prediction]:
    """ns-2's answer, and the scenario with the number of runs that it needed."""
    found = ns2.run(scenario, rtts=False)
    if chance(scenario, found.extra["throughput_runs"]) > PRECISE:
        scenario = scenario.replace({"run.runs": MANY_RUNS})
        found = ns2.run(scenario, rtts=False, processes=2)
    return scenario, found


def columns(engine: str) -> tuple[str, ...]:
    """The columns of the table: each model, and beside ns-2 also ``rounds`` with the same starts.

    ns-3 draws start times in its own way, which ``rounds`` does not know.
    """
    return (*MODELS, SAME_STARTS) if engine == "ns2" else MODELS


def errors(
    law: str, cases: int, waits: bool, engine: str
) -> tuple[dict[str, list[float]], list[float]]:
    """Each model's errors of CUBIC's share (``part``) over the cases, and their uncertainty.

    CUBIC competes with flows of ``law`` (or with none: "alone"). ``waits`` says whether senders
    wait at random before they send.

    The errors are by the model's name, one for each case.  The second result has for each case the
    standard error of the difference between ``rounds`` and the measurement by ``engine``.  Each
    case is also printed.
    """
    found: dict[str, list[float]] = {name: [] for name in columns(engine)}
    standard_errors = []
    for index in range(cases):
        scenario = case(law, index, waits)
        if engine == "ns3":
            truth = ns3.run(in_ns3(scenario, more=1.0), rtts=False)
            scenario = in_ns3(scenario)
        else:
            scenario, truth = measured_by_ns2(scenario)
        measured = np.asarray(truth.throughput)
        se = chance(scenario, truth.extra["throughput_runs"])
        # the models answer ``asked``, whose start times are not those of the measured runs
        asked = scenario.replace({"run.seed": OTHER_DRAWS})
        texts = [f"{engine} {np.round(measured)}, {len(truth.extra['throughput_runs'])} runs"]
        for name, model_errors in found.items():
            answer = predict(scenario, "rounds") if name == SAME_STARTS else predict(asked, name)
            rates = np.asarray(answer.throughput)
            model_errors.append(part(scenario, rates) - part(scenario, measured))
            if name == "rounds":
                of_model = chance(scenario, answer.extra["throughput_runs"])
                standard_errors.append(np.hypot(se, of_model))
            texts.append(f"{name} {np.round(rates)} {model_errors[-1]:+.3f}")
        print(f"{law} {index}: {', '.join(texts)}", flush=True)
    return found, standard_errors


def main() -> None:
    """Print the errors of each family of cases, then the table of the docs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=at_least(1), default=40, help="cases of each family")
    parser.add_argument("--against", choices=FAMILIES, nargs="*", default=FAMILIES)
    parser.add_argument("--engine", choices=("ns2", "ns3"), default="ns2")
    options = parser.parse_args()
    rows = []
    for law in options.against:
        # with ns-3 only senders that wait are run
        for waits in (True, False) if options.engine == "ns2" else (True,):
            signed, standard_errors = errors(law, options.cases, waits, options.engine)
            # The mean error that chance alone causes. A normal variable with the standard
            # deviation s has the mean absolute value sqrt(2/pi) s.
            by_chance = np.sqrt(2.0 / np.pi) * np.mean(standard_errors)
            sizes = {model: np.abs(values) for model, values in signed.items()}
            cells = [f"{size.mean():.3f} (largest {size.max():.3f})" for size in sizes.values()]
            over = law != "alone" and sizes["rounds"].mean() > GOAL
            missed = f", goal {GOAL} missed" if over else ""
            rows.append([law, "wait" if waits else "do not", *cells, f"{by_chance:.3f}"])
            means = ", ".join(f"{model} {np.mean(e):+.3f}" for model, e in signed.items())
            print(f"against {law}: {'; '.join(map(' '.join, zip(sizes, cells, strict=True)))}")
            print(f"with its sign: {means}{missed}", flush=True)
    names = (*columns(options.engine), "chance")
    print(f"\n| CUBIC against | senders | {' | '.join(names)} |\n|{' --- |' * (2 + len(names))}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
