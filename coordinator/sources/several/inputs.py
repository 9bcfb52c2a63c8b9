"""Several sources as one: a transaction takes a part of each, and each source has its own stream.

A transaction's metadata holds the last part of every source, with the txid that the part was cut for. A source that had
nothing for this transaction keeps its earlier part, so that its next part begins where that one ended. Within a
transaction, sources are in the order in which they were given, in every run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.component import declared_by, streams_of
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import DEFAULT_STREAM, OutputFieldsDeclarer
from coordinated_bolt.streams.records import EmittedRow
from coordinated_bolt.streams.tuples import Tuple
from coordinator.sources.several.inputs_coordinator import InputsCoordinator, close_all, cut_for, newest
from coordinator.sources.several.partitioned_input import as_whole
from coordinator.sources.several.shared_input import places_of, refuse_shared
from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.opaque import IOpaquePartitionedTransactionalSpout
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from state.attempt import TransactionAttempt
from state.errors import SourceError, TopologyError

Given = ITransactionalSpout | IPartitionedTransactionalSpout
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class First:
    """A source of `Inputs` that is read to its end before the others begin; made by `first`."""

    source: Given


def first(source: Given) -> First:
    """Makes `Inputs` read a source to its end before the others: ``Inputs(customers=first(CsvFiles(…)), orders=…)``.

    The others begin in the transaction after the one that reached the end, whose metadata holds that position. So the
    state that a committer keeps of the source is complete by then, however the input is cut. If several sources are
    first, a transaction takes a part of each. If the source has grown since an earlier run, new rows are read first.

    Args:
        source: a source that ends by itself: files, `Batches`, tables, a Kafka topic that is read to an end.

    Raises:
        TopologyError: by `Inputs`, if the source is followed or never ends by itself, as Redis Streams.
    """
    return First(source)


class Inputs(ITransactionalSpout, ICommitterTransactionalSpout):
    """Reads several sources in one topology: ``Inputs(orders=CsvFiles(…), returns=JsonLines(…))``.

    A source emits its tuples on the stream of its name, ``.shuffle_grouping("inputs", "orders")``, and its bad records,
    if they are emitted, on ``"orders_dead_letters"``. A transaction takes a part of every source that is ready, and a
    source that has ended does not end the others. Between runs, sources may be added or left out if that is accepted.

    Args:
        sources: name -> source: files, tables, topics, `RedisStreams`, or your own. A source given as `first` is read
            to its end before the others begin.

    Raises:
        TopologyError: no source is given, one is opaque or not a transactional spout, or one destroys the input of
            another.
    """

    def __init__(self, **sources: Given | First) -> None:
        if not sources:
            raise TopologyError("Inputs has no source; name some, as in Inputs(orders=CsvFiles(...))")
        self.first = frozenset(name for name, each in sources.items() if isinstance(each, First))
        given = {name: each.source if isinstance(each, First) else each for name, each in sources.items()}
        for name in sorted(self.first):
            _refuse_endless(name, given[name])
        self.sources = {name: _as_source(name, source) for name, source in given.items()}
        refuse_shared(self.sources)

    @property
    def destruction(self) -> str:  # type: ignore[override] # depends on the sources
        """How its sources destroy their input; empty if none does."""
        return "; ".join(filter(None, (kind.destruction for kind in self._kinds().values())))

    def recut(self, is_coarser: bool) -> Inputs:
        """Returns the same input, with larger parts of all sources, or smaller ones of the last source (for proofs)."""
        other, names = copy(self), [name for name, source in self.sources.items() if hasattr(source, "recut")]
        chosen = names if is_coarser else names[-1:]
        cut = {name: cast(Any, self.sources[name]).recut(is_coarser) for name in chosen}
        other.sources = {**self.sources, **cut}
        return other

    @property
    def first_streams(self) -> frozenset[str]:
        """The streams of the sources that are read before the others."""
        named = {name: streams_of(self.sources[name], name) for name in self.first}
        return frozenset(stream_of(name, each) for name, streams in named.items() for each in streams)

    @property
    def input_places(self) -> tuple[str, ...]:
        """The places of the input of all sources; see `shared_input`."""
        return tuple(place for source in self.sources.values() for place in places_of(source))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        for name, source in self.sources.items():
            declared = declared_by(source, name)
            for stream in declared.streams.values():
                declarer.declare_stream(
                    stream_of(name, stream.stream_id), stream.fields, direct=stream.direct, types=stream.types
                )
            for stream_id, record_class in declared.record_classes.items():
                declarer.record_classes[stream_of(name, stream_id)] = record_class

    def get_component_configuration(self) -> Mapping[str, Any]:
        return {
            key: value for each in self.sources.values() for key, value in each.get_component_configuration().items()
        }

    def find_input(self) -> None:
        for kind in self._kinds().values():
            kind.find_input()

    def fingerprint(self) -> str:
        return json.dumps({name: source.fingerprint() for name, source in self.sources.items()}, ensure_ascii=False)

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCoordinator:
        coordinators = _made_all(self._kinds(), lambda kind: kind.coordinator(conf, context))
        if endless := sorted(name for name in self.first if not coordinators[name].is_finite()):
            close_all(coordinators.values())
            raise TopologyError(_endless(endless[0]))
        fingerprints = {name: each.fingerprint() for name, each in self.sources.items()}
        return InputsCoordinator(coordinators, fingerprints, self.first)

    def get_committer(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCommitter:
        committers = _made_all(self._kinds(), lambda kind: kind.committer(conf, context))
        return InputsCommitter({name: each for name, each in committers.items() if each is not None})

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutEmitter:
        emitters: dict[str, Any] = {}
        for name, source in self.sources.items():
            heard = {each: context.subscribers.get(stream_of(name, each), ()) for each in streams_of(source, name)}
            emitters[name] = source.get_emitter(conf, replace(context, subscribers=heard))
        return InputsEmitter(self.sources, emitters, context)

    def emitting_tasks(self, txid: int, metadata: Any, task_count: int) -> Collection[int]:
        parts = cut_for(metadata, txid)
        if gone := [name for name, _ in parts if name not in self.sources]:
            raise SourceError(
                f"the batch has a part of {gone}, which these inputs lack; run it with inputs of these names"
            )
        return {
            task
            for name, part in parts
            for task in SpoutKind(self.sources[name]).emitting_tasks(txid, part, task_count)
        }

    def describe(self, metadata: Any) -> Sequence[str]:
        found = []
        for name, part in newest(metadata):
            found += [f"{name}: {line}" for line in self.sources[name].describe(part)]
        return found

    def _kinds(self) -> dict[str, SpoutKind]:
        return {name: SpoutKind(source) for name, source in self.sources.items()}


def _as_source(name: str, given: Any) -> ITransactionalSpout:
    """Returns a source in the form that `Inputs` cuts.

    Raises:
        TopologyError: the argument is not a source, or cannot be one of several.
    """
    if isinstance(given, Inputs):
        raise TopologyError(f"input {name!r} is an Inputs with several sources; name each of them directly")
    if isinstance(given, ICommitterTransactionalSpout) and not given.get_committer.__module__.startswith(
        "coordinator."
    ):
        raise TopologyError(
            f"input {name!r} is a {type(given).__name__}, which has a committer of your own; give it a topology of its "
            "own: a committer is called for every transaction, and some transactions read nothing from this input"
        )
    if isinstance(given, IPartitionedTransactionalSpout):
        return as_whole(given)
    if isinstance(given, ITransactionalSpout):
        return given
    kind = type(given).__name__
    if isinstance(given, IOpaquePartitionedTransactionalSpout):
        raise TopologyError(
            f"input {name!r} is a {kind}, and an opaque spout cannot be among others: give it a topology of its own, "
            "or read Kafka with KafkaTransactionalSpout"
        )
    raise TopologyError(
        f"input {name!r} is a {kind}, which is not a transactional spout; Inputs takes files, tables, "
        "KafkaTransactionalSpout, RedisStreams and spouts of your own"
    )


def _refuse_endless(name: str, source: Any) -> None:
    """Raises TopologyError if a source that is to be read first never ends, or its end moves."""
    if getattr(source, "is_endless", False):
        raise TopologyError(_endless(name))


def _endless(name: str) -> str:
    return (
        f"input {name!r} is first(...), and has no end after which the others could begin: give it without follow or "
        "continuous, from files, a table or a topic; Redis Streams cannot be first"
    )


def stream_of(name: str, stream_id: str) -> str:
    """Returns the stream for a source's tuples: the source's name, and the name of its stream if not the default."""
    return name if stream_id == DEFAULT_STREAM else f"{name}_{stream_id}"


def _made_all(given: Mapping[str, Any], make: Callable[[Any], Made]) -> dict[str, Made]:
    """Calls `make` for each source; if a call raises, closes the objects made before."""
    made: dict[str, Made] = {}
    with ExitStack() as opened:
        for name, each in given.items():
            made[name] = make(each)
            opened.callback(getattr(made[name], "close", int))
        opened.pop_all()
    return made


class InputsEmitter(SpoutEmitter):
    """Emits this task's share of each part, one source after the other.

    Args:
        sources: name -> source, which knows the tasks that have a share.
        emitters: name -> the source's emitter.
        context: context of the task.
    """

    def __init__(
        self, sources: Mapping[str, ITransactionalSpout], emitters: Mapping[str, SpoutEmitter], context: TopologyContext
    ) -> None:
        self._sources, self._emitters = sources, emitters
        self._task_index, self._task_count = context.task_index, context.task_count

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        for name, part in cut_for(metadata, attempt.txid):
            tasks = SpoutKind(self._sources[name]).emitting_tasks(attempt.txid, part, self._task_count)
            if self._task_index in tasks:
                self._emitters[name].emit_batch(attempt, part, SourceCollector(name, collector))

    def close(self) -> None:
        close_all(self._emitters.values())


class SourceCollector:
    """Emits the tuples of one source on its streams.

    Args:
        name: name of the source.
        collector: collector of the whole spout.
    """

    def __init__(self, name: str, collector: BatchOutputCollector) -> None:
        self._name, self._collector = name, collector

    def emit(self, values: EmittedRow, stream_id: str = DEFAULT_STREAM) -> list[int]:
        return self._collector.emit(values, stream_of(self._name, stream_id))

    def emit_all(self, rows: Iterable[EmittedRow], stream_id: str = DEFAULT_STREAM) -> None:
        self._collector.emit_all(rows, stream_of(self._name, stream_id))

    def emit_batch(self, batch: Any, stream_id: str = DEFAULT_STREAM) -> None:
        self._collector.emit_batch(batch, stream_of(self._name, stream_id))

    def emit_direct(self, task_id: int, values: EmittedRow, stream_id: str = DEFAULT_STREAM) -> None:
        self._collector.emit_direct(task_id, values, stream_of(self._name, stream_id))

    def dead_letter(self, tup: Tuple | EmittedRow | Mapping[str, Any], reason: str) -> None:
        self._collector.dead_letter(tup, reason)


class InputsCommitter(SpoutCommitter):
    """Calls the committers of the sources that have one, in their order."""

    def __init__(self, committers: Mapping[str, SpoutCommitter]) -> None:
        self._committers = committers

    def commit(self, attempt: TransactionAttempt) -> None:
        for committer in self._committers.values():
            committer.commit(attempt)

    def keep(self, batches: Collection[Any]) -> None:
        for name, committer in self._committers.items():
            committer.keep([part for metadata in batches for own, part in newest(metadata) if own == name])

    def cleanup_before(self, txid: int) -> None:
        for committer in self._committers.values():
            committer.cleanup_before(txid)

    def close(self) -> None:
        close_all(self._committers.values())
