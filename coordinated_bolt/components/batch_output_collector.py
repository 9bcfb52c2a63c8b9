"""The collector with which a bolt or an emitter emits tuples, within one attempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinated_bolt.streams.records import EmittedRow
from coordinated_bolt.streams.tuples import Tuple


class BatchOutputCollector(Protocol):
    """Emits the tuples of a bolt or emitter within one attempt.

    Source: backtype.storm.coordination.BatchOutputCollector.
    """

    def emit(self, values: EmittedRow, stream_id: str = DEFAULT_STREAM) -> list[int]:
        """Sends one tuple with its present values; returns the task ids that receive it.

        Raises:
            ValueError: the tuple does not fit the stream, or is a mapping or set, which has no order.
            CodecError: a value cannot travel; the message lists the types that can.
        """

    def emit_all(self, rows: Iterable[EmittedRow], stream_id: str = DEFAULT_STREAM) -> None:
        """Sends many tuples; like calling `emit` for each, but several times faster."""

    def emit_batch(self, batch: Any, stream_id: str = DEFAULT_STREAM) -> None:
        """Sends many tuples, given as columns: the same tuples to the same tasks as calling `emit` for each row.

        The cheapest way to emit many tuples: checks, hashes and copies take one call per column. The receiver may be
        any bolt; one with `execute_batch` gets the columns.

        Args:
            batch: one column for each field of the stream, in the order of the fields or, in a mapping, by name; all of
                one length. A column is a list or another iterable with an order, such as the keys of a mapping; arrays
                of pyarrow and NumPy become lists of Python's values. Alternatively, a table or record batch of pyarrow,
                or a `TupleBatch` to pass on.
            stream_id: the stream.

        Raises:
            ValueError: the columns do not fit the stream, or are not of one length.
            CodecError: a value cannot travel; nothing is sent then.
        """

    def emit_direct(self, task_id: int, values: EmittedRow, stream_id: str = DEFAULT_STREAM) -> None:
        """Sends one tuple on a direct stream to one task of a subscriber."""

    def dead_letter(self, tup: Tuple | EmittedRow | Mapping[str, Any], reason: str) -> None:
        """Keeps a tuple that cannot be processed; it is stored with its transaction, exactly once.

        The tuple counts as processed: nothing else happens to it, and the attempt continues. If the attempt fails, the
        letter is discarded. See docs/dead-letters.md.

        Args:
            tup: the tuple that `execute` received, or one of a batch, such as ``batch[3]``; for something never
                emitted, such as an emitter's bad record, a mapping of field names to values.
            reason: the reason, as a sentence; cut after 1,000 characters.

        Raises:
            BadInputError: the letter, or the number of letters, exceeds a limit; see
                `TransactionalTopologyBuilder.set_dead_letters`. The attempt fails even if the bolt handles this.
            CodecError: a value cannot be stored.
            TopologyError: the bolt runs in a plain topology, whose tuples have no transaction.
        """
