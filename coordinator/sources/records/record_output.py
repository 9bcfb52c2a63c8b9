"""Emits the records of a source: as tuples in a format, with their origin, and bad records by a policy."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import (
    DEAD_LETTER_FIELDS,
    DEAD_LETTER_STREAM,
    DEFAULT_STREAM,
    OutputFieldsDeclarer,
)
from coordinated_bolt.watching.metrics import BAD_RECORDS_COUNTER, REASON_COUNTER
from coordinator.option_checks import refuse_unknown
from coordinator.sources.records.record_format import BadRecordError, RecordFormat
from state.codec import CodecError
from state.errors import BadInputError, TopologyError
from state.printable import one_line, printable
from state.values.own_copy import own_copy

KINDS_MAX = 8
"""How many kinds of reasons one task reports for one attempt."""
_SHOWN_VALUE = re.compile(r"\b(is|holds) .*(?=, which| of type)|(?<=: ).*")
_DIGITS = re.compile(r"0x[0-9a-f]+|(?<!UTF-)\d+")


class OnBadRecord(StrEnum):
    """What to do with a record that is not in its format, or holds a value that cannot travel in a tuple."""

    FAIL = "fail"
    """The run stops with an error that names the record; nothing of its transaction is committed."""
    SKIP = "skip"
    """The record is left out, and counted as ``bad_records``."""
    DEAD_LETTER = "dead_letter"
    """The record is counted as ``bad_records``, and emitted on the stream ``dead_letters``, as place, record and
    reason. If no bolt subscribes to that stream, it is kept with the topology's dead letters, as place and record."""


