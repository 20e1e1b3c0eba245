"""Tests that campaigns of ns-2 survive SIGKILL at random moments.

    python scripts/kill_campaign.py --times 50

A campaign runs ns-2 for several scenarios, and stores each result in a folder
(``packets.campaign``).  Each time, a campaign starts in an empty folder, is killed, and is started
again.  It passes if the kill left no running process and no incomplete result, and if the final
files equal those of an undisturbed campaign byte for byte.  The exit status is 1 if a campaign
fails.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCENARIO = """
[[link]]
capacity = "250 pkt/s"
buffer = "10 pkt"
[[flow]]
law = "vegas"
rtt = "80 ms"
[[flow]]
law = "reno"
rtt = "80 ms"
[run]
duration = "{seconds} s"
warmup = "10 s"
start_jitter = "1 s"
runs = 2
"""
EACH = "link.0.buffer=5 pkt,10 pkt,15 pkt,20 pkt"  # one run of the campaign for each
GRACE = 1.0  # seconds in which the kernel ends what the killed process has left


def command(folder: Path, scenario: Path) -> list[str]:
    """The command line of the campaign."""
    module = [sys.executable, "-m", "vegasmodel.packets.campaign"]
    return [*module, str(folder), str(scenario), "--each", EACH, "--processes", "2"]


def whole(folder: Path, scenario: Path) -> None:
    """Run the campaign to its end.  Raises ``CalledProcessError`` if it fails."""
    subprocess.run(command(folder, scenario), check=True, capture_output=True)


def killed(folder: Path, scenario: Path, moment: float) -> bool:
    """Start the campaign and kill it ``moment`` seconds later; ``False`` if it had ended before."""
    process = subprocess.Popen(
        command(folder, scenario), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    return False


def results(folder: Path) -> dict[str, bytes]:
    """The content of every result file, by name; hidden files are left out."""
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*")}


def at_work(folder: Path) -> list[int]:
    """The ids of processes whose working folder is ``folder`` or lies below it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder.resolve()):
                found.append(int(process.name))
        except OSError:  # gone, or another user's
            continue
    return found


def resumed(folder: Path, scenario: Path, wanted: dict[str, bytes]) -> list[str]:
    """Check what a kill has left, start the campaign again, and return what went wrong."""
    wrong = []
    deadline = time.monotonic() + GRACE
    while at_work(folder) and time.monotonic() < deadline:
        time.sleep(0.01)
    if at_work(folder):
        wrong.append("ns-2 still runs")
    if any(wanted.get(name) != content for name, content in results(folder).items()):
        wrong.append("a half result")
    whole(folder, scenario)
    if {path.name: path.read_bytes() for path in folder.iterdir()} != wanted:
        wrong.append("other results")
    return wrong


def main() -> int:
    """Repeat the test and count; return 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)  # noqa: S311 - moments, no secrets
    passed = done = 0
    with tempfile.TemporaryDirectory() as name:
        scenario, undisturbed = Path(name) / "scenario.toml", Path(name) / "undisturbed"
        scenario.write_text(SCENARIO.format(seconds=1000))
        begun = time.monotonic()
        whole(undisturbed, scenario)
        length, wanted = time.monotonic() - begun, results(undisturbed)
        print(f"undisturbed: {len(wanted)} results in {length:.1f} s")
        while done < options.times:
            folder, moment = Path(name) / f"{done}-{rng.random()}", rng.uniform(0.0, length)
            if not killed(folder, scenario, moment):
                continue  # the machine was faster this time
            done += 1
            before = len(results(folder)) if folder.exists() else 0
            wrong = resumed(folder, scenario, wanted)
            passed += not wrong
            verdict = ", ".join(wrong) or "the same bytes"
            print(f"killed after {moment:5.2f} s with {before} results: {verdict}", flush=True)
    print(f"{passed} of {options.times}: nothing left running, no half result, the same bytes")
    return int(passed < options.times)


if __name__ == "__main__":
    sys.exit(main())
