"""Tops of boards with an ECP5: every pin has its place, every clock its constraint."""

import re
from functools import cache

import pytest

from rocetap.board.names import LOADABLE
from rocetap_boards.bitstream import device_of
from rocetap_boards.catalog import BOARDS, UnknownBoard, find_board
from rocetap_boards.ecp5 import Ecp5Board, Ecp5Top

ECP5 = [name for name in BOARDS if isinstance(find_board(name), Ecp5Board)]
DEVICES = {
    "butterstick": "LFE5UM5G-85F-8", "colorlight_5a75b": "LFE5U-25F-6",
    "ecpix5": "LFE5UM5G-85F-8", "versa_ecp5": "LFE5UM-45F-8", "versa_ecp5_5g": "LFE5UM5G-45F-8"}
SMALL = {"connections": 8, "window": 8, "records": 64}


@cache
def plan(name, mode):
    board = find_board(name)
    platform = board.platform()
    files = platform.prepare(Ecp5Top(board.smaller(**SMALL), mode=mode), "top").files
    return {name: text if isinstance(text, str) else text.decode()
            for name, text in files.items() if name in ("top.il", "top.lpf")}


def test_a_host_can_load_each():
    assert sorted(ECP5) == sorted(LOADABLE) == sorted(DEVICES)
    for name in ECP5:
        assert str(device_of(find_board(name).platform())) == DEVICES[name]
        assert DEVICES[name].startswith(LOADABLE[name].device)


@pytest.mark.parametrize(("name", "mode"), [
    (name, mode) for name in sorted(ECP5) if name != "versa_ecp5_5g"
    for mode in find_board(name).modes])
def test_pins_and_clocks(name, mode):
    board = find_board(name)
    made = plan(name, mode)
    places = dict(re.findall(r'LOCATE COMP "([^"]+)" SITE "([^"]+)";', made["top.lpf"]))
    assert len(set(places.values())) == len(places)
    top = made["top.il"][made["top.il"].index("\nmodule \\top\n"):]
    top = top[:top.index("\nend\n")]
    widths = re.findall(r"wire (?:width (\d+) )?(?:input|output|inout) \d+ +\\(\S+)", top)
    pins = {pin for width, port in widths for pin in (
        [f"{port}[{bit}]" for bit in range(int(width))] if int(width or 1) > 1 else [port])}
    assert places.keys() == pins
    clocks = dict(re.findall(r'FREQUENCY NET "(\S+)" ([\d.]+) HZ', made["top.lpf"]))
    assert clocks == {
        "clock_in": f"{float(board.clock_hz)}", "core_clock": "125000000.0",
        **{f"rx_clock_{port}": "125000000.0" for port in range(len(board.ports))}}


def test_delays_are_in_the_pads():
    """Colorlight: 2 ns behind each of five inputs; ECPIX-5: behind TXC alone; the Versa: none."""
    delays = {}
    for name in ("colorlight_5a75b", "ecpix5", "versa_ecp5"):
        text = plan(name, "tap")["top.il"]
        delays[name] = re.findall(r"DEL_VALUE (\S+)", text)
        assert text.count("cell \\DELAYG ") == len(delays[name])
    assert {name: len(found) for name, found in delays.items()} == {
        "colorlight_5a75b": 5, "ecpix5": 1, "versa_ecp5": 0}
    assert {int(value.split("'")[-1], 2 if "'" in value else 10)
            for found in delays.values() for value in found} == {80}


def test_an_unknown_board_lists_those_that_exist():
    with pytest.raises(UnknownBoard) as caught:
        find_board("versa")
    assert str(caught.value) == (
        "BOARD 'versa' is not known; there are ax7325b, butterstick, colorlight_5a75b, ecpix5, "
        "genesys2, kcu105, rfsoc4x2, versa_ecp5, versa_ecp5_5g")
