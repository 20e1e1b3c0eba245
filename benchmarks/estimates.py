"""Measures the errors of estimates from traces, and their effect on the simulator ``rounds``.

    python benchmarks/estimates.py

The capacity, buffer, rtt, alpha and beta are removed from scenario files and estimated from traces
of the same scenarios.  The traces are stored ones of the Linux kernel and new ones of ns-2.  The
last line of a case has the throughput error (NRMSE) of ``rounds``, with the true values and with
the estimates.
"""

import copy
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vegasmodel import comparison, measurement
from vegasmodel.fields import toml_file
from vegasmodel.packets import ns2
from vegasmodel.scenario import Scenario

ROOT = Path(__file__).parent.parent
LINUX = ROOT / "vegasmodel" / "packets" / "reference" / "linux"
MIXED = """
[[link]]
capacity = "1080 pkt/s"
buffer = "20 pkt"
[[flow]]
law = "vegas"
send_jitter = "0 s"
rtt = "80 ms"
variant = "ns2"
[[flow]]
law = "reno"
send_jitter = "0 s"
rtt = "80 ms"
variant = "ns2"
[run]
duration = "600 s"
warmup = "200 s"
"""
SHORT = """
[[link]]
capacity = "1.5 Mbit/s"
buffer = "10 pkt"
[[flow]]
law = "vegas"
send_jitter = "0 s"
rtt = "14 ms"
variant = "ns2"
[[flow]]
law = "sack"
send_jitter = "0 s"
rtt = "28 ms"
variant = "ns2"
[run]
duration = "200 s"
warmup = "50 s"
"""
LATE = """
[[link]]
capacity = "500 pkt/s"
buffer = "100 pkt"
[[flow]]
law = "vegas"
send_jitter = "0 s"
count = 3
rtt = "60 ms"
alpha = 2
beta = 4
variant = "ns2"
start = { every = "20 s" }
[[flow]]
name = "far"
law = "vegas"
send_jitter = "0 s"
rtt = "120 ms"
alpha = 2
beta = 4
variant = "ns2"
start = "70 s"
[run]
duration = "200 s"
warmup = "100 s"
"""
# keys that are removed from a scenario, and estimated
KEYS = ("capacity", "buffer", "rtt", "alpha", "beta")


def cases(folder: Path) -> Iterator[tuple[str, dict[str, Any], Path]]:
    """Yield the cases: for each its name, the table of its scenario file, and its trace's path.

    The traces are those that are stored of the Linux kernel, and three that ns-2 makes now, in
    ``folder``.
    """
    for trace in sorted(LINUX.glob("*.parquet")):
        yield trace.stem, toml_file.read(ROOT / f"paper_checks/linux/{trace.stem}.toml"), trace
    if not ns2.available():
        print("ns-2 is not installed: its cases are skipped")
        return
    texts = {"Vegas and Reno": MIXED, "Vegas and SACK, small buffer": SHORT, "4 Vegas, late": LATE}
    for name, text in texts.items():
        table, path = toml_file.parse(text, name, ""), folder / f"{name}.parquet"
        measurement.record_engine(Scenario.from_dict(table)).write(path)
        yield f"ns-2: {name}", table, path


def without(table: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The table of a scenario file without these keys of its links and flows."""
    result = copy.deepcopy(table)
    for link_or_flow in (*result["link"], *result["flow"]):
        for key in keys:
            link_or_flow.pop(key, None)
    return result


def truth(scenario: Scenario, key: str) -> str:
    """The true value of ``key``, such as ``link[0].buffer``, as text (s, packets or pkt/s)."""
    kind, _, number_and_field = key.partition("[")  # ``kind`` is "link" or "flow"
    number, _, field = number_and_field.partition("].")
    link_or_flow = (scenario.links if kind == "link" else scenario.flows)[int(number)]
    return f"{getattr(link_or_flow, field):.6g}"


def main() -> int:
    """Print one block of lines for each case."""
    with tempfile.TemporaryDirectory() as folder:
        for name, table, trace in cases(Path(folder)):
            whole = comparison.compare(Scenario.from_dict(table), trace, ["rounds"])
            found = comparison.compare(without(table, *KEYS), trace, ["rounds"])
            print(f"\n{name}\n{'':18}{'truth':>12}{'estimate':>12}   unit")
            for entry in found.estimates:
                said = truth(whole.scenario, entry.key)
                print(f"{entry.key:18}{said:>12}{entry.value:12.6g}   {entry.unit}")
            errors = [c.errors["rounds"]["throughput_nrmse"] for c in (whole, found)]
            print(f"rounds, error: {errors[0]:.1%} as the file is, {errors[1]:.1%} estimated")
    return 0


if __name__ == "__main__":
    sys.exit(main())
