"""Several sources as one: a transaction is a part of each, and each has a stream of its own.

A transaction's metadata names the part of every source, with the number of the transaction that it was cut for; that of
a source which had nothing to give is carried on, so that its next part begins where the last one ended. The order of
the sources within a transaction is that in which they were given, in every run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from itertools import chain
from typing import Any, TypeVar

from coordinated_bolt.components.batch_bolts import BatchOutputCollector
from coordinated_bolt.components.component import streams_of
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import DEFAULT_STREAM, OutputFieldsDeclarer
from coordinated_bolt.streams.records import EmittedRow
from coordinated_bolt.streams.tuples import Tuple
from coordinator.sources.partitioned_input import as_whole
from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout
from coordinator.spouts.run_so_far import FormerInput, InputChange, RunSoFar
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from state.attempt import TransactionAttempt
from state.errors import FailedException, SourceError, TopologyError
from state.troubles import Trouble

Parts = dict[str, tuple[int, Any]]
"""Source -> number of the transaction that its part was cut for, and that part; without sources that gave none yet."""
Made = TypeVar("Made")


class Inputs(ITransactionalSpout, ICommitterTransactionalSpout):
    """Reads several sources in one topology: ``Inputs(orders=CsvFiles(…), returns=JsonLines(…))``.

    The tuples of a source are on the stream of its name, ``.shuffle_grouping("inputs", "orders")``; its bad records, if
    they are emitted, on ``"orders_dead_letters"``. A transaction takes a part of every source that has one ready, and a
    source that has ended does not end the others. Between runs, sources may be added or left out if that is accepted.

    Args:
        sources: name -> source whose replays are exact: files, tables, `KafkaTransactionalSpout`, `RedisStreams`, or
            your own. An opaque one, as `KafkaOpaqueSpout` is, stands alone: it would make all of them opaque.

    Raises:
        TopologyError: no source is given, or one is opaque.
    """

    def __init__(self, **sources: ITransactionalSpout | IPartitionedTransactionalSpout) -> None:
        if not sources:
            raise TopologyError("Inputs has no source; name some, as in Inputs(orders=CsvFiles(...))")
        self.sources: dict[str, ITransactionalSpout] = {}
        for name, source in sources.items():
            if isinstance(source, IPartitionedTransactionalSpout):
                self.sources[name] = as_whole(source)
            elif isinstance(source, ITransactionalSpout) and not isinstance(source, Inputs):
                self.sources[name] = source
            else:
                raise TopologyError(
                    f"input {name!r} is a {type(source).__name__}, but Inputs takes sources whose replays are exact "
                    "(files, tables, KafkaTransactionalSpout, RedisStreams); give it a topology of its own, or, for "
                    "KafkaOpaqueSpout, take KafkaTransactionalSpout"
                )

    @property
    def destruction(self) -> str:  # type: ignore[override] # of what it is made of
        """What its sources destroy of their input."""
        return "; ".join(filter(None, (kind.destruction for kind in self._kinds().values())))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        for name, source in self.sources.items():
            for stream in streams_of(source, name).values():
                declarer.declare_stream(stream_of(name, stream.stream_id), stream.fields, direct=stream.direct)

    def get_component_configuration(self) -> Mapping[str, Any]:
        return {
            key: value for each in self.sources.values() for key, value in each.get_component_configuration().items()
        }

    def fingerprint(self) -> str:
        return json.dumps({name: source.fingerprint() for name, source in self.sources.items()}, ensure_ascii=False)

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCoordinator:
        coordinators = _made_all(self._kinds(), lambda kind: kind.coordinator(conf, context))
        return InputsCoordinator(coordinators, {name: each.fingerprint() for name, each in self.sources.items()})

    def get_committer(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCommitter:
        committers = _made_all(self._kinds(), lambda kind: kind.committer(conf, context))
        return InputsCommitter({name: each for name, each in committers.items() if each is not None})

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutEmitter:
        emitters: dict[str, SpoutEmitter] = {}
        for name, source in self.sources.items():
            heard = {each: context.subscribers.get(stream_of(name, each), ()) for each in streams_of(source, name)}
            emitters[name] = source.get_emitter(conf, replace(context, subscribers=heard))
        return InputsEmitter(self.sources, emitters, context)

    def emitting_tasks(self, txid: int, metadata: Any, task_count: int) -> Collection[int]:
        parts = _cut_for(metadata, txid)
        if gone := [name for name, _ in parts if name not in self.sources]:
            raise SourceError(
                f"the batch has a part of {gone}, which these inputs lack; run it with inputs of these names"
            )
        return {task for name, part in parts for task in self.sources[name].emitting_tasks(txid, part, task_count)}

    def describe(self, metadata: Any) -> Sequence[str]:
        return [f"{name}: {line}" for name, part in _newest(metadata) for line in self.sources[name].describe(part)]

    def _kinds(self) -> dict[str, SpoutKind]:
        return {name: SpoutKind(source) for name, source in self.sources.items()}


def stream_of(name: str, stream_id: str) -> str:
    """Returns the stream for a source's tuples: its name, followed by its own stream's if that is not the default."""
    return name if stream_id == DEFAULT_STREAM else f"{name}_{stream_id}"


def _cut_for(metadata: Parts, number: int) -> list[tuple[str, Any]]:
    """Returns the parts that a transaction reads, in the order of the sources."""
    return [(name, part) for name, (cut_for, part) in metadata.items() if cut_for == number]


def _newest(metadata: Parts) -> list[tuple[str, Any]]:
    """Returns the parts that a transaction reads, if its number is not known: at least one source gave it one."""
    return _cut_for(metadata, max(number for number, _ in metadata.values()))


def _made_all(given: Mapping[str, Any], make: Callable[[Any], Made]) -> dict[str, Made]:
    """Makes something of each source; if one raises, what was made before is closed."""
    made: dict[str, Made] = {}
    with ExitStack() as opened:
        for name, each in given.items():
            made[name] = make(each)
            opened.callback(getattr(made[name], "close", int))
        opened.pop_all()
    return made


def _close_all(made: Iterable[Any]) -> None:
    """Closes all, even if one raises."""
    with ExitStack() as opened:
        for each in made:
            opened.callback(each.close)


class InputsCoordinator(SpoutCoordinator):
    """Cuts a part of each source that is ready.

    Args:
        coordinators: source -> its coordinator.
        fingerprints: source -> its fingerprint.
    """

    def __init__(self, coordinators: Mapping[str, SpoutCoordinator], fingerprints: Mapping[str, str]) -> None:
        self._coordinators, self._fingerprints = coordinators, fingerprints
        self._cut: tuple[int, Parts] = 0, {}  # what is cut of a transaction already, should another source raise
        self._noted: Mapping[str, Any] = {}
        self._notes: dict[str, dict[str, Any]] = {name: {} for name in coordinators}

    def compare(self, former: FormerInput) -> InputChange | None:
        known = _fingerprints_in(former.fingerprint)
        if known is None:
            single = "the topology has read a single source before, whose positions mean nothing to several"
            return InputChange(impossible=(single,))
        gone = [name for name in known if name not in self._coordinators]
        first = former.last_txid - len(former.pending) + 1
        waiting = [_cut_for(metadata, number) for number, metadata in enumerate(former.pending, start=first)]
        lost = sorted({name for parts in waiting for name, _ in parts if name in gone})
        changes = [
            InputChange(
                changed=tuple(f"input {name!r} is not read any more" for name in gone),
                impossible=tuple(f"input {name!r} is gone, and what was cut of it is not committed" for name in lost),
            )
        ]
        for name, coordinator in self._coordinators.items():
            number, part = (former.last or {}).get(name, (0, None))
            if name not in known and not number:
                read = [other for other, line in known.items() if line == self._fingerprints[name]]
                sentences = (f"input {name!r} is what was read as {other!r}" for other in read)
                changes.append(InputChange(again=tuple(sentences)))
                continue
            is_same = known.get(name) == self._fingerprints[name]
            pending = tuple(part for parts in waiting for own, part in parts if own == name)
            own = FormerInput(
                last_txid=number,
                last=part,
                committed_txid=min(number, former.committed_txid),
                notes=_own_notes(former, name),
                fingerprint=known.get(name, ""),
                is_same=is_same,
                pending=pending,
            )
            change = coordinator.compare(own) if number else InputChange()
            if change is not None:
                changes.append(_named(name, change))
            elif not is_same:
                return None
        return _joined(changes)

    def is_empty(self) -> bool:
        return all(each.is_empty() for each in self._informed().values())

    def resume(self) -> None:
        if not isinstance(self.run_so_far.last, dict | None):
            raise SourceError(
                f"stored metadata {self.run_so_far.last!r:.100} is not of several inputs: the topology has read a "
                "single source before; drop it, or take another topology id"
            ).about(Trouble.OTHER_SOURCE)
        for coordinator in self._informed().values():
            coordinator.resume()

    def is_ready(self) -> bool:
        return any(each.is_ready() for each in self._informed().values())

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        if self._cut[0] != txid:
            self._cut = txid, {}
        before: Parts = previous or {}
        parts: Parts = {}
        for name, coordinator in self._informed().items():
            last = before.get(name)
            if name not in self._cut[1] and coordinator.is_ready():
                part = coordinator.initialize_transaction(txid, None if last is None else last[1])
                self._cut[1][name] = txid, part
            if (found := self._cut[1].get(name, last)) is not None:
                parts[name] = found
        if not self._cut[1]:
            raise FailedException(f"no input has anything for txid {txid} after all")
        return {**parts, **{name: part for name, part in before.items() if name not in self._coordinators}}

    def notes(self, metadata: Any) -> Mapping[str, Any]:
        return {
            f"{name}:{note}": value
            for name, coordinator, part in self._read_by(metadata)
            for note, value in coordinator.notes(part).items()
        }

    def position(self, metadata: Any) -> Any:
        return {name: coordinator.position(part) for name, coordinator, part in self._read_by(metadata)}

    def is_exhausted(self) -> bool:
        return all(each.is_exhausted() for each in self._informed().values())

    def is_finite(self) -> bool:
        return all(each.is_finite() for each in self._coordinators.values())

    def progress(self) -> float | None:
        """That of the source which has most before it: a transaction takes a part of each."""
        found = [each.progress() for each in self._informed().values()]
        known = [each for each in found if each is not None]
        return min(known) if len(known) == len(found) else None

    def estimated_bytes(self, metadata: Any) -> int:
        return sum(coordinator.estimated_bytes(part) for _, coordinator, part in self._read_by(metadata))

    def deactivate(self) -> None:
        for each in self._informed().values():
            each.deactivate()

    def activate(self) -> None:
        for each in self._informed().values():
            each.activate()

    def close(self) -> None:
        _close_all(self._coordinators.values())

    def _read_by(self, metadata: Parts) -> list[tuple[str, SpoutCoordinator, Any]]:
        """Returns name, coordinator and part of each source that a transaction reads, without those left out."""
        own = self._coordinators
        return [(name, own[name], part) for name, part in _newest(metadata) if name in own]

    def _informed(self) -> Mapping[str, SpoutCoordinator]:
        """Returns the coordinators, with the `run_so_far` of each one's source."""
        so_far = self.run_so_far
        if so_far.notes is not self._noted:  # they are those of earlier runs, and may be many
            self._noted = so_far.notes
            self._notes = {name: _own_notes(so_far, name) for name in self._coordinators}
        for name, coordinator in self._coordinators.items():
            number, part = (so_far.last or {}).get(name, (0, None))
            coordinator.run_so_far = RunSoFar(number, part, min(number, so_far.committed_txid), notes=self._notes[name])
        return self._coordinators


