"""Compares models with ns-2: prints two tables and writes two pictures to out/.

(a) One Reno and one Vegas source, for several buffers of the bottleneck: the mini-cycle model.
(b) 20 Vegas sources that arrive one after another: the exact recursion and Bonald's closed form.

Change a number in the scenarios below and run it again.
"""

import time
from pathlib import Path

import numpy as np

import vegasmodel as vm
from vegasmodel import plots
from vegasmodel.report import console

OUT = Path("out")
BUFFERS = (5, 10, 15, 20, 25, 30, 35, 40)
HERE = Path(__file__).resolve().parent.parent / "paper_checks"


def vegas_reno(buffer: int, variant: str = "ns2") -> vm.Scenario:
    """The scenario of ``devendictis``, figure 3; its RTT, which the paper omits, is 80 ms here."""
    text = (HERE / "devendictis" / "figure3.toml").read_text()
    text = text.replace('buffer = "20 pkt"', f'buffer = "{buffer} pkt"')
    return vm.Scenario.from_toml(text.replace('variant = "ns2"', f'variant = "{variant}"'))


def main() -> None:
    """Run both parts, and print where their pictures are."""
    began = time.perf_counter()
    OUT.mkdir(exist_ok=True)
    part_a()
    part_b()
    print(f"\nPictures in {OUT}/.  {time.perf_counter() - began:.0f} s in all.")


def part_a() -> None:
    """Throughput against the buffer: the mini-cycle in two variants, both simulators, and ns-2.

    The results called "paper" are those of the mini-cycle as in the paper, "packets" as in ns-2.
    """
    curves: dict[str, list[float]] = {
        name: [] for name in ("paper", "packets", "fluid", "rounds", "ns-2")
    }
    rows = []
    for buffer in BUFFERS:
        comparison = vm.compare(vegas_reno(buffer), models=("minicycle", "fluid", "rounds"))
        packets, fluid, rounds = comparison.models
        paper = vm.predict(vegas_reno(buffer, "paper"), "minicycle")
        measured = comparison.measured
        true_ratio = measured.ratios["vegas/reno"]
        curves["ns-2"].append(true_ratio)
        by_ns2 = (measured.groups["vegas"], measured.groups["reno"], true_ratio)
        cells = [str(buffer), *(console.number(figure, 3) for figure in by_ns2)]
        predicted = {"paper": paper, "packets": packets, "fluid": fluid, "rounds": rounds}
        for name, prediction in predicted.items():
            ratio = prediction.ratios["vegas/reno"]
            curves[name].append(ratio)
            cells.append(f"{console.number(ratio, 3)} {100 * (ratio / true_ratio - 1):+.0f} %")
        rows.append(cells)
    columns = ["buffer", "Vegas", "Reno", "V/R", "paper", "packets", "fluid", "rounds"]
    out = console.console()
    title = "(a) Vegas beside Reno: ns-2 (pkt/s), its ratio V/R; the models' ratios and errors"
    out.print(console.table(columns, rows, title))
    picture = plots.curves(
        {
            "mini-cycle, as in the paper": (BUFFERS, curves["paper"]),
            "mini-cycle, as in ns-2": (BUFFERS, curves["packets"]),
            "fluid": (BUFFERS, curves["fluid"]),
            "rounds": (BUFFERS, curves["rounds"]),
        },
        {"ns-2": (BUFFERS, curves["ns-2"])},
        x="buffer (packets)",
        y="throughput ratio Vegas / Reno",
        title="One Vegas and one Reno source, 1080 pkt/s, 80 ms, alpha = beta = 3",
    )
    plots.save(picture, OUT / "vegas_reno.png")
    console.paragraphs(
        [
            "paper: the mini-cycle model with its hypothesis 5, by which both sources lose a "
            "packet when the buffer overflows.  packets: the same model, but as in ns-2: Vegas "
            "compares a rounded backlog with its thresholds, and only a source whose window grows "
            "at an overflow loses a packet.  At buffers above about 10 packets this is Reno alone. "
            " fluid: differential equations of continuous windows.  rounds: a simulator that moves "
            "trains of whole packets, in which Vegas decides once per round trip."
        ]
    )


def part_b() -> None:
    """Rates in order of arrival: exact recursion, Bonald's form, both simulators, and ns-2."""
    scenario = vm.load(HERE / "boutremans" / "arrivals20.toml")
    models = ("arrivals", "arrivals-bonald", "fluid", "rounds")
    comparison = vm.compare(scenario, models=models)
    index = np.arange(1, len(scenario.members) + 1)
    by_name = {p.model: p.throughput for p in comparison.results}
    rows = [[str(i), *(console.number(by_name[n][i - 1]) for n in ("ns2", *models))] for i in index]
    rows.append(["sum", *(console.number(float(by_name[n].sum())) for n in ("ns2", *models))])
    errors = [console.number(comparison.errors[n]["throughput_nrmse"], 2) for n in models]
    rows.append(["NRMSE", "", *errors])
    columns = ["arrival", "ns-2", "exact recursion", "Bonald's form", "fluid", "rounds"]
    out = console.console()
    out.print()
    out.print(console.table(columns, rows, "(b) 20 Vegas sources, one every 2 s, 125 pkt/s: rates"))
    picture = plots.rate_by_arrival(comparison.models, [comparison.measured])
    plots.save(picture, OUT / "arrivals.png")
    console.paragraphs(
        [
            "Late flows count the queueing delay that they find as propagation delay, and get "
            "more. Bonald's rates do not add up to the capacity of 125 pkt/s: the printed form "
            "does not satisfy the paper's own equation (6); the exact recursion does."
        ]
    )


if __name__ == "__main__":
    main()
