"""Declarations of named streams and the fields of their tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

from coordinated_bolt.streams.records import field_types, is_record_class, record_fields
from state.errors import TopologyError
from state.keys import check_name

DEFAULT_STREAM = "default"
DEAD_LETTER_STREAM = "dead_letters"
DEAD_LETTER_FIELDS = ("place", "record", "reason")
"""The fields that sources emit for bad records, if a bolt subscribes to them."""
UNTYPED: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """One stream that a component declares.

    Attributes:
        stream_id: its name, unique within the component.
        fields: the names of a tuple's values, in order.
        direct: whether the emitter names the receiving task (`emit_direct`).
        stands_for: component and stream that tuples show as their origin, for republished dead letters; else None.
        types: field -> declared type, if there is one; the short form compares them with its states.
    """

    stream_id: str
    fields: tuple[str, ...]
    direct: bool = False
    stands_for: tuple[str, str] | None = None
    types: Mapping[str, Any] = field(default_factory=dict, compare=False)


class OutputFieldsDeclarer:
    """Collects the streams of one component while the topology is built (driver, once).

    Attributes:
        streams: stream id -> stream.
        record_classes: stream id -> the record class of its rows, if there is one, whose fields the stream has; it
            stays on the driver.

    Source: backtype.storm.topology.OutputFieldsDeclarer.
    """

    def __init__(self, component_id: str) -> None:
        self._component_id = component_id
        self.streams: dict[str, StreamSpec] = {}
        self.record_classes: dict[str, type[Any]] = {}

    def declare(
        self, fields: Sequence[str] | type[Any], *, direct: bool = False, types: Mapping[str, Any] = UNTYPED
    ) -> None:
        """Declares the default stream."""
        self.declare_stream(DEFAULT_STREAM, fields, direct=direct, types=types)

    def declare_stream(
        self,
        stream_id: str,
        fields: Sequence[str] | type[Any],
        *,
        direct: bool = False,
        types: Mapping[str, Any] = UNTYPED,
    ) -> None:
        """Declares a named stream.

        Args:
            stream_id: its name.
            fields: names of a tuple's values, in order; or a NamedTuple or dataclass with these fields, whose objects
                may then be emitted.
            direct: whether the emitter names the receiving task.
            types: field -> type, perhaps ``| None``, for fields whose values always have it; not needed for a record
                class.

        Raises:
            TopologyError: the name is invalid, the stream is declared twice, or the fields are not a sequence of
                distinct names.
        """
        check_name(f"stream of component {self._component_id!r}", stream_id)
        if stream_id in self.streams:
            raise TopologyError(f"component {self._component_id!r} declares stream {stream_id!r} twice")
        if is_record_class(fields):
            self.record_classes[stream_id] = record_class = cast("type[Any]", fields)
            types, fields = field_types(record_class), record_fields(record_class)
        if isinstance(fields, (str, type)) or not all(isinstance(name, str) and name for name in fields):
            raise TopologyError(
                f"component {self._component_id!r} declares fields {fields!r} on stream {stream_id!r}; "
                'give a sequence of names, as in ("word", "count")'
            )
        if len(set(fields)) != len(fields):
            raise TopologyError(f"component {self._component_id!r} names a field twice in {tuple(fields)!r}; keep one")
        self.streams[stream_id] = StreamSpec(stream_id, tuple(fields), direct, types={**types})