def _own_notes(so_far: RunSoFar, name: str) -> dict[str, Any]:
    """Returns what was noted of one source, by the names that it gave."""
    start = f"{name}:"
    return {note.removeprefix(start): value for note, value in so_far.notes.items() if note.startswith(start)}


def _fingerprints_in(fingerprint: str) -> dict[str, str] | None:
    """Returns source -> its fingerprint; None if this is not the fingerprint of several inputs."""
    with suppress(ValueError):
        found = json.loads(fingerprint)
        if isinstance(found, dict):
            return found
    return None


def _joined(changes: Sequence[InputChange]) -> InputChange:
    """Returns the changes of all sources as one."""
    joined: dict[str, Any] = {}
    for each in fields(InputChange):
        found = [getattr(change, each.name) for change in changes]
        joined[each.name] = _merged(found) if isinstance(found[0], Mapping) else tuple(chain.from_iterable(found))
    return InputChange(**joined)


def _named(name: str, change: InputChange) -> InputChange:
    """Returns the changes of one source, with its name in front of sentences and notes."""

    def named(found: Any) -> Any:
        if isinstance(found, Mapping):
            return {f"{name}:{note}": value for note, value in found.items()}
        return tuple(f"input {name!r}: {sentence}" for sentence in found)

    return InputChange(**{each.name: named(getattr(change, each.name)) for each in fields(InputChange)})


