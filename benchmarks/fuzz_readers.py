"""Mutated traces in great number: every one is read or refused with a clear error.

python benchmarks/fuzz_readers.py --count 1000000

An input that does anything else (another exception, over 5 s of CPU time, a message of several
lines) is kept in ``out/fuzz`` and the exit status is 1.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.packets import samples
from vegasmodel.packets import read
from vegasmodel.packets.trace import TraceError

BATCH = 500
SLOW = 5.0  # seconds of CPU time
KEEP = Path("out/fuzz")


def batch(task: tuple[int, str]) -> tuple[str, dict[str, int], float, int, list[str]]:
    """Outcomes of ``BATCH`` inputs of one format, slowest time, memory in kB, what went wrong."""
    seed, name = task
    rng = random.Random(f"{seed} {name}")
    outcomes: dict[str, int] = collections.Counter()
    slowest, wrong = 0.0, []
    valid = samples.every_format()[name]
    with tempfile.TemporaryDirectory() as tmp:
        path = Path(tmp) / "trace"
        for sample in valid:  # imports and compiled code are not timed
            path.write_bytes(sample)
            read(path, name)
        for _ in range(BATCH):
            data = samples.mutate(rng.choice(valid), rng)
            path.write_bytes(data)
            begun, reason = time.process_time(), ""
            try:
                read(path, "auto" if rng.random() < 0.2 else name)
                outcomes["read"] += 1
            except TraceError as error:
                outcomes["refused"] += 1
                if "\n" in str(error) or len(str(error)) > 600:
                    reason = "message"
            except Exception as error:
                outcomes["other"] += 1
                reason = repr(error)[:200]
            took = time.process_time() - begun
            slowest = max(slowest, took)
            if took > SLOW:
                reason = f"{took:.1f} s"
            if reason:
                KEEP.mkdir(parents=True, exist_ok=True)
                kept = KEEP / f"{name}-{seed}-{len(wrong)}"
                kept.write_bytes(data)
                wrong.append(f"{kept}: {reason}")
    return name, outcomes, slowest, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, wrong


def main() -> int:
    """Spread the batches over processes and add up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after")
    options = parser.parse_args()
    names = list(samples.every_format())
    batches = -(-options.count // BATCH)
    tasks = [(options.seed * 10**6 + i, names[i % len(names)]) for i in range(batches)]
    total: dict[str, dict[str, int]] = collections.defaultdict(collections.Counter)
    slowest: dict[str, float] = collections.defaultdict(float)
    memory, failed, begun = 0, 0, time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for name, outcomes, took, rss, wrong in pool.imap_unordered(batch, tasks):
            total[name].update(outcomes)
            slowest[name], memory = max(slowest[name], took), max(memory, rss)
            failed += len(wrong)
            for line in wrong:
                print(line, flush=True)
            if time.perf_counter() - begun > 60 * options.minutes:
                break
    for name in names:
        print(f"{name:10} {dict(total[name])}, slowest {slowest[name]:.2f} s of CPU")
    done = sum(sum(outcomes.values()) for outcomes in total.values())
    print(
        f"{done} inputs in {time.perf_counter() - begun:.0f} s, {failed} wrong, "
        f"largest process {memory / 1e3:.0f} MB"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
