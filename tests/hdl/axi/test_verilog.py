"""The core's Verilog: pin names and widths that do not change, loops that clear memories."""

import re
from fractions import Fraction

import pytest
from amaranth.hdl import Module

from rocetap_hdl.axi import verilog
from rocetap_hdl.axi.core import AxiCore
from support.refuses import refuses

SMALL = {"bus_bytes": 8, "connections": 8, "word": 16, "records": 64}
INPUT, OUTPUT = "input", "output"
LITE = {
    "aclk": (INPUT, 1), "aresetn": (INPUT, 1), "awaddr": (INPUT, 14), "awprot": (INPUT, 3),
    "awvalid": (INPUT, 1), "awready": (OUTPUT, 1), "wdata": (INPUT, 32), "wstrb": (INPUT, 4),
    "wvalid": (INPUT, 1), "wready": (OUTPUT, 1), "bresp": (OUTPUT, 2), "bvalid": (OUTPUT, 1),
    "bready": (INPUT, 1), "araddr": (INPUT, 14), "arprot": (INPUT, 3), "arvalid": (INPUT, 1),
    "arready": (OUTPUT, 1), "rdata": (OUTPUT, 32), "rresp": (OUTPUT, 2), "rvalid": (OUTPUT, 1),
    "rready": (INPUT, 1)}
TAP = {"tdata": (INPUT, 64), "tkeep": (INPUT, 8), "tvalid": (INPUT, 1), "tready": (INPUT, 1),
       "tlast": (INPUT, 1), "tuser": (INPUT, 1)}
CLOCK = {"aclk": (INPUT, 1), "aresetn": (INPUT, 1)}


def pins(text, top):
    header = re.search(rf"^module {top}\((.*?)\);(.*?)^endmodule", text, re.MULTILINE | re.DOTALL)
    found = {name: (direction, int(high or 0) + 1) for direction, high, name in re.findall(
        r"^  (input|output) (?:\[(\d+):0\] )?(\w+);", header[2], re.MULTILINE)}
    assert sorted(found) == sorted(header[1].replace("\n", "").split(", "))
    return found


@pytest.mark.parametrize(("options", "expected"), [
    ({"ports": 2, "tap_clocks": True},
     {**CLOCK, "time_ns": (INPUT, 64), **{f"s_axil_{name}": pin for name, pin in LITE.items()},
      **{f"s_axis_tap_{port}_{name}": pin for port in (0, 1) for name, pin in (
          CLOCK | TAP).items()}}),
    ({"ports": 2, "tap_clocks": True, "transmit": True},
     {**CLOCK, "time_ns": (INPUT, 64), **{f"s_axil_{name}": pin for name, pin in LITE.items()},
      **{f"s_axis_{kind}_{port}_{name}": pin for kind in ("tap", "sent") for port in (0, 1)
         for name, pin in (CLOCK | TAP).items()}}),
    ({"period": Fraction(16, 5)},
     {**CLOCK, **{f"s_axil_{name}": pin for name, pin in LITE.items()},
      **{f"s_axis_tap_0_{name}": pin for name, pin in TAP.items()}}),
])
def test_pins(options, expected):
    text = verilog.core_verilog(AxiCore(**SMALL, **options), top="some_core")
    assert pins(text, "some_core") == expected
    # Two synchronizers of two stages for the registers and for each tap with a clock.
    marked = re.findall(r'ASYNC_REG = "TRUE" \*\)\n  reg (?:\[5:0\] )?stage[01] = ', text)
    assert len(marked) == 4 * (1 + sum(bool(re.match("s_axis_.*_aclk", pin)) for pin in expected))


def test_memories_of_zeros_are_cleared_in_loops():
    zeros = "".join(f"    \\a$1 [{row}] = 12'h000;\n" for row in range(4))
    zeros = zeros.replace("\\a$1 ", "words")
    others = "  initial begin\n    mixed[0] = 4'h0;\n    mixed[1] = 4'h1;\n  end\n"
    assert verilog._clear_in_loops(f"  initial begin\n{zeros}  end\n{others}") == (
        "  initial begin : words_init\n    integer row;\n"
        "    for (row = 0; row < 4; row = row + 1) words[row] = 12'h000;\n  end\n" + others)


def test_yosys_that_fails_says_so():
    with pytest.raises(verilog.VerilogError, match=r"^Yosys failed: .*ERROR: .+$"):
        verilog._from_rtlil("no rtlil")


@pytest.mark.parametrize("ports", [0, 9])
def test_ports_that_are_not_made(ports):
    refuses(f"ports is {ports}, must be 1 to 8", lambda: AxiCore(ports=ports))


def test_synchronizers_of_the_platform_have_all_their_stages():
    from amaranth.hdl import Signal
    from amaranth.lib.cdc import FFSynchronizer
    from amaranth.sim import Simulator

    i, o = Signal(2), Signal(2)
    m = Module()
    m.submodules += verilog._Generic().get_ff_sync(FFSynchronizer(i, o, stages=3))

    async def drive(ctx):
        ctx.set(i, 3)
        for clock in range(4):
            assert ctx.get(o) == (3 if clock >= 3 else 0)
            await ctx.tick()
    sim = Simulator(m)
    sim.add_clock(1e-8)
    sim.add_testbench(drive)
    sim.run()
