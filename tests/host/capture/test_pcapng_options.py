"""Times of pcapng interfaces are exact integers, and options stop where they do not fit."""

from __future__ import annotations

import struct
from fractions import Fraction
from math import floor
from random import Random

import pytest

from rocetap.capture.pcapng_options import Interface, drop_count, options, read_interface
from support.captures import interface, option


@pytest.mark.parametrize("exponent", [0, 3, 6, 9, 10, 12, 18, 0x7F])
@pytest.mark.parametrize("binary", [0, 0x80])
def test_any_resolution_is_exact(exponent, binary):
    described = read_interface(interface(options=option(9, bytes([binary | exponent]))), 0, 32, "<")
    resolution = (2 if binary else 10) ** exponent
    assert described.resolution == resolution
    rng = Random(exponent)
    for _ in range(50):
        ticks = rng.getrandbits(64)
        assert described.time_ns(ticks) == floor(Fraction(ticks * 10**9, resolution))


@pytest.mark.parametrize("order", ["<", ">"])
def test_offset_snap_length_and_fcs(order):
    packed = interface(order, snap=96, options=option(14, struct.pack(order + "q", -7), order)
                       + option(13, b"\x04", order) + option(0, b"", order)
                       + option(9, b"\x09", order))
    described = read_interface(packed, 0, len(packed), order)
    assert described == Interface(1, 96, 1_000_000, -7, 4)
    assert described.time_ns(8_000_001) == 1_000_001_000


def test_options_of_a_wrong_length_count_as_absent():
    packed = interface(options=option(9, b"ab") + option(14, b"1234") + option(13, b""))
    assert read_interface(packed, 0, len(packed), "<") == Interface(1)


def test_an_option_longer_than_its_block_ends_the_list():
    data = option(1, b"note") + struct.pack("<HH", 2, 100) + b"abc"
    assert list(options(data, 0, len(data), "<")) == [(1, b"note")]


def test_drop_counts():
    data = option(1, b"abc") + option(4, struct.pack("<Q", 2**40))
    assert drop_count(data, 0, len(data), "<", 4) == 2**40
    assert drop_count(data, 0, len(data), "<", 5) == 0
    assert drop_count(data, 0, 3, "<", 4) == 0