class RecordOutput:
    """The emitting half of a source of records. A spec: part of the spout, shipped with it.

    Args:
        record_format: makes the tuples.
        origin_fields: which of the fields in `offered` each tuple carries after the format's fields.
        offered: names of all fields for the origin of a record that the source has, in order.
        on_bad_record: what to do with bad records.
        utf_8_hint: hint for the message about a record that is not UTF-8.

    Raises:
        TopologyError: an origin field is not offered or clashes with a field of the format, or the format or the policy
            is unknown.
    """

    def __init__(
        self,
        record_format: RecordFormat,
        *,
        offered: Sequence[str] = (),
        origin_fields: Sequence[str] = (),
        on_bad_record: str = OnBadRecord.FAIL,
        utf_8_hint: str = "",
    ) -> None:
        self._utf_8_hint = utf_8_hint
        refuse_unknown("on_bad_record", on_bad_record, OnBadRecord)
        if not isinstance(record_format, RecordFormat):
            raise TopologyError(
                f"the format of the records is {record_format!r}, which is not an object of a RecordFormat; give one "
                "such as TextLine() or JsonFields({'user': str})"
            )
        refuse_text(origin_fields)
        for name in origin_fields:
            if name not in offered:
                raise TopologyError(f"origin field {name!r} is unknown; this source offers {tuple(offered)}")
            if name in record_format.fields:
                raise TopologyError(f"origin field {name!r} is also a field of the format; rename that one")
        self.record_format = record_format
        self.origin_fields = tuple(origin_fields)
        self.on_bad_record = OnBadRecord(on_bad_record)
        self._places = tuple(tuple(offered).index(name) for name in origin_fields)

    def declare(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the source's streams (driver, once)."""
        declarer.declare((*self.record_format.fields, *self.origin_fields), types=self.record_format.types)
        if self.record_format.record_class is not None:
            declarer.record_classes[DEFAULT_STREAM] = self.record_format.record_class
        if self.on_bad_record is OnBadRecord.DEAD_LETTER:
            declarer.declare_stream(DEAD_LETTER_STREAM, DEAD_LETTER_FIELDS)

    def emit(
        self,
        collector: BatchOutputCollector,
        context: TopologyContext,
        records: Sequence[bytes],
        *,
        origin: Callable[[int], Sequence[Any]],
        place: Callable[[int], str],
    ) -> None:
        """Emits some records of one batch (executor). Keep portions small, about 1,000 records.

        Args:
            collector: collector of the batch.
            context: context of the emitter; it counts bad records, and knows whether a bolt subscribes to them.
            records: the records without their delimiters.
            origin: index in `records` -> the values of all fields in `offered`, in that order.
            place: index in `records` -> place of the record in words, such as "orders[3] at offset 1200".

        Raises:
            SourceError: a record is bad, and the policy is to fail.
        """
        columns = None if self._places else self.record_format.make_columns(records)
        if columns is not None and _sent(collector, columns):
            return
        rows = self.record_format.rows(records)
        try:
            bad = self._emit_good(collector, rows, origin)
        except CodecError:  # nothing was sent: a value cannot travel, so its record is bad
            rows = [self._travelling(row) for row in rows]
            bad = self._emit_good(collector, rows, origin)
        for index, error in bad:
            self._bad(collector, context, place(index), records[index], error)

    def emit_lines(self, collector: BatchOutputCollector, content: bytes) -> bool:
        """Emits the lines of one piece of content, if the format can do so at once; returns whether it did (executor).

        Args:
            collector: collector of the batch.
            content: the lines, separated by line feeds.
        """
        columns = None if self._places else self.record_format.split_columns(content)
        return columns is not None and _sent(collector, columns)

    def row(self, data: bytes) -> Sequence[Any]:
        """Makes the values of one tuple, without origin fields, for sources that emit records one by one (executor).

        Raises:
            BadRecordError: the record is not in its format, or holds a value that cannot travel.
        """
        row = self._travelling(self.record_format.row(data))
        if isinstance(row, BadRecordError):
            raise row
        return row

    def refusal(self, place: str, error: BadRecordError) -> BadInputError | None:
        """Returns the error with which a bad record ends the run; None if the policy is not to fail."""
        if self.on_bad_record is not OnBadRecord.FAIL:
            return None
        hint = self._utf_8_hint if "is not valid UTF-8" in str(error) else ""
        return BadInputError(
            f"the record at {place} is bad: {one_line(str(error))}{hint}; fix it, or give on_bad_record='skip' "
            "to leave out such records, or 'dead_letter' to keep them"
        )

    def _emit_good(
        self,
        collector: BatchOutputCollector,
        rows: Sequence[Sequence[Any] | BadRecordError],
        origin: Callable[[int], Sequence[Any]],
    ) -> list[tuple[int, BadRecordError]]:
        """Emits the rows, and returns (index, error) for the bad records among them.

        Raises:
            CodecError: a value cannot travel; then nothing was sent.
        """
        if not self._places and not any(issubclass(kind, BadRecordError) for kind in set(map(type, rows))):
            collector.emit_all(rows)  # type: ignore[arg-type] # the line above has found no errors
            return []
        good: list[Sequence[Any]] = []
        bad: list[tuple[int, BadRecordError]] = []
        for index, row in enumerate(rows):
            if isinstance(row, BadRecordError):
                bad.append((index, row))
            elif self._places:
                offered = origin(index)
                good.append([*row, *(offered[at] for at in self._places)])
            else:
                good.append(row)
        collector.emit_all(good)
        return bad

    def _travelling(self, row: Sequence[Any] | BadRecordError) -> Sequence[Any] | BadRecordError:
        """Returns the row, or an error if one of its values cannot travel in a tuple."""
        if isinstance(row, BadRecordError):
            return row
        for name, value in zip(self.record_format.fields, row, strict=False):  # the collector checks the width
            try:
                own_copy(value)
            except CodecError as error:
                return BadRecordError(f"field {name!r} {error}")
        return row

    def _bad(
        self, collector: BatchOutputCollector, context: TopologyContext, place: str, data: bytes, error: BadRecordError
    ) -> None:
        if refusal := self.refusal(place, error):
            raise refusal
        context.count(BAD_RECORDS_COUNTER)
        context.count(_reason_counter(str(error), context.counters))
        if self.on_bad_record is OnBadRecord.DEAD_LETTER:
            reason = printable(str(error))
            if context.subscribers.get(DEAD_LETTER_STREAM):
                collector.emit([place, data, reason], DEAD_LETTER_STREAM)
            else:
                collector.dead_letter({"place": place, "record": data}, reason)


def _reason_counter(reason: str, counters: Mapping[str, int]) -> str:
    """Returns the counter for a kind of reason: its text without values and numbers, which differ by record."""
    masked = _SHOWN_VALUE.sub(lambda found: f"{found[1]} …" if found[1] else "…", one_line(reason))
    name = REASON_COUNTER + one_line(_DIGITS.sub("…", masked), 160)
    is_known = name in counters or sum(each.startswith(REASON_COUNTER) for each in counters) < KINDS_MAX
    return name if is_known else f"{REASON_COUNTER}of other reasons"


def _sent(collector: BatchOutputCollector, columns: list[list[Any]]) -> bool:
    """Emits columns; returns False if a value cannot travel, so that records have to be emitted one by one."""
    try:
        collector.emit_batch(columns)
    except CodecError:  # nothing was sent
        return False
    return True


def refuse_text(origin_fields: Sequence[str]) -> None:
    """Refuses anything but a list of names (driver).

    Raises:
        TopologyError: the argument is a text, whose letters would be taken for names, or no collection.
    """
    if isinstance(origin_fields, str):
        raise TopologyError(f"origin fields {origin_fields!r} are a text; give a list of names: [{origin_fields!r}]")
    if not isinstance(origin_fields, Collection):
        raise TopologyError(f"origin fields are {origin_fields!r}; give a list of names")
