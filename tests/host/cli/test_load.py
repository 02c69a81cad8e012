"""`rocetap load`: from a bitstream to a board that answers, with a stand-in for the programmer and
a board at the far end of a pseudo-terminal."""

import stat
import sys

import pytest
from typer.testing import CliRunner

from rocetap.board.loader import VARIABLE
from rocetap.cli import make_app
from rocetap.errors import RocetapError
from rocetap.link.errors import LinkError
from support.fake_board import FakeBoard
from support.pty_board import PtyBoard

DETECTED = "index 0:\n\tidcode 0x1112043\n"


def run(*arguments):
    return CliRunner().invoke(make_app("load"), ["load", *arguments])


@pytest.fixture
def programmer(tmp_path, monkeypatch):
    script = tmp_path / "openFPGALoader"
    script.write_text(f"#!{sys.executable}\nimport sys\n"
                      f"open({str(tmp_path / 'asked')!r}, 'a').write(sys.argv[-1] + '\\n')\n"
                      f"sys.stdout.write({DETECTED!r})\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(VARIABLE, str(script))
    return tmp_path / "asked"


@pytest.fixture
def bitstream(tmp_path):
    path = tmp_path / "x.bit"
    path.write_bytes(b"bits")
    return path


def test_load_and_handshake(tmp_path, programmer, bitstream):
    with PtyBoard(FakeBoard(ports=2, contexts=512), tmp_path / "tty"):
        result = run("versa_ecp5", "--bitstream", str(bitstream), "--port", str(tmp_path / "tty"))
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{tmp_path / 'tty'}\n"
    assert result.stderr.splitlines() == [
        "rocetap load: Lattice Versa ECP5 found, IDCODE 0x01112043",
        f"rocetap load: {bitstream} loaded",
        "rocetap load: gateware answers: 2 ports, 512 connections, W = 256; next: rocetap selftest "
        f"{tmp_path / 'tty'}"]
    assert programmer.read_text().splitlines() == ["--detect", str(bitstream)]


def test_gateware_of_another_release_is_refused(tmp_path, programmer, bitstream, monkeypatch):
    monkeypatch.setattr("support.fake_board.layout_hash", lambda: 0x1234)
    with PtyBoard(FakeBoard(), tmp_path / "tty"):
        result = run("versa_ecp5", "--bitstream", str(bitstream), "--port", str(tmp_path / "tty"))
    assert isinstance(result.exception, RocetapError)
    assert isinstance(result.exception.__cause__, LinkError)
    assert str(result.exception).startswith("board has layout 0x0000000000001234 (version ")


def test_an_unknown_board():
    result = run("versa")
    assert str(result.exception) == (
        "board 'versa' is not known; there are butterstick, colorlight_5a75b, ecpix5, versa_ecp5, "
        "versa_ecp5_5g")


def test_no_bitstream_yet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(run("versa_ecp5").exception) == (
        "no bitstream build/versa_ecp5/versa_ecp5.bit: make bitstream BOARD=versa_ecp5, or give "
        "one with --bitstream")
    assert str(run("ecpix5", "--bitstream", "no.bit").exception) == (
        "no bitstream no.bit: make bitstream BOARD=ecpix5, or give one with --bitstream")
