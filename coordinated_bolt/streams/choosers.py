"""Choosers: a grouping's choices for the tuples of one attempt from one task.

A chooser may keep counts and take turns, because every attempt and emitting task gets its own. Its random draws come
from a given seed, and its hashes depend on content, unlike Python's salted ones, so a recomputed stage chooses the
same again. Values that Python considers equal hash alike; see `canonical`.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any
from zlib import crc32

from coordinated_bolt.columns import Row, Rows, column_of, taken
from coordinated_bolt.streams.canonical import canonical_bytes
from state.codec import digest64
from state.values.own_copy import own_copy


def stable_hash(values: Sequence[Any]) -> int:
    """Returns a 32-bit content hash, equal for equal values in every process and on every machine."""
    return crc32(canonical_bytes(values))


class Chooser(ABC):
    """Chooses targets for the tuples of one attempt from one task; targets are positions 0..n-1."""

    @abstractmethod
    def choose(self, row: Row) -> Sequence[int]:
        """Returns the target positions of one tuple."""

    def fixed(self) -> Sequence[int] | None:
        """Returns the target positions of every tuple if they are always the same, else None."""
        return None

    def split(self, rows: Rows) -> dict[int, Rows]:
        """Returns target position -> its tuples; the same as choosing row by row, for lists and columns alike."""
        places: dict[int, list[int]] = {}
        for place, row in enumerate(rows):
            for target in self.choose(row):
                places.setdefault(target, []).append(place)
        return {target: taken(rows, chosen) for target, chosen in places.items()}


class FixedChooser(Chooser):
    """Chooses the same target positions for every tuple."""

    def __init__(self, targets: Sequence[int]) -> None:
        self._targets = targets

    def choose(self, row: Row) -> Sequence[int]:
        return self._targets

    def fixed(self) -> Sequence[int]:
        return self._targets

    def split(self, rows: Rows) -> dict[int, Rows]:
        return dict.fromkeys(self._targets, rows) if rows else {}


class ShuffleChooser(Chooser):
    """Chooses the targets in turn, in an order drawn from the seed.

    Args:
        targets: distinct positions, at least one.
        seed: determines the order.
    """

    def __init__(self, targets: Sequence[int], seed: int) -> None:
        order = list(targets)
        if len(order) > 1:  # seeding a generator costs more than a small attempt
            random.Random(seed).shuffle(order)
        self._turns = [(target,) for target in order]
        self._next = 0

    def choose(self, row: Row) -> Sequence[int]:
        turn = self._turns[self._next]
        self._next = (self._next + 1) % len(self._turns)
        return turn

    def fixed(self) -> Sequence[int] | None:
        return self._turns[0] if len(self._turns) == 1 else None

    def split(self, rows: Rows) -> dict[int, Rows]:
        count = len(self._turns)
        shares: dict[int, Rows] = {
            self._turns[(self._next + offset) % count][0]: rows[offset::count]
            for offset in range(min(count, len(rows)))
        }
        self._next = (self._next + len(rows)) % count
        return shares


class FieldsChooser(Chooser):
    """Chooses the same target for equal values of the key fields.

    Args:
        target_count: number of targets.
        positions: the positions of the key fields in a row.
    """

    def __init__(self, target_count: int, positions: list[int]) -> None:
        self._count = target_count
        self._positions = positions

    def choose(self, row: Row) -> Sequence[int]:
        return (stable_hash([row[position] for position in self._positions]) % self._count,)

    def split(self, rows: Rows) -> dict[int, Rows]:
        if self._count == 1:
            return {0: rows} if rows else {}
        count, keys = self._count, [column_of(rows, position) for position in self._positions]
        codes = _hashes(keys[0]) if len(keys) == 1 else map(stable_hash, zip(*keys, strict=True))
        places: list[list[int]] = [[] for _ in range(count)]
        for place, code in enumerate(codes):
            places[code % count].append(place)
        return {target: taken(rows, chosen) for target, chosen in enumerate(places) if chosen}


class PartialKeyChooser(Chooser):
    """Chooses, from the two candidates of each key, the one chosen less often so far.

    The candidates depend on the key alone, so every emitter has the same two.

    Args:
        target_count: number of targets.
        positions: the positions of the key fields in a row.
    """

    def __init__(self, target_count: int, positions: list[int]) -> None:
        self._positions = positions
        self._used = [0] * target_count

    def choose(self, row: Row) -> Sequence[int]:
        first, second = self._candidates([row[position] for position in self._positions])
        chosen = first if self._used[first] <= self._used[second] else second
        self._used[chosen] += 1
        return (chosen,)

    def _candidates(self, key: list[Any]) -> tuple[int, int]:
        count = len(self._used)
        if count == 1:
            return 0, 0
        # Two independent hashes: the halves of a 64-bit digest. One CRC with two start values would not do,
        # because for keys of equal length the two hashes would differ by a constant.
        one, other = divmod(digest64(canonical_bytes(key)), 1 << 32)
        first, second = one % count, other % (count - 1)
        return first, second + (second >= first)


class CustomChooser(Chooser):
    """Lets user code choose, and accepts only valid positions.

    Args:
        target_count: number of targets.
        choose_tasks: the user's function, from values to positions.
        name: the grouping's name, for messages.
    """

    def __init__(self, target_count: int, choose_tasks: Callable[[tuple[Any, ...]], Any], name: str) -> None:
        self._count = target_count
        self._choose_tasks = choose_tasks
        self._name = name

    def choose(self, row: Row) -> Sequence[int]:
        chosen = self._choose_tasks(tuple(map(own_copy, row)))  # copies, so it may change them
        if (
            not isinstance(chosen, Sequence)
            or isinstance(chosen, (str, bytes))
            or not all(_is_position(position, self._count) for position in chosen)
        ):
            raise ValueError(
                f"choose_tasks of {self._name} returned {chosen!r} for {row!r}; return a list of positions, "
                f"each an integer from 0 to {self._count - 1}"
            )
        return list(map(index, chosen))


def _is_position(position: Any, count: int) -> bool:
    """Returns whether a value is an integer in range, NumPy integers included, and not a bool."""
    if type(position) is not int and (type(position) is bool or not hasattr(type(position), "__index__")):
        return False
    return 0 <= index(position) < count


def _hashes(values: list[Any]) -> Iterable[int]:
    """Returns `stable_hash` of each value; columns of plain text, the most common, run at the speed of C."""
    kinds = {*map(type, values)}
    try:
        if kinds == {str}:
            return list(map(crc32, map(str.encode, values)))
        if kinds == {int}:
            return [crc32(b"%d" % value) for value in values]
    except ValueError:
        pass  # a lone surrogate, or an integer of thousands of digits
    return [stable_hash((value,)) for value in values]
