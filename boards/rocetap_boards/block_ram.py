"""Registers behind block RAM move into it.

Each output of an ECP5's DP16KD can have its register inside the block (Lattice TN-02204, output
register mode): the data is there 0.5 ns after the clock instead of 4.3. Yosys maps memories without
it and leaves the registers outside.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

__all__ = ["absorb_output_registers"]

Cells = dict[str, dict[str, Any]]

_WIDEST = 36
"""In this width, the simple dual port one, DOA and DOB are the two halves of port B's data."""


def absorb_output_registers(module: dict[str, Any]) -> int:
    """Changes a module of a Yosys netlist (``write_json``); how many flip-flops went into RAM.

    It is done for a port when each output bit that is used at all goes to one flip-flop only and
    nowhere else, all of these have the RAM's clock, the same enable, no set or reset, and do not
    start with a one.
    """
    cells: Cells = module["cells"]
    users: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] != "output":
                for bit in bits:
                    users[bit].append((name, port))
    for name, port in module["ports"].items():
        for bit in port["bits"]:
            users[bit].append((name, "port"))

    moved = 0
    for ram in [cell for cell in cells.values() if cell["type"] == "DP16KD"]:
        wide = _WIDEST in (_number(ram, "DATA_WIDTH_A"), _number(ram, "DATA_WIDTH_B"))
        for side, halves in (("B", "AB"),) if wide else (("A", "A"), ("B", "B")):
            outputs = [f"DO{half}{i}" for half in halves for i in range(18)]
            registers = _registers(cells, users, ram, side, outputs)
            if registers is None:
                continue
            any_of_them = cells[next(iter(registers.values()))]
            ram["connections"][f"OCE{side}"] = _enable(any_of_them)
            for half in halves:
                ram["parameters"][f"REGMODE_{half}"] = "OUTREG"
            for output, register in registers.items():
                ram["connections"][output] = cells.pop(register)["connections"]["Q"]
            moved += len(registers)
    return moved


def _used(ram: dict[str, Any], outputs: list[str],
          users: dict[int, list[tuple[str, str]]]) -> list[str]:
    """Those of the outputs that anything reads."""
    return [output for output in outputs
            if any(users[bit] for bit in ram["connections"].get(output, []))]


def _registers(cells: Cells, users: dict[int, list[tuple[str, str]]], ram: dict[str, Any],
               side: str, outputs: list[str]) -> dict[str, str] | None:
    """Output -> its flip-flop, for a port whose outputs all may move; None for another."""
    if ram["parameters"].get(f"CLK{side}MUX") != f"CLK{side}":
        return None
    found = {}
    for output in _used(ram, outputs, users):
        (bit,) = ram["connections"][output]
        if len(users[bit]) != 1:
            return None
        name, port = users[bit][0]
        cell = cells.get(name)
        if cell is None or cell["type"] != "TRELLIS_FF" or port != "DI":
            return None
        if (cell["parameters"].get("REGSET") != "RESET" or cell["parameters"]["CLKMUX"] != "CLK"
                or cell["parameters"].get("CEMUX") not in ("CE", "1 ")
                or cell["connections"]["CLK"] != ram["connections"][f"CLK{side}"]
                or cell["connections"].get("LSR", ["0"]) != ["0"]):
            return None
        found[output] = name
    enables = {tuple(_enable(cells[name])) for name in found.values()}
    return found if len(enables) == 1 else None


def _enable(register: dict[str, Any]) -> list[Any]:
    if register["parameters"]["CEMUX"] == "1 ":
        return ["1"]
    return list(register["connections"]["CE"])


def _number(cell: dict[str, Any], parameter: str) -> int:
    return int(cell["parameters"][parameter], 2)
