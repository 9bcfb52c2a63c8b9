"""Decides when streams have entries for another transaction, and trims durable entries (driver)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from coordinated_bolt.components.context import TopologyContext
from coordinator.sources.redis_streams.stream_range import StreamRange, digest_of_entries
from coordinator.sources.redis_streams.stream_reader import BEGINNING, StreamFacts, StreamReader, id_order
from coordinator.spouts.committing import SpoutCommitter
from coordinator.spouts.partitioned import PartitionedCoordinator
from coordinator.spouts.run_so_far import FormerInput, InputChange
from state.attempt import TransactionAttempt
from state.errors import FailedException, SourceError
from state.printable import message_of

_LOG = logging.getLogger("txbatch.redis_streams")


class StreamCoordinator(PartitionedCoordinator):
    """The coordinator of `RedisStreams`: a stream is a partition.

    Args:
        reader: reads from the server.
        keys: keys of the streams.
        take: most entries of a stream in one transaction.
        context: has the topology's id.
        follows: whether the input has no end; otherwise it ends with the entries that are there when the run begins.
        starts_at_end: whether entries that were there before the first run are left out.
    """

    def __init__(
        self,
        reader: StreamReader,
        keys: Sequence[str],
        take: int,
        context: TopologyContext,
        *,
        follows: bool,
        starts_at_end: bool,
    ) -> None:
        self._reader, self._keys, self._take, self._topology_id = reader, keys, take, context.topology_id
        self._follows, self._starts_at_end = follows, starts_at_end
        self._ends: dict[str, StreamFacts] = {}

    def resume(self) -> None:
        self._ends = {key: self._reader.facts(key) for key in self._keys}

    def first_positions(self) -> Mapping[int, Any]:
        if not self._starts_at_end:
            return {}
        return {
            each: StreamRange(key, "", end.last_id, 0, 0, end.added, 0, end.last_id, end.added).to_plain()
            for each, (key, end) in enumerate(self._ends.items())
        }

    def number_of_partitions(self) -> int:
        return len(self._keys)

    def is_ready(self) -> bool:
        """Returns whether a stream has entries that no transaction under way will take."""
        if self._follows:
            self._ends = {key: self._reader.facts(key) for key in self._keys}
        ahead, lag = self.run_so_far.ahead, self.lag()
        return any(-(-lag[key] // self._take) > ahead for key in self._keys) or (
            ahead == 0 and not all(map(self._is_at_end, range(len(self._keys))))
        )

    def lag(self) -> dict[str, int]:
        """Returns stream -> about how many entries are not cut yet, at the last look; includes singly deleted ones."""
        found = {}
        for key, position in zip(self._keys, self.positions(), strict=True):
            end = self._ends[key]
            if position is None:
                found[key] = end.length
            else:
                found[key] = max(0, end.added - max(end.removed, position.added))
        return found

    def positions(self) -> list[StreamRange | None]:
        """Returns the range that was cut last from each stream, committed or not."""
        found = self.run_so_far.positions
        return [
            StreamRange.from_plain(found[partition], self._topology_id) if partition in found else None
            for partition in range(len(self._keys))
        ]

    def is_exhausted(self) -> bool:
        return not self._follows and all(map(self._is_at_end, range(len(self._keys))))

    def is_finite(self) -> bool:
        return not self._follows

    def progress(self) -> float | None:
        if self._follows:
            return None
        total = sum(end.length for end in self._ends.values())
        return 1.0 - sum(self.lag().values()) / total if total else None

    def compare(self, former: FormerInput) -> InputChange:
        """Returns how the entries that were read last from each stream, and the list of streams, have changed."""
        changed, impossible = [], []
        for partition, plain in sorted(former.positions.items()):
            cut = StreamRange.from_plain(plain, self._topology_id)
            key = self._keys[partition] if partition < len(self._keys) else None
            if key != cut.key:
                impossible.append(
                    f"stream {cut.key!r} was number {partition + 1} of the streams, where {key!r} is now: add streams "
                    "at the end, and take none away"
                )
                continue
            end = self._reader.facts(key).last_id
            if id_order(end) < id_order(cut.last_id):
                impossible.append(f"stream {key!r} was read up to {cut.last_id} and ends at {end}: it is another one")
            elif cut.count:
                entries = self._reader.between(key, cut.first_id, cut.last_id, cut.count + 1)
                if len(entries) >= cut.count and digest_of_entries(entries) != cut.digest:
                    changed.append(
                        f"stream {key!r} has other entries from {cut.first_id} to {cut.last_id} than were read"
                    )
        return InputChange(changed=tuple(changed), impossible=tuple(impossible))

    def _is_at_end(self, partition: int) -> bool:
        position = self.positions()[partition]
        last_id = BEGINNING if position is None else position.last_id
        end = self._ends[self._keys[partition]].last_id
        if self._follows:  # the look came after every cut: an earlier end is of another stream, as the emitter reports
            return last_id == end
        return id_order(last_id) >= id_order(end)


class StreamTrimmer(SpoutCommitter):
    """Trims each stream up to a durable position.

    Only the position of the last cut is known, whose transaction may not be committed. So the position is kept until
    that transaction is durable: streams are trimmed a little late, and never too far.

    Args:
        reader: sends commands to the server.
        coordinator: knows the positions.
        trims: whether streams are trimmed at all.
    """

    def __init__(self, reader: StreamReader, coordinator: StreamCoordinator, *, trims: bool) -> None:
        self._reader, self._coordinator, self._trims = reader, coordinator, trims
        self._waiting: dict[str, StreamRange] = {}
        self._kept: frozenset[str] = frozenset()

    def keep(self, batches: Collection[Any]) -> None:
        """Keeps the streams of quarantined batches until the batches are republished or dropped."""
        kept: set[str] = set()
        for positions in batches:
            for position in positions.values() if isinstance(positions, Mapping) else ():
                with suppress(SourceError):  # metadata of another kind of source
                    kept.add(StreamRange.from_plain(position, "").key)
        self._kept = frozenset(kept)

    def commit(self, attempt: TransactionAttempt) -> None:
        """Does nothing: entries are not acknowledged one by one."""

    def cleanup_before(self, txid: int) -> None:
        """Trims the streams up to positions that are durable now that a transaction is committed."""
        for position in self._coordinator.positions() if self._trims else ():
            if position is None:
                continue
            waiting = self._waiting.get(position.key)
            if position.txid <= txid:
                self._trim(position)
            elif waiting is None or waiting.txid <= txid:
                self._waiting[position.key] = position
                if waiting is not None:
                    self._trim(waiting)

    def _trim(self, durable: StreamRange) -> None:
        if durable.key in self._kept:
            return
        try:
            self._reader.trim(durable.key, durable.last_id)
        except FailedException as error:  # trimmed after a later commit
            _LOG.info("stream %r is not trimmed now: %s", durable.key, message_of(error))
