"""Area and clock of the probe: rows from real runs, on a part of it that is placed in seconds."""

import json
import sys

import pytest

from rocetap.cli import main
from rocetap_boards import area_timing
from rocetap_boards.area_timing import (
    PLACED,
    SEEDS,
    SYNTHESIZED,
    AreaEstimate,
    AreaTiming,
    Configuration,
)
from rocetap_boards.flow import Device
from rocetap_hdl.loop import StateLoop
from rocetap_hdl.probe import Probe


class OneLoop(Configuration):
    """A probe of which only a loop of state is left."""

    def probe(self):
        return StateLoop(self.window, self.connections)


SMALL = OneLoop(8, 1, 1024, 16, 100.0)
SMALLEST = Device("25k", 6, "CABGA256")


@pytest.fixture(scope="module")
def rows():
    stages = []
    made = area_timing.area_timing(lambda *step: stages.append(step[0]),
                                   placed=[(SMALLEST, SMALL)], seeds=(1, 5))
    assert stages[0] == "8 octets a beat, synthesis"
    assert "8 octets a beat, seed 5: rough placement" in stages
    return made


def test_a_row_a_seed(rows):
    assert [row.seed for row in rows] == [1, 5]
    for row in rows:
        assert (row.device, row.connections, row.window, row.bus_bytes, row.ports,
                row.constraint_mhz) == ("LFE5U-25F-6", 1024, 16, 8, 1, 100.0)
        assert row.block_rams == 1
        assert 30 < row.achieved_mhz < 400
    first, second = rows
    assert (first.luts, first.ffs) == (second.luts, second.ffs)
    assert first.achieved_mhz != second.achieved_mhz


def test_what_stands_in_for_pins_is_no_more_than_it_says(rows):
    inputs, outputs = 1 + 10 + 1 + 16, 16
    assert 2 * inputs + outputs < rows[0].ffs < 2 * inputs + outputs + 150


def test_an_estimate():
    (row,) = area_timing.area_estimate(synthesized=[SMALL])
    assert (row.device, row.connections, row.window, row.bus_bytes, row.ports, row.block_rams,
            row.basis) == ("UltraScale+", 1024, 16, 8, 1, 0.5,
                           "synthesis estimate by Yosys, without timing")
    assert 16 < row.luts < 200
    assert 72 < row.ffs < 250


def test_what_is_measured_is_the_probe_at_its_three_widths():
    assert [(str(device), of.bus_bytes, of.ports, of.window, of.clock_mhz)
            for device, of in PLACED] == [
        ("LFE5U-85F-8", 8, 1, 256, 156.25), ("LFE5UM-45F-8", 1, 2, 256, 125.0)]
    assert [of.bus_bytes for of in SYNTHESIZED] == [64]
    assert PLACED[0][1].connections == 1024
    assert PLACED[1][1].connections >= 512
    assert len(set(SEEDS)) == 3
    probe = PLACED[1][1].probe()
    assert isinstance(probe, Probe)
    assert (probe.bus_bytes, probe.ports, probe.connections, probe.word) == (
        1, 2, PLACED[1][1].connections, 256)


ROW = AreaTiming("LFE5U-85F-8", 1024, 256, 8, 1, 2, 20000, 22000, 117, 160.51, 156.25)
ESTIMATE = AreaEstimate("UltraScale+", 1024, 256, 64, 1, 20000, 30000, 50.5, "by synthesis")


def bench(monkeypatch, capsys, *arguments, achieved=160.51):
    row = AreaTiming(**{**vars(ROW), "achieved_mhz": achieved})
    monkeypatch.setattr(area_timing, "area_timing", lambda progress: [row])
    monkeypatch.setattr(area_timing, "area_estimate", lambda progress: [ESTIMATE])
    with pytest.raises(SystemExit) as left:
        main(["bench", "gateware", "--part", "area_timing", "--part", "area_estimate", *arguments])
    return left.value.code, capsys.readouterr().out


def test_the_command_prints_objects(monkeypatch, capsys):
    code, output = bench(monkeypatch, capsys, "--json")
    assert code == 0
    assert json.loads(output) == {"area_timing": [vars(ROW)], "area_estimate": [vars(ESTIMATE)]}


def test_the_command_prints_tables_and_fails_on_a_slow_clock(monkeypatch, capsys):
    code, output = bench(monkeypatch, capsys, achieved=156.24)
    assert code == 1
    lines = [line.split() for line in output.splitlines()]
    assert ["LFE5U-85F-8", "1,024", "256", "8", "1", "2", "20,000", "22,000", "117", "156.24",
            "156.25"] in lines
    assert ["UltraScale+", "1,024", "256", "64", "1", "20,000", "30,000", "50.5", "by",
            "synthesis"] in lines


def test_an_unknown_part(capsys):
    with pytest.raises(SystemExit) as left:
        main(["bench", "gateware", "--part", "area"])
    assert left.value.code == 2
    assert capsys.readouterr().err == (
        "rocetap: error: --part area: no such part; parts are line_rate, area_timing, "
        "area_estimate\n")


def test_without_the_tools(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rocetap_boards.area_timing", None)
    with pytest.raises(SystemExit) as left:
        main(["bench", "gateware", "--part", "area_timing"])
    assert left.value.code == 2
    assert capsys.readouterr().err == (
        "rocetap: error: the gateware's tools are not installed (rocetap_boards.area_timing is "
        "missing): install rocetap with its extra [boards]\n")
