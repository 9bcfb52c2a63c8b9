"""Reads ranges of streams on the executors: cuts new ranges, or reads stored ones again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinator.sources.records.record_output import RecordOutput
from coordinator.sources.redis_streams.stream_range import StreamRange, digest_of_entries
from coordinator.sources.redis_streams.stream_reader import BEGINNING, Entry, StreamFacts, StreamReader, id_order
from coordinator.spouts.partitioned import PartitionedEmitter
from state.attempt import TransactionAttempt
from state.codec import pack
from state.errors import SourceError
from state.troubles import Trouble

EMITTED_ENTRIES = 1024
TRIMMED_COUNTER = "trimmed_entries"


class StreamEmitter(PartitionedEmitter):
    """Reads streams (executor; one per task and wave).

    Args:
        reader: reads from the server.
        keys: keys of the streams; a partition is an index in this list.
        take: most entries of a stream in one transaction.
        output: makes tuples.
        context: context of the task.
        skips_trimmed: whether entries that were trimmed unread are only counted, and do not end the run.
    """

    def __init__(
        self,
        reader: StreamReader,
        keys: Sequence[str],
        take: int,
        output: RecordOutput,
        context: TopologyContext,
        *,
        skips_trimmed: bool,
    ) -> None:
        self._reader, self._keys, self._take, self._output, self._context = reader, keys, take, output, context
        self._skips_trimmed = skips_trimmed

    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: BatchOutputCollector, partition: int, last: Any
    ) -> Any:
        key = self._keys[partition]
        before = None if last is None else StreamRange.from_plain(last, self._context.topology_id)
        position = BEGINNING if before is None else before.last_id
        facts, entries = self._reader.after(key, position, self._take)
        added = facts.removed if before is None else self._checked(before, facts)
        self._emit(collector, key, entries)
        if len(entries) < self._take:  # at the end, every entry ever added lies before the position
            added, last_id = facts.added, facts.last_id
        else:
            added, last_id = added + len(entries), entries[-1][0]
        first_id, digest = entries[0][0] if entries else "", digest_of_entries(entries)
        return StreamRange(
            key, first_id, last_id, len(entries), digest, added, attempt.txid, facts.last_id, facts.added
        ).to_plain()

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchOutputCollector, partition: int, metadata: Any
    ) -> None:
        cut = StreamRange.from_plain(metadata, self._context.topology_id)
        if not cut.count:
            return
        entries = self._reader.between(cut.key, cut.first_id, cut.last_id, cut.count + 1)
        if len(entries) != cut.count or digest_of_entries(entries) != cut.digest:
            raise SourceError(
                f"stream {cut.key!r} was trimmed or changed under the run; restore it, or start over by "
                f"`txbatch drop {self._context.topology_id}`; it has {len(entries)} of the {cut.count} entries from "
                f"{cut.first_id} to {cut.last_id} that transaction {attempt.txid} has read and not committed, or "
                "others in their place; let nothing trim it but this topology (trim=True)"
            ).about(Trouble.INPUT_GONE)
        self._emit(collector, cut.key, entries)

    def _checked(self, before: StreamRange, facts: StreamFacts) -> int:
        """Returns how many entries were ever added up to the position; makes sure that no later entry is gone."""
        if id_order(facts.last_id) < id_order(before.last_id):
            raise SourceError(
                f"stream {before.key!r} ends at {facts.last_id} and was read up to {before.last_id}: it was deleted, "
                "or is another one; restore it, or start over by "
                f"`txbatch drop {self._context.topology_id}`"
            ).about(Trouble.INPUT_GONE)
        another = _made_again(before, facts)
        if another:
            lost, so = facts.removed + before.seen_added - before.added, f"{another}, and what it held unread is gone"
        else:
            lost = facts.removed - before.added
            so = f"was trimmed after {before.last_id}: {lost} entries were removed before they were read"
            is_within = facts.first_id and id_order(facts.first_id) <= id_order(before.last_id)
            if lost <= 0 or is_within:  # then entries after the position were deleted singly
                return before.added
        if not self._skips_trimmed:
            raise SourceError(
                f"stream {before.key!r} {so}; keep more of the stream (MAXLEN, MINID of its producers), and restore "
                'it, continue without that by on_trimmed="skip", or start over by '
                f"`txbatch drop {self._context.topology_id}`"
            ).about(Trouble.INPUT_GONE)
        self._context.count(TRIMMED_COUNTER, lost)
        return facts.removed

    def _emit(self, collector: BatchOutputCollector, key: str, entries: list[Entry]) -> None:
        for start in range(0, len(entries), EMITTED_ENTRIES):
            portion = entries[start : start + EMITTED_ENTRIES]
            self._output.emit(
                collector,
                self._context,
                [pack(flat) for _, flat in portion],
                origin=lambda index, portion=portion: (key, portion[index][0]),  # type: ignore[misc] # bound at once
                place=lambda index, portion=portion: f"stream {key!r}, entry {portion[index][0]}",  # type: ignore[misc]
            )


def _made_again(before: StreamRange, facts: StreamFacts) -> str:
    """Returns why a stream cannot be the one that was read before; empty if it may be."""
    seen = f"had {before.seen_added} entries up to {before.seen_id}"
    if facts.added < before.seen_added:
        return f"{seen} and has had {facts.added} in all: it was deleted and made again"
    if facts.length and facts.removed < before.seen_added and id_order(facts.first_id) > id_order(before.seen_id):
        return (
            f"{seen} and begins at {facts.first_id} after {facts.removed} were removed: it was deleted and made again"
        )
    return ""
