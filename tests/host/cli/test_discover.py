"""rocetap discover, as a command of its own."""

from __future__ import annotations

import array
import fcntl
import os
import signal
import subprocess
import sys
import termios
import time

import typer
from typer.testing import CliRunner

from rocetap.capture.frames import CaptureError, TruncatedCapture
from rocetap.cli.discover import discover
from rocetap.errors import RocetapError
from rocetap.provisioning import parse_provisioning, read_provisioning
from support.captures import pcap, record
from support.frames import roce

APP = typer.Typer()
APP.command()(discover)

CAPTURE = pcap(*(record(frame) for frame in (
    roce(psn=1), roce(psn=2), roce(qp=9, version=6, tags=[(0x88A8, 5), (0x8100, 6)]),
    roce(bytes(16), qp=0x20, opcode=0x0C), roce(qp=0x20), roce(qp=0x20, opcode=0x19),
    roce(qp=0x12, opcode=0x11), roce(bytes(28), opcode=0x81))))


def run(*arguments):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments])


def test_streams_outside_the_profile_are_comments_with_their_reason(tmp_path):
    (tmp_path / "x.pcap").write_bytes(CAPTURE)
    result = run(tmp_path / "x.pcap", "--window", 128)
    assert result.exit_code == 0
    assert result.stdout == """\
observation_domain = 1
observation_point = 1

[[port]]
name = "port0"
interface = 1

# 2 SEND and WRITE packets
[[connection]]
source = "192.0.2.1"
destination = "198.51.100.2"
destination_qp = 0x000012
partition_key = 0xffff
window = 128

# 1 SEND and WRITE packet
[[connection]]
source = "2001:db8::1"
destination = "2001:db8::2"
destination_qp = 0x000009
partition_key = 0xffff
vlan = 5
inner_vlan = 6
window = 128

# Left out, as it is outside the profile: 1 of RDMA_READ_REQUEST (0x0c), 1 of opcode 0x19
# 1 SEND and WRITE packet
# [[connection]]
# source = "192.0.2.1"
# destination = "198.51.100.2"
# destination_qp = 0x000020
# partition_key = 0xffff
# window = 128
"""
    assert result.stderr == (f"{tmp_path}/x.pcap: 8 frames, 8 RoCEv2 packets, 3 request streams, "
                             f"1 of them outside the profile\n")
    assert len(parse_provisioning(result.stdout).connections) == 2


def test_an_output_file_is_what_provisioning_reads(tmp_path):
    (tmp_path / "x.pcap").write_bytes(CAPTURE)
    result = run(tmp_path / "x.pcap", "--output", tmp_path / "p.toml")
    assert (result.exit_code, result.stdout) == (0, "")
    assert [connection.window for connection in read_provisioning(
        str(tmp_path / "p.toml")).connections] == [64, 64]
    result = run(tmp_path / "x.pcap", "--output", tmp_path / "none" / "p.toml")
    assert isinstance(result.exception, RocetapError)
    assert str(result.exception) == (
        f"cannot write {tmp_path}/none/p.toml: No such file or directory")


def test_a_file_that_exists_is_kept_unless_told(tmp_path):
    (tmp_path / "x.pcap").write_bytes(CAPTURE)
    path = tmp_path / "p.toml"
    path.write_text("edited by hand")
    result = run(tmp_path / "x.pcap", "--output", path)
    assert str(result.exception) == f"--output {path}: exists; give --force to replace it"
    assert path.read_text() == "edited by hand"
    assert run(tmp_path / "x.pcap", "--output", path, "--force").exit_code == 0
    assert len(read_provisioning(str(path)).connections) == 2
    result = run(tmp_path / "x.pcap", "--output", tmp_path / "x.pcap", "--force")
    assert str(result.exception) == (
        f"--output {tmp_path}/x.pcap: is the capture that is read; give another file")
    assert (tmp_path / "x.pcap").read_bytes() == CAPTURE


def test_a_cut_file_is_read_up_to_there_and_leaves_with_three(tmp_path):
    (tmp_path / "x.pcap").write_bytes(CAPTURE[:-3])
    result = run(tmp_path / "x.pcap")
    assert result.stdout.count("destination_qp") == 3
    assert "7 frames" in result.stderr
    assert isinstance(result.exception, TruncatedCapture)
    assert result.exception.exit_code == 3


def test_control_c_on_a_pipe_writes_what_was_found(tmp_path):
    pipe = tmp_path / "fifo"
    os.mkfifo(pipe)
    command = [sys.executable, "-c", "import typer\n"
               "from rocetap.cli.discover import discover\ntyper.run(discover)", str(pipe)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process, open(pipe, "wb", buffering=0) as writer:
        writer.write(CAPTURE)
        while_reading(pipe, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out.count("destination_qp") == 3
    assert "8 frames" in err
    assert "Traceback" not in err


def while_reading(pipe, process):
    """Waits until the other side has taken all octets and is back in its read."""
    with open(pipe, "rb", buffering=0) as reader:
        waiting = array.array("i", [1])
        while waiting[0]:
            fcntl.ioctl(reader, termios.FIONREAD, waiting)
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(0.5)


def test_warnings_go_to_standard_error(tmp_path):
    (tmp_path / "x.pcap").write_bytes(pcap(record(roce(), original=1)))
    result = run(tmp_path / "x.pcap")
    assert result.stderr.splitlines()[0] == (
        f"{tmp_path}/x.pcap: record 1: captured 58 octets of 1; taken as a whole frame of 58")


def test_errors_are_left_to_the_main_command(tmp_path):
    result = run(tmp_path / "none.pcap")
    assert isinstance(result.exception, CaptureError)
    (tmp_path / "x.pcap").write_bytes(CAPTURE)
    result = run(tmp_path / "x.pcap", "--window", 0)
    assert str(result.exception) == "window is 0, must be a whole number from 1 to 4194304"


def test_help_has_examples():
    assert "rocetap discover trace.pcap" in run("--help").stdout
