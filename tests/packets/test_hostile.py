"""Files made to stop a reader: it answers, in bounded time and memory, with one clear line."""

import subprocess
import sys
from pathlib import Path

import pytest

EVENT = b"r 0.1 0 1 tcp 1000 ------- 0 0.0 1.0 0 0\n"
VARIABLE = b"0.1 0 0 1 0 cwnd_ 2\n"


def read_alone(data: bytes, folder: Path) -> str:
    """What a process of its own says of a trace: a loop without an end must not stop the tests."""
    path = folder / "trace"
    path.write_bytes(data)
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (90, 90))\n"  # compiling takes 15 of them
        "from vegasmodel.packets import read\n"
        "from vegasmodel.packets.trace import TraceError\n"
        "try:\n"
        "    print(f'ends at {read(sys.argv[1]).edges[-1]:.1f}')\n"
        "except TraceError as error:\n"
        "    print(error)\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "line",
    [
        b"r " + b"0" * 250 + b"5.0 0 1 tcp 1000 ------- 0 0.0 1.0 1 1\n",
        b"r" + b" " * 250 + b"5.0 0 1 tcp 1000 ------- 0 0.0 1.0 1 1\n",
        b"0" * 250 + b"5.0 0 0 1 0 cwnd_ 2\n",
        b" " * 250 + b"5.0 0 0 1 0 cwnd_ 2\n",
    ],
)
def test_a_long_run_of_digits_or_blanks_in_an_ns2_line(line, tmp_path):
    assert read_alone((EVENT if line[:1] == b"r" else VARIABLE) + line, tmp_path) == "ends at 5.0"
