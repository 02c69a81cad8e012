"""Settings of a command from its command line, the environment and a TOML file, checked as a whole.

The command line goes before the environment, that before the file, that before the default. In the
file each command has a table of its name; a name with "-" on the command line has "_" there, and
ROCETAP_NAME in capitals in the environment. Paths in the file are relative to the file's folder.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rocetap.errors import RocetapError
from rocetap.wording import as_toml

__all__ = ["ConfigurationError", "Setting", "address", "load", "number"]

COMMANDS: Final = ("export", "collect")
"""Tables that a file may have."""

_REQUIRED: Final = object()
_KINDS: Final = {str: "a text in quotes", int: "a whole number", float: "a number",
                 bool: "true or false", list: "a list of texts", Path: "a text in quotes"}


class ConfigurationError(RocetapError):
    """Settings that cannot be used: one line for each error."""


def _nothing_wrong(_value: Any) -> str | None:
    return None


@dataclass(frozen=True)
class Setting:
    """One setting. `kind`: str, int, float, bool, Path, or list for texts. `check`: what is wrong
    with a value of that kind, to stand behind the setting's name and value, or None; `each`: the
    same for each text of a list. No text may be empty. Without `default` it must be given.
    `is_path`: a text that names a file, or "-"."""

    name: str
    kind: type
    default: Any = _REQUIRED
    check: Callable[[Any], str | None] = _nothing_wrong
    is_path: bool = False
    each: Callable[[str], str | None] = _nothing_wrong

    @property
    def is_required(self) -> bool:
        """Whether there is no default."""
        return self.default is _REQUIRED

    @property
    def option(self) -> str:
        """On the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """In the environment."""
        return "ROCETAP_" + self.name.upper()


def number(least: float, most: float) -> Callable[[Any], str | None]:
    """A check for Setting: least <= value <= most."""
    def check(value: float) -> str | None:
        return None if least <= value <= most else f"must be {least} to {most}"
    return check


def address(*, allow_port_zero: bool = False) -> Callable[[Any], str | None]:
    """A check for Setting: HOST:PORT, as `parse_endpoint` takes it."""
    def check(value: str) -> str | None:
        from rocetap.export.endpoint import EndpointError, parse_endpoint

        try:
            parse_endpoint(value, allow_port_zero=allow_port_zero)
        except EndpointError as error:
            return str(error).removeprefix(f"address {value!r}: ")
        return None
    return check


