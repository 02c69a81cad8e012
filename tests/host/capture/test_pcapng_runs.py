"""Runs of packet blocks: as their blocks one by one, or refused for one that is odd."""

from __future__ import annotations

import struct
from random import Random

import numpy as np
import pytest

from rocetap.capture.frames import Frame
from rocetap.capture.notes import Notes
from rocetap.capture.pcapng import PcapngDecoder
from rocetap.capture.pcapng_options import Interface
from rocetap.capture.pcapng_runs import PacketColumns, enhanced_starts, read_run
from support.captures import block, enhanced, interface, option, section, simple

PLAIN = [Interface(1), Interface(1, resolution=10**9, time_offset=7)]


def run_of(*blocks, order="<", interfaces=PLAIN):
    buffer = b"".join(blocks)
    starts, end = enhanced_starts(buffer, 0, order, 1 << 24)
    assert end == len(buffer)
    return read_run(buffer, starts, order, interfaces)


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_columns_of_a_run(order):
    drops = option(2, b"hash", order) + option(4, struct.pack(order + "Q", 1), order)
    run = run_of(enhanced(b"abc", 2**40 + 5, order=order),
                 enhanced(b"", 9, order=order, number=1, original=77),
                 enhanced(b"x", 10, order=order, options=drops),
                 enhanced(b"x", 11, order=order, options=option(4, bytes(8), order)), order=order)
    assert run is not None
    assert run.captured.tolist() == [3, 0, 1, 1]
    assert run.original.tolist() == [3, 77, 1, 1]
    assert run.interfaces.tolist() == [0, 1, 0, 0]
    assert run.time_ns.tolist() == [(2**40 + 5) * 1000, 7_000_000_009, 10_000, 11_000]
    assert run.lost.tolist() == [False, False, True, False]
    assert run.starts.tolist() == [28, 36 + 28, 36 + 32 + 28, 36 + 32 + 56 + 28]


@pytest.mark.parametrize("odd", [
    enhanced(b"ab", original=1), enhanced(b"a", number=2), enhanced(b"a")[:-4] + bytes(4),
    enhanced(b"a", 2**64 - 1),
    enhanced(b"abcd")[:20] + struct.pack("<II", 5, 5) + enhanced(b"abcd")[28:]])
def test_a_block_out_of_the_ordinary_refuses_its_run(odd):
    assert run_of(enhanced(b"1"), enhanced(b"2")) is not None
    assert run_of(enhanced(b"1"), odd, enhanced(b"2")) is None


@pytest.mark.parametrize("described", [
    Interface(197), Interface(1, fcs_octets=4), Interface(1, resolution=10**12),
    Interface(1, resolution=2**20), Interface(1, time_offset=-1)])
def test_an_interface_out_of_the_ordinary_refuses_its_run(described):
    assert run_of(enhanced(b"1", 10**9), interfaces=[described]) is None


def test_a_row_of_blocks_ends_where_it_must():
    one, other = enhanced(b"1"), block(5, bytes(12))
    assert enhanced_starts(one + one + other + one, 0, "<", 99) == ([0, 36], 72)
    assert enhanced_starts(one + one[:-1], 0, "<", 99) == ([0], 36)
    assert enhanced_starts(one + enhanced(bytes(80)), 0, "<", 99) == ([0], 36)
    assert enhanced_starts(one + struct.pack("<II", 6, 34) + bytes(40), 0, "<", 99) == ([0], 36)
    assert enhanced_starts(one + struct.pack("<II", 6, 28) + bytes(40), 0, "<", 99) == ([0], 36)


def test_rows_and_runs_keep_their_order():
    columns = PacketColumns()
    assert columns.batch(b"") is None
    columns.add(0, 1, 2, 2**64 - 1, 4, True)
    run = run_of(enhanced(b"abc", 1))
    assert run is not None
    columns.add_run(run)
    columns.add(9, 8, 8, 6, 5, False)
    batch = columns.batch(b"x" * 40)
    assert batch is not None
    assert batch.offsets.tolist() == [0, 28, 9]
    assert batch.time_ns.tolist() == [2**64 - 1, 1000, 6]
    assert batch.lost.tolist() == [True, False, False]
    assert [column.dtype for column in (batch.offsets, batch.captured, batch.original,
                                        batch.time_ns, batch.interface, batch.lost)] == [
        np.uint64, np.uint32, np.uint32, np.uint64, np.uint16, np.bool_]


@pytest.mark.parametrize("seed", range(6))
def test_random_files_give_what_was_packed(seed):
    rng = Random(seed)
    resolutions = [(6, 10**6), (9, 10**9), (12, 10**12), (0x80 | 10, 2**10)][:rng.randrange(1, 5)]
    parts = [section(), *(interface(options=option(9, bytes([code]))) for code, _ in resolutions)]
    expected, time_ns = [], 0
    for _ in range(400):
        data = rng.randbytes(rng.randrange(70))
        original = len(data) + rng.choice((0, 0, 0, 500))
        kind = rng.random()
        if kind < 0.02:
            parts.append(block(4, data))
        elif kind < 0.04:
            parts.append(simple(data))
            expected.append(Frame(data, len(data), time_ns, 0, False))
        else:
            number = rng.randrange(len(resolutions))
            ticks = rng.getrandbits(40)
            time_ns = ticks * 10**9 // resolutions[number][1]
            parts.append(enhanced(data, ticks, number=number, original=original))
            expected.append(Frame(data, original, time_ns, number, False))
    octets, decoder, got = b"".join(parts), PcapngDecoder("x", Notes()), []
    while octets:
        size = rng.choice((1, 30, 200, 5000))
        batch = decoder.feed(octets[:size])
        octets = octets[size:]
        got += list(batch.frames()) if batch else []
    assert got == expected
    assert (decoder.leftover(), decoder.record) == (None, len(parts) + 1)
