"""The spouts and bolts of random topologies, and the topology made of a scenario."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Protocol

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.streams.groupings import CustomGrouping
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout, PartitionedCoordinator, PartitionedEmitter
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import BoltDeclarer, TransactionalTopologyBuilder
from state import HashState, ListState, SetState, SortedSetState, StreamState, ValueState
from state.errors import FailedException
from tests.support.scenarios.behaviours import code, fate, mapped, neighbour, sums
from tests.support.scenarios.random_topologies import Input, Part, Scenario

FIELDS = ("key", "value")


class Tally(Protocol):
    """Remembers across attempts, and processes, what has happened."""

    def take(self, key: str, limit: int) -> bool:
        """True the first `limit` times it is asked with a key."""

    def note(self, what: str) -> None:
        """Counts."""


class LocalTally:
    """For one process: kept in the class, as bolts are pickled."""

    kept: ClassVar[dict[str, Counter[str]]] = defaultdict(Counter)

    def __init__(self, token: str) -> None:
        self.token = token
        self.kept.pop(token, None)

    @property
    def counts(self) -> Counter[str]:
        return self.kept[self.token]

    def take(self, key: str, limit: int) -> bool:
        self.counts[key] += 1
        return self.counts[key] <= limit

    def note(self, what: str) -> None:
        self.counts[what] += 1


class FileTally:
    """For many processes: marker files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def take(self, key: str, limit: int) -> bool:
        for number in range(limit):
            try:
                os.close(os.open(self.folder / f"{key}-{number}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            return True
        return False

    def note(self, what: str) -> None:
        """Nothing is counted."""


class Behaving(BaseBatchBolt):
    """A bolt that does what its part says."""

    def __init__(self, part: Part, trips, tally: Tally) -> None:
        self.part, self.trips, self.tally = part, trips, tally

    def declare_output_fields(self, declarer):
        for stream in self.part.outputs:
            declarer.declare_stream(stream, FIELDS, direct=stream == "named")

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.rows: list[tuple[str, int]] = []
        self.tally.note("prepared")
        self.trip("prepare")

    def execute(self, tup):
        self.trip("execute")
        row = (tup["key"], tup["value"])
        self.rows.append(row)
        if self.part.emits == "execute":
            send(self, mapped(self.part.behaviour, row))

    def finish_batch(self):
        self.trip("finish")
        self.keep()
        if self.part.behaviour in ("sum", "partial_sum"):
            send(self, list(sums(self.rows).items()))
        elif self.part.behaviour == "size":
            send(self, [("a", len(self.rows))])
        elif self.part.emits != "execute":
            send(self, [made for row in self.rows for made in mapped(self.part.behaviour, row)])
        self.trip("finished")

    def keep(self):
        """Only committers do."""

    def cleanup(self):
        self.tally.note("cleaned up")
        self.trip("cleanup")

    def trip(self, phase):
        trip(self.trips, self.tally, self.context, self.attempt, phase)


def trip(trips, tally, context, attempt, phase):
    for one in trips:
        here = (one.component_id, one.task_index, one.txid, one.phase)
        if here == (context.component_id, context.task_index, attempt.txid, phase):
            key = "-".join(map(str, here))
            if tally.take(key, one.times):
                raise FailedException(f"{key} trips")


def send(bolt, rows, collector=None):
    """Emits rows on the part's streams."""
    part, collector = bolt.part, collector or bolt.collector
    for place, stream in enumerate(part.outputs):
        chosen = [row for row in rows if not part.splits or row[1] % len(part.outputs) == place]
        if stream == "named":
            for key, value in chosen:
                for target in part.direct_to:
                    tasks = bolt.context.component_tasks(target)
                    collector.emit_direct(tasks[code(key) % len(tasks)], [key, value], stream)
        elif part.sends_batches:
            columns = list(zip(*chosen, strict=True)) or [(), ()]
            collector.emit_batch(columns if place % 2 else dict(zip(FIELDS, columns, strict=True)), stream)
        elif part.emits == "all":
            collector.emit_all(chosen, stream)
        else:
            for row in chosen:
                collector.emit(row, stream)


class Skipping(Behaving):
    """The same for a part that does nothing where nothing arrives."""

    skips_empty_batches = True


class Keeping(Behaving, ICommitter):
    """A committer; what it reads it reads before it writes, where other tasks may write it."""

    sums: HashState
    counts: HashState
    amounts: HashState[float]
    running: HashState
    largest: HashState
    echo: HashState
    fleeting: HashState
    scores: SortedSetState
    ranked: SortedSetState
    members: SetState
    toggled: SetState
    total: ValueState
    last: ValueState
    log: ListState[int]
    sizes: ListState[int]
    sent: StreamState[int]

    def keep(self):
        keyed = sums(self.rows)
        for operation in sorted(self.part.operations, key=lambda name: name != "echo"):
            getattr(self, f"keep_{operation}")(keyed)
        if self.part.behaviour == "running":
            send(self, [(key, self.running.get(key)) for key in keyed])

    def keep_echo(self, keyed):
        found = self.sums.get_many(neighbour(key) for key in keyed)
        for key in keyed:
            value = found[neighbour(key)]
            self.echo.put(key, -1 if value is None else value)

    def keep_sums(self, keyed):
        if self.part.tasks % 2:
            self.sums.increment_many(keyed)
        else:
            for key, value in self.rows:
                self.sums.increment(key, value)

    def keep_counts(self, keyed):
        for key, _ in self.rows:
            self.counts.increment(key)

    def keep_amounts(self, keyed):
        for key, value in self.rows:
            self.amounts.increment(key, value / 2)

    def keep_scores(self, keyed):
        for key, value in keyed.items():
            self.scores.increment(key, value / 4)

    def keep_total(self, keyed):
        self.total.increment(sum(keyed.values()))

    def keep_last(self, keyed):
        self.last.put(self.attempt.txid)

    def keep_members(self, keyed):
        for key in keyed:
            self.members.add(key)

    def keep_log(self, keyed):
        if self.context.task_index == 0:
            self.log.append(self.attempt.txid)

    def keep_sizes(self, keyed):
        if self.context.task_index == 0:
            self.sizes.extend([sum(keyed.values())])

    def keep_sent(self, keyed):
        if keyed:
            self.sent.append(dict(sorted(keyed.items())))

    def keep_running(self, keyed):
        for key, value in keyed.items():
            self.running.put(key, (self.running.get(key) or 0) + value)
            self.running.put(key, (self.running.get(key) or 0) + 1)

    def keep_largest(self, keyed):
        for key, value in keyed.items():
            known = self.largest.get(key)
            if known is None or value > known:
                self.largest.put(key, value)

    def keep_ranked(self, keyed):
        for key, value in keyed.items():
            self.ranked.put(key, value)

    def keep_toggled(self, keyed):
        for key, is_member in self.toggled.contains_many(keyed).items():
            change = self.toggled.remove if is_member else self.toggled.add
            change(key)

    def keep_fleeting(self, keyed):
        for key, value in keyed.items():
            match fate(value):
                case "delete":
                    self.fleeting.delete(key)
                case "increment":
                    self.fleeting.increment(key, value)
                case "put":
                    self.fleeting.put(key, value)


class InBatches(Behaving):
    """Executes batches; says the same as tuple by tuple."""

    def execute_batch(self, batch):
        self.trip("execute")
        rows = list(zip(batch.column("key"), batch.column("value"), strict=True))
        assert rows == [(tup["key"], tup["value"]) for tup in batch]
        self.rows += rows
        if self.part.emits == "execute":
            send(self, [made for row in rows for made in mapped(self.part.behaviour, row)])


class SkippingInBatches(InBatches):
    """The same for a part that does nothing where nothing arrives."""

    skips_empty_batches = True


class KeepingInBatches(InBatches, Keeping):
    """A committer that changes many fields at once."""

    def keep_sums(self, keyed):
        keys, values = zip(*self.rows, strict=True) if self.rows else ((), ())
        self.sums.increment_many(keys, values)

    def keep_counts(self, keyed):
        counts = Counter(key for key, _ in self.rows)
        self.counts.increment_many(counts.keys(), counts.values())

    def keep_amounts(self, keyed):
        self.amounts.increment_many({key: value / 2 for key, value in keyed.items()})

    def keep_scores(self, keyed):
        self.scores.increment_many(keyed.keys(), [value / 4 for value in keyed.values()])

    def keep_members(self, keyed):
        self.members.add_many(keyed)

    def keep_ranked(self, keyed):
        self.ranked.put_many(keyed.keys(), map(float, keyed.values()))


def keeping_class(number: int) -> type[Keeping]:
    """A committer class; its states' names end in its number."""
    floats = {name: HashState(f"{name}{number}", value=float) for name in ("amounts",)}
    lists = {name: ListState(f"{name}{number}", value=int) for name in ("log", "sizes")}
    hashes = ("sums", "counts", "running", "largest", "echo", "fleeting")
    states = {
        **{name: HashState(f"{name}{number}") for name in hashes},
        **{name: SortedSetState(f"{name}{number}") for name in ("scores", "ranked")},
        **{name: SetState(f"{name}{number}") for name in ("members", "toggled")},
        **{name: ValueState(f"{name}{number}") for name in ("total", "last")},
        "sent": StreamState(f"sent{number}", value=int),
    }
    return type(f"Keeping{number}", (Keeping,), {**floats, **lists, **states, "__module__": __name__})


def batch_keeping_class(keeping: type[Keeping]) -> type[Keeping]:
    """The same, executing batches."""
    return type(f"Batch{keeping.__name__}", (KeepingInBatches, keeping), {"__module__": __name__})


Keeping0, Keeping1, Keeping2, Keeping3 = map(keeping_class, range(4))
KEEPING = (Keeping0, Keeping1, Keeping2, Keeping3)
BatchKeeping0, BatchKeeping1, BatchKeeping2, BatchKeeping3 = map(batch_keeping_class, KEEPING)
BATCH_KEEPING = (BatchKeeping0, BatchKeeping1, BatchKeeping2, BatchKeeping3)


class ByKey(CustomGrouping):
    """Equal keys to one task, by `code`."""

    def choose_tasks(self, values):
        return [code(values[0]) % self.context.target_count]


class Twice(CustomGrouping):
    """Two copies, to one task where there is only one."""

    def choose_tasks(self, values):
        count = self.context.target_count
        return [values[1] % count, (values[1] + 1) % count]


class DropFives(CustomGrouping):
    """Some tuples to nobody."""

    def choose_tasks(self, values):
        return [values[1] % self.context.target_count] if values[1] % 5 else []


class _Scripted:
    """A spout of a scenario."""

    def __init__(self, scenario: Scenario, tally: Tally) -> None:
        self.part, self.scenario, self.tally = scenario.parts[0], scenario, tally

    def declare_output_fields(self, declarer):
        Behaving.declare_output_fields(self, declarer)  # type: ignore[arg-type] # all it needs is the part


class Batches(_Scripted, ITransactionalSpout):
    """The batches of a scenario, cut by the coordinator."""

    def get_coordinator(self, conf, context):
        return Cutter(len(self.scenario.batches))

    def get_emitter(self, conf, context):
        return BatchEmitter(self, context)


class Cutter(SpoutCoordinator):
    def __init__(self, count):
        self.count, self.last = count, 0

    def resume(self):
        self.last = self.run_so_far.last_txid

    def is_ready(self):
        return self.last < self.count

    def initialize_transaction(self, txid, previous):
        self.last = txid
        return txid - 1

    def is_exhausted(self):
        return self.last >= self.count


class BatchEmitter(SpoutEmitter):
    def __init__(self, spout, context):
        self.spout, self.part, self.context = spout, spout.part, context
        spout.tally.note("opened")

    def emit_batch(self, attempt, metadata, collector):
        rows = self.spout.scenario.batches[metadata][self.context.task_index :: self.context.task_count]
        self.emit(attempt, rows, collector)

    def emit(self, attempt, rows, collector):
        half = len(rows) // 2
        send(self, rows[:half], collector)
        trip(self.spout.scenario.trips, self.spout.tally, self.context, attempt, "emit")
        send(self, rows[half:], collector)

    def close(self):
        self.spout.tally.note("closed")


class PartitionedBatches(_Scripted, IPartitionedTransactionalSpout):
    """The same batches, each row in a partition; emitters cut."""

    def get_coordinator(self, conf, context):
        return PartitionedCutter(self.scenario)

    def get_emitter(self, conf, context):
        return PartitionedBatchEmitter(self, context)


class PartitionedCutter(PartitionedCoordinator):
    def __init__(self, scenario):
        self.scenario = scenario

    def number_of_partitions(self):
        return self.scenario.partitions

    def is_exhausted(self):
        return self.run_so_far.last_txid >= len(self.scenario.batches)


class PartitionedBatchEmitter(PartitionedEmitter):
    def __init__(self, spout, context):
        self.emitter, self.scenario = BatchEmitter(spout, context), spout.scenario

    def emit_partition_batch_new(self, attempt, collector, partition, last):
        metadata = 0 if last is None else last + 1
        self.emit_partition_batch(attempt, collector, partition, metadata)
        return metadata

    def emit_partition_batch(self, attempt, collector, partition, metadata):
        rows = self.scenario.batches[metadata][partition :: self.scenario.partitions]
        self.emitter.emit(attempt, rows, collector)

    def close(self):
        self.emitter.close()


def topology_of(scenario: Scenario, tally: Tally, topology_id: str = "random") -> Topology:
    """The topology of a scenario."""
    spout_class = PartitionedBatches if scenario.partitions else Batches
    spout, *bolts = scenario.parts
    builder = TransactionalTopologyBuilder(
        topology_id, spout.component_id, spout_class(scenario, tally), parallelism=spout.tasks
    )
    builder.set_acker_count(scenario.ackers)
    for part in bolts:
        declarer = builder.set_bolt(part.component_id, _class_of(part)(part, scenario.trips, tally), part.tasks)
        for heard in part.inputs:
            _subscribe(declarer, heard)
    return builder.build()


def _class_of(part: Part) -> type[Behaving]:
    if part.committer is None:
        if part.tasks > 1 and part.behaviour != "size":
            return SkippingInBatches if part.takes_batches else Skipping
        return InBatches if part.takes_batches else Behaving
    return (BATCH_KEEPING if part.takes_batches else KEEPING)[part.committer]


def _subscribe(declarer: BoltDeclarer, heard: Input) -> None:
    by_stream = {
        "shuffle": declarer.shuffle_grouping,
        "none": declarer.none_grouping,
        "local": declarer.local_or_shuffle_grouping,
        "all": declarer.all_grouping,
        "global": declarer.global_grouping,
        "direct": declarer.direct_grouping,
    }
    by_key = {"fields": declarer.fields_grouping, "partial": declarer.partial_key_grouping}
    custom: dict[str, Callable[[], CustomGrouping]] = {"by_key": ByKey, "twice": Twice, "drop_fives": DropFives}
    if heard.grouping in by_stream:
        by_stream[heard.grouping](heard.source, heard.stream)
    elif heard.grouping in by_key:
        by_key[heard.grouping](heard.source, ["key"], heard.stream)
    else:
        declarer.custom_grouping(heard.source, custom[heard.grouping](), heard.stream)
