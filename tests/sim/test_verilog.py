"""Pin names, and memories that are cleared in a loop."""

import re

from rocetap_sim.design import Design
from rocetap_sim.verilog import beat_offsets, shorten_memories, to_verilog

EXPECTED = {
    "clk": 1, "rst": 1, "time_ns": 64, "frames_0_valid": 1, "frames_0_payload": 14,
    "frames_1_valid": 1, "frames_1_payload": 14, "link_rx_valid": 1, "link_rx_payload": 8,
    "link_rx_ready": 1, "link_tx_valid": 1, "link_tx_payload": 8, "link_tx_ready": 1,
    "snapshot_level": 16, "snapshot_room": 16,
}


def test_the_top_has_the_pins_that_the_harness_and_the_benches_name():
    text = to_verilog(Design("support.designs.beat_recorder", "BeatRecorder",
                             (("bus_bytes", 1), ("ports", 2))))
    top = re.search(r"^module probe\((.*?)\);(.*?)^endmodule", text, re.MULTILINE | re.DOTALL)
    assert sorted(top[1].split(", ")) == sorted(EXPECTED)
    widths = {name: int(high or 0) + 1 for high, name in re.findall(
        r"^  (?:input|output) (?:\[(\d+):0\] )?(\w+);", top[2], re.MULTILINE)}
    assert widths == EXPECTED


def test_offsets_of_a_beat():
    assert beat_offsets(8) == {"data": 0, "first": 64, "last": 65, "end": 66, "error": 69,
                               "sliced": 70, "lost": 71, "size": 72}


def test_only_whole_memories_of_zeros_become_loops():
    zeros = "".join(f"    memory[{row}] = 12'h000;\n" for row in range(4))
    others = ("    other[0] = 12'h000;\n    other[1] = 12'h001;\n"
              "    third[1] = 4'h0;\n    third[2] = 4'h0;\n")
    assert shorten_memories(zeros + others) == (
        "    for (int row = 0; row < 4; ++row) memory[row] = 12'h000;\n" + others)
