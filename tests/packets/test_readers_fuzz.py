"""A mutated trace is read or refused with one clear line; there is no other outcome."""

import contextlib
import random
import time

import numpy as np
import pytest

from tests.packets import mutations, samples
from vegasmodel.packets import read
from vegasmodel.packets.trace import TraceError

COUNT = 200  # of every sample; benchmarks/fuzz_readers.py does a million


@pytest.mark.parametrize("name", samples.FORMATS)
def test_mutations_are_read_or_refused(name, tmp_path):
    rng = random.Random(f"fuzz {name}")
    path = tmp_path / "trace"
    outcomes = {"read": 0, "refused": 0}
    for sample in samples.every_format()[name]:
        path.write_bytes(sample)
        read(path, name)  # not timed: imports, compiles
        for _ in range(COUNT):
            path.write_bytes(mutations.mutate(name, sample, rng))
            form = "auto" if rng.random() < 0.2 else name
            begun = time.process_time()
            try:
                trace = read(path, form)
            except TraceError as error:
                outcomes["refused"] += 1
                message = str(error)
            else:
                message = "read"
                outcomes["read"] += 1
                delivered = trace.get("throughput")
                assert delivered is None or not np.any(np.isinf(delivered))
            assert message.isprintable()
            assert len(message) < 600
            assert time.process_time() - begun < 5
    assert min(outcomes.values()) > 0  # neither takes all nor refuses all


@pytest.mark.parametrize("name", samples.FORMATS)
def test_large_traces_are_read_or_refused(name, tmp_path):
    """One of nearly a megabyte from each sample; benchmarks/fuzz_readers.py reads many of them."""
    rng, path = random.Random(f"large {name}"), tmp_path / "trace"
    for sample in samples.every_format()[name]:
        data = mutations.large(name, sample, rng)
        assert name == "parquet" or len(data) > 0.7 * mutations.LARGE  # Parquet is compressed
        path.write_bytes(data)
        with contextlib.suppress(TraceError):
            read(path, name)


@pytest.mark.parametrize("seed", range(40))
def test_noise_is_refused(seed, tmp_path):
    path = tmp_path / "noise"
    path.write_bytes(random.Random(seed).randbytes(5000))
    with pytest.raises(TraceError):
        read(path)
