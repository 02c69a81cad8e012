"""The host's driver on the simulated gateware: the two ends of the link together."""

import random

import pytest

from rocetap.link.driver import Driver
from rocetap.link.errors import LinkTimeout, RequestFailed
from rocetap.link.poll import read_counters
from rocetap.spec.classes import FrameClass
from rocetap.spec.fingerprint import layout_hash
from rocetap.spec.records import RECORD_FIELDS
from rocetap.spec.registers import BANKS, LAYOUT_VERSION, MAGIC, REGISTERS, OperationKind
from rocetap.spec.wire import Status
from support.link_bench import RegisterModel, SimulatedLink

PORTS = 1


def make(**options):
    values = {item.address: 0 for item in REGISTERS.values() if item.access == "rw"}
    values |= {item.address: 2**63 + item.address
               for item in REGISTERS.values() if item.access == "r"}
    values |= {REGISTERS[name].address: 0 for name in ("operation", "sweep", "table_commit")}
    for bank in BANKS.values():
        values |= {bank.base + index: 2**40 + bank.base + index for index in range(bank.count)}
    values[REGISTERS["magic"].address] = MAGIC
    values[REGISTERS["layout"].address] = layout_hash()
    values[REGISTERS["capacity"].address] = REGISTERS["capacity"].pack(
        connections=64, ports=PORTS, bus_bytes=8, max_window=256, version=LAYOUT_VERSION)
    read_only = [item.address for item in REGISTERS.values() if "w" not in item.access]
    line = SimulatedLink(RegisterModel(values, read_only=read_only, refuses=[0x12], latency=5))
    driver = Driver(line, clock=line.clock, timeout_s=0.001, stall_s=0.005,
                    random_bits=random.Random(71).getrandbits, **options)
    return driver, line


def some_records(count, seed):
    dice = random.Random(seed)
    return [{name: dice.choice([0, dice.getrandbits(bits)]) for name, bits in RECORD_FIELDS.items()}
            for _ in range(count)]


def rows(records):
    return [{name: int(record[name]) for name in RECORD_FIELDS} for record in records]


def test_handshake_registers_and_operations():
    driver, line = make()
    info = driver.handshake()
    assert (info.connections, info.ports, info.max_window) == (64, 1, 256)
    assert line.registers.values[REGISTERS["boot_id"].address] == info.boot_id != 0
    assert driver.read("time") == 2**63 + 4
    driver.write("control", check_icrc=1)
    assert driver.read_fields("control") == {"check_icrc": 1}
    driver.operate(OperationKind.PROVISION, 63, window=256, tag=0xBEEF)
    assert line.registers.values[0x10] == 256 | 0xBEEF << 32
    assert line.registers.values[0x11] == 5 | 63 << 16
    driver.write_bank("table_key", range(2**64 - 6, 2**64))
    assert [line.registers.values[0x20 + index] for index in range(6)] == [
        *range(2**64 - 6, 2**64)]
    counters = read_counters(driver)
    assert counters.frame_class == (
        tuple(2**40 + 0x100 + index for index in range(len(FrameClass))),)
    assert counters.pfc_transmitted == (tuple(2**40 + 0x300 + index for index in range(16)),)
    with pytest.raises(RequestFailed) as caught:
        driver.sweep(OperationKind.SNAPSHOT, 0, 63)
    assert caught.value.status is Status.REFUSED
    assert driver.retries == driver.stale_replies == 0


def test_records_while_registers_are_read():
    driver, line = make(credit_window=8)
    driver.handshake()
    sent = some_records(30, seed=72)
    line.records.extend(sent)
    taken = []
    while len(taken) < 30:
        driver.poll(0.002)
        assert driver.read("time") == 2**63 + 4
        taken += rows(driver.take_records())
    assert taken == sent
    assert driver.records_missed == 0
    assert driver.retries == 0


def test_a_line_that_loses_replies_and_records():
    """Every few octets of the board's are changed: each write is done once, each record comes
    whole or is counted missed."""
    driver, line = make(credit_window=8, tries=20)
    driver.handshake()
    sent = some_records(24, seed=73)
    line.records.extend(sent)
    dice = random.Random(74)

    def garble(octets):
        return bytes(octet ^ (1 << dice.randrange(8)) if dice.random() < 0.004 else octet
                     for octet in octets)

    line.garble = garble
    taken = []
    line.registers.log.clear()
    for number in range(20):
        driver.write("operation_argument", window=number, tag=0)
        driver.poll(0.0005)
        taken += rows(driver.take_records())
    line.garble = bytes
    assert [entry for entry in line.registers.log if entry[0] == "write"] == [
        ("write", 0x10, number) for number in range(20)]
    assert driver.retries > 0
    assert driver.records_missed > 0
    assert [record for record in sent if record in taken] == taken
    line.records.append(sent[0])
    while driver.session.records_received + driver.records_missed < 25:
        driver.poll(0.0005)
    assert driver.session.records_received + driver.records_missed == 25


def test_a_bus_that_answers_late_times_out_once_and_goes_on():
    driver, line = make(tries=2)
    line.registers.latency = 5000
    with pytest.raises(LinkTimeout, match="^no whole reply to READ of time at 0x0004: 2 tries of "
                                          r"0.001 s, 0 octets got; check cable, baud rate and "
                                          r"power$"):
        driver.read("time")
    line.registers.latency = 5
    line.run(11_000)
    assert driver.read("boot_id") == 0
    assert driver.stale_replies == 2


def test_noise_from_the_host_is_counted_by_the_board_and_harms_nothing():
    driver, line = make()
    dice = random.Random(75)
    for _ in range(25):
        line.write(dice.randbytes(dice.randrange(1, 60)))
        assert driver.read("time") == 2**63 + 4
    assert driver.retries == 0, "each request begins with a delimiter"
    assert line.crc_errors + line.format_errors >= 25
    assert not [entry for entry in line.registers.log if entry[0] == "write"]
