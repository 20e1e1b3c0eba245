"""Tests the wheel with the lowest and the newest dependencies that it allows, on several Pythons.

    scripts/dependency_bounds.py --python 3.11 --python 3.12 --python 3.13

For each Python and for lowest and newest dependencies, the script installs the wheel into an empty
environment.  It then runs the command lines of ``scripts/bare_wheel.py``, except those that compile
for a minute, and a few more, which use the compiled simulators.  This needs a network.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from scripts.bare_wheel import BIN, ROOT, SCENARIOS, TRIES, Try, judge, work

CHOICES = ("lowest-direct", "highest")  # of the versions of the dependencies
# parts of command lines that compile for a minute, or need what such a command writes
SLOW = ("--model all", "simulate one.toml --out", "compare one.toml --trace", "given.parquet")
MORE = (  # further command lines; some use the compiled simulators
    Try("predict one.toml --model rounds"),
    Try("predict one.toml --model fluid"),
    Try("simulate one.toml --model fluid --out a.parquet"),
    Try("convert a.parquet --out b.parquet"),
    Try("predict", 2, "SCENARIO.toml: missing"),
    Try("nonsense", 2, "No such command"),
    Try("ratio --help"),
)
VERSIONS = """
import importlib.metadata, sys
print(" ", *(f"{name} {importlib.metadata.version(name)}" for name in sys.argv[1:]), flush=True)
"""
# packages whose versions are printed
SHOWN = ("numpy", "scipy", "numba", "pint", "click", "rich", "xarray", "pyarrow")


def tried(python: str, choice: str, wheel: Path, folder: Path) -> list[str]:
    """Install one choice of dependencies and run the commands; return what is wrong."""
    uv, venv, wanted = str(BIN / "uv"), folder / "venv", folder / "wanted.txt"
    source = ["--quiet", "--only-binary", ":all:", "--python", python]
    lines = [uv, "pip", "compile", *source, "--resolution", choice, str(ROOT / "pyproject.toml")]
    work([*lines, "--output-file", str(wanted)])
    work([uv, "venv", "--quiet", "--python", python, str(venv)])
    inside = venv / "bin" / "python"
    install = [uv, "pip", "install", "--quiet", "--only-binary", ":all:", "--python", str(inside)]
    work([*install, "--requirement", str(wanted), str(wheel)])
    print(f"Python {python}, {choice}", flush=True)
    subprocess.run([inside, "-c", VERSIONS, *SHOWN], check=True)
    for file, text in SCENARIOS.items():
        (folder / file).write_text(text, encoding="utf-8")
    chosen = [one for one in TRIES if not any(part in one.line for part in SLOW)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda one: judge(inside, folder, one), chosen))
    faults = [fault for some in found for fault in some]
    for one in MORE:
        faults += judge(inside, folder, one)
    print(f"  {len(chosen) + len(MORE)} command lines, {len(faults)} faults")
    print(*(f"  {fault}" for fault in faults), sep="\n", end="\n" * bool(faults), flush=True)
    return faults


def main() -> int:
    """Test every Python with each choice; return 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--python", action="append", help="version of Python; may be given several times"
    )
    options = parser.parse_args()
    faults = []
    with tempfile.TemporaryDirectory() as name:
        work([str(BIN / "uv"), "build", "--quiet", "--wheel", "-o", name, str(ROOT)])
        (wheel,) = Path(name).glob("vegasmodel-*.whl")
        for python in options.python or ["3.11"]:
            for choice in CHOICES:
                folder = Path(name) / f"{python} {choice}"
                folder.mkdir()
                faults += tried(python, choice, wheel, folder)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
