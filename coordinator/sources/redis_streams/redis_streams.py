"""Redis Streams as a source: a transaction takes a range of entries from each stream, by id."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinated_bolt.streams.records import RowsOf, RowT
from coordinator.option_checks import names_in, positive, refuse_unknown
from coordinator.sources.records.field_types import (
    VALUE_SHOWN,
    FieldType,
    FieldTypes,
    checked_fields,
    declared_types,
    from_text,
    record_class_of,
)
from coordinator.sources.records.record_format import BadRecordError, RecordFormat, with_unique_names
from coordinator.sources.records.record_output import OnBadRecord, RecordOutput
from coordinator.sources.redis_streams.stream_coordinator import StreamCoordinator, StreamTrimmer
from coordinator.sources.redis_streams.stream_emitter import StreamEmitter
from coordinator.sources.redis_streams.stream_range import words_of
from coordinator.sources.redis_streams.stream_reader import StreamReader
from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout, PartitionedCoordinator, PartitionedEmitter
from state.codec import unpack
from state.errors import TopologyError
from state.redis_client.address import check_address, from_environment, places_of, redact, secrets_in

URL_VARIABLE = "TXBATCH_STREAMS_URL"
ORIGIN_FIELDS = ("stream", "entry_id")
Start: TypeAlias = Literal["beginning", "end"]
OnTrimmed: TypeAlias = Literal["fail", "skip"]


class RedisStreams(IPartitionedTransactionalSpout, ICommitterTransactionalSpout, RowsOf[RowT]):
    """Entries of Redis Streams, in the order of each stream; read on the executors, exactly once in effect.

    Consumer groups are not used: the position is stored with the state. The server may be the one that holds the
    state, or another one. Redis >= 7.0 or Valkey >= 7.2.

    Args:
        streams: key of a stream, or a list of keys; more may be added at the end between runs.
        fields: name -> type of the wanted fields of an entry, converted like texts of CSV (see `CsvFields`):
            ``… | None`` if a field may be missing or empty, `bytes` as they are. A list of names takes them as text. Or
            a record class, see `record_class_of`.
        record_format: in place of `fields`: makes the tuple from the bytes of one field, `value_field`.
        value_field: with `record_format`: the field of an entry that holds the record.
        take: most entries of a stream in one transaction.
        url: the server, without a password. None takes ``TXBATCH_STREAMS_URL`` from the environment of the driver and
            of every executor, where a URL with a password belongs.
        follow: read for ever; otherwise the input ends with the last entry that is there when the run begins.
        start: where the first run begins, "beginning" or "end".
        trim: remove entries that are durable; for streams that nobody else reads.
        on_trimmed: what to do about entries that were removed before they were read: "fail" ends the run by name,
            "skip" counts them as "trimmed_entries". (A range that was read and not committed cannot be skipped.)
        origin_fields: which of "stream" and "entry_id" each tuple carries after the entry's fields.
        on_bad_record: "fail", "skip" or "dead_letter".

    Raises:
        TopologyError: a parameter cannot be used.
    """

    is_endless = True  # without follow, too: after a restart there may be more entries

    def __init__(
        self,
        streams: str | Sequence[str],
        *,
        fields: type[RowT] | FieldTypes | None = None,
        record_format: RecordFormat | None = None,
        value_field: str = "value",
        take: int = 1000,
        url: str | None = None,
        follow: bool = False,
        start: Start = "beginning",
        trim: bool = False,
        on_trimmed: OnTrimmed = "fail",
        origin_fields: Sequence[str] = (),
        on_bad_record: str = OnBadRecord.FAIL,
    ) -> None:
        self.keys = _checked_keys(streams)
        if (fields is None) == (record_format is None):
            raise TopologyError(
                "RedisStreams takes either fields or record_format; give one, to say how an entry becomes a tuple"
            )
        refuse_unknown("start", start, get_args(Start))
        refuse_unknown("on_trimmed", on_trimmed, get_args(OnTrimmed))
        if not isinstance(follow, bool):
            raise TopologyError(f"follow of RedisStreams is {follow!r}; give True or False")
        if url is not None:
            check_address(url)
            if secrets_in(url):
                raise TopologyError(
                    f"url of RedisStreams, {redact(url)}, has a password, which would be shipped with the topology: "
                    f"set {URL_VARIABLE} in the environment of the driver and of the executors instead"
                )
        self.take, self.url, self.follow = positive("RedisStreams", "take", take), url, follow
        self.start, self.trim, self.on_trimmed = start, trim, on_trimmed
        self.destruction = "its streams are trimmed" if trim else ""
        made = EntryRecord(value_field, record_format) if record_format is not None else EntryFields(fields)
        self.output = RecordOutput(
            made, offered=ORIGIN_FIELDS, origin_fields=origin_fields, on_bad_record=on_bad_record
        )
        self._coordinator: StreamCoordinator | None = None

    @property
    def input_places(self) -> tuple[str, ...]:
        """The streams, and their server as far as it is known here; see `shared_input`."""
        url = self.url or os.environ.get(URL_VARIABLE, "")
        place = "*" if not url else ",".join(f"{h}:{port}" for h, port in places_of(url)) or url.partition("://")[2]
        number = url.partition("://")[2].partition("?")[0].rpartition("@")[2].partition("/")[2] or "0"
        where = f"{place} {'*' if not url else number}".replace("/", " ").replace("localhost", "127.0.0.1")
        return tuple(f"stream {key!r} of {where}" for key in self.keys)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        self.output.declare(declarer)

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionedCoordinator:
        self._coordinator = StreamCoordinator(
            self._reader(),
            self.keys,
            self.take,
            context,
            follows=self.follow,
            starts_at_end=self.start == "end",
        )
        return self._coordinator

    def get_committer(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCommitter:
        assert self._coordinator is not None  # a run makes it first
        return StreamTrimmer(self._reader(), self._coordinator, trims=self.trim)

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionedEmitter:
        return StreamEmitter(
            self._reader(),
            self.keys,
            self.take,
            self.output,
            context,
            skips_trimmed=self.on_trimmed == "skip",
        )

    def describe(self, partition: int, metadata: Any) -> Sequence[str]:
        return words_of(metadata)

    def fingerprint(self) -> str:
        return f"redis streams {', '.join(map(repr, self.keys))}"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_coordinator": None}

    def _reader(self) -> StreamReader:
        url = self.url or from_environment(URL_VARIABLE)
        if not url:
            raise TopologyError(
                f"RedisStreams has no server here: give url=…, or set {URL_VARIABLE} in the environment of the driver "
                "and of every executor"
            )
        return StreamReader(url)


def _checked_keys(streams: str | Sequence[str]) -> tuple[str, ...]:
    keys = names_in(streams)
    if not all(keys) or not keys or len(set(keys)) < len(keys):
        raise TopologyError(f"streams={streams!r} of RedisStreams: give a key, or a list of different keys")
    return keys


class EntryFields(RecordFormat):
    """Fields of an entry by name, with types; an entry may have further fields.

    Args:
        fields: name -> type, as for `RedisStreams`.

    Raises:
        TopologyError: no field is given, or a type is unknown.
    """

    def __init__(self, fields: Any) -> None:
        self._types = {each.name.encode(): each for each in checked_fields("RedisStreams", fields)}
        self.record_class = record_class_of(fields)

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(each.name for each in self._types.values())

    @property
    def types(self) -> Mapping[str, Any]:
        return declared_types(self._types.values())

    def row(self, data: bytes) -> Sequence[Any]:
        """Makes the tuple of an entry, which is packed as alternating fields and values."""
        found = _by_name(data)
        return [_value(each, found.get(name)) for name, each in self._types.items()]


class EntryRecord(RecordFormat):
    """One field of an entry, whose bytes are a record in any format.

    Args:
        field: name of the field.
        record_format: format of its value.
    """

    def __init__(self, field: str, record_format: RecordFormat) -> None:
        self._field, self._format = field.encode(), record_format
        self.record_class = record_format.record_class

    @property
    def fields(self) -> tuple[str, ...]:
        return self._format.fields

    @property
    def types(self) -> Mapping[str, Any]:
        return self._format.types

    def row(self, data: bytes) -> Sequence[Any]:
        """Makes the tuple of an entry, which is packed as alternating fields and values."""
        value = _by_name(data).get(self._field)
        if value is None:
            raise BadRecordError(f"field {self._field.decode()!r} is missing")
        return self._format.row(value)


def _by_name(data: bytes) -> dict[bytes, bytes]:
    flat = unpack(data)
    return with_unique_names(list(zip(flat[::2], flat[1::2], strict=True)), "entry")


def _value(field: FieldType, raw: bytes | None) -> Any:
    if raw is None:
        if field.may_be_none and field.kind is not None:
            return None
        raise field.missing()
    if field.kind is bytes:
        return None if field.may_be_none and not raw else raw
    try:
        return from_text(field, raw.decode())
    except UnicodeDecodeError:
        raise BadRecordError(f"field {field.name!r} is {raw[:VALUE_SHOWN]!r}, which is not UTF-8 text") from None
