"""The contents of a memory spout, and positions in it, which count rows and not batches.

So appended rows, or another number of rows per transaction, neither skip nor repeat any row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinated_bolt.streams.records import EmittedRow, row_of
from coordinator.option_checks import names_in
from coordinator.spouts.run_so_far import FormerInput, InputChange
from state.codec import CodecError, digest64, pack
from state.errors import SourceError, TopologyError
from state.troubles import Trouble
from state.values.whole import is_whole

Row = EmittedRow
Partitions = Mapping[int, Sequence[Row]] | Sequence[Sequence[Row]]


@dataclass(frozen=True, slots=True)
class MemoryPosition:
    """A partition's position: the last batch that was cut from it.

    Attributes:
        index: its first row.
        amount: its number of rows.
        empty_count: batches without rows since the last row was taken, including this one.
        digest: digest of every row up to the end of the batch.

    Source: backtype.storm.testing.MemoryTransactionalSpoutMeta, which has the first two.
    """

    index: int = 0
    amount: int = 0
    empty_count: int = 0
    digest: int = 0

    @property
    def end(self) -> int:
        """The index at which the next batch begins."""
        return self.index + self.amount

    @classmethod
    def from_plain(cls, plain: Any, partition: int, topology_id: str) -> MemoryPosition:
        """Restores a position from what `to_plain` returned; None is the start.

        Raises:
            SourceError: `plain` is not a position.
        """
        match plain:
            case None:
                return cls()
            case [int(index), int(amount), int(empty_count), int(digest)] if min(index, amount, empty_count) >= 0:
                return cls(index, amount, empty_count, digest)
        former = "an earlier txbatch counted batches there, or " if isinstance(plain, int) else ""
        raise SourceError(
            f"stored position {plain!r} of partition {partition} of topology {topology_id!r} is not a memory "
            f"spout's: {former}the topology was run with another kind of spout; start over with `txbatch drop "
            f"{topology_id}`, or choose another topology id"
        ).about(Trouble.OTHER_SOURCE)

    def to_plain(self) -> list[int]:
        """Returns the position as plain data, for storage."""
        return [self.index, self.amount, self.empty_count, self.digest]


def words_of(metadata: Any) -> list[str]:
    """Returns the rows that a transaction read from one partition, in words.

    Raises:
        SourceError: the metadata is not the position of a memory spout.
    """
    position = MemoryPosition.from_plain(metadata, 0, "")
    return [f"rows {position.index + 1:,} to {position.end:,}" if position.amount else "no rows"]


class MemoryInput:
    """The contents of a memory spout, checked.

    Args:
        spout: the spout, for messages.
        partitions: partition -> rows, or a list of the rows of each.
        fields: names of a row's values.
        take: rows that a transaction takes from each partition.
        empty_batches: number of empty transactions that follow when all rows are read.

    Raises:
        TopologyError: a parameter is invalid.
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
            checked_rows(spout, f"partition {partition}", self.fields, given.get(partition, ()))
            for partition in range(max(given, default=-1) + 1)
        ]

    def after(self, partition: int, last: MemoryPosition) -> MemoryPosition:
        """Returns the batch that follows a position; at the end it has no rows."""
        rows = self.partitions[partition][last.end : last.end + self.take]
        empty_count = 0 if rows else last.empty_count + 1
        return MemoryPosition(last.end, len(rows), empty_count, digest_of_rows(rows, last.digest))

    def rows(self, partition: int, position: MemoryPosition) -> list[list[Any]]:
        """Returns exactly the rows of a batch.

        Raises:
            SourceError: the partition no longer has all of them.
        """
        held = self.partitions[partition] if partition < len(self.partitions) else []
        if position.end > len(held):
            raise SourceError(_too_short(partition, len(held), position.end))
        return held[position.index : position.end]

    def positions(self, stored: Mapping[int, Any], topology_id: str) -> list[MemoryPosition]:
        """Returns the position of every partition.

        Raises:
            SourceError: a stored position does not fit this input.
        """
        found = [MemoryPosition.from_plain(stored.get(p), p, topology_id) for p in range(len(self.partitions))]
        for partition, position in enumerate(found):
            if position.end > len(self.partitions[partition]):
                story = _too_short(partition, len(self.partitions[partition]), position.end)
                raise SourceError(f"{story}, or start over with `txbatch drop {topology_id}`")
        return found

    def batches_left(self, positions: Sequence[MemoryPosition]) -> list[int]:
        """Returns how many batches are left in each partition, including the empty ones."""
        return [
            -(-(len(rows) - position.end) // self.take) + max(0, self.empty_batches - position.empty_count)
            for rows, position in zip(self.partitions, positions, strict=True)
        ]

    def progress(self, positions: Sequence[MemoryPosition]) -> float | None:
        """Returns the fraction of all batches that is read, None if there are none."""
        total = sum(self.batches_left([MemoryPosition()] * len(self.partitions)))
        return max(0.0, 1.0 - sum(self.batches_left(positions)) / total) if total else None

    def compare(self, former: FormerInput, topology_id: str) -> InputChange:
        """Compares the rows that were read; further rows, added partitions and another `take` are not changes."""
        if former.is_same:
            return InputChange()
        changed, impossible = [], []
        for partition, plain in sorted(former.positions.items()):
            position = MemoryPosition.from_plain(plain, partition, topology_id)
            if partition >= len(self.partitions):
                changed.append(f"partition {partition} was removed after {position.end} of its rows were read")
                continue
            held = self.partitions[partition]
            if len(held) < position.end:
                impossible.append(_too_short(partition, len(held), position.end))
            elif digest_of_rows(held[: position.end]) != position.digest:
                changed.append(
                    f"the first {position.end} rows of partition {partition} have changed since they were read"
                )
        return InputChange(changed=tuple(changed), impossible=tuple(impossible))

    def fingerprint(self) -> str:
        """Returns a short text that changes with the contents."""
        counts = f"{len(self.partitions)} partitions, take {self.take}, {self.empty_batches} empty batches"
        return f"{counts}, digest {digest_of(self.partitions)}"


def digest_of_rows(rows: Sequence[Sequence[Any]], before: int = 0) -> int:
    """Returns the digest of rows after others with digest `before`; it does not depend on the cut into batches."""
    digest = before
    for row in rows:
        digest = digest64(b"%016x" % digest, pack(list(row)))
    return digest


def digest_of(rows: Any) -> str:
    """Returns a digest for a fingerprint."""
    return f"{digest64(pack(rows)):016x}"


def checked_fields(spout: object, fields: Sequence[str]) -> tuple[str, ...]:
    """Returns the names of a row's values; refuses anything but a list of at least one name."""
    if isinstance(fields, str) or not names_in(fields):
        raise TopologyError(
            f"fields of {type(spout).__name__} takes a list of names, not {fields!r}; write [{fields!r}]"
        )
    return names_in(fields)


def checked_rows(spout: object, what: str, fields: tuple[str, ...], rows: Sequence[Row]) -> list[list[Any]]:
    """Returns the rows as lists; each must have one value for every field, and its values must be able to travel."""
    if not isinstance(rows, Sequence):
        raise wrong(spout, what, rows, "a list of rows")
    checked: list[list[Any]] = []
    for number, given in enumerate(rows):
        row = row_of(given, fields) or given
        if not isinstance(row, (list, tuple)) or len(row) != len(fields):
            raise TopologyError(
                f"row {row!r} of {type(spout).__name__} must be a list of {len(fields)} values, one for each of its "
                f"fields {list(fields)}"
            )
        for field, value in zip(fields, row, strict=True):
            try:
                pack(value)
            except CodecError as error:
                raise TopologyError(
                    f"row {number} of {what} of {type(spout).__name__} has {value!r:.200} as its {field!r}, which "
                    f"{error}; give plain data, and make other objects of it in a bolt"
                ) from None
        checked.append([*row])
    return checked


def wrong(spout: object, what: str, given: object, wanted: str) -> TopologyError:
    """Returns the error for an invalid parameter."""
    return TopologyError(f"{what} of {type(spout).__name__} is {given!r}; give {wanted}")


def _checked_count(spout: object, what: str, count: Any, *, least: int) -> int:
    if not is_whole(count, least):
        raise TopologyError(f"{what} of {type(spout).__name__} is {count!r}; give an integer of at least {least}")
    return count


def _too_short(partition: int, row_count: int, end: int) -> str:
    return (
        f"partition {partition} of the memory spout has {row_count} rows but was read up to row {end}: rows have been "
        "removed since; restore them"
    )
