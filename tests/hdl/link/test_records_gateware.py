"""RecordSender: records go as far as credit does, numbered."""

import random

import pytest

from rocetap.link.messages import RecordMessage, decode_from_board
from rocetap.spec.records import RECORD_FIELDS
from rocetap_hdl.link.records import RecordSender
from support.link_bench import PRESSURES, offer, run_streams


def some_records(count, seed):
    dice = random.Random(seed)
    return [{name: dice.choice([0, dice.getrandbits(bits)]) for name, bits in RECORD_FIELDS.items()}
            for _ in range(count)]


def packed(record):
    """The record's octets by the table alone."""
    return b"".join(record[name].to_bytes(bits // 8, "little")
                    for name, bits in RECORD_FIELDS.items())


def run(records, grants, *, pressure=(1.0, 1.0), every=1):
    """The messages sent; `grants` are given one each `every` clocks."""
    dut = RecordSender()

    async def grant(ctx):
        for amount in grants:
            ctx.set(dut.credit_amount, amount)
            ctx.set(dut.credit_grant, 1)
            await ctx.tick()
            ctx.set(dut.credit_grant, 0)
            for _ in range(every):
                await ctx.tick()

    # The source stops offering when credit ends, so the bench must not wait for it.
    taken, sim_records = [], []

    async def feed(ctx):
        for record in records:
            await offer(ctx, dut.records, record)
            sim_records.append(record)

    (beats,) = run_streams(dut, [], [dut.o], pressure=pressure, extra=[grant, feed], quiet=300)
    current = bytearray()
    for beat in beats:
        current.append(beat["data"])
        if beat["last"]:
            taken.append(decode_from_board(bytes(current)))
            current.clear()
    assert not current
    assert len(sim_records) == len(taken), "a record is taken with its last octet"
    return taken


@pytest.mark.parametrize("pressure", PRESSURES)
def test_records_with_their_numbers(pressure):
    records = some_records(6, seed=31)
    assert run(records, [3, 100], pressure=pressure) == [
        RecordMessage(serial, packed(record)) for serial, record in enumerate(records)]


@pytest.mark.parametrize(("grants", "sent"), [
    ([], 0), ([0], 0), ([1], 1), ([3], 3), ([1, 0, 2], 3), ([2, 2], 4)])
def test_no_record_without_credit(grants, sent):
    assert len(run(some_records(6, seed=32), grants)) == sent


@pytest.mark.parametrize("every", range(8))
def test_a_grant_when_a_record_takes_its_credit_counts_in_full(every):
    """Grants at every distance from a record's start: each is one record."""
    assert len(run(some_records(6, seed=33), [1, 1, 1, 1], every=every)) == 4


def test_credit_saturates():
    dut = RecordSender()
    messages = []

    async def watch(ctx):
        for amount in (0xFFFF, 1):
            ctx.set(dut.credit_amount, amount)
            ctx.set(dut.credit_grant, 1)
            await ctx.tick()
        ctx.set(dut.credit_grant, 0)
        await offer(ctx, dut.records, some_records(1, seed=34)[0])
        messages.append(1)

    run_streams(dut, [], [dut.o], extra=[watch])
    assert messages == [1], "credit that had wrapped to zero would send nothing"
