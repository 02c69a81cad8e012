"""Registers behind block RAM move into it, and only where nothing else is changed by that."""

import json

import pytest

from rocetap_boards.block_ram import absorb_output_registers
from rocetap_boards.flow import synthesize

DESIGN = """
module t(input clk, input [{a}:0] wa, ra, input we, re, move, clear, input [{d}:0] d,
         output reg [{d}:0] q, output [{d}:0] early);
(* no_rw_check *) reg [{d}:0] memory[0:{words}];
reg [{d}:0] read;
{early}
always @(posedge clk) begin
  if (we) memory[wa] <= d;
  if (re) read <= memory[ra];
  {register}
end
endmodule
"""


def netlist(tmp_path, *, register="if (move) q <= read;", early="", bits=18, words=1024):
    text = DESIGN.format(a=(words - 1).bit_length() - 1, d=bits - 1, words=words - 1,
                         register=register, early=early)
    made = synthesize(text, tmp_path, script="synth_ecp5 -top t", top="t", language="verilog")
    return json.loads(made.path.read_text())["modules"]["t"]


def rams(module):
    return [cell for cell in module["cells"].values() if cell["type"] == "DP16KD"]


def flip_flops(module):
    return [cell for cell in module["cells"].values() if cell["type"] == "TRELLIS_FF"]


def wire(module, name):
    return module["netnames"][name]["bits"]


def test_a_port_with_its_registers(tmp_path):
    module = netlist(tmp_path)
    assert len(flip_flops(module)) == 18
    assert absorb_output_registers(module) == 18
    assert not flip_flops(module)
    (ram,) = rams(module)
    (side,) = [side for side in "AB" if ram["parameters"][f"REGMODE_{side}"] == "OUTREG"]
    assert ram["connections"][f"OCE{side}"] == wire(module, "move")
    assert ram["connections"][f"CE{side}"] == wire(module, "re")
    assert [ram["connections"][f"DO{side}{i}"][0] for i in range(18)] == wire(module, "q")


def test_a_wide_memory_has_one_register_in_two_halves(tmp_path):
    module = netlist(tmp_path, bits=36, words=512)
    assert absorb_output_registers(module) == 36
    (ram,) = rams(module)
    assert ram["parameters"]["REGMODE_A"] == ram["parameters"]["REGMODE_B"] == "OUTREG"
    assert ram["connections"]["OCEB"] == wire(module, "move")
    halves = [ram["connections"][f"DO{half}{i}"][0] for half in "AB" for i in range(18)]
    assert sorted(halves) == sorted(wire(module, "q"))


def test_without_an_enable(tmp_path):
    module = netlist(tmp_path, register="q <= read;")
    assert absorb_output_registers(module) == 18
    (ram,) = rams(module)
    assert ["1"] in (ram["connections"]["OCEA"], ram["connections"]["OCEB"])


@pytest.mark.parametrize(("register", "early"), [
    ("if (clear) q <= 0; else if (move) q <= read;", ""),        # a reset
    ("if (move) q <= read + 1;", ""),                            # something is computed
    ("if (move) q <= read;", "assign early = read;"),            # somebody else looks
    ("if (move) q <= read; if (re) q[0] <= read[0];", ""),       # two enables
])
def test_what_stays_as_it_is(tmp_path, register, early):
    module = netlist(tmp_path, register=register, early=early)
    before = json.dumps(module)
    assert absorb_output_registers(module) == 0
    assert json.dumps(module) == before


def test_another_clock_stays(tmp_path):
    module = netlist(tmp_path)
    for cell in flip_flops(module)[:1]:
        cell["connections"]["CLK"] = wire(module, "move")
    assert absorb_output_registers(module) == 0
