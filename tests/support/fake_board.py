"""A small board in Python behind the link's messages, for tests of the host's side alone.

It knows contexts, epochs, sweeps, credit and registers as rocetap.spec has them, and counts
requests; it has no parser, no table look-up and no window. End-to-end tests use the gateware.
"""

from __future__ import annotations

import threading
import time
from collections import deque

import numpy as np

from rocetap.link.errors import TransportClosed
from rocetap.link.framing import FrameDecoder, encode_frame
from rocetap.link.messages import Credit, Read, RecordMessage, Reply, Write, decode_from_host
from rocetap.link.records import RECORD_DTYPE
from rocetap.spec.fingerprint import layout_hash
from rocetap.spec.flags import SequenceFlag
from rocetap.spec.records import RecordKind
from rocetap.spec.registers import BANKS, LAYOUT_VERSION, MAGIC, REGISTERS, OperationKind
from rocetap.spec.wire import Status

__all__ = ["FakeBoard"]


class FakeBoard:
    """Its state outlives the transports made from it, as a real board outlives its cable."""

    def __init__(self, contexts=8, ports=1, max_window=256):
        self.lock = threading.RLock()
        self.contexts, self.ports, self.max_window = contexts, ports, max_window
        self.boot_id = 0
        self.operations = []      # (OperationKind, context), as they came
        self.commits = 0
        self.pfc = np.zeros((ports, 16), np.uint64)
        self.plugged = True
        self.transmitted = False
        self.power_on()

    def power_on(self):
        """A reset: everything but the counters of PFC frames is lost."""
        with self.lock:
            self.boot_id = 0
            self.started = time.monotonic_ns()
            self.serial = self.credit = 0
            self.fifo = deque()
            self.registers = {}
            self.enabled = [False] * self.contexts
            self.tag = [0] * self.contexts
            self.window = [0] * self.contexts
            self.epoch = [0] * self.contexts
            self.open = [None] * self.contexts
            self.last_write = None
            self.slots = {}       # (way, slot) -> context

    @property
    def now(self):
        return time.monotonic_ns() - self.started

    def request(self, context, count=1, **totals):
        """`count` requests of a context; opens an epoch when there is none."""
        with self.lock:
            if not self.enabled[context]:
                return
            if self.open[context] is None:
                self.epoch[context] += 1
                self.open[context] = {"requests": 0, "first_time": self.now}
            state = self.open[context]
            state["requests"] += count
            state["last_time"] = self.now
            for name, value in totals.items():
                state[name] = state.get(name, 0) + value

    def _push(self, kind, context, tag, **fields):
        row = np.zeros(1, RECORD_DTYPE)
        row["kind"], row["context"], row["tag"] = kind, context, tag
        for name, value in fields.items():
            row[name] = value
        self.fifo.append(row.tobytes())

    def _report(self, context, flags=0):
        state = self.open[context]
        if state is not None:
            self._push(RecordKind.SEQUENCE, context, self.tag[context], flags=flags,
                       epoch=self.epoch[context], window=self.window[context], **state)
            if flags & SequenceFlag.finalEpoch:
                self.open[context] = None

    def operate(self, kind, context, reasons=0):
        with self.lock:
            self.operations.append((OperationKind(kind), context))
            final = int(SequenceFlag.finalEpoch) | reasons
            argument = REGISTERS["operation_argument"].unpack(
                self.registers.get(REGISTERS["operation_argument"].address, 0))
            if kind == OperationKind.SNAPSHOT:
                self._report(context)
            elif kind in (OperationKind.CLOSE, OperationKind.REMOVE, OperationKind.PROVISION):
                self._report(context, final)
            if kind == OperationKind.REMOVE:
                self.enabled[context] = False
            if kind == OperationKind.PROVISION:
                self.enabled[context] = True
                self.tag[context], self.window[context] = argument["tag"], argument["window"]

    def _write(self, address, value):
        if address == REGISTERS["operation"].address:
            fields = REGISTERS["operation"].unpack(value)
            self.operate(fields["kind"], fields["context"], fields["reasons"])
        elif address == REGISTERS["sweep"].address:
            fields = REGISTERS["sweep"].unpack(value)
            for context in range(fields["first"], fields["last"] + 1):
                self.operate(fields["kind"], context, fields["reasons"])
            self._push(RecordKind.MARKER, 0, fields["cookie"])
        elif address == REGISTERS["boot_id"].address:
            self.boot_id = value
        elif address == REGISTERS["table_commit"].address:
            self.commits += 1
            fields = REGISTERS["table_commit"].unpack(value)
            place = (fields["way"], fields["slot"])
            self.slots.pop(place, None)
            if fields["valid"]:
                self.slots[place] = fields["context"]
        else:
            self.registers[address] = value

    def _read(self, address):
        single = {
            "magic": MAGIC, "layout": layout_hash(), "boot_id": self.boot_id, "time": self.now,
            "snapshot_level": len(self.fifo),
            "capacity": REGISTERS["capacity"].pack(
                connections=self.contexts, ports=self.ports, bus_bytes=8,
                transmitted=self.transmitted,
                max_window=self.max_window, version=LAYOUT_VERSION)}
        for name, value in single.items():
            if address == REGISTERS[name].address:
                return value
        bank = BANKS["pfc_received"]
        port, index = divmod(address - bank.base, bank.stride)
        if address >= bank.base and port < self.ports and index < bank.count:
            return int(self.pfc[port][index])
        return self.registers.get(address, 0)

    def answer(self, message):
        with self.lock:
            if isinstance(message, Read):
                self.last_write = None
                return Reply(message.sequence, Status.OK, tuple(
                    self._read(message.address + index) for index in range(message.count)))
            if self.last_write != message.sequence:
                self.last_write = message.sequence
                if isinstance(message, Write):
                    for index, value in enumerate(message.values):
                        self._write(message.address + index, value)
                else:
                    assert isinstance(message, Credit)
                    self.credit += message.amount
            return Reply(message.sequence, Status.OK)

    def push_records(self):
        with self.lock:
            octets = b""
            while self.credit and self.fifo:
                octets += encode_frame(RecordMessage(self.serial, self.fifo.popleft()).encode())
                self.serial = (self.serial + 1) % (1 << 16)
                self.credit -= 1
            return octets

    def transport(self):
        return _Transport(self)


class _Transport:
    def __init__(self, board):
        self._board = board
        self._decoder = FrameDecoder()
        self._waiting = b""

    def _check(self):
        if not self._board.plugged:
            raise TransportClosed("fake: line is gone")

    def write(self, data):
        self._check()
        for octets in self._decoder.receive(data):
            reply = self._board.answer(decode_from_host(octets))
            self._waiting += encode_frame(reply.encode())

    def read(self, max_octets, timeout_s):
        deadline = time.monotonic() + timeout_s
        while True:
            self._check()
            self._waiting += self._board.push_records()
            if self._waiting or time.monotonic() >= deadline:
                data, self._waiting = self._waiting[:max_octets], self._waiting[max_octets:]
                return data
            time.sleep(0.001)

    def close(self):
        pass
