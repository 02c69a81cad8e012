"""`rocetap sim`: bad arguments in one line, and the whole command as a process."""

import signal
import socket
import subprocess
import sys
import time

import pytest

from rocetap.capture.synth import SynthSettings, write_synthetic
from rocetap.cli import sim as module
from rocetap.errors import RocetapError
from rocetap.link.driver import Driver
from rocetap.link.transport import open_transport

ROCETAP = [sys.executable, "-c", "from rocetap.cli import main; main()"]


@pytest.mark.parametrize(("text", "expected"), [
    ("127.0.0.1:9000", ("127.0.0.1", 9000)), ("localhost:0", ("localhost", 0)),
    ("[::1]:65535", ("::1", 65535))])
def test_addresses(text, expected):
    assert module.split_address(text) == expected


@pytest.mark.parametrize("text", ["", "9000", ":9000", "host:", "host:-1", "host:65536", "host:٣"])
def test_bad_addresses(text):
    with pytest.raises(RocetapError) as error:
        module.split_address(text)
    assert str(error.value) == (f"--listen {text}: must be HOST:PORT with a port from 0 to 65535, "
                                "an IPv6 address in brackets")


def test_a_missing_simulator_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "rocetap_sim.board", None)
    with pytest.raises(RocetapError) as error:
        module._simulator("board")
    assert str(error.value) == ("the simulated board needs the package rocetap_sim.board: "
                                "pip install 'rocetap[sim]'")


@pytest.mark.parametrize(("arguments", "line"), [
    (["--listen", "here"], "rocetap: error: --listen here: must be HOST:PORT with a port from 0 to "
                           "65535, an IPv6 address in brackets"),
    (["--capture", "/no/such.pcap"], None),
])
def test_a_bad_argument_ends_before_anything_is_built(arguments, line):
    outcome = subprocess.run([*ROCETAP, "sim", *arguments], capture_output=True, text=True,
                             timeout=60, check=False)
    assert outcome.returncode == 2
    assert outcome.stdout == ""
    lines = outcome.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0] == line if line else lines[0].startswith("rocetap: error: /no/such.pcap: ")


def wait_for(path, process):
    deadline = time.monotonic() + 500    # the first start builds the board
    while not path.exists():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int(path.read_text())


def test_the_board_is_served_until_interrupted(tmp_path):
    capture, port_file = tmp_path / "sample.pcap", tmp_path / "port"
    write_synthetic(capture, SynthSettings(packets=200, connections=2))
    process = subprocess.Popen(
        [*ROCETAP, "sim", "--listen", "127.0.0.1:0", "--port-file", str(port_file), "--capture",
         str(capture), "--speed", "0", "--delay", "0.1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        port = wait_for(port_file, process)
        taken = subprocess.run([*ROCETAP, "sim", "--listen", f"127.0.0.1:{port}"],
                               capture_output=True, text=True, timeout=60, check=False)
        assert (taken.returncode, taken.stderr) == (
            2, f"rocetap: error: cannot listen on 127.0.0.1:{port}: Address already in use; choose "
               "another address, or port 0 for a free one\n")
        driver = Driver(open_transport(f"socket://127.0.0.1:{port}"), clock=time.monotonic,
                        timeout_s=5.0)
        assert driver.handshake().connections == 1024
        assert abs(driver.read("time") - time.time_ns()) < 5_000_000_000
        deadline = time.monotonic() + 30
        while (frames := sum(driver.read_bank("frame_class", 0))) < 200:
            assert time.monotonic() < deadline
        assert frames == 200
        driver.close()
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, output) == (0, "")
    lines = [line for line in errors.splitlines() if line.startswith("rocetap sim: ")]
    assert lines[0] == f"rocetap sim: the simulated board is at socket://127.0.0.1:{port}"
    assert "rocetap sim: the capture is sent" in lines
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
