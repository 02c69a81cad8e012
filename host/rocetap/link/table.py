"""The connection table in the gateware, as the host keeps it.

Cuckoo hashing (R. Pagh, F. F. Rodler, J. Algorithms 51(2), 2004) over the ways of
`rocetap.spec.keys`.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from ..spec.keys import KEY_BITS, WAYS, hash_key, slot_of, slots_for
from ..spec.registers import KEY_WORDS
from .driver import Driver
from .errors import LinkLocalError, TableFull

__all__ = ["ConnectionTable", "SlotWrite", "apply_writes"]


@dataclass(frozen=True)
class SlotWrite:
    """One slot's new content. Not `valid`: the slot becomes empty, key and context are 0."""

    way: int
    slot: int
    valid: bool
    key: int = 0
    context: int = 0


class ConnectionTable:
    """Where each key stands. Changes give the slot writes that bring the gateware to the same.

    `connections`: what the gateware was built for, so the most keys. Applied in order, one write
    after another, the writes keep each key that stays findable at every moment: a key is written to
    its new place before its old one is overwritten. In between it may stand in two slots, with the
    same context.
    """

    def __init__(self, connections: int) -> None:
        try:
            self.slots = slots_for(connections)
        except ValueError as error:
            raise LinkLocalError(str(error)) from None
        self.connections = connections
        self._contexts: dict[int, int] = {}
        self._places: dict[int, tuple[int, int]] = {}
        self._keys: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._contexts)

    def __contains__(self, key: object) -> bool:
        return key in self._contexts

    def context_of(self, key: int) -> int | None:
        """The key's context, None when it is not in the table."""
        return self._contexts.get(key)

    def insert(self, key: int, context: int) -> list[SlotWrite]:
        """Places a packed key; one that is there already gets the new context.

        TableFull, and nothing changed, when there is no place.
        """
        if not 0 <= key < 1 << KEY_BITS:
            raise LinkLocalError(f"key is {key:#x}, must fit {KEY_BITS} bits")
        if not 0 <= context < self.connections:
            raise LinkLocalError(
                f"context is {context}, must be 0 to {self.connections - 1}")
        if key in self._contexts:
            self._contexts[key] = context
            return [self._put(key, self._places[key])]
        if len(self) == self.connections:
            raise TableFull(f"connection table is full: {len(self)} of {self.connections} "
                            "connections; remove one, or use a board built for more")
        path = self._path_to_room(key)
        if path is None:
            raise TableFull(f"connection table has no place for one more key: {len(self)} of "
                            f"{self.connections} connections; remove one, or use a board built "
                            "for more")
        writes = [self._put(self._keys[source], target)
                  for source, target in reversed(list(itertools.pairwise(path)))]
        self._contexts[key] = context
        writes.append(self._put(key, path[0]))
        return writes

    def remove(self, key: int) -> list[SlotWrite]:
        """Takes a key out; one that is not there raises LinkLocalError."""
        if key not in self._contexts:
            raise LinkLocalError(f"key {key:#x} is not in the connection table")
        del self._contexts[key]
        way, slot = place = self._places.pop(key)
        del self._keys[place]
        return [SlotWrite(way, slot, valid=False)]

    def rewrite(self) -> list[SlotWrite]:
        """Every slot as it should be, for a board that restarted or is of unknown state. Its memory
        may hold anything: slots that should be empty come first."""
        places = [(way, slot) for way in range(WAYS) for slot in range(self.slots)]
        empty = [SlotWrite(way, slot, valid=False)
                 for way, slot in places if (way, slot) not in self._keys]
        return empty + [self._write(place) for place in places if place in self._keys]

    def _put(self, key: int, place: tuple[int, int]) -> SlotWrite:
        old = self._places.get(key)
        if old is not None and self._keys.get(old) == key:
            del self._keys[old]
        self._places[key] = place
        self._keys[place] = key
        return self._write(place)

    def _write(self, place: tuple[int, int]) -> SlotWrite:
        key = self._keys[place]
        return SlotWrite(*place, valid=True, key=key, context=self._contexts[key])

    def _candidates(self, key: int) -> list[tuple[int, int]]:
        digest = hash_key(key)
        return [(way, slot_of(digest, way, self.slots)) for way in range(WAYS)]

    def _path_to_room(self, key: int) -> list[tuple[int, int]] | None:
        """The shortest chain of places: the new key's, then where its occupant may move, and so on
        to an empty one."""
        reached: dict[tuple[int, int], tuple[int, int] | None] = {}
        queue: deque[tuple[int, int]] = deque()
        for place in self._candidates(key):
            reached.setdefault(place, None)
            queue.append(place)
        while queue:
            place = queue.popleft()
            if place not in self._keys:
                path = [place]
                while (previous := reached[path[-1]]) is not None:
                    path.append(previous)
                return path[::-1]
            for target in self._candidates(self._keys[place]):
                if target not in reached:
                    reached[target] = place
                    queue.append(target)
        return None


def apply_writes(driver: Driver, writes: Iterable[SlotWrite]) -> None:
    """Applies the writes to the board in their order, one round trip each. After an error the
    board's table is of unknown state: `ConnectionTable.rewrite`.
    """
    for write in writes:
        if write.valid:
            driver.commit_key(
                ((write.key >> (64 * index)) & ((1 << 64) - 1) for index in range(KEY_WORDS)),
                slot=write.slot, way=write.way, valid=1, context=write.context)
        else:
            driver.write("table_commit", slot=write.slot, way=write.way)
