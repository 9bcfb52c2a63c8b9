"""Whole runs over input with poison in it, on a server in memory, by processes that may die at any call of theirs.

The input is words in batches; `POISON` is a word on which the bolt that parses raises, until it is fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from random import Random
from typing import Any, ClassVar
from unittest import mock

from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.engines.waves import stage
from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from coordinator.transactional.start.republish_choice import RepublishChoice
from coordinator.watching.statistics.run_statistics import RunStatistics
from state import HashState
from state.redis_owner.reader import RedisReader
from state.redis_owner.store import RedisStore
from state.redis_server.in_memory import in_memory_client
from tests.support.runs.collecting import Collecting
from tests.support.runs.in_process_engine import assembled_in_process, reader_on

TOPOLOGY_ID = "poisoned"
POISON = "poison"
Batches = Sequence[Sequence[str]]


class Killed(BaseException):
    """The process was killed; nothing of it is closed."""


class Parse(BaseBatchBolt):
    """Passes words on; raises on poison unless it is fixed."""

    output_fields = ("word",)

    def __init__(self, *, is_fixed: bool) -> None:
        self.is_fixed = is_fixed

    def execute(self, tup):
        if tup["word"] == POISON and not self.is_fixed:
            raise ValueError("this is poison")
        self.collector.emit([tup["word"]])


class ParseAndDrop(Parse):
    """Has somebody drop a quarantined batch while it runs.

    Attributes:
        drop: does it.
    """

    drop: ClassVar[Callable[[], object]]

    def finish_batch(self):
        ParseAndDrop.drop()


class Store(Collecting):
    """Counts words, and reads each count that it changes."""

    counts = HashState("counts", value=int)

    @property
    def found(self) -> Counter[str]:
        return Counter(self.column("word"))

    def finish_batch(self):
        for word, number in self.found.items():
            self.counts.put(word, (self.counts.get(word) or 0) + number)


class BlindStore(Store):
    """Counts words without reading."""

    def finish_batch(self):
        self.counts.increment_many(self.found)


def two_parts(batches: Batches) -> list[list[list[str]]]:
    """The words of each of two partitions, of which every batch takes two: the first and the second half."""
    return [[[word] for batch in batches for word in batch[2 * part : 2 * part + 2]] for part in range(2)]


SPOUTS: dict[str, Callable[[Batches], Any]] = {
    "whole": lambda batches: FixedBatchesSpout([[[word] for word in batch] for batch in batches], ["word"]),
    "partitioned": lambda batches: MemoryTransactionalSpout(two_parts(batches), ["word"], 2),
    "opaque": lambda batches: OpaqueMemoryTransactionalSpout(two_parts(batches), ["word"], 2),
}
"""Kind -> a spout whose k-th batch is the k-th of those given; each has four words."""


def topology(
    spout: Any, *, is_fixed: bool = False, reads: bool = False, parse: Any = None, store: Any = None
) -> Topology:
    """Words are parsed, then counted."""
    builder = TransactionalTopologyBuilder(TOPOLOGY_ID, "words", spout, parallelism=2)
    builder.set_bolt("parse", parse or Parse(is_fixed=is_fixed), 2).shuffle_grouping("words")
    builder.set_committer_bolt("store", store or (Store() if reads else BlindStore()), 1).global_grouping("parse")
    return builder.build()


def fold(batches: Batches, *, without: Sequence[int] = ()) -> Counter[str]:
    """The counts over all batches but those of these numbers, from 1."""
    return Counter(word for number, batch in enumerate(batches, 1) if number not in without for word in batch)


class MortalClient:
    """A client whose process dies at its `dies_at`-th call that may write, before the server has it or after.

    Args:
        inner: of the server.
        dies_at: counted from 1; None lives for ever.
        applied: whether the last call still reaches the server.
    """

    def __init__(self, inner: Any, dies_at: int | None, *, applied: bool) -> None:
        self._inner, self._dies_at, self._applied, self._calls = inner, dies_at, applied, 0

    def execute_command(self, *arguments: Any, **options: Any) -> Any:
        if arguments[0] == "FCALL":
            self._calls += 1
            if self._calls == self._dies_at:
                if self._applied:
                    self._inner.execute_command(*arguments, **options)
                raise Killed
        return self._inner.execute_command(*arguments, **options)

    def close(self) -> None:
        """The server stays."""


class QuarantineWorld:
    """A server, and runs on it one after the other.

    Args:
        seed: of windows, groups and delivery.
    """

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)
        self.server = in_memory_client()
        self._nonces = count(1)

    def run(
        self,
        made_of: Topology,
        *,
        republish: Sequence[int] | str | None = None,
        dies_at: int | None = None,
        applied: bool = False,
        **options: Any,
    ) -> RunStatistics:
        """A run to its end; raises what ends it."""
        nonce = f"{next(self._nonces):032x}"
        given: dict[str, Any] = {
            "max_spout_pending": self.random.choice([1, 2, 5, 16]),
            "commit_group_max": self.random.choice([1, 3, 8]),
            "early_commit": self.random.random() < 0.5,
            "on_poison": "quarantine",
            "max_attempts": 2,
        }
        store = self.store(dies_at, made_of.topology_id, applied=applied)
        around: dict[str, Any] = {"nonce": nonce, "new_generation": "f" * 32, "wall_clock": lambda: 1_000.0}
        choice = None if republish is None else RepublishChoice.of(republish)
        bounds = RunOptions(**(given | options))
        run = assembled_in_process(made_of, store, self.random, bounds, choice=choice, **around)
        with self._reading(nonce), run as coordinator:
            return coordinator.run()

    def dies(self, made_of: Topology, dies_at: int, **given: Any) -> bool:
        """A run that dies at a call; False if it has ended before."""
        try:
            self.run(made_of, dies_at=dies_at, **given)
        except Killed:
            return True
        return False

    def committed(self) -> int:
        """The last committed txid."""
        return int(self.server.hget(f"{{{TOPOLOGY_ID}}}:txbatch:control", "committed") or 0)

    def store(self, dies_at: int | None = None, topology_id: str = TOPOLOGY_ID, *, applied: bool = False) -> RedisStore:
        """A store on the server."""
        client = MortalClient(self.server, dies_at, applied=applied)
        store = RedisStore("redis://memory", topology_id, client=client)
        store.check_server()
        return store

    def quarantined(self) -> list[int]:
        """The txids of the quarantined batches."""
        return [record.txid for record in self.store().quarantined()]

    def counts(self) -> Counter[str]:
        """What any client reads."""
        found = self.server.hgetall(f"{{{TOPOLOGY_ID}}}:counts")
        return Counter({word.decode(): int(number) for word, number in found.items()})

    @contextmanager
    def _reading(self, nonce: str) -> Iterator[None]:
        def reader(reading: Any, topology_id: str, shard_count: int) -> RedisReader:
            return reader_on(self.server, nonce, topology_id, shard_count)

        with mock.patch.object(stage, "_LazyReader", side_effect=reader):
            yield
