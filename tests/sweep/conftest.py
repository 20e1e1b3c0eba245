"""A folder with the scenario of these tests."""

from pathlib import Path

import pytest

from tests.sweep.scenes import file_of


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "s.toml").write_text(file_of())
    return tmp_path
