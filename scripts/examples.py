"""Runs the examples on pages of docs/ and compares their output with what the page shows.

    scripts/examples.py [--write] PAGE.md ...

A page's blocks run in order, in one empty folder.  A ``toml`` block is a scenario, which is written
to a file of its name and read.  A ``python`` block is a whole program.  A ``console`` block is a
command after a dollar sign, followed by its output.  ``--write`` puts the new output into the page.
"""

import contextlib
import io
import re
import shlex
import sys
import tempfile
from pathlib import Path

import vegasmodel as vm
from vegasmodel.command_line.commands import run

__all__ = ["played"]

TUTORIAL = Path(__file__).resolve().parent.parent / "docs" / "tutorial.md"
BLOCK = re.compile(
    r"^```(toml|python|console)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S
)


def played(text: str) -> str:
    """Run a page's examples in the current folder; return the page's text with the new output.

    The folder then contains ``mixed.toml``, the scenario of the tutorial.
    """
    first = BLOCK.search(TUTORIAL.read_text(encoding="utf-8").partition("## A scenario file")[2])
    if first is not None:
        Path("mixed.toml").write_text(first[2], encoding="utf-8")
    return BLOCK.sub(_play, text)


def _play(found: re.Match[str]) -> str:
    """Run one block; return its text with the new output."""
    kind, body, _ = found.groups()
    if kind == "toml":
        name = vm.Scenario.from_toml(body).name
        Path(f"{name.replace(' ', '-')}.toml").write_text(body, encoding="utf-8")
        return f"```toml\n{body}```\n"
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        if kind == "python":
            exec(compile(body, "example", "exec"), {"__name__": "__main__"})  # noqa: S102 - our page
        else:
            command = body.splitlines()[0]
            status = run(shlex.split(command.removeprefix("$ vegasmodel")))
            if status and "vegasmodel: " not in body:  # an error that the page shows
                raise RuntimeError(f"exit status {status}: {command}\n{out.getvalue()}")
    # the time that a command took differs from run to run
    output = re.sub(r"; [\d.]+ s\.$", "; ... s.", out.getvalue().strip("\n"), flags=re.M)
    lines = [line.rstrip() for line in output.splitlines()]
    shown = "\n".join(lines) + "\n" if any(lines) else ""
    if kind == "console":
        return f"```console\n{body.splitlines()[0]}\n{shown}```\n"
    return f"```python\n{body}```\n" + (f"\n```text\n{shown}```\n" if shown else "")


def main(arguments: list[str]) -> int:
    """Run every page; return 1 if a page's output has changed and ``--write`` is not given."""
    pages = [Path(a).resolve() for a in arguments if a != "--write"]
    missing = [str(page) for page in pages if not page.is_file()]
    if missing or not pages:
        said = f"{missing[0]} is not a file" if missing else "no page is named"
        print(f"{said}; usage: python scripts/examples.py [--write] PAGE.md ...", file=sys.stderr)
        return 2
    changed = 0
    for page in pages:
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            now = played(text)
        if now != text:
            changed += 1
            print(f"{page.name}: its examples print something else")
            if "--write" in arguments:
                page.write_text(now, encoding="utf-8")
    return int(changed > 0 and "--write" not in arguments)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
