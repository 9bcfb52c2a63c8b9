"""Runs Spark jobs over shuffled frames, with few calls into the Java process.

pyspark looks a Java class up by name whenever it uses one, which makes Java search all of its archives, and it passes
the same environment and the same lists for every stage. This module passes whatever all waves of a run share only once.
The RDDs are those that pyspark would make, with two differences: frames cross a shuffle by Java's own serializer, since
each task would otherwise set up a pool of Kryo's for a handful of records, and Spark's web page does not show the RDDs
as one operation, since the description of an operation costs more than its RDD.

pyspark offers no public way to do this, so its private names are used here.
"""

from __future__ import annotations

import pickle
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.serializers import BatchedSerializer, NoOpSerializer

from coordinator.engines.spark.shipping import dumps
from coordinator.engines.spark.spark_versions import load_records
from coordinator.engines.spark.worker_settling import settle_worker
from coordinator.engines.waves.stage_context import Addressed, StageFunction

if TYPE_CHECKING:
    from pyspark import RDD, Broadcast, SparkContext

LONG = struct.Struct("!q")
HELD_BYTES = 8 * 1024 * 1024
"""A task passes its frames to Java whenever it holds this many bytes of them."""
CODE_VARIABLE = "TXBATCH_CODE"
"""Distinguishes the workers of one archive from those of another; nothing reads its value."""
THREAD_PROPERTIES = {"spark.rdd.scope.noOverride": "true", "callSite.short": "txbatch", "callSite.long": "txbatch"}
"""They save Spark the description of each RDD, and the search for the line that made it."""


@dataclass(frozen=True, slots=True)
class Source:
    """The records that Java holds, in partitions (driver).

    Attributes:
        java_rdd: the RDD in Java.
        deserializer: pyspark's, which makes records of its bytes.
    """

    java_rdd: Any
    deserializer: Any

    @classmethod
    def of(cls, rdd: RDD[Any]) -> Source:
        """Returns the records of an RDD made with pyspark's own methods."""
        return cls(rdd._jrdd.rdd(), rdd._jrdd_deserializer)  # noqa: SLF001 - there is no public name

    def delete_shuffle_files(self) -> None:
        """Deletes the files of every shuffle that leads to these records; nothing above can be run again."""
        self.java_rdd.cleanShuffleDependencies(True)


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames that a stage will send once a job asks for them (driver).

    Attributes:
        source: the records that the stages read.
        stages: run on each partition, one after the other, in one task; without any, records pass as they are.
    """

    source: Source
    stages: tuple[StageFunction, ...] = ()

    def then(self, stage: StageFunction) -> Frames:
        """Returns the same with one more stage in the same tasks."""
        return Frames(self.source, (*self.stages, stage))


class FrameJobs:
    """Makes the shuffles of one run, and runs its jobs; constructed on any thread, used on the threads that run jobs.

    Spark chooses workers by their environment. It names the archive here, so that in a session that outlives many runs
    no worker is used that has imported other code.

    Args:
        context: the Spark context.
        code: the archive that tasks import from, as named by `ship_code`; empty if they find everything without it.
    """

    def __init__(self, context: SparkContext, code: str = "") -> None:
        self.context = context
        self._code = code
        self._seeds: dict[int, Source] = {}
        self._partition_lists: dict[tuple[int, ...], Any] = {}
        self._partitioners: dict[int, Any] = {}
        self._known_broadcasts: dict[frozenset[Broadcast[Any]], Any] = {}

    def seeds(self, partition_count: int) -> Source:
        """Returns partitions without content, for stages that read by themselves."""
        found = self._seeds.get(partition_count)
        if found is None:
            found = Source.of(self.context.parallelize([None] * partition_count, partition_count))
            self._seeds[partition_count] = found
        return found

    def shuffled(self, frames: Frames, partition_count: int) -> Source:
        """Moves frames to the partitions that they name, in the next stage."""
        java = self._java
        paired = java.pairwise_rdd(self._python_rdd(frames.then(by_partition), NoOpSerializer()))
        partitioner = self._partitioners.get(partition_count)
        if partitioner is None:
            partitioner = self._partitioners[partition_count] = java.partitioner(partition_count, 0)
        moved = java.shuffled_rdd(paired, partitioner, java.any_class, java.any_class, java.any_class)
        moved.setSerializer(java.serializer)
        values = java.value_of_pair(java.java_pair_rdd(moved, java.any_class, java.any_class))
        return Source(values.rdd(), self._batches)

    def joined(self, first: Frames, second: Frames) -> Source:
        """Returns the partitions of the first, and after them those of the second."""
        serializer = self.context.serializer
        both = [self._python_rdd(frames, serializer).asJavaRDD() for frames in (first, second)]
        return Source(both[0].union(both[1]).rdd(), serializer)

    def run(self, frames: Frames, partitions: Sequence[int]) -> list[Any]:
        """Runs some partitions as one job and returns their records, in the order of the partitions."""
        java, serializer = self._java, self.context.serializer
        wanted = self._partition_lists.get(tuple(partitions))
        if wanted is None:
            wanted = self._partition_lists[tuple(partitions)] = java.array_list(partitions)
        rdd = self._python_rdd(frames, serializer).asJavaRDD()
        answer = java.run_job(java.scala_context, rdd, wanted)
        return load_records([java.element(answer, 0), java.element(answer, 1)], serializer)

    @cached_property
    def _java(self) -> _JavaNames:
        return _JavaNames(self.context, self._code)

    @cached_property
    def _batches(self) -> Any:
        """Reads what `by_partition` writes."""
        serializer: Any = BatchedSerializer
        return serializer(self.context._unbatched_serializer)  # noqa: SLF001

    def _python_rdd(self, frames: Frames, serializer: Any) -> Any:
        """Returns Java's RDD of the records that the stages yield."""
        java = self._java
        command, broadcasts = self._packed((Stages(frames.stages), None, frames.source.deserializer, serializer))
        function = java.python_function(
            bytearray(command),
            java.environment,
            java.includes,
            self.context.pythonExec,
            self.context.pythonVer,
            broadcasts,
            java.accumulator,
        )
        return java.python_rdd(frames.source.java_rdd, function, False, False)

    def _packed(self, command: Any) -> tuple[bytes, Any]:
        """Returns the command as it is sent to workers, and the list of the broadcasts it refers to."""
        registry = self.context._pickled_broadcast_vars  # noqa: SLF001
        packed = dumps(command)
        is_large = len(packed) > self._java.broadcast_threshold
        if is_large:
            packed = dumps(self.context.broadcast(packed))
        referred = frozenset(registry)
        registry.clear()
        known = self._known_broadcasts.get(referred)
        if known is None:
            known = self._java.array_list(broadcast._jbroadcast for broadcast in referred)  # noqa: SLF001
            if not is_large:  # else one of them belongs to this command alone
                self._known_broadcasts[referred] = known
        return packed, known


