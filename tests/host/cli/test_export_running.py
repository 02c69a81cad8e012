"""`rocetap export` as a service manager runs it: settings from a file, readiness, reload, end."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from rocetap import pki
from rocetap.provisioning import provisioning_text
from support.daemon_bench import provisioning
from support.fake_board import FakeBoard
from support.pty_board import PtyBoard


@pytest.fixture
def manager(tmp_path):
    """The service manager's socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(str(tmp_path / "notify"))
        line.settimeout(20)
        yield line


def get(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_service_from_its_start_to_its_end(tmp_path, manager):
    pki.init(tmp_path / "pki", "probe", "collector.example")
    (tmp_path / "probe.toml").write_text(provisioning_text(provisioning(2)))
    (tmp_path / "rocetap.toml").write_text(f"""
[export]
board = "{tmp_path}/usb-board"
pki = "pki"
collector = "127.0.0.1:1"
collector_name = "collector.example"
provision = "probe.toml"
interval = 0.1
log_format = "json"
""")
    log = tmp_path / "log"
    environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"),
                   "WATCHDOG_USEC": "400000", "ROCETAP_METRICS": "127.0.0.1:0"}
    seen = []

    def told(beginning):
        while True:
            message = manager.recv(200).decode()
            seen.append(message)
            if message.startswith(beginning):
                return message

    with PtyBoard(FakeBoard(contexts=4), tmp_path / "usb-board"), open(log, "wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "rocetap.cli", "export", "--config",
             str(tmp_path / "rocetap.toml")], stdout=stream, stderr=stream, env=environment)
        try:
            told("READY=1")
            port = int(re.search(r"http://127\.0\.0\.1:(\d+)/metrics", log.read_text())[1])
            deadline = time.monotonic() + 60
            while get(port, "/healthz")[1].count("null"):
                assert time.monotonic() < deadline
            status, body = get(port, "/healthz")
            assert status == 503
            assert {**json.loads(body), "last_sample_age_seconds": 0} == {
                "healthy": False, "board": "up", "last_sample_age_seconds": 0, "session": "down"}
            told("WATCHDOG=1")
            (tmp_path / "probe.toml").write_text(provisioning_text(provisioning(3)))
            process.send_signal(signal.SIGHUP)
            told("RELOADING=1\nMONOTONIC_USEC=")
            told("READY=1")
            (tmp_path / "probe.toml").write_text("[[connection]]\nx = 1\n")
            process.send_signal(signal.SIGHUP)
            told("RELOADING=1")
            told("READY=1")
            metrics = get(port, "/metrics")[1]
            assert "rocetap_exporter_board_up 1.0\n" in metrics
            assert 'provisioning_reloads_total{outcome="taken"} 1.0\n' in metrics
            assert 'provisioning_reloads_total{outcome="refused"} 1.0\n' in metrics
            process.send_signal(signal.SIGTERM)
            told("STOPPING=1")
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    lines = [row["message"] for row in rows]
    assert "provisioning taken: 3 connections, 1 new, 0 removed, 0 changed" in lines
    [refused] = [line for line in lines if line.startswith("provisioning not taken")]
    assert refused.count(f"{tmp_path}/probe.toml:") == 4
    unreachable = [row for row in rows if "cannot be reached" in row["message"]]
    assert [row["what"] for row in unreachable] == ["collector"]
    assert lines[-1].startswith("ended: 0 reports and 0 PFC readings sent in 0 sessions")
