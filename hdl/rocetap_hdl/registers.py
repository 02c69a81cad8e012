"""The register file: what the host reads and writes (:mod:`rocetap.spec.registers`)."""

from functools import reduce
from operator import or_

from amaranth.hdl import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rocetap.spec.fingerprint import layout_hash
from rocetap.spec.keys import KEY_BITS, WAYS, slots_for
from rocetap.spec.registers import (
    BANKS,
    KEY_WORDS,
    LAYOUT_VERSION,
    MAGIC,
    REGISTERS,
    SELFTEST_WORDS,
    OperationKind,
)
from rocetap.spec.wire import Status

from .layouts import RegisterBus, operation

__all__ = ["RegisterFile"]


WRITABLE = ("boot_id", "control", "operation_argument", "operation", "sweep", "table_commit")
"""Registers that take a write in every build; there are the key's words besides."""


def _fields(name):
    """A register's named fields as a layout."""
    return data.FlexibleLayout(64, {
        field: data.Field(at.bits, at.low) for field, at in REGISTERS[name].fields})


class RegisterFile(wiring.Component):
    """Responder on the register bus. A read or plain write is done ``latency`` clocks after its
    request; a write to ``operation`` when the operation has entered the pipe.

    Reads have no side effects. A 64-bit register is sampled in one clock, so no counter is ever
    seen torn. ``counter_bank``, ``counter_port`` and ``counter_index`` select a counter;
    ``counter_value`` must hold it ``counter_latency`` clocks later.

    Refused (Status.REFUSED, nothing done): an operation of unknown kind or for a context that does
    not exist, PROVISION with a window of 0 or beyond ``word``, a sweep while one runs or over
    contexts that do not exist, a commit to a slot, way or context that does not exist, a self-test
    while one plays or with a port, size or number of times that cannot be. Without ``selftest`` its
    registers do not exist.
    """

    def __init__(self, *, connections, word, ports, bus_bytes, counter_latency, vxlan=False,
                 transmitted=False, selftest=False):
        self.connections = connections
        self.word = word
        self.ports = ports
        self.bus_bytes = bus_bytes
        self.counter_latency = counter_latency
        self.vxlan = vxlan
        self.transmitted = transmitted
        self.selftest = selftest
        self.slots = slots_for(connections)
        context_bits = max(1, (connections - 1).bit_length())
        host = wiring.Signature({
            "payload": Out(operation(connections)), "valid": Out(1), "ready": In(1)})
        super().__init__({
            "bus": In(RegisterBus()),
            # What is read.
            "time": In(64),
            "generation": In(64),
            "records_dropped": In(64),
            "snapshot_level": In(16),
            "crc_errors": In(32),
            "format_errors": In(32),
            "counter_bank": Out(2),
            "counter_port": Out(3),
            "counter_index": Out(5),
            "counter_value": In(64),
            "missed": In(1),
            "port_state": In(64),
            # What is written.
            "cfg_check_icrc": Out(1, init=1),
            "operation": Out(host),
            "sweep_start": Out(1),
            "sweep_kind": Out(4),
            "sweep_first": Out(context_bits),
            "sweep_last": Out(context_bits),
            "sweep_reasons": Out(16),
            "sweep_cookie": Out(16),
            "sweep_busy": In(1),
            "commit": Out(1),
            "commit_way": Out(range(WAYS)),
            "commit_slot": Out(range(self.slots)),
            "commit_valid": Out(1),
            "commit_context": Out(context_bits),
            "commit_key": Out(KEY_BITS),
            **({
                "selftest_write": Out(1),
                "selftest_index": Out(range(SELFTEST_WORDS)),
                "selftest_word": Out(64),
                "selftest_start": Out(1),
                "selftest_octets": Out(9),
                "selftest_port": Out(3),
                "selftest_wrong_fcs": Out(1),
                "selftest_mac_error": Out(1),
                "selftest_times": Out(16),
                "selftest_busy": In(1),
            } if selftest else {}),
        })

    counter_banks = ("frame_class", "pfc_received", "pfc_transmitted")
    """What ``counter_bank`` numbers."""

    @property
    def latency(self):
        """Clocks from request to done, when nothing has to be waited for."""
        return self.counter_latency + 3

    def elaborate(self, platform):
        m = Module()
        bus = self.bus
        address, word, write = Signal(16), Signal(64), Signal()
        boot_id, unprovisioned = Signal(64), Signal(64)
        argument = Signal(_fields("operation_argument"))
        m.d.sync += [address.eq(bus.address), word.eq(bus.write_data), write.eq(bus.write)]
        with m.If(self.missed):
            m.d.sync += unprovisioned.eq(unprovisioned + 1)

        # What an access does is found out step by step, long before it is done: which register it
        # names, what that holds, and whether what is to be written is refused.
        names = {name: Signal(name=f"names_{name}") for name in REGISTERS}
        is_key = Signal()
        writable = Signal()
        m.d.sync += [
            writable.eq(is_key | Cat(names[name] for name in WRITABLE).any()),
            *(named.eq(address == REGISTERS[name].address) for name, named in names.items()),
            is_key.eq((address >= BANKS["table_key"].base)
                      & (address < BANKS["table_key"].base + KEY_WORDS)),
        ]
        named = names.__getitem__
        operation, sweep, commit = self._refusals(m, word, argument)

        readable = Signal()
        read_data = Signal(64)
        self._read(m, address, names, readable, read_data, {
            "magic": MAGIC,
            "layout": layout_hash(),
            "boot_id": boot_id,
            "capacity": REGISTERS["capacity"].pack(
                connections=self.connections, ports=self.ports, vxlan=self.vxlan,
                transmitted=self.transmitted, bus_bytes=self.bus_bytes, max_window=self.word,
                version=LAYOUT_VERSION),
            "time": self.time,
            "control": self.cfg_check_icrc,
            "capture_generation": self.generation,
            "records_dropped": self.records_dropped,
            "snapshot_level": self.snapshot_level,
            "link_errors": Cat(self.crc_errors, self.format_errors),
            "unprovisioned": unprovisioned,
            "port_state": self.port_state,
            "operation_argument": Value.cast(argument),
        })

        # The request is looked at once its registers are steady, and answered when the slowest
        # counter has been read.
        waited = Signal(range(self.latency + 1))
        steady = Signal()
        decide = Signal()
        m.d.comb += decide.eq(steady & ~bus.done)
        with m.If(~bus.request | bus.done):
            m.d.sync += [waited.eq(0), steady.eq(0), bus.done.eq(0)]
        with m.Elif(~steady):
            m.d.sync += [waited.eq(waited + 1), steady.eq(waited == self.latency - 2)]

        with m.If(decide & ~write):
            m.d.sync += [bus.done.eq(1), bus.read_data.eq(read_data),
                         bus.status.eq(Mux(readable, Status.OK, Status.NO_REGISTER))]
        with m.If(decide & write):
            m.d.sync += [bus.done.eq(1), bus.status.eq(Status.OK)]
            with m.If(named("boot_id")):
                m.d.sync += boot_id.eq(word)
            with m.If(named("control")):
                m.d.sync += self.cfg_check_icrc.eq(word[0])
            with m.If(named("operation_argument")):
                m.d.sync += Value.cast(argument).eq(word)
            with m.If(named("operation")):
                self._operate(m, *operation, argument)
            with m.If(named("sweep")):
                self._sweep(m, *sweep)
            with m.If(named("table_commit")):
                self._commit(m, *commit)
            with m.If(is_key):
                for index in range(KEY_WORDS):
                    with m.If(address[:4] == (BANKS["table_key"].base + index) & 15):
                        part = self.commit_key[64 * index:64 * (index + 1)]
                        m.d.sync += part.eq(word)
            with m.If(~writable):
                m.d.sync += bus.status.eq(Status.NO_REGISTER)
        for strobe in (self.sweep_start, self.commit):
            with m.If(strobe):
                m.d.sync += strobe.eq(0)
        if self.selftest:
            self._selftest(m, decide & write, address, word)
        return m

    def _read(self, m, address, names, readable, read_data, values):
        """Single registers as soon as they are named, counters when they come."""
        single = Signal(64)
        is_single = Signal()
        m.d.sync += [
            is_single.eq(Cat(names[name] for name in values).any()),
            single.eq(reduce(or_, (Mux(names[name], value, 0) for name, value in values.items()))),
        ]
        is_counter = Signal()
        m.d.sync += [self.counter_port.eq(address[5:8]), self.counter_index.eq(address[:5])]
        with m.Switch(address[8:]):
            for number, name in enumerate(self.counter_banks):
                bank = BANKS[name]
                assert bank.stride == 32
                assert bank.base & 0xFF == 0
                with m.Case(bank.base >> 8):
                    m.d.sync += [self.counter_bank.eq(number), is_counter.eq(
                        (address[:5] < bank.count) & (address[5:8] < self.ports))]
            with m.Default():
                m.d.sync += is_counter.eq(0)
        m.d.comb += [readable.eq(is_single | is_counter),
                     read_data.eq(Mux(is_single, single, self.counter_value))]

    def _refusals(self, m, word, argument):
        """Whether ``word`` would be refused as an operation, a sweep or a commit."""
        ask, sweep, commit = (Signal(_fields(name), name=f"asked_{name}") for name in (
            "operation", "sweep", "table_commit"))
        m.d.comb += [Value.cast(form).eq(word) for form in (ask, sweep, commit)]

        def none_of(field, kinds):
            return ~Cat(field == kind for kind in kinds).any()

        bad_window = (argument.window == 0) | (argument.window > self.word)
        bad_operation, bad_sweep, bad_commit = Signal(), Signal(), Signal()
        m.d.sync += [
            bad_operation.eq(
                none_of(ask.kind, [kind for kind in OperationKind
                                   if kind >= OperationKind.SNAPSHOT])
                | (ask.context >= self.connections)
                | ((ask.kind == OperationKind.PROVISION) & bad_window)),
            bad_sweep.eq(
                none_of(sweep.kind, (OperationKind.SNAPSHOT, OperationKind.CLOSE))
                | (sweep.first > sweep.last) | (sweep.last >= self.connections)),
            bad_commit.eq((commit.slot >= self.slots) | (commit.way >= WAYS)
                          | (commit.context >= self.connections)),
        ]
        return (ask, bad_operation), (sweep, bad_sweep), (commit, bad_commit)

    def _operate(self, m, ask, refused, argument):
        """An operation stays offered until it has entered the pipe; only then the bus is done."""
        out = self.operation
        m.d.comb += [
            out.payload.kind.eq(ask.kind), out.payload.context.eq(ask.context),
            out.payload.reasons.eq(ask.reasons), out.payload.window.eq(argument.window),
            out.payload.tag.eq(argument.tag),
        ]
        with m.If(refused):
            m.d.sync += self.bus.status.eq(Status.REFUSED)
        with m.Else():
            m.d.comb += out.valid.eq(1)
            with m.If(~out.ready):
                m.d.sync += self.bus.done.eq(0)

    def _sweep(self, m, ask, refused):
        with m.If(refused | self.sweep_busy | self.sweep_start):
            m.d.sync += self.bus.status.eq(Status.REFUSED)
        with m.Else():
            m.d.sync += [
                self.sweep_start.eq(1), self.sweep_kind.eq(ask.kind),
                self.sweep_first.eq(ask.first), self.sweep_last.eq(ask.last),
                self.sweep_reasons.eq(ask.reasons), self.sweep_cookie.eq(ask.cookie),
            ]

    def _commit(self, m, ask, refused):
        with m.If(refused):
            m.d.sync += self.bus.status.eq(Status.REFUSED)
        with m.Else():
            m.d.sync += [
                self.commit.eq(1), self.commit_way.eq(ask.way), self.commit_slot.eq(ask.slot),
                self.commit_valid.eq(ask.valid), self.commit_context.eq(ask.context),
            ]

    def _selftest(self, m, writes, address, word):
        """Writes to the self-test's registers, which no other rule knows."""
        bank = BANKS["selftest_frame"]
        assert bank.base % SELFTEST_WORDS == 0
        ask = Signal(_fields("selftest"))
        m.d.comb += Value.cast(ask).eq(word)
        is_frame, is_start, refused = Signal(), Signal(), Signal()
        m.d.sync += [
            is_frame.eq(address[5:] == bank.base >> 5),
            is_start.eq(address == REGISTERS["selftest"].address),
            refused.eq((ask.port >= self.ports) | (ask.octets == 0)
                       | (ask.octets > 8 * SELFTEST_WORDS) | (ask.times == 0)),
            self.selftest_write.eq(0), self.selftest_start.eq(0),
        ]
        with m.If(writes & is_frame):
            m.d.sync += [self.bus.status.eq(Status.OK), self.selftest_write.eq(1),
                         self.selftest_index.eq(address), self.selftest_word.eq(word)]
        with m.If(writes & is_start):
            with m.If(refused | self.selftest_busy | self.selftest_start):
                m.d.sync += self.bus.status.eq(Status.REFUSED)
            with m.Else():
                m.d.sync += [
                    self.bus.status.eq(Status.OK), self.selftest_start.eq(1),
                    self.selftest_octets.eq(ask.octets), self.selftest_port.eq(ask.port),
                    self.selftest_wrong_fcs.eq(ask.wrong_fcs),
                    self.selftest_mac_error.eq(ask.mac_error), self.selftest_times.eq(ask.times)]
