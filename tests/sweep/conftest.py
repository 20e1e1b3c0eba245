"""A folder with the scenario of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sweep.scenes import file_of
from vegasmodel import laws


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "s.toml").write_text(file_of())
    return tmp_path


@pytest.fixture
def no_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test begins without laws of a user, and leaves none behind."""
    monkeypatch.setattr(laws, "_outside", {})
    monkeypatch.setattr(laws, "_files", {})
