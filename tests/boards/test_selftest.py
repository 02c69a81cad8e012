"""The self-test on the simulated board: good gateware passes, and each fault is named."""

import json
import subprocess
import sys
import time

import pytest

from rocetap.board.selftest import (
    EXPECTED,
    PRIORITY,
    WINDOW,
    SelftestError,
    frames,
    port_states,
    selftest,
)
from rocetap.link.driver import Driver
from rocetap.link.errors import RequestFailed
from rocetap.spec.classes import FrameClass
from rocetap.spec.registers import PORT_STATE, REGISTERS
from rocetap.spec.wire import Status
from rocetap_sim.board import SimulatedBoard
from support.reference import ReferenceConnection, classify


@pytest.fixture(scope="module")
def board():
    board = SimulatedBoard()
    yield board
    board.close()


@pytest.fixture
def driver(board):
    board.reset()
    driver = Driver(board.transport(), clock=board.seconds, credit_window=0)
    driver.handshake()
    return driver


def sleeping(board):
    return lambda seconds: board.run(1000)


def test_what_is_expected_is_the_models():
    """The classes and the connection's report, by the reference model."""
    model = ReferenceConnection(WINDOW)
    key = None
    for played in frames():
        if played.wrong_fcs or played.mac_error or played.frame_class is FrameClass.RUNT:
            continue
        found = classify(played.octets)
        assert found.frame_class is played.frame_class, played.what
        if found.frame_class is FrameClass.ELIGIBLE_REQUEST:
            key = key or found.key
            if found.key == key:
                for _ in range(played.times):
                    model.request(found.psn)
    [final] = model.close()
    assert {name: getattr(final, name) for name in EXPECTED} == EXPECTED
    moved = {played.frame_class for played in frames()}
    assert {FrameClass.ELIGIBLE_REQUEST, FrameClass.PFC, FrameClass.BAD_FCS, FrameClass.MAC_ERROR,
            FrameClass.RUNT, FrameClass.BAD_ICRC, FrameClass.RESPONSE, FrameClass.CNP} < moved


def test_good_gateware_passes_again_and_again(board, driver):
    for _ in range(2):
        report = selftest(driver, sleep=sleeping(board))
        assert report.faults == []
        assert report.frames == sum(played.times for played in frames())
        assert report.counters > 400
    assert port_states(driver) == [{}]      # no MAC in the simulated board


class Wrong:
    """A driver that changes what registers hold on their way."""

    def __init__(self, driver, bank, index, change):
        self._driver, self._where, self._change = driver, (bank, index), change

    def __getattr__(self, name):
        return getattr(self._driver, name)

    def read_bank(self, name, port=0):
        return self._changed(name, self._driver.read_bank(name, port))

    def read_many(self, items):
        found = self._driver.read_many(items)
        return {item: self._changed(item[0] if isinstance(item, tuple) else item, values)
                for item, values in found.items()}

    def _changed(self, name, values):
        bank, index = self._where
        if name != bank:
            return values
        return (*values[:index], self._change(values[index]), *values[index + 1:])


def test_a_counter_that_stands_still_is_named(board, driver):
    stuck = Wrong(driver, "frame_class", int(FrameClass.CNP), lambda value: 0)
    report = selftest(stuck, sleep=sleeping(board))
    assert report.faults == [
        "port 0, congestion notification: moved nothing, must be CNP by 1"]


def test_a_pfc_counter_that_counts_twice_is_named(board, driver):
    double = Wrong(driver, "pfc_received", 8 + PRIORITY, lambda value: 2 * value)
    assert selftest(double, sleep=sleeping(board)).faults == [
        "port 0, received XOFF frames of priority 3: 4, must be 2"]


def test_a_port_with_traffic_cannot_be_tested(board, driver):
    running = iter(range(10**6))
    noisy = Wrong(driver, "frame_class", int(FrameClass.TUNNELLED), lambda value: next(running))
    with pytest.raises(SelftestError) as caught:
        selftest(noisy, sleep=sleeping(board))
    assert str(caught.value) == ("port 0 has traffic: unplug its cable, or stop the sender, and "
                                 "run the self-test again")


def test_a_board_without_selftest_says_so(board, driver, monkeypatch):
    def refuse(*arguments, **fields):
        raise RequestFailed("no such register", Status.NO_REGISTER)
    monkeypatch.setattr(driver, "write_bank", refuse)
    with pytest.raises(SelftestError) as caught:
        selftest(driver, sleep=sleeping(board))
    assert str(caught.value) == ("this board has no self-test in its gateware: load a bitstream "
                                 "that has it (rocetap load)")


def test_port_states_are_the_registers_fields(driver, monkeypatch):
    octets = [1 << PORT_STATE["link"].low | 2 << PORT_STATE["speed"].low
              | 1 << PORT_STATE["found"].low]
    real = driver.read
    monkeypatch.setattr(driver, "read", lambda name: octets[0] if name == "port_state"
                        else real(name))
    assert port_states(driver) == [
        {"link": 1, "speed": 2, "full_duplex": 0, "unsupported": 0, "found": 1, "inline": 0,
         "overflow": 0}]
    assert len(REGISTERS["port_state"].fields) == 8


@pytest.mark.timeout(300)
def test_the_command_against_rocetap_sim(tmp_path):
    """As a user runs it, in processes of their own."""
    port_file = tmp_path / "port"
    server = subprocess.Popen(
        [sys.executable, "-m", "rocetap.cli", "sim", "--listen", "127.0.0.1:0", "--port-file",
         str(port_file)], stderr=subprocess.PIPE, text=True)
    try:
        while not port_file.exists():
            assert server.poll() is None, server.stderr.read()
            time.sleep(0.1)
        line = f"socket://127.0.0.1:{json.loads(port_file.read_text())}"
        outcome = subprocess.run([sys.executable, "-m", "rocetap.cli", "selftest", line],
                                 capture_output=True, text=True, check=False, timeout=240)
    finally:
        server.terminate()
        server.wait(30)
        server.stderr.close()
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.startswith("passed: 39 frames, ")
    assert "port 0: no MAC to ask" in outcome.stderr
