"""The set-up installs only packages with known hashes."""

import re
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