class _JavaNames:
    """Classes, methods and values of the Java process that every job needs, each looked up once."""

    def __init__(self, context: SparkContext, code: str) -> None:
        jvm: Any = context._jvm  # noqa: SLF001
        self.python_function = jvm.SimplePythonFunction
        self.python_rdd = jvm.PythonRDD
        self.run_job = jvm.PythonRDD.runJob
        self.value_of_pair = jvm.PythonRDD.valueOfPair
        self.pairwise_rdd = jvm.PairwiseRDD
        self.partitioner = jvm.PythonPartitioner
        self.shuffled_rdd = jvm.org.apache.spark.rdd.ShuffledRDD
        self.java_pair_rdd = jvm.org.apache.spark.api.java.JavaPairRDD
        self.element = jvm.java.lang.reflect.Array.get
        self._array_list = jvm.java.util.ArrayList
        self.scala_context = context._jsc.sc()  # noqa: SLF001
        self.any_class = getattr(getattr(jvm.scala.reflect, "ClassTag$"), "MODULE$").Any()
        self.serializer = jvm.org.apache.spark.serializer.JavaSerializer(self.scala_context.conf())
        self.broadcast_threshold = jvm.PythonUtils.getBroadcastThreshold(context._jsc)  # noqa: SLF001
        self.accumulator = context._javaAccumulator  # noqa: SLF001
        self.environment = _filled(jvm.java.util.HashMap(), {**context.environment, CODE_VARIABLE: code})
        # a worker looks first in the last one of the list
        self.includes = self.array_list([*(context._python_includes or ()), *filter(None, [code])])  # noqa: SLF001

    def array_list(self, values: Iterable[Any]) -> Any:
        made = self._array_list()
        for value in values:
            made.add(value)
        return made


def settle_thread(context: SparkContext, pool: str) -> None:
    """Readies a thread for all jobs it will run; called on it, once."""
    for name, value in {"spark.scheduler.pool": pool, **THREAD_PROPERTIES}.items():
        context.setLocalProperty(name, value)


@dataclass(frozen=True, slots=True)
class Stages:
    """Stages that run in one task, each on what the one before it yields (executor).

    They leave nothing unread, because Spark ends a worker that has not read all that it was sent.
    """

    stages: tuple[StageFunction, ...]

    def __call__(self, partition: int, records: Iterable[Any]) -> Iterator[Any]:
        settle_worker()
        made = given = iter(records)
        for stage in self.stages:
            made = iter(stage(partition, made))
        yield from made
        for _ in given:
            pass


def by_partition(_: int, records: Iterable[Addressed]) -> Iterator[bytes]:
    """Yields frames as Java reads them, in pairs: a partition, and the list of the frames for it (executor)."""
    held: defaultdict[int, list[Addressed]] = defaultdict(list)
    held_bytes = 0
    for record in records:
        held[record[0]].append(record)
        held_bytes += len(record[1])
        if held_bytes >= HELD_BYTES:
            yield from _handed_over(held)
            held_bytes = 0
    yield from _handed_over(held)


def does_nothing(_: int, records: Iterable[Any]) -> Iterable[Any]:
    """A stage that does nothing, but needs a worker (executor)."""
    return records


def _handed_over(held: dict[int, list[Addressed]]) -> Iterator[bytes]:
    for partition in list(held):
        yield LONG.pack(partition)
        yield pickle.dumps(held.pop(partition), pickle.HIGHEST_PROTOCOL)


def _filled(java_map: Any, values: Mapping[str, str]) -> Any:
    for name, value in values.items():
        java_map.put(name, value)
    return java_map
