"""Measures a scenario with the TCP of the running kernel: Reno, CUBIC, BBR, or Vegas if present.

    sudo .venv/bin/python scripts/kernel/measure.py SCENARIO.toml --out run.log
    sudo .venv/bin/python scripts/kernel/measure.py SCENARIO.toml --out run.log --control reno=cubic
    .venv/bin/vegasmodel compare SCENARIO.toml --trace run.log

docs/linux.md describes the network that is built, and the programs that it needs.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import rig
from job import controls, job

from vegasmodel.fields.errors import FieldError
from vegasmodel.scenario import load


def main() -> int:
    """Measure; the exit status is 2, with one line of error, if something is missing or fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("scenario", type=Path)
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="file for the samples, which vegasmodel reads as a trace",
    )
    parser.add_argument("--run", type=int, default=0, help="which of the scenario's runs, from 0")
    parser.add_argument(
        *("--control", "-c"), action="append", default=[], metavar="FLOW=NAME",
        help="congestion control of a flow in place of its law's: reno, cubic, bbr, vegas, ...",
    )  # fmt: skip
    parser.add_argument("--sampler", choices=("ss", "tcp_info"), default="ss")
    parser.add_argument("--interval", type=float, default=0.1, help="seconds between samples")
    parser.add_argument("--delay", choices=("auto", "netem", "user"), default="auto")
    options = parser.parse_args()
    rig.catch_signals()
    try:
        if not 0.01 <= options.interval <= 10:
            raise FieldError("--interval", options.interval, "0.01 to 10 seconds")
        if not options.out.parent.is_dir():
            raise FieldError("--out", str(options.out), "a file in a folder that exists")
        made = job(
            load(options.scenario),
            options.run,
            instead=controls(options.control),
            sampler=options.sampler,
            delay=options.delay,
            interval=options.interval,
        )
        counted = rig.measure(made, options.out)
    except (FieldError, rig.RigError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(counted) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
