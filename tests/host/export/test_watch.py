"""A file's changes, each told once, and never a half-written one."""

import os

import pytest

from rocetap.export.watch import FileWatch


@pytest.fixture
def path(tmp_path):
    (tmp_path / "f").write_text("one")
    return tmp_path / "f"


def test_no_change(path):
    watch = FileWatch(path)
    assert [watch.changed() for _ in range(3)] == [False] * 3


def test_a_change_counts_once_it_has_settled(path):
    watch = FileWatch(path)
    path.write_text("half of a longer text")
    assert not watch.changed()
    path.write_text("half of a longer text, and the other half")
    assert not watch.changed()
    assert [watch.changed() for _ in range(3)] == [True, False, False]


def test_a_file_moved_into_place(path):
    watch = FileWatch(path)
    times = os.stat(path)
    beside = path.with_name("g")
    beside.write_text("two")
    os.utime(beside, ns=(times.st_atime_ns, times.st_mtime_ns))
    beside.replace(path)
    assert [watch.changed() for _ in range(3)] == [False, True, False]


def test_a_file_that_goes_and_comes(path):
    watch = FileWatch(path)
    text = path.read_text()
    path.unlink()
    assert [watch.changed() for _ in range(3)] == [False] * 3
    path.write_text(text)
    assert [watch.changed() for _ in range(3)] == [False, True, False]


def test_what_was_read_for_another_reason_is_no_change(path):
    watch = FileWatch(path)
    path.write_text("longer than before")
    watch.taken()
    assert [watch.changed() for _ in range(3)] == [False] * 3
