"""Counters that go on through resets and wraps of the board (case 16)."""

from collections import Counter

from rocetap.export.boardstate import BoardState
from rocetap.link.poll import BoardCounters
from rocetap.spec.registers import REGISTERS


def counters(boot_id, *, frames=0, generation=0, crc=0):
    state = {"boot_id": boot_id, "capture_generation": generation, "records_dropped": 0,
             "unprovisioned": 0, "link_errors": REGISTERS["link_errors"].pack(crc=crc)}
    return BoardCounters(state, ((frames, *[0] * 21),), ((0,) * 16,), ((0,) * 16,))


def test_a_reset_is_no_negative_and_no_huge_step():
    state = BoardState()
    state.take_counters(counters(7, frames=5_000_000))
    state.take_counters(counters(8, frames=1_200))
    assert state.totals["frame_class/0/0"] == 5_001_200


def test_a_reset_under_the_same_boot_id_is_found_too():
    state = BoardState()
    state.take_counters(counters(7, frames=5_000_000))
    state.take_counters(counters(7, frames=1_200))
    assert state.totals["frame_class/0/0"] == 5_001_200


def test_a_wrap_is_what_it_is():
    state = BoardState()
    state.take_counters(counters(7, frames=2**64 - 256, crc=2**32 - 256))
    state.take_counters(counters(7, frames=256, crc=256))
    assert state.totals["frame_class/0/0"] == 2**64 + 256
    assert state.totals["link_errors/crc"] == 2**32 + 256


def test_the_line_counts_on_over_openings():
    state = BoardState()
    state.take_line(Counter(crc=3, retry=1))
    state.take_line(Counter(crc=4, retry=1))
    state.line_closed()
    state.take_line(Counter(crc=2))
    assert state.line == {"crc": 6, "retry": 1}
