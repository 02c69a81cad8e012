"""Reads a provisioning file (TOML) and checks it as a whole: one line for each error.

    observation_domain = 1              # optional, 1
    observation_point = 1               # optional, 1
    [defaults]                          # optional: for connections that do not say
    window = 64
    [[port]]                            # optional: one port named port0, interface 1
    name = "port0"
    interface = 1                       # exported as ingressPhysicalInterface
    [[connection]]
    source = "192.0.2.1"
    destination = "198.51.100.2"
    destination_qp = 0x12
    partition_key = 0xffff              # optional, 0xffff; also in [defaults]
    vlan = 100                          # optional, 0; also in [defaults]
    inner_vlan = 200                    # optional, 0; also in [defaults]
    window = 64                         # here or in [defaults], else 64
    observation_point = 2               # optional; also in [defaults]
    generation = 7                      # optional, 0; another number closes the epoch
    generation_verified = false         # optional; also in [defaults]
"""

from __future__ import annotations

import difflib
import re
import sys
import tomllib
from collections.abc import Hashable, Iterable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from rocetap.spec.registers import MAX_PORTS
from rocetap.wording import as_toml

from .model import LIMITS, Connection, Port, Provisioning, ProvisioningError, check_number, twice

__all__ = ["parse_provisioning", "read_provisioning"]

_DEFAULTABLE = ("partition_key", "vlan", "inner_vlan", "window", "observation_point",
                "generation_verified")
_CONNECTION = ("source", "destination", "destination_qp", "generation", *_DEFAULTABLE)
_PORT = ("name", "interface")
_TOP = ("observation_domain", "observation_point", "defaults", "port", "connection")


def read_provisioning(path: str) -> Provisioning:
    """The provisioning in a file, or on standard input for "-". Raises ProvisioningError."""
    name = "standard input" if path == "-" else str(path)
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ProvisioningError([f"{name}: no such file; write one with: rocetap discover "
                                 f"CAPTURE --output {name}"]) from None
    except UnicodeDecodeError as error:
        raise ProvisioningError([f"{name}: octet {error.start} is not UTF-8; save the file as "
                                 f"UTF-8 text"]) from None
    except (OSError, ValueError) as error:
        raise ProvisioningError([f"{name}: cannot be read: "
                                 f"{getattr(error, 'strerror', None) or error}"]) from None
    return parse_provisioning(text, name)


def parse_provisioning(text: str, name: str = "provisioning") -> Provisioning:
    """The provisioning in a TOML text. `name` begins each line of a ProvisioningError."""
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError) as error:   # ValueError: a number of 4,301 digits too
        place = re.search(r"\(at line (\d+), column \d+\)$", str(error))
        line = f":{place[1]}" if place else ""
        raise ProvisioningError([f"{name}{line}: is not TOML: {error}"]) from None
    return _Reader(text, name, tree).read()


