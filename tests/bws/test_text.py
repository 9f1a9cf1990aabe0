"""Writing a file: whole or not at all, and never in the place of what is no file."""

import os
import tempfile
import threading

import pytest

from bws.base import text
from bws.base.text import read_bytes, read_text, write_atomic


def test_what_is_written_is_read(tmp_path):
    for name in ("a.txt", "a.txt.gz", "new/folder/a.txt"):
        write_atomic(tmp_path / name, "Äußerung\n")
        assert read_text(tmp_path / name) == "Äußerung\n"


def test_a_packed_file_is_the_same_each_time(tmp_path):
    write_atomic(tmp_path / "a.gz", "text")
    write_atomic(tmp_path / "b.gz", "text")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_atomic(path, "old")
    monkeypatch.setattr(
        os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left"))
    )
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomic(path, "new")
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_where_no_file_can_be_made_the_error_names_the_one_that_was_meant(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(30, "Read-only file system", "/elsewhere/.a.txt.x.part")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.raises(OSError, match="Read-only") as caught:
        write_atomic(tmp_path / "a.txt", "new")
    assert caught.value.filename == str(tmp_path / "a.txt")


def left_behind(path, hours):
    path.write_text("half")
    then = path.stat().st_mtime - hours * 3600
    os.utime(path, (then, then))
    return path


def test_what_a_killed_process_left_goes_with_the_next_write(tmp_path):
    left_behind(tmp_path / ".a[1].txt.x.bws.part", hours=2)
    left_behind(tmp_path / ".never-again.y.bws.part", hours=2)
    new = left_behind(tmp_path / ".a[1].txt.z.bws.part", hours=0)  # another process may be at it
    alien = left_behind(tmp_path / ".film.part", hours=2)
    path = tmp_path / "a[1].txt"
    write_atomic(path, "whole")
    assert sorted(tmp_path.iterdir()) == sorted([new, alien, path])


def test_a_folder_is_looked_through_once_an_hour(tmp_path, monkeypatch):
    write_atomic(tmp_path / "a", "")
    old = left_behind(tmp_path / ".b.x.bws.part", hours=2)
    write_atomic(tmp_path / "a", "")
    assert old.exists()
    (tmp_path / "other").mkdir()
    other = left_behind(tmp_path / "other" / ".b.x.bws.part", hours=2)
    write_atomic(tmp_path / "other" / "a", "")
    assert not other.exists()
    later = text.time.monotonic() + text.FORGOTTEN
    monkeypatch.setattr(text.time, "monotonic", lambda: later)
    write_atomic(tmp_path / "a", "")
    assert not old.exists()


def test_permissions_and_links_stay(tmp_path):
    path, link = tmp_path / "a.txt", tmp_path / "link.txt"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_atomic(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    seen = []
    reader = threading.Thread(target=lambda: seen.append(pipe.read_bytes()))
    reader.start()
    write_atomic(pipe, "through")
    reader.join(timeout=120)
    assert seen == [b"through"]
    assert pipe.is_fifo()


def test_a_byte_order_mark_is_dropped(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfa")
    assert read_bytes(tmp_path / "a") == b"a"
