"""Checks that no page of out/site/ is wider than a desktop window (1280 pixels) or a phone (420).

    scripts/site_widths.py [--pictures FOLDER PAGE ...]

Chromium opens every page in a frame of each width and measures the width that the page needs.
``--pictures`` takes a picture of each PAGE at both widths instead.
"""

import functools
import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

SITE = Path(__file__).resolve().parent.parent / "out" / "site"
WIDTHS = (1280, 420)  # pixels
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-sync"]
QUIET += ["--disable-quic", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update"]
SCRIPT = """<!doctype html><body><script>
const open = (page, width) => new Promise(done => {
  const frame = document.createElement("iframe");
  frame.style = `width:${width}px;height:900px;border:0`;
  frame.onload = () => {
    const root = frame.contentDocument.documentElement;
    const found = [page, width, root.scrollWidth, root.clientWidth];
    frame.remove(); done(found);
  };
  frame.src = page; document.body.append(frame);
});
(async () => {
  const all = [];
  for (const page of PAGES) for (const width of WIDTHS) all.push(await open(page, width));
  document.body.textContent = "RESULT" + JSON.stringify(all) + "END";
})();
</script>"""


class View(NamedTuple):
    """A page in a frame of a certain width."""

    page: str
    width: int  # of the frame, pixels
    needed: int  # width of the page's content, pixels
    available: int  # width that the frame has for it, pixels


def main(arguments: list[str]) -> int:
    """Print every page that is too wide; return 1 if there is one, and 2 without Chromium."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("no Chromium here: nothing was checked")
        return 2
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, *QUIET, f"--user-data-dir={profile}"]
        if arguments[:1] == ["--pictures"]:
            pictures(command, Path(arguments[1]), arguments[2:])
            return 0
        views = measure(command)
    wide = [view for view in views if view.needed > view.available]
    for page, width, needed, available in wide:
        print(f"{page}: {needed} pixels in a window of {available} ({width})")
    print(f"{len(views)} views of {len(views) // len(WIDTHS)} pages, {len(wide)} too wide")
    return int(bool(wide) or not views)


def measure(command: list[str]) -> list[View]:
    """Measure each page in a frame of each width; ``command`` starts the browser."""
    pages = sorted(str(path.relative_to(SITE)) for path in SITE.rglob("*.html"))
    wrapper = SITE / "widths-of-all.html"
    text = SCRIPT.replace("PAGES", json.dumps(pages)).replace("WIDTHS", json.dumps(WIDTHS))
    handler = functools.partial(Silent, directory=SITE)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            wrapper.write_text(text, encoding="utf-8")
            address = f"http://127.0.0.1:{server.server_address[1]}/{wrapper.name}"
            done = subprocess.run(
                [*command, "--virtual-time-budget=600000", "--dump-dom", address],
                capture_output=True,
                text=True,
                timeout=600,
                check=True,
            )
        finally:
            wrapper.unlink()
            server.shutdown()
    found = re.search("RESULT(.*)END", done.stdout)
    if found is None:
        raise RuntimeError(f"the browser gave no answer: {done.stderr[-500:]}")
    return [View(*row) for row in json.loads(html.unescape(found[1]))]


def pictures(command: list[str], folder: Path, pages: list[str]) -> None:
    """Take a picture of the top of each page at both widths."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages:
        for width in WIDTHS:
            name = f"{Path(page).with_suffix('').as_posix().replace('/', '-')}-{width}.png"
            # a browser's window is at least 500 pixels wide: a phone is a frame within one
            target = (SITE / page).as_uri()
            frame = folder / "frame.html"
            frame.write_text(
                f'<body style="margin:0"><iframe src="{target}" '
                f'style="width:{width}px;height:1600px;border:0"></iframe>'
            )
            size = f"--window-size={max(width, 500)},1600"
            shot = f"--screenshot={folder / name}"
            subprocess.run([*command, size, shot, frame.as_uri()], capture_output=True, check=True)
            frame.unlink()


class Silent(SimpleHTTPRequestHandler):
    """Serves files without log messages."""

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - its base class names it
        """Write no log message."""


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
