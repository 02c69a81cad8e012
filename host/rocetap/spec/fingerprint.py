"""One number for all shared tables: board and driver compare it before anything else."""

from __future__ import annotations

import hashlib

from . import axi, classes, flags, keys, opcodes, records, registers, wire

__all__ = ["layout_hash", "layout_text"]


def layout_text() -> str:
    """The shared tables as text, each entry a line: what the hash is taken of."""
    lines = [f"version {registers.LAYOUT_VERSION}", f"magic {registers.MAGIC:#x}"]
    lines += [f"opcode {code:#x} {size}" for code, size in
              sorted(opcodes.EXTENDED_HEADER_OCTETS.items())]
    lines += [f"eligible {opcodes.ELIGIBLE_REQUESTS}", f"responses {opcodes.RC_RESPONSES}"]
    lines += [f"flag {flag.name} {flag.value:#x}" for flag in flags.SequenceFlag]
    lines += [f"class {item.name} {item.value}" for item in classes.FrameClass]
    lines += [f"key {name} {bits}" for name, bits in keys.KEY_FIELDS.items()]
    lines += [f"ways {keys.WAYS}", f"columns {keys.hash_columns()}"]
    lines += [f"kind {kind.name} {kind.value}" for kind in records.RecordKind]
    lines += [f"record {name} {bits}" for name, bits in records.RECORD_FIELDS.items()]
    lines += [f"operation {kind.name} {kind.value}" for kind in registers.OperationKind]
    for name, register in registers.REGISTERS.items():
        lines.append(f"register {name} {register.address:#x} {register.access} {register.fields}")
    lines += [f"port state {name} {field}" for name, field in registers.PORT_STATE.items()]
    for name, bank in registers.BANKS.items():
        lines.append(f"bank {name} {bank.base:#x} {bank.stride} {bank.count} {bank.access}")
    for name, register in axi.AXI_REGISTERS.items():
        lines.append(f"axi {name} {register.address:#x} {register.access} {register.fields}")
    lines.append(f"axi record {axi.record_word(0):#x}")
    lines += [f"message {kind.name} {kind.value:#x}" for kind in wire.MessageType]
    lines += [f"status {status.name} {status.value}" for status in wire.Status]
    lines.append(f"burst {wire.MAX_BURST}")
    return "\n".join(lines) + "\n"


def layout_hash() -> int:
    """The first 64 bits of the SHA-256 of `layout_text`."""
    return int.from_bytes(hashlib.sha256(layout_text().encode()).digest()[:8], "big")
