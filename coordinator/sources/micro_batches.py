"""Micro-batches of a Structured Streaming query: each becomes one transaction, numbered by the query.

Spark repeats a batch if its checkpoint has not recorded the end. Each transaction is stored with the identity of its
batch, so a repeated batch is recognised. A checkpoint that was replaced, restored or cleared, which Spark's batch
numbers alone would not reveal, is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.answers import not_of_this_spout
from coordinator.spouts.row_spout import RowSpout
from coordinator.spouts.run_so_far import FormerInput, InputChange
from coordinator.spouts.transactional import SpoutCoordinator
from state.errors import SourceError, TopologyError


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """One batch of a streaming query.

    Attributes:
        query_id: id of the query; it is kept in the checkpoint, and a new checkpoint has a new id.
        batch_id: the batch's number in the query, from 0.
        plan_digest: digest of the checkpoint's record of the batch: its content, and when that was planned.
    """

    query_id: str
    batch_id: int
    plan_digest: int

    @classmethod
    def from_plain(cls, plain: Any, topology_id: str) -> MicroBatch:
        """Restores a batch from `to_plain`.

        Raises:
            SourceError: the data is the metadata of another kind of spout.
        """
        match plain:
            case [str(query_id), int(batch_id), int(plan_digest)]:
                return cls(query_id, batch_id, plan_digest)
        raise not_of_this_spout(repr(plain), "a micro-batch", topology_id)

    def to_plain(self) -> list[Any]:
        """Returns the batch as plain data, to be stored."""
        return [self.query_id, self.batch_id, self.plan_digest]

    def __str__(self) -> str:
        return f"batch {self.batch_id} of streaming query {self.query_id}"


def words_of(metadata: Any) -> list[str]:
    """Returns the query and the batch of a transaction, in words.

    Raises:
        SourceError: the metadata is not that of a micro-batch.
    """
    return [str(MicroBatch.from_plain(metadata, ""))]


class MicroBatches(RowSpout):
    """Rows of the micro-batches that `writeStream.foreachBatch` passes to `exactly_once`.

    A timestamp becomes a datetime in UTC, a struct a dict, an array a list.

    Args:
        columns: names of the columns that become the fields of the tuples, in order.

    Raises:
        TopologyError: `columns` is not a list of different names.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        super().__init__(columns)
        self._coordinator: MicroBatchCoordinator | None = None

    def bound(self, coordinator: MicroBatchCoordinator) -> MicroBatches:
        """Returns the same spout for one run, with the caller's coordinator; used by `exactly_once`."""
        made = type(self)(self.columns)
        made._coordinator = coordinator  # noqa: SLF001 - its own class
        return made

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCoordinator:
        if self._coordinator is None:
            raise TopologyError(
                f"component {context.component_id!r} of topology {context.topology_id!r} reads micro-batches, which "
                "only a streaming query has: call exactly_once(topology), and give the function that it returns to "
                "writeStream.foreachBatch"
            )
        return self._coordinator

    def describe(self, metadata: Any) -> Sequence[str]:
        return words_of(metadata)

    def fingerprint(self) -> str:
        return fingerprint_of("?" if self._coordinator is None else self._coordinator.query_id)

    def __getstate__(self) -> dict[str, Any]:
        # executors read rows and cut nothing
        return {**self.__dict__, "_coordinator": None}


def fingerprint_of(query_id: str) -> str:
    """Returns the fingerprint of a topology that is bound to a query."""
    return f"structured streaming query {query_id}"


class MicroBatchCoordinator(SpoutCoordinator):
    """Makes a transaction of each batch that it accepts (driver).

    Args:
        query_id: the query the topology is bound to.
        topology_id: for messages.
        first_batch_id: the batch that becomes the first transaction of this query.
    """

    def __init__(self, query_id: str, topology_id: str, first_batch_id: int = 0) -> None:
        self.query_id = query_id
        self._topology_id = topology_id
        self._first_batch_id = first_batch_id
        self._last: MicroBatch | None = None
        self._last_txid = 0
        self._offered: MicroBatch | None = None

    def resume(self) -> None:
        last = self.run_so_far.last
        self._last_txid = self.run_so_far.last_txid
        self._last = None if last is None else MicroBatch.from_plain(last, self._topology_id)

    def txid_of(self, batch: MicroBatch, committed_txid: int) -> int:
        """Returns the txid of a batch; a new batch is cut when the run asks for its next transaction.

        Args:
            batch: the batch that Spark passes now.
            committed_txid: the last committed transaction.

        Returns:
            The txid; at or below `committed_txid` if there is nothing left to do.

        Raises:
            SourceError: the batch is neither the last one nor the one after it, so it must not be committed.
        """
        last = self._last
        if last is None or last.query_id != batch.query_id:
            self._expect(batch, self._first_batch_id, "no batch of it is committed")
        elif batch.batch_id == last.batch_id:
            if batch.plan_digest != last.plan_digest:
                raise self._replaced(batch, "it was planned again")
            return self._last_txid
        elif batch.batch_id < last.batch_id:
            raise self._replaced(batch, f"batch {last.batch_id} was already processed")
        elif self._last_txid > committed_txid:
            self._expect(batch, last.batch_id, f"batch {last.batch_id} is begun and not committed")
        else:
            self._expect(batch, last.batch_id + 1, f"batch {last.batch_id} is the last one committed")
        self._offered = batch
        return self._last_txid + 1

    def is_ready(self) -> bool:
        return self._offered is not None

    def initialize_transaction(self, txid: int, previous: Any) -> list[Any]:
        assert self._offered is not None  # is_ready has said so
        self._last, self._last_txid, self._offered = self._offered, txid, None
        return self._last.to_plain()

    def compare(self, former: FormerInput) -> InputChange:
        """Returns what may be skipped or repeated with another query: only the user knows where it begins to read."""
        if former.last is None or former.is_same:
            return InputChange()
        last = MicroBatch.from_plain(former.last, self._topology_id)
        if former.pending:
            return InputChange(impossible=(f"{last} is begun and not committed, and only that query can repeat it",))
        return InputChange(
            skipped=(f"whatever came after {last} and before where query {self.query_id} begins to read",),
            again=(f"whatever query {self.query_id} reads that was in batches up to {last}",),
        )

    def _expect(self, batch: MicroBatch, batch_id: int, known: str) -> None:
        if batch.batch_id == batch_id:
            return
        begin = (
            ""
            if self._last is not None and self._last.query_id == batch.query_id
            else f", or, if earlier batches are not meant for it, begin by exactly_once(..., "
            f"first_batch_id={batch.batch_id})"
        )
        raise SourceError(
            f"topology {self._topology_id!r} expects batch {batch_id} of streaming query {batch.query_id} and was "
            f"given batch {batch.batch_id}: {known}, so the batches in between were given to another sink, or the "
            f"server has lost them; restore the server from a copy of the right moment, or {self._ways_out()}{begin}"
        )

    def _replaced(self, batch: MicroBatch, story: str) -> SourceError:
        return SourceError(
            f"{batch} is not the batch of that number that topology {self._topology_id!r} has taken; put the "
            f"checkpoint back; {story}, so the query's checkpoint was restored from a copy or partly deleted, and what "
            "the batch holds may be counted already or may be new; put the checkpoint back as it was, or "
            f"{self._ways_out()}"
        )

    def _ways_out(self) -> str:
        return (
            f"start over by `txbatch drop {self._topology_id}` and a new checkpoint, or take another topology id and a "
            "new checkpoint"
        )
