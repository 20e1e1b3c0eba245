"""The set-up installs packages with known hashes, and ours so that no folder hides it."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_download_has_a_hash() -> None:
    text = (ROOT / "scripts" / "setup.sh").read_text().replace("\\\n", " ")
    installs = [line for line in text.splitlines() if "pip install" in line and "say " not in line]
    assert len(installs) >= 3
    for line in installs:
        ours = "--no-deps" in line and re.search(r"-e \.", line)
        assert "--require-hashes" in line or ours, line
    assert not re.search(r"\b(curl|wget)\b", text)
    for lock in ("scripts/uv.lock", "requirements.lock"):
        packages = re.split(r"\n(?=\S)", (ROOT / lock).read_text().strip())
        assert all("--hash=sha256:" in package for package in packages)


def test_a_folder_named_like_the_package_does_not_hide_it(tmp_path: Path) -> None:
    """A script beside a checkout: Python takes a folder without __init__.py for a package, too."""
    (tmp_path / "vegasmodel").mkdir()
    script = tmp_path / "t.py"
    script.write_text("import vegasmodel\nprint(vegasmodel.load)\n")
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_failed_download_names_the_variable_for_a_network_with_certificates_of_its_own(
    tmp_path: Path,
) -> None:
    """uv 0.13 reads UV_SYSTEM_CERTS (``uv pip install --help``)."""
    for name, text in (
        ("scripts/setup.sh", (ROOT / "scripts" / "setup.sh").read_text()),
        (".venv/bin/pip", "#!/bin/sh\nexit 0\n"),
        (".venv/bin/uv", "#!/bin/sh\necho invalid peer certificate: UnknownIssuer >&2\nexit 2\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ["bash", tmp_path / "scripts" / "setup.sh"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("setup: uv failed; if it says UnknownIssuer, set UV_SYSTEM_CERTS=1")
    assert not (tmp_path / ".venv" / ".ready").exists()
    helped = subprocess.run(
        [ROOT / ".venv" / "bin" / "uv", "pip", "install", "--help"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "env: UV_SYSTEM_CERTS" in " ".join(helped.stdout.split())
