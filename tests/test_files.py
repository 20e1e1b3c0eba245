"""Files that appear completely or not at all."""

import os
import stat

import pytest

from vegasmodel.command_line.commands import run
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


RATIO = ["ratio", "--capacity", "1080pkt/s", "--buffer", "20pkt", "vegas", "reno", "--plot"]


@pytest.mark.parametrize("arguments", [["new", "--force"], RATIO])
def test_a_pipe_or_a_device_is_not_replaced(arguments, tmp_path, capsys):
    suffix = ".png" if arguments is RATIO else ".toml"
    pipe, device = tmp_path / f"pipe{suffix}", tmp_path / f"null{suffix}"
    os.mkfifo(pipe)
    device.symlink_to("/dev/null")
    for path in (pipe, device):
        assert run([*arguments, str(path)]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert "a device, pipe or socket is not replaced" in err
        with pytest.raises(OSError, match="not replaced"), atomic_write(path):
            raise AssertionError
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert stat.S_ISCHR(device.stat().st_mode)


def test_an_error_of_writing_does_not_read_like_one_of_reading(tmp_path):
    """A folder that is gone: "no such file" would be odd for a file that is to be made."""
    path = tmp_path / "gone" / "a.txt"
    failed = pytest.raises(OSError, match="cannot be written: No such file")
    with failed as told, atomic_write(path) as part:
        part.write_text("new")
    assert told.value.filename == str(path)


def test_a_folder_that_cannot_be_written_is_told_by_the_path(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    assert run(["new", "a.toml"]) == 3
    assert capsys.readouterr().err == "vegasmodel: a.toml: its folder cannot be written\n"
