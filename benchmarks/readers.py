"""Measures speed and memory of the trace readers beside the usual way to read the same file.

    python benchmarks/readers.py [--megabytes 200]

The usual way is pandas.read_csv (C engine) for an ns-2 event trace, and a dpkt loop that parses
Ethernet, IP and TCP for pcap.  Each reading is a process of its own, so that its peak memory can be
measured; times are CPU seconds.  The files are generated and deleted afterwards.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.arguments import at_least
from tests.packets import samples

READ = "from vegasmodel.packets import read; read(path); start(); read({data!r}); stop()"
PANDAS = (
    "import pandas; start(); pandas.read_csv({data!r}, sep=' ', header=None, engine='c'); stop()"
)
DPKT = """
import dpkt
start()
with open({data!r}, 'rb') as file:
    for _, buffer in dpkt.pcap.Reader(file):
        tcp = dpkt.ethernet.Ethernet(buffer).data.data
        tcp.seq, tcp.ack, len(tcp.data)
stop()
"""
FRAME = """
import re, time
path = {small!r}
def start():
    global begun
    begun = time.process_time()
def stop():
    used = time.process_time() - begun
    # not getrusage: its peak is inherited from the process that started this one
    with open('/proc/self/status') as status:
        peak = int(re.search(r'VmHWM:\\s+(\\d+) kB', status.read())[1])
    print(used, peak / 1024)
"""


def run(code: str, data: Path, small: Path) -> tuple[float, float]:
    """Read the file ``data`` in a new process; return CPU seconds and peak memory (MB).

    ``code`` is one of the programs above.  Our readers read the file ``small`` first, so that
    compilation does not count.
    """
    text = FRAME.format(small=str(small)) + code.format(data=str(data))
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", text], check=True, capture_output=True, text=True, cwd=root
    )
    seconds, memory = done.stdout.split()
    return float(seconds), float(memory)


def ns2_trace(path: Path, size: int) -> None:
    """Write a file like an ns-2 event trace: 20 flows, each over three links in a row."""
    rng, time, uid = random.Random(1), 0.0, 0
    seqs = [0] * 20
    with path.open("w") as file:
        while file.tell() < size:
            lines = []
            for _ in range(1000):
                fid = rng.randrange(20)
                seq, uid = seqs[fid], uid + 2
                seqs[fid] += 1
                for kind, what, ends, links in (
                    ("tcp", 1000, f"{fid}.0 {fid + 30}.0", ((fid, 20), (20, 21), (21, fid + 30))),
                    ("ack", 40, f"{fid + 30}.0 {fid}.0", ((fid + 30, 21), (21, 20), (20, fid))),
                ):
                    for at, to in links:
                        rest = f"{at} {to} {kind} {what} ------- {fid} {ends} {seq} {uid}"
                        lines.append(f"+ {time:.6f} {rest}\n- {time:.6f} {rest}\n")
                        time += 0.0002
                        lines.append(f"r {time:.6f} {rest}\n")
            file.write("".join(lines))


def capture(path: Path, size: int) -> None:
    """Write a pcap file of one long connection with a fixed window: data and ACKs."""
    run_ = samples.course(packets=size // 2300)
    path.write_bytes(samples.pcap(samples.frames(run_)))


def main() -> None:
    """Make the files, time both ways of reading and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=at_least(1), default=200)
    size = parser.parse_args().megabytes * 10**6
    print(f"{'':14}{'MB':>6} {'CPU s':>8} {'MB/s':>7} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        rows = (("ns-2", ns2_trace, PANDAS, "pandas"), ("pcap", capture, DPKT, "dpkt loop"))
        for name, make, other, label in rows:
            make(path, size)
            small = samples.DATA / "ns2_events.tr"
            if name == "pcap":
                small = Path(folder) / "small"
                small.write_bytes(samples.pcap(samples.frames(samples.course())))
            megabytes = path.stat().st_size / 1e6
            for code, reader in ((READ, "ours"), (other, label)):
                seconds, memory = run(code, path, small)
                print(
                    f"{name + ' ' + reader:14}{megabytes:6.0f} {seconds:8.2f} "
                    f"{megabytes / seconds:7.0f} {memory:8.0f}"
                )


if __name__ == "__main__":
    main()