def load(command: str, settings: tuple[Setting, ...], given: Mapping[str, Any], file: Path | None,
         environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """A value for each setting. `given`: from the command line, None where nothing was given.

    Raises ConfigurationError with all errors of all places, each with its place.
    """
    problems: list[str] = []
    table = _Table(command, settings, file, problems) if file is not None else None
    values: dict[str, Any] = {}
    for one in settings:
        if given.get(one.name) is not None:
            place, value = one.option, given[one.name]
        elif one.variable in environment:
            place = one.variable
            value = _from_text(one, environment[one.variable], problems)
        elif table is not None and one.name in table.values:
            place, value = table.place(one.name), table.values[one.name]
        elif one.is_required:
            where = f", or {one.name} in [{command}] of {file}" if file else ""
            problems.append(f"no {one.name}: give {one.option} or {one.variable}{where}")
            continue
        else:
            values[one.name] = one.default
            continue
        problems += _wrong(one, place, value, table)
        values[one.name] = value
    if problems:
        raise ConfigurationError("\n".join(problems))
    return values


def _wrong(one: Setting, place: str, value: Any, table: _Table | None) -> list[str]:
    """What is wrong with a value, each with its place; None was told before."""
    if value is None:
        return []
    if value == "" and one.kind is str:
        return [f"{place} is empty; give a text or leave it out"]
    wrong = one.check(value)
    if wrong is not None:
        return [f"{place} is {as_toml(value) if one.kind in (list, int) else value}, {wrong}"]
    if one.kind is not list:
        return []
    found = []
    for item in value:
        wrong = one.each(item) if item.strip() else "must not be empty"
        if wrong is not None:
            in_file = table is not None and place == table.place(one.name)
            where = table.place_of_item(one.name, item) if table and in_file else place
            found.append(f"{where} {item if item.strip() else repr(item)}: {wrong}")
    return found


def _from_text(one: Setting, text: str, problems: list[str]) -> Any:
    """The value of an environment variable; None, and a problem, when it is none."""
    try:
        if one.kind is bool:
            return {"1": True, "true": True, "yes": True, "0": False, "false": False,
                    "no": False, "": False}[text.lower()]
        if one.kind is list:
            return [word for word in re.split(r"[,\s]+", text) if word]
        return one.kind(text)
    except (ValueError, KeyError):
        kind = "a list of texts" if one.kind is list else _KINDS[one.kind]
        problems.append(f"{one.variable} is {text!r}, must be {kind}")
        return None


class _Table:
    """The command's table of a file: values of the right kind, and the lines they stand in."""

    def __init__(self, command: str, settings: tuple[Setting, ...], file: Path,
                 problems: list[str]) -> None:
        self._file = file
        self._command = command
        self._lines: list[str] = []
        self.values: dict[str, Any] = {}
        tree = self._parse(problems)
        for name in [one for one in tree if one not in COMMANDS]:
            problems.append(f"{self._at(name, in_table=False)}: unknown table {name!r}, known are "
                            f"{', '.join(COMMANDS)}")
        table = tree.get(command, {})
        if not isinstance(table, dict):
            problems.append(f"{self._at(command, in_table=False)}: {command} must be a table; "
                            f"write [{command}]")
            return
        known = {one.name: one for one in settings}
        for name, value in table.items():
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                advice = f"is {near[0]} meant?" if near else f"known are {', '.join(known)}"
                problems.append(f"{self._at(name)}: unknown setting {name!r}; {advice}")
            elif not _is_kind(known[name].kind, value):
                problems.append(f"{self._at(name)}: {name} is {as_toml(value)}, must be "
                                f"{_KINDS[known[name].kind]}")
                self.values[name] = None
            else:
                self.values[name] = self._converted(known[name], value)

    def place(self, name: str) -> str:
        """Where a setting stands, to begin a message with."""
        return f"{self._at(name)}: {name}"

    def place_of_item(self, name: str, item: str) -> str:
        """Where one text of a list stands; that of the list itself when it cannot be found."""
        begin = self._line(name, in_table=True)
        for number_, line in enumerate(self._lines[begin - 1:] if begin else [], begin):
            if f'"{item}"' in line or f"'{item}'" in line:
                return f"{self._file}:{number_}: {name}"
            if "]" in line:
                break
        return self.place(name)

    def _parse(self, problems: list[str]) -> dict[str, Any]:
        try:
            text = self._file.read_text(encoding="utf-8")
            self._lines = text.split("\n")
            return tomllib.loads(text)
        except OSError as error:
            problems.append(f"{self._file}: cannot be read: {error.strerror}")
        except UnicodeDecodeError as error:
            problems.append(f"{self._file}: octet {error.start} is not UTF-8")
        except (ValueError, RecursionError) as error:   # a number of 4,301 digits, deep lists
            found = re.search(r"\(at line (\d+), column \d+\)$", str(error))
            line = f":{found[1]}" if found else ""
            problems.append(f"{self._file}{line}: is not TOML: {error}")
        return {}

    def _converted(self, one: Setting, value: Any) -> Any:
        if one.kind is Path or (one.is_path and value != "-"):
            return one.kind(self._file.parent / value)
        return float(value) if one.kind is float else value

    def _at(self, name: str, *, in_table: bool = True) -> str:
        """FILE:LINE, or FILE alone."""
        line = self._line(name, in_table=in_table)
        return f"{self._file}:{line}" if line else str(self._file)

    def _line(self, name: str, *, in_table: bool) -> int:
        """From 1, 0 when it is not found; tomllib keeps no places, so this looks in the text."""
        inside = not in_table
        heading = re.compile(rf"\s*\[+\s*[\"']?{re.escape(self._command)}[\"']?\s*\]")
        setting = re.compile(rf"\s*(\[+\s*)?[\"']?{re.escape(name)}[\"']?\s*[=\].]")
        for number_, line in enumerate(self._lines, 1):
            if in_table and re.match(r"\s*\[", line):
                inside = bool(heading.match(line))
            elif inside and setting.match(line):
                return number_
        return 0


def _is_kind(kind: type, value: Any) -> bool:
    if kind is list:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str if kind is Path else kind)
