"""How near the simulators come to ns-2's CUBIC: python -m benchmarks.accuracy_cubic [--cases N]

Seeded cases of CUBIC against one source of another law, on ns-2's stack, at a drop-tail link;
capacities of 200 to 3000 packets a second, RTTs of 30 to 200 ms, buffers of 12 to 80 packets.  ns-2
runs fresh: Agent/TCP/Linux, CUBIC of Linux 2.6 with the scenario's factor; its starts are jittered.
Printed for each case: the rates, and by how much CUBIC's share is off.
"""

from __future__ import annotations

import argparse

import numpy as np

from vegasmodel.packets import ns2
from vegasmodel.predictor import predict
from vegasmodel.scenario import Flow, Link, Run, Scenario

SEED = 9438
AGAINST = ("cubic", "reno", "sack", "vegas")
MODELS = ("rounds", "fluid")
BAR = 0.05  # mean error of a share, by rounds


def case(law: str, index: int) -> Scenario:
    """The ``index``-th case against a law."""
    rng = np.random.default_rng([SEED, AGAINST.index(law), index])
    capacity = float(np.round(np.exp(rng.uniform(np.log(200), np.log(3000)))))
    rtt, buffer = float(np.round(rng.uniform(0.03, 0.2), 4)), float(rng.integers(12, 81))
    alpha = float(rng.integers(2, 6))
    flows = (
        Flow("cubic", rtt, name="cubic", variant="ns2", send_jitter=0.0),
        Flow(law, rtt, name="other", variant="ns2", alpha=alpha, beta=alpha, send_jitter=0.0),
    )
    link = Link(capacity, buffer=buffer)
    return Scenario((link,), flows, run=Run(120.0, 40.0, runs=3, start_jitter=0.5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10, help="of each law")
    parser.add_argument("--against", choices=AGAINST, nargs="*", default=AGAINST)
    options = parser.parse_args()
    for law in options.against:
        errors: dict[str, list[float]] = {model: [] for model in MODELS}
        for index in range(options.cases):
            scenario = case(law, index)
            measured = ns2.run(scenario, rtts=False).throughput
            said = [f"ns-2 {np.round(measured)}"]
            for model in MODELS:
                found = np.asarray(predict(scenario, model).throughput)
                off = found[0] / found.sum() - measured[0] / measured.sum()
                errors[model].append(abs(float(off)))
                said.append(f"{model} {np.round(found)} {off:+.3f}")
            print(f"{law} {index}: {', '.join(said)}", flush=True)
        for model, offs in errors.items():
            mean, most = float(np.mean(offs)), float(np.max(offs))
            bar = f", bar {BAR:.3f}" if model == "rounds" else ""
            print(f"against {law}, {model}: mean error {mean:.3f}, largest {most:.3f}{bar}")


if __name__ == "__main__":
    main()
