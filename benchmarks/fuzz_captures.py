"""Tests the trace readers on many random captures and logs whose packet counts are known.

    python benchmarks/fuzz_captures.py --count 10000
    python benchmarks/fuzz_captures.py --kind ss   # or flowmon, ns3_ascii, iperf3, tcp_probe

The bytes that a reader counts as delivered must be exact.  The bytes that it counts as sent and as
retransmitted must be exact if the capture shows them; otherwise the reader may also report that
they are unknown.  If a capture is read wrongly, its seed is printed, and the exit status is 1.
"""

import argparse
import collections
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.packets import captures, logs


def _capture(seed: int, trace: Path, counts: collections.Counter[str]) -> str:
    """Make and read a random capture; return what is wrong with the reader's counts, or "".

    ``trace`` is the file to write.  The function adds to ``counts`` how the reader counted the
    retransmissions, such as "exact", and whether the capture shows how many there were.
    """
    rng = random.Random(seed)
    case = captures.draw(rng)
    fault, retransmissions = captures.wrong(case, captures.make(case, rng), trace)
    counts[f"retransmissions {retransmissions}"] += 1
    if captures.told(case):
        counts["told by the capture"] += 1
        if retransmissions != "exact":
            fault = fault or "unknown, though the capture tells"
    return f"{fault}\n  {case}" if fault else ""


def main() -> int:
    """Make random captures or logs, read them, compare the counts and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first input")
    parser.add_argument("--kind", default="pcap", choices=("pcap", *logs.KINDS))
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.first, options.first + options.count):
            if options.kind == "pcap":
                fault = _capture(seed, Path(folder) / "trace", counts)
            else:
                rng = random.Random(f"{options.kind} {seed}")
                fault = logs.wrong(options.kind, rng, Path(folder) / "trace")
            if fault:
                counts["wrong"] += 1
                print(f"seed {seed}: {fault}")
    for name, count in sorted(counts.items()):
        print(f"{count:8}  {name}")
    print(f"{counts['wrong']:8}  of {options.count} wrong, in {time.perf_counter() - begun:.0f} s")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