class _Reader:
    """One reading of one file: collects the errors of all tables before it gives up."""

    def __init__(self, text: str, name: str, tree: dict[str, Any]) -> None:
        self._lines = text.split("\n")
        self._name = name
        self._tree = tree
        self._problems: list[str] = []

    def read(self) -> Provisioning:
        self._known(self._tree, _TOP, ("", 0))
        domain = self._number(self._tree, "observation_domain", 1, ("", 0))
        point = self._number(self._tree, "observation_point", 1, ("", 0))
        defaults = self._defaults()
        ports = {index: port for index, table in self._tables("port")
                 if (port := self._port(table, index)) is not None}
        connections = {index: connection for index, table in self._tables("connection")
                       if (connection := self._connection(table, defaults, index)) is not None}
        self._check_twice(ports, connections)
        if self._problems:
            raise ProvisioningError(self._problems)
        return Provisioning(domain, point, list(ports.values()) or [Port("port0", 1)],
                            list(connections.values()))

    def _tables(self, name: str) -> Iterable[tuple[int, dict[str, Any]]]:
        tables = self._tree.get(name, [])
        if not isinstance(tables, list) or not all(isinstance(item, dict) for item in tables):
            self._problem(("", 0), name, f"{name} must be tables; write [[{name}]]")
            return []
        return list(enumerate(tables))

    def _defaults(self) -> dict[str, Any]:
        defaults = self._tree.get("defaults", {})
        if not isinstance(defaults, dict):
            self._problem(("", 0), "defaults", "defaults must be a table; write [defaults]")
            return {}
        self._known(defaults, _DEFAULTABLE, ("defaults", 0))
        return {key: value for key, value in defaults.items()
                if key in _DEFAULTABLE and self._good(key, value, ("defaults", 0))}

    def _port(self, table: dict[str, Any], index: int) -> Port | None:
        where = ("port", index)
        good = self._known(table, _PORT, where) & self._present(table, _PORT, where)
        if "interface" in table:
            good &= self._good("interface", table["interface"], where)
        if "name" in table and not (isinstance(table["name"], str) and table["name"]):
            good = False
            self._problem(where, "name", f"name is {as_toml(table['name'])}, must be a text that "
                                         f"is not empty")
        return Port(table["name"], table["interface"]) if good else None

    def _connection(self, table: dict[str, Any], defaults: dict[str, Any],
                    index: int) -> Connection | None:
        where = ("connection", index)
        good = self._known(table, _CONNECTION, where)
        good &= self._present(table, _CONNECTION[:3], where)
        values = dict(defaults)
        for key in table:
            if key in _CONNECTION:
                good &= self._good(key, table[key], where)
                values[key] = table[key]
        if not good:
            return None
        values["source"] = ip_address(values["source"])
        values["destination"] = ip_address(values["destination"])
        try:
            return Connection(**values)
        except ProvisioningError as error:
            self._problem(where, "destination", str(error))
            return None

    def _check_twice(self, ports: dict[int, Port], connections: dict[int, Connection]) -> None:
        """Names both lines of what comes twice; only sound tables are compared."""
        tables = self._tree.get("port", [None])
        count = len(tables) if isinstance(tables, list) else 1
        if not 1 <= count <= MAX_PORTS:
            self._problem(("port", 0), "", f"{count} ports, must be 1 to {MAX_PORTS}")
        self._alike("port", "name", {index: port.name for index, port in ports.items()}, "name is")
        self._alike("port", "interface",
                    {index: port.interface for index, port in ports.items()}, "interface is")
        self._alike("connection", "",
                    {index: connection.key() for index, connection in connections.items()},
                    "source, destination, QP, P_Key and VLANs are")

    def _alike(self, table: str, key: str, values: dict[int, Hashable], what: str) -> None:
        indices = list(values)
        for index, before in twice(list(values.values())):
            line = self._line((table, indices[before]), key)
            self._problem((table, indices[index]), key,
                          f"{what} the same as of the {table} at line {line}; change or remove one "
                          f"of the two")

    def _known(self, table: dict[str, Any], names: tuple[str, ...], where: tuple[str, int]) -> bool:
        unknown = [key for key in table if key not in names]
        for key in unknown:
            near = difflib.get_close_matches(key, names, 1)
            advice = f"; is {near[0]} meant?" if near else f"; known are {', '.join(names)}"
            self._problem(where, key, f"unknown setting {key!r}{advice}")
        return not unknown

    def _present(self, table: dict[str, Any], names: tuple[str, ...],
                 where: tuple[str, int]) -> bool:
        missing = [name for name in names if name not in table]
        for name in missing:
            self._problem(where, "", f"this {where[0]} has no {name}")
        return not missing

    def _number(self, table: dict[str, Any], key: str, default: int,
                where: tuple[str, int]) -> int:
        if key in table and not self._good(key, table[key], where):
            return default
        return int(table.get(key, default))

    def _good(self, key: str, value: object, where: tuple[str, int]) -> bool:
        problem: str | None = None
        if key in LIMITS:
            problem = check_number(key, value)
        elif key == "generation_verified":
            if not isinstance(value, bool):
                problem = f"{key} is {as_toml(value)}, must be true or false"
        elif not _is_address(value):
            problem = f"{key} is {as_toml(value)}, must be an IPv4 or IPv6 address in quotes"
        if problem:
            self._problem(where, key, problem)
        return problem is None

    def _problem(self, where: tuple[str, int], key: str, text: str) -> None:
        line = self._line(where, key)
        self._problems.append(f"{self._name}:{line}: {text}" if line else f"{self._name}: {text}")

    def _line(self, where: tuple[str, int], key: str) -> int:
        """Line of a setting, or of its table's header; 0 when neither is found.

        tomllib keeps no places, so this looks for headers and keys in the text.
        """
        table, index = where
        header = re.compile(r"\s*\[")
        wanted = re.compile(rf"\s*\[+\s*{re.escape(table)}\s*\]+") if table else None
        setting = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=|\s*\[+\s*{re.escape(key)}\s*\]")
        inside, seen, header_line = table == "", 0, 0
        for number, line in enumerate(self._lines, 1):
            if header.match(line):
                if inside and table:
                    break
                if wanted and wanted.match(line):
                    inside = seen == index
                    header_line = number if inside else 0
                    seen += 1
            if inside and key and setting.match(line):
                return number
        return header_line


def _is_address(value: object) -> bool:
    try:
        ip_address(value if isinstance(value, str) else "")
    except ValueError:
        return False
    return not (isinstance(value, str) and "%" in value)
