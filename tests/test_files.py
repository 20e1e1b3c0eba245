"""Files that appear completely or not at all."""

import pytest

from vegasmodel.support.files import atomic_write


def _fail(part):
    part.write_text("half")
    raise RuntimeError("half way")


def test_a_file_is_replaced_only_without_an_error(tmp_path):
    path, link = tmp_path / "a.txt", tmp_path / "link.txt"
    path.write_text("old")
    link.symlink_to(path)
    with pytest.raises(RuntimeError, match="half way"), atomic_write(path) as part:
        _fail(part)
    assert path.read_text() == "old"
    with atomic_write(link) as part, atomic_write(link) as other:
        part.write_text("new")
        other.write_text("newer")
        assert path.read_text() == "old"
    assert path.read_text() == "new"  # the outer one ends last
    assert link.is_symlink()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.txt", "link.txt"]
