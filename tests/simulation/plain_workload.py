"""What a plain topology runs in a simulation: numbered rows of a log, each to be seen by two bolts, at least once."""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

from coordinated_bolt.components.rich_bolts import BaseRichBolt
from coordinated_bolt.components.spouts import BaseSpout
from coordinator.plain.kafka.partition_manager import OffsetManager
from coordinator.plain.plain_topology import PlainTopology
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.testing.simulated.fault_plan import FaultPlan
from state.errors import FailedException, StateError

PLAIN_ID = "plain"
PARTITIONS, ROWS = 2, 15
SAVE_EVERY = 3
LEAVES = ("left", "right")
Row = tuple[int, int]


class PlainWorld:
    """What user code sees of the simulation it is in; set while one runs.

    Attributes:
        faults: what goes wrong in user code.
        records: what the acting process stores offsets with.
        seen: bolt -> the rows that it has executed, in whichever run.
        acked: the rows that some spout was told of.
    """

    faults: ClassVar[FaultPlan]
    records: ClassVar[Any] = None
    seen: ClassVar[dict[str, set[Row]]] = {}
    acked: ClassVar[set[Row]] = set()

    @classmethod
    def reset(cls, faults: FaultPlan, records: Any) -> None:
        """Nothing has happened yet."""
        cls.faults, cls.records = faults, records
        cls.seen, cls.acked = {leaf: set() for leaf in LEAVES}, set()

    @classmethod
    def is_told(cls, row: Row) -> None:
        """A spout was told that a row is done: its tree has closed, so both bolts have seen it."""
        missing = [leaf for leaf, rows in cls.seen.items() if row not in rows]
        assert not missing, f"row {row} is acked, and {missing} has never seen it"
        cls.acked.add(row)

    @classmethod
    def is_saved(cls, partition: int, offset: int) -> None:
        """A process is about to store that everything below an offset is done."""
        open_rows = [row for row in range(offset) if (partition, row) not in cls.acked]
        assert not open_rows, f"offset {offset} of partition {partition} is stored, and rows {open_rows} are not acked"

    @classmethod
    def missing(cls) -> list[Row]:
        """Rows that a bolt has not seen."""
        every = {(partition, row) for partition in range(PARTITIONS) for row in range(ROWS)}
        return sorted(row for row in every if not all(row in rows for rows in cls.seen.values()))


class LogSpout(BaseSpout):
    """Reads its partitions of the log from the stored offsets on, and emits again what has failed."""

    output_fields = ("partition", "row")

    def open(self, conf, context, collector):
        super().open(conf, context, collector)
        self.offsets: dict[int, OffsetManager] = {}
        self.next: dict[int, int] = {}
        self.saved: dict[int, int] = {}
        self.failed: deque[Row] = deque()
        for partition in range(context.task_index, PARTITIONS, context.task_count):
            first = int(PlainWorld.records().load(f"log:{partition}") or 0)
            self.offsets[partition] = OffsetManager(first)
            self.next[partition] = self.saved[partition] = first

    def next_tuple(self):
        if self.failed:
            self._emit(self.failed.popleft())
            return
        for partition, row in self.next.items():
            if row < ROWS:
                self.next[partition] = row + 1
                self.offsets[partition].emitted(row)
                self._emit((partition, row))
                return

    def ack(self, message_id):
        PlainWorld.is_told(message_id)
        partition, row = message_id
        self.offsets[partition].acked(row)
        self._save(partition, SAVE_EVERY)

    def fail(self, message_id):
        self.failed.append(message_id)

    def deactivate(self):
        for partition in self.offsets:
            self._save(partition, 1)

    def _emit(self, row: Row) -> None:
        self.collector.emit(list(row), row)

    def _save(self, partition: int, every: int) -> None:
        offset = self.offsets[partition].next_commit_offset()
        if offset >= self.saved[partition] + every:
            PlainWorld.is_saved(partition, offset)
            try:
                PlainWorld.records().save({f"log:{partition}": str(offset)})
            except StateError:
                return  # the next ack tries again
            self.saved[partition] = offset


class _MayFail(BaseRichBolt):
    """Fails its tuple if that is planned: by hand, by raising, or by saying nothing."""

    def fails(self, tup: Any) -> bool:
        faults = PlainWorld.faults
        if not faults.strikes("bolt.fails"):
            return False
        how = faults.drawn("bolt.fails").choice(["fail", "raise", "leave"])
        if how == "raise":
            raise FailedException("bolt.fails by plan")
        if how == "fail":
            self.collector.fail(tup)
        return True


class Fan(_MayFail):
    """Sends each row to two bolts."""

    output_fields = ("partition", "row")

    def execute(self, tup):
        if not self.fails(tup):
            self.collector.emit([tup["partition"], tup["row"]], tup)
            self.collector.ack(tup)


class Leaf(_MayFail):
    """Sees a row."""

    output_fields = ()

    def execute(self, tup):
        if not self.fails(tup):
            PlainWorld.seen[self.context.component_id].add((tup["partition"], tup["row"]))
            self.collector.ack(tup)


def plain_topology(tasks: list[int]) -> PlainTopology:
    """The topology.

    Args:
        tasks: of spout, fan, leaves and ackers.
    """
    builder = TopologyBuilder(PLAIN_ID)
    builder.set_acker_count(tasks[3])
    builder.set_max_spout_pending(8)
    builder.set_spout("log", LogSpout(), tasks[0])
    builder.set_bolt("fan", Fan(), tasks[1]).shuffle_grouping("log")
    for leaf in LEAVES:
        builder.set_bolt(leaf, Leaf(), tasks[2]).fields_grouping("fan", ["row"])
    return builder.build()
