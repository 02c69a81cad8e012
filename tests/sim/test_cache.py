"""Built once, whole or not at all, by however many processes."""

import os
import subprocess
import sys
import time

import pytest

from rocetap_sim import cache as module
from rocetap_sim.cache import Cache


def write(text):
    return lambda folder: (folder / "result").write_text(text)


def test_builds_once_and_then_finds(tmp_path):
    cache = Cache(tmp_path / "my cache")
    first = cache.get("key", write("first"))
    assert (first / "result").read_text() == "first"
    again = cache.get("key", lambda folder: pytest.fail("built again"))
    assert again == first
    other = cache.get("other", write("second"))
    assert (other / "result").read_text() == "second"


def test_a_failed_build_leaves_nothing(tmp_path):
    cache = Cache(tmp_path)

    def fail(folder):
        (folder / "half").write_text("half")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match=r"^no$"):
        cache.get("key", fail)
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []
    assert (cache.get("key", write("now")) / "result").read_text() == "now"


PROCESS = """
import sys, time
from pathlib import Path
from rocetap_sim.cache import Cache

def build(folder):
    with open(sys.argv[2], "a") as log:
        log.write("built ")
    (folder / "result").write_text("half")
    time.sleep(0.5)
    (folder / "result").write_text("whole")

print((Cache(Path(sys.argv[1])).get("key", build) / "result").read_text())
"""


def test_four_processes_at_once_build_once(tmp_path):
    log = tmp_path / "log"
    processes = [
        subprocess.Popen([sys.executable, "-c", PROCESS, str(tmp_path / "cache"), str(log)],
                         stdout=subprocess.PIPE, text=True)
        for _ in range(4)]
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert outputs == ["whole\n"] * 4
    assert log.read_text() == "built "


def test_folders_not_used_for_a_day_go_when_there_are_many(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_KEEP", 2)
    cache = Cache(tmp_path)
    two_days_ago = time.time() - 2 * 86_400
    for key in ("a", "b", "c"):
        os.utime(cache.get(key, write(key)), (two_days_ago, two_days_ago))
    cache.get("b", write("b"))
    cache.get("d", write("d"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "b.lock", "d", "d.lock"]


def test_recent_folders_stay_however_many(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_KEEP", 1)
    cache = Cache(tmp_path)
    for key in ("a", "b", "c"):
        cache.get(key, write(key))
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["a", "b", "c"]
