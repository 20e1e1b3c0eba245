"""Makes the package's traces of the Linux kernel from CSV files of samples.

    python scripts/linux_reference.py FOLDER

The folder contains ``summary.csv`` and one CSV file per run.  For each run the script writes the
trace as a Parquet file, and its scenario file.  It also writes the checksums of all traces.
"""

import csv
import dataclasses
import hashlib
import sys
from pathlib import Path

from vegasmodel.packets.reading import read
from vegasmodel.scenario import load

ROOT = Path(__file__).parent.parent
TRACES = ROOT / "vegasmodel" / "packets" / "reference" / "linux"
SCENARIOS = ROOT / "paper_checks" / "linux"

SCENARIO = """\
# A run of the Linux kernel's tcp_vegas; the trace of the same name is in
# vegasmodel/packets/reference/linux.
name = "{run}"
packet_size = "{wire_bytes} B"
ack_size = "66 B"

[[link]]
capacity = "{c_pkts} pkt/s"
buffer = "{buffer_pkts} pkt"
{flows}
[run]
duration = "{dur_s} s"
warmup = "{t_from_s} s"
"""
FLOW = """
[[flow]]
name = "{name}"
law = "vegas"
variant = "linux"
rtt = "{base_rtt_true_ms} ms"
send_jitter = "0 s"
start = "{start_s} s"
alpha = {alpha}
beta = {beta}
gamma = {gamma}
"""
# a line that is added to ``FLOW`` if the run's initial window is not the kernel's own
WINDOW = """initial_window = "{initcwnd} pkt"
"""


def main(folder: Path) -> None:
    """Convert every run of ``folder/summary.csv``."""
    TRACES.mkdir(parents=True, exist_ok=True)
    SCENARIOS.mkdir(parents=True, exist_ok=True)
    runs: dict[str, list[dict[str, str]]] = {}  # for each run, its two rows: one for each flow
    with (folder / "summary.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            runs.setdefault(row["run"], []).append(row)
    sums = []  # lines with the checksums
    for run, rows in runs.items():
        flows = ""
        for name, row in zip(("first", "second"), rows, strict=True):
            form = FLOW if row["initcwnd"] == "0" else FLOW + WINDOW  # 0: the kernel's own window
            flows += form.format(**row, name=name)
        toml = SCENARIOS / f"{run}.toml"
        toml.write_text(SCENARIO.format(**rows[0], flows=flows), encoding="utf-8")
        raw = folder / f"{run}.csv"
        trace = read(raw, "csv")
        about = {
            **trace.provenance,
            "kernel": "Debian 6.1, module tcp_vegas, in a virtual machine that counts instructions",
            "network": "one FIFO drop-tail bottleneck, offload off, no jitter, one ACK a packet",
            "source": raw.name,
            "source sha256": _sha256(raw),
        }
        trace = dataclasses.replace(trace, scenario=load(toml).fingerprint(), provenance=about)
        target = TRACES / f"{run}.parquet"
        trace.write(target)
        sums.append(f"{_sha256(target)}  {target.name}\n")
    (TRACES / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")


def _sha256(path: Path) -> str:
    """The SHA-256 checksum of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "summary.csv").is_file():
        sys.exit("usage: python scripts/linux_reference.py FOLDER (it has summary.csv)")
    main(Path(sys.argv[1]))
