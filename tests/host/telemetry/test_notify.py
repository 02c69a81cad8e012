"""systemd's notification socket, played by the test."""

import os
import socket

import pytest

from rocetap.telemetry import notify as module
from rocetap.telemetry.notify import notify, ready, reloading, stopping, watchdog_interval


@pytest.fixture
def manager(tmp_path, monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        path = str(tmp_path / "notify")
        line.bind(path)
        line.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        yield line


def test_each_message(manager):
    assert ready("2 connections")
    assert manager.recv(200) == b"READY=1\nSTATUS=2 connections"
    assert reloading()
    name, _, usec = manager.recv(200).decode().partition("\nMONOTONIC_USEC=")
    assert name == "RELOADING=1"
    assert int(usec) > 0
    assert stopping()
    assert manager.recv(200) == b"STOPPING=1"


def test_an_abstract_name():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        name = f"rocetap-test-{os.getpid()}"
        line.bind("\0" + name)
        line.settimeout(5)
        assert notify("READY=1", {"NOTIFY_SOCKET": "@" + name})
        assert line.recv(100) == b"READY=1"


@pytest.mark.parametrize("path", ["", "relative", "/no/such/socket"])
def test_without_a_manager_nothing_happens(path):
    assert not module.notify("READY=1", {"NOTIFY_SOCKET": path} if path else {})


@pytest.mark.parametrize(("environment", "seconds"), [
    ({}, None), ({"WATCHDOG_USEC": "0"}, None), ({"WATCHDOG_USEC": "x"}, None),
    ({"WATCHDOG_USEC": "30000000"}, 15.0),
    ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
    ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 15.0)])
def test_watchdog(environment, seconds):
    assert watchdog_interval(environment) == seconds
