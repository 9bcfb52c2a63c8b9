"""Streams: the short form, in which most topologies can be written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from coordinated_bolt.components.basic_bolts import IBasicBolt
from coordinated_bolt.components.batch_bolts import IBatchBolt
from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinated_bolt.streams.groupings import FieldsGrouping, GlobalGrouping, Grouping, ShuffleGrouping
from coordinated_bolt.streams.records import RowsOf, RowT
from coordinator.fluent.aggregations import Collecting, KeysOnly
from coordinator.fluent.compilation import Compilation, topology_of_rows
from coordinator.fluent.fused_bolt import Refusal
from coordinator.fluent.joins import DropWhen
from coordinator.fluent.keepers import Enriching, FirstOnly, Lookup
from coordinator.fluent.keeping import Keeping
from coordinator.fluent.kept_aggregation import KeptAggregation
from coordinator.fluent.row_steps import FilterStep, FlatMapStep, MapStep
from coordinator.fluent.stream_nodes import (
    Joined,
    LookedUp,
    MergedRows,
    OutputOf,
    ReadFrom,
    SentTo,
    Step,
    StreamNode,
    steps_that_run,
)
from coordinator.fluent.stream_steps import DeclaredRows, Fields, StreamSteps, declared_rows
from coordinator.fluent.user_function import UserFunction, current_user_call, id_of, place_of, step_of
from coordinator.option_checks import names_in, positive
from coordinator.spouts.spout_kind import Spout
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state.html_tables import section, table
from state.kinds.handles import DeclaredState
from state.kinds.hash_state import HashState
from state.values.state_kind import StateKind, ValueType

if TYPE_CHECKING:
    from coordinator.trying.first_rows import FirstRows


NewT = TypeVar("NewT")


@overload
def stream(source: RowsOf[RowT], name: str = ..., parallelism: int | None = ...) -> Stream[RowT]: ...
@overload
def stream(source: Spout, name: str = ..., parallelism: int | None = ...) -> Stream: ...


def stream(source: Any, name: str = "input", parallelism: int | None = None) -> Stream[Any]:
    """Begins a topology in the short form; returns the stream of the source's rows.

        words = stream(TextFiles("*.txt")).flat_map(str.split, to="word")
        words.count_by("word", into=HashState("counts"))
        topology = words.topology("word_count")

    Args:
        source: cuts the input into transactions.
        name: component id of the source.
        parallelism: see `TransactionalTopologyBuilder`.

    Raises:
        TopologyError: `source` is not a transactional spout.
    """
    TransactionalTopologyBuilder("checked", name, source, parallelism)
    rows = declared_rows(source, name).get(DEFAULT_STREAM, DeclaredRows())
    step, said = ReadFrom(source, parallelism), current_user_call()
    node = StreamNode(step, said, rows.fields, rows.types, name, record_class=rows.record_class)
    return Stream(StreamSteps([node], node, set()))


class Stream(Keeping, Generic[RowT]):
    """Rows with named fields, and the steps that can follow; made by `stream`.

    A step (`map`, `flat_map`, `filter`, `key_by`, …) returns a new stream and leaves this one as it is, so a stream may
    have any number of consumers. An aggregation (`count_by`, `sum_by`, …) returns the stream it is called on, so such
    calls chain. Nothing runs before the result of `topology` is run.

    Functions are plain functions of the values of the fields in `of`, one argument for each field; by default of all
    fields. They are shipped to the executors and called again in every attempt, so they must return the same then.

    Rows have a class if the source was given a NamedTuple or dataclass, or `to` was one. Then a function without `of`
    is given one object of that class. Rows may have further fields, such as a key, which are given by `of`. Where a
    field of the class is replaced, dropped or renamed, rows no longer have one.
    """

    def __init__(self, steps: StreamSteps) -> None:
        self._steps = steps

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of a row's values, in order."""
        return self._steps.fields

    def __repr__(self) -> str:
        return f"Stream({', '.join(self.fields)})"

    def _repr_html_(self) -> str:
        steps = [(step_of(each.said), ", ".join(each.fields), place_of(each.said)) for each in self._steps.to_here()]
        return section(table(("step", "fields of its rows", "at"), steps))

    @overload
    def map(self, function: Callable[[RowT], NewT], to: type[NewT]) -> Stream[NewT]: ...
    @overload
    def map(
        self: Stream, function: Callable[..., object], to: Fields | None = ..., *, of: Fields | None = ...
    ) -> Stream: ...
    @overload
    def map(self, function: Callable[[RowT], object], to: Fields | None = ...) -> Stream: ...
    @overload
    def map(self, function: Callable[..., object], to: Fields | None = ..., *, of: Fields) -> Stream[Any]: ...

    def map(self, function: Any, to: Any = None, *, of: Fields | None = None) -> Stream[Any]:
        """Replaces the fields in `of` by the function's result; other fields stay.

        Args:
            function: called once for each row (executor).
            to: the name of the new field, or the names of several, whose values the function returns as a tuple; or a
                NamedTuple or dataclass, whose objects it returns. By default a single field keeps its name.
            of: the fields that the function gets.
        """
        return Stream(self._steps.mapped(MapStep, function, to, of))

    @overload
    def flat_map(self, function: Callable[[RowT], Iterable[NewT]], to: type[NewT]) -> Stream[NewT]: ...
    @overload
    def flat_map(
        self: Stream, function: Callable[..., Iterable[object]], to: Fields | None = ..., *, of: Fields | None = ...
    ) -> Stream: ...
    @overload
    def flat_map(self, function: Callable[[RowT], Iterable[object]], to: Fields | None = ...) -> Stream: ...
    @overload
    def flat_map(
        self, function: Callable[..., Iterable[object]], to: Fields | None = ..., *, of: Fields
    ) -> Stream[Any]: ...

    def flat_map(self, function: Any, to: Any = None, *, of: Fields | None = None) -> Stream[Any]:
        """Makes a row of each item that the function returns in a list, or yields; otherwise as `map`."""
        return Stream(self._steps.mapped(FlatMapStep, function, to, of))

    @overload
    def key_by(self: Stream, function: Callable[..., object], to: str = ..., *, of: Fields | None = ...) -> Stream: ...
    @overload
    def key_by(self, function: Callable[[RowT], object], to: str = ...) -> Stream[RowT]: ...
    @overload
    def key_by(self, function: Callable[..., object], to: str = ..., *, of: Fields) -> Stream[RowT]: ...

    def key_by(self, function: Any, to: str = "key", *, of: Fields | None = None) -> Stream[Any]:
        """Adds a field with the function's result, to group by; all other fields stay."""
        if to in self.fields:
            raise self._steps.wrong(f"field {to!r} exists already; choose another name with to=…")
        fields = (*self.fields, to)
        layout = tuple(range(len(fields)))

        def step(called: UserFunction, places: tuple[int, ...]) -> MapStep:
            return MapStep(called, places, layout, None)

        return Stream(self._steps.called(function, of, fields, step))

    @overload
    def filter(self: Stream, function: Callable[..., object], *, of: Fields | None = ...) -> Stream: ...
    @overload
    def filter(self, function: Callable[[RowT], object]) -> Stream[RowT]: ...
    @overload
    def filter(self, function: Callable[..., object], *, of: Fields) -> Stream[RowT]: ...

    def filter(self, function: Any, *, of: Fields | None = None) -> Stream[Any]:
        """Keeps the rows for which the function returns true."""
        return Stream(self._steps.called(function, of, self.fields, FilterStep))

    def select(self, fields: Fields) -> Stream[Any]:
        """Keeps some fields, in this order."""
        return Stream(self._steps.chosen(given := self._steps.given(fields), given))

    def drop(self, fields: Fields) -> Stream[Any]:
        """Keeps all other fields."""
        dropped = self._steps.given(fields)
        kept = tuple(name for name in self.fields if name not in dropped)
        if not kept:
            raise self._steps.wrong("no field would be left; keep at least one")
        return Stream(self._steps.chosen(kept, kept))

    def rename(self, names: Mapping[str, str]) -> Stream[Any]:
        """Gives fields other names: ``rename({"customer": "who"})``."""
        if not isinstance(names, Mapping) or not all(isinstance(new, str) and new for new in names.values()):
            raise self._steps.wrong(f"{names!r} is not old name -> new name, as in rename({{'customer': 'who'}})")
        self._steps.given(tuple(names))
        return Stream(self._steps.chosen(self.fields, tuple(names.get(name, name) for name in self.fields)))

    def apply(self, bolt: IBatchBolt | IBasicBolt, *, by: Fields | Grouping | None = None, name: str = "") -> Stream:
        """Sends the rows to your own bolt, and returns the stream of its tuples.

        Args:
            bolt: any batch bolt or basic bolt; a committer if it is an `ICommitter`.
            by: fields whose equal values must meet on one task, or a grouping; by default rows are shuffled.
            name: the component id; by default the name of the bolt's class.
        """
        return self._bolt(bolt, ShuffleGrouping() if by is None else by, name, is_committer=False)

    def commit(self, bolt: IBatchBolt, *, by: Fields | Grouping | None = None, name: str = "") -> Stream:
        """Sends the rows to your own committer, and returns the stream of its tuples, if it emits any.

        Args:
            bolt: a batch bolt; it need not be an `ICommitter`.
            by: see `apply`; by default one task gets all rows.
            name: see `apply`.
        """
        return self._bolt(bolt, GlobalGrouping() if by is None else by, name, is_committer=True)

    def output(self, stream_id: str) -> Stream:
        """Returns another stream of the source, or of your own bolt, whose default stream this is.

        Raises:
            TopologyError: there is no such stream.
        """
        node = self._steps.node
        if not isinstance(node.step, ReadFrom | SentTo):
            raise self._steps.wrong(
                "these rows come from a step; call output on the result of stream(), apply() or commit()"
            )
        streams = declared_rows(node.step.bolt, node.label)
        if stream_id not in list(streams):  # not a set: it may be anything, even unhashable
            raise self._steps.wrong(f"stream {stream_id!r} is unknown; {node.label} declares {sorted(streams)}")
        rows = streams[stream_id]
        return self._to(OutputOf(stream_id), rows.fields, stream_id, types=rows.types, record_class=rows.record_class)

    def merge(self, *others: Stream[RowT]) -> Stream[RowT]:
        """Returns the stream of all rows of this stream and of others, which have the same fields.

        Raises:
            TopologyError: the fields differ, a stream is given twice, or one has another source: a transaction is cut
                from one source.
        """
        ends = [steps.node for steps in self._others(others)]
        for other in others:
            if other.fields != self.fields:
                raise self._steps.wrong(f"fields {other.fields} are not {self.fields}; map them to the same names")
        record_class = self._steps.node.record_class
        is_shared = all(end.record_class is record_class for end in ends)
        return self._to(MergedRows(), self.fields, "merged", *ends, record_class=record_class if is_shared else None)

    def distinct_by(self, key: Fields, *, into: DeclaredState, to: str | None = None) -> Stream[RowT]:
        """Keeps the distinct values of a field, and returns the stream of each value's first row.

        Args:
            key: the field, or a list of several, see `count_by`.
            into: a `SetState`, which is exact; or a `HyperLogLogState`, which estimates the number and passes no rows.
            to: if given, all rows are passed on, with a field of this name that says whether the row was the first.
        """
        kept = self._steps.kept(Collecting, key, into)
        if into.kind is StateKind.HYPERLOGLOG:
            return self._to(kept, (), into.name)
        return self._passed(FirstOnly, into, key, to, kept=kept)

    def join(self, other: Stream, on: Fields, *, into: DeclaredState, drop_when: DropWhen = None) -> Stream:
        """Returns the stream that joins each row of this stream with each row of the other that has the same key, once.

        The two rows may come in any order, and any time apart: a row waits in a state for rows of the other side.

        Args:
            other: another stream of the same source, such as another output of ``Inputs``.
            on: the key field, which both streams have, or a list of several. Joined rows have the key, then the other
                fields of this stream, and then those of the other stream.
            into: a `HashState` in which rows wait: of "json", or of ``bytes``, which can hold Decimals, dates and
                bytes, too. All rows of a key are one value, so there should be few.
            drop_when: "matched" joins a key's first row with the first row of the other side, the second with the
                second, and deletes both, as for an order and its payment; by default all rows are kept.

        Raises:
            TopologyError: the streams have different sources, or share a field name outside the key.
        """
        sides = (self._steps, self._others((other,))[0])
        if not isinstance(into, HashState) or into.value_type not in (ValueType.JSON, ValueType.BYTES):
            raise self._steps.wrong(f"{into!r} cannot hold rows that wait; give a HashState of 'json' or of bytes")
        if drop_when not in (None, "matched"):
            raise self._steps.wrong(f"drop_when={drop_when!r} is unknown; give 'matched', or leave it out")
        left_keys, right_keys = (side.kept(KeysOnly, on, into) for side in sides)
        left, right = (tuple(name for name in side.fields if name not in names_in(on)) for side in sides)
        if repeated := {*left} & {*right}:
            raise self._steps.wrong(f"both streams have fields {sorted(repeated)}; rename or drop them on one side")
        joined = Joined((left_keys, right_keys), (left, right), drop_when)
        return self._to(joined, (*names_in(on), *left, *right), into.name, other._steps.node)

    def enrich(
        self, state: DeclaredState, by: Fields, to: str, *, as_of: Literal["transaction"] | None = None
    ) -> Stream:
        """Adds a field with the value that a state of this topology holds for a key.

        The state has to be complete when these rows are read, so it has to be written from inputs that are read `first`
        and these rows from other inputs. Otherwise the value would depend on how many rows a transaction takes.

        Args:
            state: a `HashState` that another step, or your own committer, writes.
            by: the field to look up, or a list of several, see `count_by`; if the state has parts, the field with their
                name chooses the part.
            to: the new field; None where no value is stored.
            as_of: "transaction" allows any state, and reads it as the previous transactions have left it.

        Raises:
            TopologyError: by `topology`, if the state is written from rows that are not read first.
        """
        if as_of not in (None, "transaction"):
            raise self._steps.wrong(f"as_of={as_of!r} is unknown; give 'transaction', or leave it out")
        if getattr(state, "kind", None) is not StateKind.HASH:
            raise self._steps.wrong(f"{state!r} is not a hash; give a HashState")
        return self._passed(Enriching, state, by, to, is_of_any=as_of is not None)

    @overload
    def dead_letter_if(
        self: Stream, predicate: Callable[..., object], reason: str | Callable[..., str], *, of: Fields | None = ...
    ) -> Stream: ...
    @overload
    def dead_letter_if(
        self, predicate: Callable[[RowT], object], reason: str | Callable[[RowT], str]
    ) -> Stream[RowT]: ...
    @overload
    def dead_letter_if(
        self, predicate: Callable[..., object], reason: str | Callable[..., str], *, of: Fields
    ) -> Stream[RowT]: ...

    def dead_letter_if(self, predicate: Any, reason: Any, *, of: Fields | None = None) -> Stream[Any]:
        """Keeps the tuples for which a function returns true as dead letters, and returns the stream of all others.

        Args:
            predicate: called once for each row.
            reason: a sentence, or a function that returns one for the same values.
            of: the fields that both functions get.
        """
        reasons = reason if isinstance(reason, str) else self._steps.function(reason, of)

        def refusal(called: UserFunction, places: tuple[int, ...]) -> Refusal:
            return Refusal(called, places, reasons)

        return Stream(self._steps.called(predicate, of, self.fields, refusal))

    def take(self, most: int = 5) -> list[dict[str, Any]]:
        """Returns the first rows, read in this process: no server, no Spark, and nothing is committed.

        Only the steps that these rows depend on run, once; states are empty at the start. See ``txbatch dry-run``.

        Args:
            most: how many rows; fewer if the first hundred transactions have no more.

        Raises:
            TopologyError: only Spark can read the source, or a step does not fit.
            TransactionError: your code has failed, or the input cannot be read.
        """
        found = self._first(most)
        return [dict(zip(found.fields, row, strict=True)) for row in found.rows]

    def show(self, most: int = 20) -> None:
        """Shows the first rows with the types of their values: as HTML in a notebook, otherwise printed; see `take`."""
        self._first(most).show()

    def topology(
        self,
        topology_id: str,
        *,
        parallelism: int | None = None,
        shards: int = 1,
        conf: Mapping[str, Any] | None = None,
    ) -> Topology:
        """Returns the topology of all steps on this stream's source, as `TransactionalTopologyBuilder.build` does.

        Args:
            topology_id: names the topology and its keys.
            parallelism: parallelism of every component except the source; None lets the planner choose one task.
            shards: how many hash slots its state is spread over; see docs/shards.md.
            conf: configuration that every `prepare` receives.

        Raises:
            TopologyError: no state is kept, the rows of a step are not used, or the topology could not run.
        """
        return self.builder(topology_id, parallelism=parallelism, shards=shards).build(conf)

    def builder(
        self, topology_id: str, *, parallelism: int | None = None, shards: int = 1
    ) -> TransactionalTopologyBuilder:
        """Returns the builder of the topology, to add components or limits that the short form cannot express."""
        steps = steps_that_run(self._steps.nodes)
        return Compilation(topology_id, steps, self._steps.modules, parallelism, shards).builder

    def _others(self, others: Sequence[Stream[Any]]) -> list[StreamSteps]:
        """Returns the steps of other streams; refuses streams of another source, or with the same rows."""
        if not all(isinstance(other, Stream) for other in others):
            raise self._steps.wrong(f"{others} are not all streams; give what stream, or a step, has returned")
        found = [other._steps for other in others]  # noqa: SLF001 - the same class
        if any(steps.nodes is not self._steps.nodes for steps in found):
            remedy = "read both with one source, such as Inputs(...), or write two topologies"
            raise self._steps.wrong(f"the streams are of two sources, but transactions are of one; {remedy}")
        taken = [each for steps in (self._steps, *found) for each in steps.node.merged()]
        if len({*taken}) < len(taken):
            raise self._steps.wrong(
                "a stream is given twice, and its rows are taken once; leave it out, or make another of it, as by map"
            )
        return found

    def _first(self, most: int) -> FirstRows:
        from coordinator.trying.first_rows import first_rows  # imports the local cluster, which few programs need

        self._steps.given(None)
        shown = topology_of_rows(self._steps.nodes, self._steps.node, self._steps.modules, current_user_call())
        return first_rows(*shown, positive("take", "most", most))

    def _bolt(self, bolt: Any, by: Fields | Grouping, name: str, *, is_committer: bool) -> Stream:
        grouping = by if isinstance(by, Grouping) else FieldsGrouping(self._steps.given(by))
        label = name or id_of(getattr(bolt, "__name__", type(bolt).__name__))
        streams = declared_rows(bolt, label) if isinstance(bolt, IBatchBolt | IBasicBolt) else {}
        rows = streams.get(DEFAULT_STREAM, DeclaredRows())
        step = SentTo(bolt, grouping, is_committer)
        return self._to(step, rows.fields, label, types=rows.types, record_class=rows.record_class)

    def _to(self, step: Step, fields: tuple[str, ...], label: str, *others: StreamNode, **more: Any) -> Stream[Any]:
        return Stream(self._steps.next(step, fields, label, *others, **more))

    def _passed(
        self,
        kind: type[Lookup],
        state: DeclaredState,
        key: Fields,
        to: str | None,
        *,
        kept: KeptAggregation | None = None,
        is_of_any: bool = False,
    ) -> Stream[Any]:
        keys = self._steps.kept(KeysOnly, key, state)
        if to in self.fields:
            raise self._steps.wrong(f"field {to!r} exists already; choose another name with to=…")
        fields = self.fields if to is None else (*self.fields, to)
        passed = LookedUp(kind, keys, to is not None, kept, is_of_any)
        label = f"enrich_{'_'.join(names_in(key))}" if kept is None else state.name
        return self._to(passed, fields, label, record_class=self._steps.node.record_class)
