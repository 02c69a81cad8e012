"""RgmiiReceive and RgmiiTransmit: both edges, both nibbles, and status between frames."""

import random

import pytest

from rocetap_hdl.mac.rgmii import RgmiiReceive, RgmiiTransmit
from rocetap_hdl.mac.signals import Speed
from support.mac_bench import GmiiOctet, gap, on_the_line
from support.simulate import simulate

IDLE = 0b1101      # full duplex, 1000 Mbit/s, link


def edges(octets, *, nibbles=False, status=IDLE, extra_nibble=None):
    """(low, high, ctl_low, ctl_high) of each clock; between frames the PHY's status."""
    for octet in octets:
        data = octet.data if octet.valid else status * 0x11
        ctl = octet.valid, octet.valid ^ octet.error
        if not nibbles:
            yield data & 15, data >> 4, *ctl
            continue
        yield data & 15, data & 15, *ctl
        yield data >> 4, data >> 4, *ctl
    if extra_nibble is not None:
        yield extra_nibble, extra_nibble, 1, 1


def run(clocks, *, nibbles=False):
    """GmiiOctets where enable was up, and the status at the end."""
    dut, seen, status = RgmiiReceive(), [], None

    async def drive(ctx):
        nonlocal status
        ctx.set(dut.cfg_nibbles, nibbles)
        for low, high, ctl_low, ctl_high in clocks:
            for name, value in (("low", low), ("high", high), ("ctl_low", ctl_low),
                                ("ctl_high", ctl_high)):
                ctx.set(getattr(dut.rx, name), value)
            await ctx.tick()
            if ctx.get(dut.o.enable):
                seen.append(GmiiOctet(ctx.get(dut.o.valid), ctx.get(dut.o.error),
                                      ctx.get(dut.o.data)))
        status = {name: ctx.get(dut.status[name]) for name in ("link", "speed", "full_duplex")}
    simulate(dut, drive)
    return seen, status


def frames(octets):
    """Octets of each frame behind its SFD with its errors, from GMII."""
    out, open_ = [], None
    for octet in octets:
        if not octet.valid:
            open_ = None
        elif open_ is None:
            if octet.data == 0xD5:
                open_ = []
                out.append(open_)
        else:
            open_.append((octet.data, octet.error))
    return out


@pytest.mark.parametrize("nibbles", [False, True])
@pytest.mark.parametrize("preamble", [7, 1])
def test_frames_and_errors(nibbles, preamble):
    rng = random.Random(f"rgmii {nibbles} {preamble}")
    sent = [rng.randbytes(rng.randrange(1, 80)) for _ in range(20)]
    line = []
    for number, frame in enumerate(sent):
        line += on_the_line(frame, preamble=preamble, error_at=0 if number % 3 == 0 else None)
        line += gap(5, error_at=2)
    seen, status = run(edges(line + gap(), nibbles=nibbles), nibbles=nibbles)
    assert frames(seen) == [[(octet, int(number % 3 == 0 and at == 0))
                             for at, octet in enumerate(frame)]
                            for number, frame in enumerate(sent)]
    assert status == {"link": 1, "speed": Speed.MBIT_1000, "full_duplex": 1}


@pytest.mark.parametrize("speed", [Speed.MBIT_10, Speed.MBIT_100, Speed.MBIT_1000])
def test_status_is_what_is_said_between_frames(speed):
    said = speed << 1 | 1
    _, status = run(edges([*gap(3), *on_the_line(b"\xff" * 4)], status=said))
    assert status == {"link": 1, "speed": speed, "full_duplex": 0}
    _, status = run(edges([*gap(3), *gap(2, error_at=1)], status=0))
    assert status == {"link": 0, "speed": 0, "full_duplex": 0}


def test_carrier_and_false_carrier_are_no_status():
    """RX_ER without RX_DV says something else with its nibbles (RGMII 2.0 table 4)."""
    clocks = [*edges(gap(4)), (0b0000, 0b0000, 0, 1), (0, 0, 0, 0)]
    assert run(clocks)[1] == {"link": 1, "speed": Speed.MBIT_1000, "full_duplex": 1}
    assert run([*clocks, (0, 0, 0, 0)])[1]["link"] == 0


def test_half_an_octet_is_an_error():
    line = [*gap(2), *on_the_line(b"abc")]
    seen, _ = run([*edges(line, nibbles=True, extra_nibble=0xA), *edges(gap(2), nibbles=True)],
                  nibbles=True)
    *whole, last = frames(seen)[0]
    assert whole == [(octet, 0) for octet in b"abc"]
    assert last[1] == 1


def test_nibble_alignment_comes_from_the_sfd():
    """A preamble of an odd number of nibbles, as a PHY may give it."""
    clocks = [*edges(gap(2), nibbles=True), (5, 5, 1, 1), *edges(on_the_line(b"xyz"), nibbles=True),
              *edges(gap(2), nibbles=True)]
    seen, _ = run(clocks, nibbles=True)
    assert frames(seen) == [[(octet, 0) for octet in b"xyz"]]


def test_latency():
    dut, clocks = RgmiiReceive(), []

    async def drive(ctx):
        for clock in range(6):
            ctx.set(dut.rx.ctl_low, clock == 1)
            if ctx.get(dut.o.valid):
                clocks.append(clock)
            await ctx.tick()
    simulate(dut, drive)
    assert clocks == [1 + RgmiiReceive.LATENCY]


def test_transmit_is_what_receive_takes():
    rng = random.Random("transmit")
    sent = [rng.randbytes(rng.randrange(1, 40)) for _ in range(10)]
    octets = [octet for frame in sent for octet in (*on_the_line(frame, error_at=1), *gap())]
    dut, clocks = RgmiiTransmit(), []

    async def drive(ctx):
        for octet in octets:
            ctx.set(dut.i.valid, octet.valid)
            ctx.set(dut.i.error, octet.error)
            ctx.set(dut.i.data, octet.data)
            await ctx.tick()
            clocks.append(tuple(ctx.get(getattr(dut.tx, name))
                                for name in ("low", "high", "ctl_low", "ctl_high")))
    simulate(dut, drive)
    seen, _ = run(clocks + [(0, 0, 0, 0)] * 3)
    assert frames(seen) == [[(octet, int(at == 1)) for at, octet in enumerate(frame)]
                            for frame in sent]
