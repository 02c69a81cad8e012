"""Reports and choices of a build; the build itself is `make bitstream`."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from amaranth_boards.versa_ecp5 import VersaECP5Platform

from rocetap_boards import __main__ as command
from rocetap_boards.bitstream import ClockNotMet, build, report_of, slow_clocks
from rocetap_boards.catalog import find_board
from rocetap_boards.flow import Clock, Netlist, Placed

VERSA = find_board("versa_ecp5")
GOOD = {"$glbnet$core_clock": Clock(130.004, 125.0), "$glbnet$rx_clock_0": Clock(180.0, 125.0)}
SLOW = {**GOOD, "$glbnet$core_clock": Clock(121.5, 125.0)}


def placed(clocks, folder=Path()):
    return Placed(30_000, 28_000, 90, clocks, folder / "top-1.config", folder / "r.json")


def test_report():
    assert report_of(VERSA, "tap", 2, placed(GOOD)) == {
        "board": "versa_ecp5", "mode": "tap", "device": "LFE5UM-45F", "ports": 2,
        "connections": 512, "window": 256, "seed": 2, "luts": 30_000, "ffs": 28_000,
        "block_rams": 90, "clocks": {
            "core_clock": {"achieved_mhz": 130.0, "constraint_mhz": 125.0},
            "rx_clock_0": {"achieved_mhz": 180.0, "constraint_mhz": 125.0}}}


def test_slow_clocks():
    assert slow_clocks(GOOD) == []
    assert slow_clocks(SLOW) == ["clock core_clock reaches 121.5 MHz, must be 125.0 MHz"]


@pytest.fixture
def tools(monkeypatch, tmp_path):
    """Tools that give what a test asks of each seed; what they were asked."""
    asked, results = [], {}

    def place(netlist, device, *, seed, **how):
        asked.append((seed, str(device), how["frequency_mhz"], "LOCATE COMP" in how["lpf"]))
        (tmp_path / f"top-{seed}.config").write_text("")
        return Placed(1, 2, 3, results[seed], tmp_path / f"top-{seed}.config", tmp_path / "r")

    def tool(name, arguments, folder, **how):
        asked.append((name, *arguments))
        for file in arguments:
            if file.endswith((".bit", ".svf")):
                (folder / file).write_text("made")
    module = "rocetap_boards.bitstream"
    monkeypatch.setattr(f"{module}.synthesize_ecp5",
                        lambda text, folder, **how: Netlist(folder / "top.json", "top", {}))
    monkeypatch.setattr(f"{module}.place_and_route", place)
    monkeypatch.setattr(f"{module}.run_tool", tool)
    return asked, results


class Platform:
    """The Versa's platform as far as a build looks at it, with a plan at once."""

    device, package, speed = "LFE5UM-45F", "BG381", "8"
    _nextpnr_device_options = VersaECP5Platform._nextpnr_device_options
    _nextpnr_package_options = VersaECP5Platform._nextpnr_package_options

    def prepare(self, top, name):
        assert (top.mode, name) == ("tap", "top")
        return SimpleNamespace(files={"top.il": "module", "top.lpf": b"LOCATE COMP"})


SMALL = replace(VERSA, platform=Platform, connections=8, window=8)


def test_seeds_are_tried_until_one_is_good(tools, tmp_path):
    asked, results = tools
    results.update({1: SLOW, 2: GOOD})
    report = build(SMALL, tmp_path)
    assert asked == [
        (1, "LFE5UM-45F-8", 125.0, True), (2, "LFE5UM-45F-8", 125.0, True),
        ("ecppack", "--compress", "--svf", "versa_ecp5.svf", "top-2.config", "versa_ecp5.bit")]
    assert report["seed"] == 2
    assert {path.name for path in tmp_path.iterdir()} >= {
        "versa_ecp5.bit", "versa_ecp5.svf", "report.json"}


def test_no_good_seed_is_an_error_with_the_best_one_left(tools, tmp_path):
    _, results = tools
    slower = {**GOOD, "$glbnet$rx_clock_0": Clock(100.0, 125.0)}
    results.update({4: slower, 5: SLOW})
    with pytest.raises(ClockNotMet) as caught:
        build(SMALL, tmp_path, seeds=[4, 5])
    assert str(caught.value) == (
        "versa_ecp5: clock core_clock reaches 121.5 MHz, must be 125.0 MHz; no seed of those tried "
        "is good enough, give others as SEEDS='4 5 6'")
    assert '"seed": 5' in (tmp_path / "report.json").read_text()


def test_the_command_says_what_is_wrong(capsys):
    assert command.main(["nowhere"]) == 2
    assert capsys.readouterr().err.startswith(
        "rocetap: error: BOARD 'nowhere' is not known; there are ax7325b, butterstick,")
    assert command.main(["ecpix5", "--mode", "inline"]) == 2
    assert capsys.readouterr().err == (
        "rocetap: error: MODE inline is not for ecpix5, which has tap\n")