def _merged(mappings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for each in mappings for name, value in each.items()}


class InputsEmitter(SpoutEmitter):
    """Emits this task's share of each part, one source after the other.

    Args:
        sources: source -> its spec, which says which tasks have a share.
        emitters: source -> its emitter.
        context: of the task.
    """

    def __init__(
        self, sources: Mapping[str, ITransactionalSpout], emitters: Mapping[str, SpoutEmitter], context: TopologyContext
    ) -> None:
        self._sources, self._emitters = sources, emitters
        self._task_index, self._task_count = context.task_index, context.task_count

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        for name, part in _cut_for(metadata, attempt.txid):
            if self._task_index in self._sources[name].emitting_tasks(attempt.txid, part, self._task_count):
                self._emitters[name].emit_batch(attempt, part, SourceCollector(name, collector))

    def close(self) -> None:
        _close_all(self._emitters.values())


class SourceCollector:
    """Emits the tuples of one source on its streams.

    Args:
        name: of the source.
        collector: of the whole spout.
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
    """Tells the committers of the sources that have one, in their order."""

    def __init__(self, committers: Mapping[str, SpoutCommitter]) -> None:
        self._committers = committers

    def commit(self, attempt: TransactionAttempt) -> None:
        for committer in self._committers.values():
            committer.commit(attempt)

    def keep(self, batches: Collection[Any]) -> None:
        for name, committer in self._committers.items():
            committer.keep([part for metadata in batches for own, part in _newest(metadata) if own == name])

    def cleanup_before(self, txid: int) -> None:
        for committer in self._committers.values():
            committer.cleanup_before(txid)

    def close(self) -> None:
        _close_all(self._committers.values())
