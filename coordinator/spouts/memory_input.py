"""What a memory spout holds, and where in it a partition stands: how many rows were taken, never how many batches.

So rows that are appended, or another number of rows a transaction, skip nothing and repeat nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator.spouts.input_change import FormerInput, InputChange
from state.codec import digest64, pack
from state.errors import SourceError, TopologyError

Row = Sequence[Any]
Partitions = Mapping[int, Sequence[Row]] | Sequence[Sequence[Row]]


@dataclass(frozen=True, slots=True)
class MemoryPosition:
    """The batch that was cut last of a partition.

    Attributes:
        index: its first row.
        amount: its rows.
        empty_count: batches without a row since the last row was taken, this one included.
        digest: of every row up to the end of the batch.

    Source: backtype.storm.testing.MemoryTransactionalSpoutMeta, which has the first two.
    """

    index: int = 0
    amount: int = 0
    empty_count: int = 0
    digest: int = 0

    @property
    def end(self) -> int:
        """Where the next batch begins."""
        return self.index + self.amount

    @classmethod
    def from_plain(cls, plain: Any, partition: int, topology_id: str) -> MemoryPosition:
        """Restores what `to_plain` gave; None is the start.

        Raises:
            SourceError: it is something else.
        """
        match plain:
            case None:
                return cls()
            case [int(index), int(amount), int(empty_count), int(digest)] if min(index, amount, empty_count) >= 0:
                return cls(index, amount, empty_count, digest)
        former = "an earlier txbatch counted batches there, " if isinstance(plain, int) else ""
        raise SourceError(
            f"stored position {plain!r} of partition {partition} of topology {topology_id!r} is not one of a memory "
            f"spout: {former}or the topology was run with another kind of spout before; start over by `txbatch drop "
            f"{topology_id}`, or take another topology id"
        )

    def to_plain(self) -> list[int]:
        """The position as plain data, to be stored."""
        return [self.index, self.amount, self.empty_count, self.digest]


class MemoryInput:
    """The contents of a memory spout, checked.

    Args:
        spout: whose they are, for messages.
        partitions: partition -> rows, or a list of the rows of each.
        fields: names of a row's values.
        take: rows a transaction takes of each partition.
        empty_batches: transactions that follow when all is read.

    Raises:
        TopologyError: one of them cannot be used.
    """

    def __init__(
        self, spout: object, partitions: Partitions, fields: Sequence[str], take: int, empty_batches: int
    ) -> None:
        self.fields = checked_fields(spout, fields)
        self.take = _checked_count(spout, "take", take, least=1)
        self.empty_batches = _checked_count(spout, "empty_batches", empty_batches, least=0)
        if not isinstance(partitions, (Mapping, Sequence)):
            raise wrong(spout, "partitions", partitions, "a list of the rows of each, or a mapping")
        given = partitions if isinstance(partitions, Mapping) else dict(enumerate(partitions))
        for partition in given:
            _checked_count(spout, "a partition", partition, least=0)
        self.partitions = [
            checked_rows(spout, "a partition", self.fields, given.get(partition, ()))
            for partition in range(max(given, default=-1) + 1)
        ]

    def after(self, partition: int, last: MemoryPosition) -> MemoryPosition:
        """The batch that follows a position; one without rows at the end."""
        rows = self.partitions[partition][last.end : last.end + self.take]
        empty_count = 0 if rows else last.empty_count + 1
        return MemoryPosition(last.end, len(rows), empty_count, digest_of_rows(rows, last.digest))

    def rows(self, partition: int, position: MemoryPosition) -> list[list[Any]]:
        """Exactly the rows of a batch.

        Raises:
            SourceError: they are not there.
        """
        held = self.partitions[partition] if partition < len(self.partitions) else []
        if position.end > len(held):
            raise SourceError(_too_short(partition, len(held), position.end))
        return held[position.index : position.end]

    def positions(self, stored: Mapping[int, Any], topology_id: str) -> list[MemoryPosition]:
        """Where every partition stands.

        Raises:
            SourceError: a stored position cannot be one of this input.
        """
        found = [MemoryPosition.from_plain(stored.get(p), p, topology_id) for p in range(len(self.partitions))]
        for partition, position in enumerate(found):
            if position.end > len(self.partitions[partition]):
                story = _too_short(partition, len(self.partitions[partition]), position.end)
                raise SourceError(f"{story}, or start over by `txbatch drop {topology_id}`")
        return found

    def batches_left(self, positions: Sequence[MemoryPosition]) -> list[int]:
        """How many batches each partition is still read in, the empty ones included."""
        return [
            -(-(len(rows) - position.end) // self.take) + max(0, self.empty_batches - position.empty_count)
            for rows, position in zip(self.partitions, positions, strict=True)
        ]

    def progress(self, positions: Sequence[MemoryPosition]) -> float | None:
        """Which part of all batches is read, None if there are none."""
        total = sum(self.batches_left([MemoryPosition()] * len(self.partitions)))
        return max(0.0, 1.0 - sum(self.batches_left(positions)) / total) if total else None

    def compare(self, former: FormerInput, topology_id: str) -> InputChange:
        """What is different about the rows that were read; rows, partitions and `take` may change after them."""
        if former.is_same:
            return InputChange()
        changed, impossible = [], []
        for partition, plain in sorted(former.positions.items()):
            position = MemoryPosition.from_plain(plain, partition, topology_id)
            if partition >= len(self.partitions):
                changed.append(f"partition {partition} is no longer there; {position.end} rows of it were read")
                continue
            held = self.partitions[partition]
            if len(held) < position.end:
                impossible.append(_too_short(partition, len(held), position.end))
            elif digest_of_rows(held[: position.end]) != position.digest:
                changed.append(f"the first {position.end} rows of partition {partition} are not those that were read")
        return InputChange(changed=tuple(changed), impossible=tuple(impossible))

    def fingerprint(self) -> str:
        """What is held, in short."""
        counts = f"{len(self.partitions)} partitions, take {self.take}, {self.empty_batches} empty batches"
        return f"{counts}, digest {digest_of(self.partitions)}"


def digest_of_rows(rows: Sequence[Row], before: int = 0) -> int:
    """The digest of rows that follow others, whatever batches they were cut into."""
    digest = before
    for row in rows:
        digest = digest64(b"%016x" % digest, pack(list(row)))
    return digest


def digest_of(rows: Any) -> str:
    """A digest for a fingerprint."""
    return f"{digest64(pack(rows)):016x}"


def checked_fields(spout: object, fields: Sequence[str]) -> tuple[str, ...]:
    """The names of a row's values; a text alone is refused."""
    if isinstance(fields, str):
        raise TopologyError(
            f"fields of {type(spout).__name__} takes a list of names, not {fields!r}; write [{fields!r}]"
        )
    return tuple(fields)


def checked_rows(spout: object, what: str, fields: tuple[str, ...], rows: Sequence[Row]) -> list[list[Any]]:
    """The rows as lists, each with a value for every field."""
    if not isinstance(rows, Sequence):
        raise wrong(spout, what, rows, "a list of rows")
    for row in rows:
        if not isinstance(row, (list, tuple)) or len(row) != len(fields):
            raise TopologyError(
                f"row {row!r} of {type(spout).__name__} is not a list of {len(fields)} values, as its fields "
                f"{list(fields)} ask for"
            )
    return [list(row) for row in rows]


def wrong(spout: object, what: str, given: object, wanted: str) -> TopologyError:
    """The error for a parameter that cannot be used."""
    return TopologyError(f"{what} of {type(spout).__name__} is {given!r}; give {wanted}")


def _checked_count(spout: object, what: str, count: Any, *, least: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < least:
        raise TopologyError(f"{what} of {type(spout).__name__} is {count!r}; give an integer from {least}")
    return count


def _too_short(partition: int, row_count: int, end: int) -> str:
    return (
        f"partition {partition} of the memory spout has {row_count} rows, and was read up to row {end}: rows were "
        "taken out of it since; give them again"
    )
