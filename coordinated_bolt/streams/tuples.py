"""The tuples that bolts receive: values and their origin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coordinated_bolt.user_code import is_interruption
from state.attempt import TransactionAttempt
from state.printable import one_line


class TupleOrigin:
    """The common origin of all tuples of one attempt from one task on one stream.

    In a plain topology the attempt is None, and all tuples of the task on the stream share one origin. Metrics count
    them under its `name`.
    """

    __slots__ = ("attempt", "fields", "index", "name", "source_component", "source_task", "stream_id")

    def __init__(
        self,
        *,
        attempt: TransactionAttempt | None,
        source_component: str,
        source_task: int,
        stream_id: str,
        fields: tuple[str, ...],
    ) -> None:
        self.attempt = attempt
        self.source_component = source_component
        self.source_task = source_task
        self.stream_id = stream_id
        self.fields = fields
        self.name = f"{source_component}/{stream_id}"
        self.index: dict[str | int, int] = {name: position for position, name in enumerate(fields)}
        self.index.update((position, position) for position in range(len(fields)))

    def of(self, attempt: TransactionAttempt) -> TupleOrigin:
        """Returns the same origin for another attempt; cheaper than constructing one."""
        origin = TupleOrigin.__new__(TupleOrigin)
        origin.attempt = attempt
        origin.fields, origin.index = self.fields, self.index
        origin.source_component, origin.source_task = self.source_component, self.source_task
        origin.stream_id, origin.name = self.stream_id, self.name
        return origin

    def unknown(self, field: str | int) -> KeyError:
        """Returns the error about a field that the stream does not have."""
        return KeyError(
            f"stream {self.stream_id!r} of {self.source_component!r} has no field {field!r}; it has {self.fields}"
        )


class ReceivedTuples:
    """The base of what a bolt receives from one task on one stream: `Tuple` and `TupleBatch`.

    Attributes:
        origin: the attempt, sender and stream; the properties below read it.
    """

    __slots__ = ("origin",)

    origin: TupleOrigin

    @property
    def attempt(self) -> TransactionAttempt:
        """The attempt it belongs to.

        Raises:
            AttributeError: this is a plain topology, where tuples have no attempt.
        """
        attempt = self.origin.attempt
        if attempt is None:
            raise AttributeError(
                "a tuple of a plain topology has no attempt; use a TransactionalTopologyBuilder for transactions, or a "
                "BatchSubtopologyBuilder for batches"
            )
        return attempt

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the values."""
        return self.origin.fields

    @property
    def source_component(self) -> str:
        """Id of the component that emitted it."""
        return self.origin.source_component

    @property
    def source_task(self) -> int:
        """Id of the task that emitted it."""
        return self.origin.source_task

    @property
    def stream_id(self) -> str:
        """Stream on which it was emitted."""
        return self.origin.stream_id


class Tuple(ReceivedTuples):
    """One tuple as a bolt sees it; only the framework makes it.

    ``tup["word"]`` and ``tup[0]`` read a value by field name or position. A bolt may keep a tuple.

    Attributes:
        values: the values, in the order of the stream's fields.
    """

    __slots__ = ("values",)

    def __init__(self, values: list[Any], origin: TupleOrigin) -> None:
        self.values = values
        self.origin = origin

    def __getitem__(self, field: str | int) -> Any:
        try:
            return self.values[self.origin.index[field]]
        except KeyError:
            raise self.origin.unknown(field) from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        pairs = ", ".join(f"{name}={value!r}" for name, value in zip(self.fields, self.values, strict=False))
        return f"Tuple({self.source_component}/{self.stream_id}: {pairs})"


def shortened(received: ReceivedTuples, limit: int = 300) -> str:
    """Returns a tuple or batch as one printable line for a message, even if the repr of a value raises."""
    return cut(received, limit, "tuple")


def cut(value: object, limit: int = 300, what: str = "value") -> str:
    """Returns a value as one printable line for a message, cut to `limit` characters."""
    try:
        text = repr(value)
    except BaseException as error:  # a value's own repr may raise anything
        if is_interruption(error):
            raise
        text = f"<{what} whose repr raised {type(error).__name__}>"
    return one_line(text, limit)
