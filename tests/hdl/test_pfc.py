"""PfcDetector against scapy's frames, and what is no PFC frame."""

import random

import pytest
from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.layers.l2 import Dot1Q, Ether

from rocetap_hdl.ethernet import PACKET_OCTETS
from rocetap_hdl.pfc import ControlKind, PfcDetector
from support.frames import mac_control, pfc
from support.simulate import fields, simulate


def read_all(*frames, **header):
    """Kind, vector and XOFF of each untagged frame, one a clock."""
    dut = PfcDetector()

    async def drive(ctx):
        ctx.set(dut.i.valid, 1)
        for frame in frames:
            ctx.set(dut.i.payload, {
                "mac_control": frame[12:14] == b"\x88\x08",
                "pfc_address": frame[:6] == bytes.fromhex("0180c2000001"),
                "available": len(frame) - 14,
                "packet": int.from_bytes(frame[14:14 + PACKET_OCTETS], "little"), **header})
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(2)
    return [(ControlKind(found["kind"]), *fields(found["pfc"]).values())
            for found in simulate(dut, drive, dut.o)[0]]


def test_scapy_frames():
    rng = random.Random("pfc")
    frames, expected = [], []
    for _ in range(300):
        enabled = rng.getrandbits(8)
        times = [rng.choice((0, 1, 0x0100, 0xFFFF, rng.getrandbits(16))) for _ in range(8)]
        layer = MACControlClassBasedFlowControl(
            **{f"c{n}_enabled": enabled >> n & 1 for n in range(8)},
            **{f"c{n}_pause_time": times[n] for n in range(8)})
        frames.append(bytes(Ether(dst="01:80:c2:00:00:01", src="00:00:00:00:00:00") / layer))
        expected.append((ControlKind.PFC, enabled, enabled & sum(
            1 << n for n in range(8) if times[n])))
    assert read_all(*frames) == expected


def test_scapy_pause():
    frame = bytes(Ether(dst="01:80:c2:00:00:01") / MACControlPause(pause_time=65535))
    [(kind, *_)] = read_all(frame)
    assert kind is ControlKind.PAUSE


def test_each_bit_of_each_pause_time():
    frames = [pfc({n: 1 << bit}) for n in range(8) for bit in range(16)]
    assert read_all(*frames) == [
        (ControlKind.PFC, 1 << n, 1 << n) for n in range(8) for _ in range(16)]


@pytest.mark.parametrize("bit", range(16))
def test_opcode_to_the_bit(bit):
    [(kind, *_)] = read_all(mac_control(0x0101 ^ 1 << bit))
    assert kind is (ControlKind.PAUSE if bit == 8 else ControlKind.OTHER)


@pytest.mark.parametrize("bit", range(16))
def test_pause_opcode_to_the_bit(bit):
    [(kind, *_)] = read_all(mac_control(0x0001 ^ 1 << bit))
    assert kind is (ControlKind.PFC if bit == 8 else ControlKind.OTHER)


@pytest.mark.parametrize(("header", "kind"), [
    ({}, ControlKind.PAUSE),
    ({"tags": 1}, ControlKind.PAUSE),
    ({"pfc_address": 0}, ControlKind.PAUSE),
    ({"sliced": 1, "available": 1}, ControlKind.OTHER),
    ({"mac_control": 0}, ControlKind.NONE),
])
def test_kinds_of_pause(header, kind):
    assert [found for found, *_ in read_all(mac_control(0x0001), **header)] == [kind]


@pytest.mark.parametrize(("header", "kind"), [
    ({}, ControlKind.PFC),
    ({"tags": 1}, ControlKind.TAGGED),
    ({"tags": 2}, ControlKind.TAGGED),
    ({"tags": 1, "pfc_address": 0, "sliced": 1}, ControlKind.TAGGED),
    ({"pfc_address": 0}, ControlKind.BAD),
    ({"sliced": 1}, ControlKind.BAD),
    ({"sliced": 1, "available": 1}, ControlKind.OTHER),
    ({"sliced": 1, "available": 2}, ControlKind.BAD),
    ({"mac_control": 0}, ControlKind.NONE),
])
def test_kinds(header, kind):
    assert [found for found, *_ in read_all(pfc({3: 1}), **header)] == [kind]


def test_tagged_frame_of_scapy_is_what_the_builder_makes():
    layer = MACControlClassBasedFlowControl(c3_enabled=1, c3_pause_time=7)
    frame = bytes(Ether(dst="01:80:c2:00:00:01", src="02:00:00:00:00:01")
                  / Dot1Q(vlan=5, type=0x8808) / layer)
    assert pfc({3: 7}, tags=[(0x8100, 5)]).startswith(frame[:40])
