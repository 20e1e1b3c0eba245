"""What each model says, what ns-2 measured, and the error: two tables and two pictures in out/.

(a) one Reno and one Vegas source over the bottleneck's buffer: the mini-cycle model;
(b) 20 Vegas sources that arrive one after another: the exact recursion and Bonald's form.

Change a number in the scenarios below and run it again.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import vegasmodel as vm
from vegasmodel import console, plots

OUT = Path("out")
BUFFERS = (5, 10, 15, 20, 25, 30, 35, 40)
HERE = Path(__file__).resolve().parent.parent / "paper_checks"


def vegas_reno(buffer: int) -> vm.Scenario:
    """The scenario of devendictis, figure 3; the paper does not state its RTT: 80 ms here."""
    text = (HERE / "devendictis" / "figure3.toml").read_text()
    return vm.Scenario.from_toml(text.replace('buffer = "20 pkt"', f'buffer = "{buffer} pkt"'))


def main() -> None:
    """Run both parts."""
    began = time.perf_counter()
    OUT.mkdir(exist_ok=True)
    part_a()
    part_b()
    print(f"\nPictures in {OUT}/.  {time.perf_counter() - began:.0f} s in all.")


def part_a() -> None:
    """Throughput over the buffer: mini-cycle model (as the paper has it) and fluid beside ns-2."""
    models = ("minicycle", "fluid")
    rows, ratios = [], {name: [] for name in (*models, "ns2")}
    for buffer in BUFFERS:
        comparison = vm.compare(vegas_reno(buffer), models=models)
        by_name = {p.model: p for p in comparison.results}
        measured = comparison.measured
        for name in models:
            ratios[name].append(by_name[name].ratios["vegas/reno"])
        ratios["ns2"].append(measured.ratios["vegas/reno"])
        cells = [console.number(measured.groups[g]) for g in ("vegas", "reno")]
        for name in models:
            p = by_name[name]
            cells += [console.number(p.groups[g]) for g in ("vegas", "reno")]
            cells.append(f"{100 * (ratios[name][-1] / ratios['ns2'][-1] - 1):+.0f} %")
        rows.append([str(buffer), *cells])
    columns = ["buffer", "ns-2 V", "R", "cycle V", "R", "error", "fluid V", "R", "error"]
    out = console.console()
    out.print(console.table(columns, rows, "(a) One Vegas (V), one Reno (R), pkt/s; error of V/R"))
    picture = plots.curves(
        {name: (BUFFERS, ratios[name]) for name in models},
        {"ns-2": (BUFFERS, ratios["ns2"])},
        x="buffer (packets)",
        y="throughput ratio Vegas / Reno",
        title="One Vegas and one Reno source, 1080 pkt/s, alpha = beta = 3",
    )
    plots.save(picture, OUT / "vegas_reno.png")
    console.paragraphs(
        [
            "The mini-cycle model lets both sources lose (its hypothesis 5). In ns-2, above about "
            "10 packets of buffer, the burst that overflows is Reno's and Vegas loses nothing: "
            "that is the model's error there. The fluid model lets the burst decide who loses."
        ]
    )


def part_b() -> None:
    """Rate over arrival index: exact recursion, Bonald's form and fluid beside ns-2."""
    scenario = vm.load(HERE / "boutremans" / "arrivals20.toml")
    models = ("arrivals", "arrivals-bonald", "fluid")
    comparison = vm.compare(scenario, models=models)
    index = np.arange(1, len(scenario.members) + 1)
    by_name = {p.model: p.throughput for p in comparison.results}
    rows = [
        [str(i), *(console.number(by_name[n][i - 1]) for n in ("ns2", *models))] for i in index
    ]
    rows.append(["sum", *(console.number(float(by_name[n].sum())) for n in ("ns2", *models))])
    errors = [console.number(comparison.errors[n]["throughput_nrmse"], 2) for n in models]
    rows.append(["NRMSE", "", *errors])
    columns = ["arrival", "ns-2", "exact recursion", "Bonald's form", "fluid"]
    out = console.console()
    out.print()
    out.print(console.table(columns, rows, "(b) 20 Vegas sources, one every 2 s, 125 pkt/s: rates"))
    picture = plots.curves(
        {name: (index, by_name[name]) for name in models},
        {"ns-2": (index, by_name["ns2"])},
        x="order of arrival",
        y="throughput (pkt/s)",
        title="20 Vegas sources arriving every 2 s, 1 Mbit/s, alpha = beta = 3",
    )
    plots.save(picture, OUT / "arrivals.png")
    console.paragraphs(
        [
            "Late flows take the queue they find for a part of their propagation delay and get "
            "more. Bonald's rates do not add up to the capacity of 125 pkt/s: the printed form "
            "does not satisfy the paper's own equation (6); the exact recursion does."
        ]
    )


if __name__ == "__main__":
    main()
