"""Compiled functions that are older than a source beside them do not survive."""

import os
from pathlib import Path

from vegasmodel.machine_code import forget_stale


def test_stale_code_goes_and_fresh_code_stays(tmp_path: Path) -> None:
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    source, stale, fresh = tmp_path / "a.py", cache / "old.nbi", cache / "new.nbi"
    for path, time in ((stale, 10), (source, 20), (fresh, 30)):
        path.touch()
        os.utime(path, (time, time))
    forget_stale(str(source))
    assert not stale.exists()
    assert fresh.exists()
