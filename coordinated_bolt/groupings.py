"""Stream groupings: which tasks of a subscriber a tuple goes to.

A grouping is a spec that is shipped; per attempt and emitting task it makes a `Chooser`. Whatever a
chooser draws at random comes from a seed made of attempt and task, so a recomputed stage chooses the
same again. Hashes are content hashes, never Python's salted ones.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from state.codec import pack
from state.errors import TopologyError

Row = list[Any]


def stable_hash(values: Sequence[Any]) -> int:
    """32-bit hash of values by content, equal in every process and on every machine."""
    if len(values) == 1 and type(values[0]) is str:
        return crc32(values[0].encode("utf-8", "surrogatepass"))
    return crc32(pack(list(values)))


class Chooser(ABC):
    """Chooses targets for the tuples of one attempt from one task; targets are positions 0..n-1."""

    @abstractmethod
    def choose(self, row: Row) -> Sequence[int]:
        """Target positions of one tuple."""

    def split(self, rows: list[Row]) -> dict[int, list[Row]]:
        """Target position -> its tuples, equal to choosing row by row."""
        shares: dict[int, list[Row]] = {}
        for row in rows:
            for target in self.choose(row):
                shares.setdefault(target, []).append(row)
        return shares


class Grouping(ABC):
    """The spec of a grouping, made by the topology builder."""

    def check(self, fields: tuple[str, ...], *, direct: bool) -> None:
        """Refuses a stream this grouping cannot be used on.

        Raises:
            TopologyError: with the reason, to be put behind the subscription's description.
        """
        if direct:
            raise TopologyError("the stream is direct and takes only direct_grouping")

    @abstractmethod
    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        """A chooser for one attempt and one emitting task."""


@dataclass(frozen=True, slots=True)
class ShuffleGrouping(Grouping):
    """Exactly even per emitter: round robin over a shuffled order."""

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return _ShuffleChooser(target_count, seed)


@dataclass(frozen=True, slots=True)
class NoneGrouping(ShuffleGrouping):
    """The user does not care; the same as shuffle."""


@dataclass(frozen=True, slots=True)
class FieldsGrouping(Grouping):
    """Equal values of the named fields go to the same task.

    Attributes:
        names: the fields that are compared.
    """

    names: tuple[str, ...]

    def check(self, fields: tuple[str, ...], *, direct: bool) -> None:
        Grouping.check(self, fields, direct=direct)
        if not self.names:
            raise TopologyError("fields_grouping needs at least one field")
        for name in self.names:
            if name not in fields:
                raise TopologyError(f"there is no field {name!r}; the stream has {fields}")

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return _FieldsChooser(target_count, [fields.index(name) for name in self.names])


@dataclass(frozen=True, slots=True)
class AllGrouping(Grouping):
    """Every task receives a copy."""

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return _FixedChooser(range(target_count))


@dataclass(frozen=True, slots=True)
class GlobalGrouping(Grouping):
    """Everything goes to the task with the lowest id."""

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return _FixedChooser(range(1))


@dataclass(frozen=True, slots=True)
class DirectGrouping(Grouping):
    """The emitter names the task, by `emit_direct` on a direct stream."""

    def check(self, fields: tuple[str, ...], *, direct: bool) -> None:
        if not direct:
            raise TopologyError("direct_grouping needs a stream declared with direct=True")

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return _FixedChooser(())


class _FixedChooser(Chooser):
    def __init__(self, targets: Sequence[int]) -> None:
        self._targets = targets

    def choose(self, row: Row) -> Sequence[int]:
        return self._targets


class _ShuffleChooser(Chooser):
    def __init__(self, target_count: int, seed: int) -> None:
        order = list(range(target_count))
        random.Random(seed).shuffle(order)
        self._turns = [(target,) for target in order]
        self._next = 0

    def choose(self, row: Row) -> Sequence[int]:
        turn = self._turns[self._next]
        self._next = (self._next + 1) % len(self._turns)
        return turn

    def split(self, rows: list[Row]) -> dict[int, list[Row]]:
        count = len(self._turns)
        shares = {
            self._turns[(self._next + offset) % count][0]: rows[offset::count]
            for offset in range(min(count, len(rows)))
        }
        self._next = (self._next + len(rows)) % count
        return shares


class _FieldsChooser(Chooser):
    def __init__(self, target_count: int, positions: list[int]) -> None:
        self._count = target_count
        self._positions = positions

    def choose(self, row: Row) -> Sequence[int]:
        return (stable_hash([row[position] for position in self._positions]) % self._count,)

    def split(self, rows: list[Row]) -> dict[int, list[Row]]:
        if self._count == 1:
            return {0: rows} if rows else {}
        if len(self._positions) > 1:
            return Chooser.split(self, rows)
        position, count = self._positions[0], self._count
        parts: list[list[Row]] = [[] for _ in range(count)]
        for row in rows:
            value = row[position]
            code = crc32(value.encode("utf-8", "surrogatepass")) if type(value) is str else stable_hash((value,))
            parts[code % count].append(row)
        return {target: part for target, part in enumerate(parts) if part}
