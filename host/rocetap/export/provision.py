"""Brings a board to a provisioning: which connection has which context, tag and table slots.

A context is a row of the board's state, a tag the number that its records carry. Each change of a
connection takes a new tag, so that a record says whose it is however late it is read. What did not
change is not touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rocetap.errors import RocetapError
from rocetap.link.driver import BoardInfo, Driver
from rocetap.link.table import ConnectionTable, apply_writes
from rocetap.provisioning import Connection, Provisioning
from rocetap.spec.registers import OperationKind
from rocetap.wording import counted

__all__ = ["BoardTooSmallError", "Placement", "Provisioner", "check_fits"]

_TAGS: Final = 1 << 16


class BoardTooSmallError(RocetapError):
    """The provisioning asks for more than the board was built for."""


@dataclass(frozen=True)
class Placement:
    """A connection on the board."""

    context: int
    tag: int
    connection: Connection
    observation_point: int


def check_fits(board: BoardInfo, provisioning: Provisioning) -> None:
    """Raises BoardTooSmallError when a board of that size has no room for all that."""
    connections = provisioning.connections
    if len(connections) > board.connections:
        raise BoardTooSmallError(
            f"{counted(len(connections), 'connection')}, but the board has contexts for "
            f"{board.connections}: leave some out of the provisioning, or use a board built "
            "for more")
    if len(provisioning.ports) > board.ports:
        raise BoardTooSmallError(
            f"{counted(len(provisioning.ports), 'port')}, but the board has {board.ports}: leave "
            "some out of the provisioning, or use a board built for more")
    widest = max((one.window for one in connections), default=1)
    if widest > board.max_window:
        raise BoardTooSmallError(
            f"window {widest} is more than the board was built for: give 1 to "
            f"{board.max_window}")


class Provisioner:
    """The host's side of the board's contexts and table. Wants a driver after its handshake."""

    def __init__(self, driver: Driver) -> None:
        if driver.board is None:
            raise ValueError("no handshake yet: the number of contexts is not known")
        self._driver = driver
        self._board = driver.board
        self._table = ConnectionTable(self._board.connections)
        self._placed: dict[int, Placement] = {}
        self._next_tag = 1

    @property
    def placements(self) -> list[Placement]:
        """What is on the board, by context."""
        return sorted(self._placed.values(), key=lambda one: one.context)

    def take_over(self) -> None:
        """Empties the table of a board of unknown state: no packet finds a context any more.
        Contexts may still have open epochs, which a CLOSE sweep over all of them ends."""
        apply_writes(self._driver, self._table.rewrite())

    def check(self, provisioning: Provisioning) -> None:
        """Raises BoardTooSmallError, with the board unchanged, if it has no room for all that."""
        check_fits(self._board, provisioning)

    def apply(self, provisioning: Provisioning) -> list[Placement]:
        """Makes the board watch these connections and no others; returns the new placements, in
        the provisioning's order. A connection of which anything changed starts a new epoch.
        """
        self.check(provisioning)
        wanted = {one.key(): (one, provisioning.point_of(one)) for one in provisioning.connections}
        self._remove(key for key in list(self._placed) if key not in wanted)
        changed = []
        for key, (connection, point) in wanted.items():
            before = self._placed.get(key)
            if before is None or (before.connection, before.observation_point) != (
                    connection, point):
                context = self._free_context() if before is None else before.context
                changed.append(self._place(key, Placement(
                    context, self._take_tag(), connection, point)))
        return changed

    def _remove(self, keys: Iterable[int]) -> None:
        # The slot first: no packet finds the context any more when it is disabled.
        for key in keys:
            apply_writes(self._driver, self._table.remove(key))
            placement = self._placed.pop(key)
            self._driver.operate(OperationKind.REMOVE, placement.context)

    def _place(self, key: int, placement: Placement) -> Placement:
        # The context first: the first packet that finds it counts.
        self._driver.operate(OperationKind.PROVISION, placement.context,
                             window=placement.connection.window, tag=placement.tag)
        if key not in self._placed:
            apply_writes(self._driver, self._table.insert(key, placement.context))
        self._placed[key] = placement
        return placement

    def _free_context(self) -> int:
        used = {one.context for one in self._placed.values()}
        return next(index for index in range(self._board.connections) if index not in used)

    def _take_tag(self) -> int:
        used = {one.tag for one in self._placed.values()}
        while self._next_tag in used or self._next_tag == 0:
            self._next_tag = (self._next_tag + 1) % _TAGS
        tag, self._next_tag = self._next_tag, (self._next_tag + 1) % _TAGS
        return tag
