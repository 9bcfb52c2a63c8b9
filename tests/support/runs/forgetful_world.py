"""Many runs of one topology on a server that loses writes, and what they have to leave there.

The topology counts words and chains a checksum over its transactions; its input is the same for every kind of
spout, and its fold is computed apart.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, Protocol
from zlib import crc32

from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.sources.files.line_files import TextFiles
from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.options import RunOptions
from state import HashState, TransactionError, ValueState
from state.redis_owner.reader import RedisReader
from state.redis_owner.store import RedisStore
from tests.support.runs.collecting import Collecting
from tests.support.runs.in_process_engine import assembled_in_process, reader_on

TRANSACTIONS, PARTITIONS, TAKE = 40, 3, 2
TOPOLOGY_ID = "forgetful"
CONTROL, COUNTS = f"{{{TOPOLOGY_ID}}}:txbatch:control", f"{{{TOPOLOGY_ID}}}:counts"


class Server(Protocol):
    """What holds the state: a client for the runs, and a look inside that no fault disturbs."""

    inner: Any

    def execute_command(self, *arguments: Any) -> Any:
        """What a client calls."""

    def close(self) -> None:
        """A client may be closed; the server stays."""

    def holds(self, key: str, field: str) -> bytes | None:
        """One field of a hash."""


class Store(Collecting):
    """Counts words, and chains a checksum over the transactions: one that is lost, doubled or moved changes it."""

    counts = HashState("counts", value=int)
    chain = ValueState("chain", value=int)

    @property
    def words(self) -> Counter[str]:
        return Counter(self.column("word"))

    def finish_batch(self):
        self.counts.increment_many(self.words)
        self.chain.put(chained(self.chain.get() or 0, self.words))


class BlindStore(Store):
    """The same without a read, so that it runs in the wave's job."""

    def finish_batch(self):
        self.counts.increment_many(self.words)


def chained(before: int, words: Counter[str]) -> int:
    return crc32(f"{before} {sorted(words.items())}".encode())


class Told(SpoutCommitter):
    """Must never hear of a transaction that the server does not hold."""

    server: ClassVar[Server]

    def commit(self, attempt):
        receipt = self.server.holds(f"{{{TOPOLOGY_ID}}}:txbatch:receipts", str(attempt.txid))
        assert receipt is not None
        assert int(receipt.split()[0], 16) == attempt.attempt_id


class ToldFixed(FixedBatchesSpout, ICommitterTransactionalSpout):
    def get_committer(self, conf, context):
        return Told()


class ToldOpaque(OpaqueMemoryTransactionalSpout, ICommitterTransactionalSpout):
    def get_committer(self, conf, context):
        return Told()


def word(transaction: int, number: int) -> str:
    return f"w{(transaction * 7 + number * number) % 23}"


BATCHES = [[word(t, n) for n in range(PARTITIONS * TAKE)] for t in range(TRANSACTIONS)]
ROWS_OF_PARTITION = [
    [[word(t, p * TAKE + i)] for t in range(TRANSACTIONS) for i in range(TAKE)] for p in range(PARTITIONS)
]


def spouts(folder: Any) -> dict[str, Any]:
    text = folder / "words.txt"
    text.write_text("".join(f"{w}\n" for batch in BATCHES for w in batch))
    batches = [[[w] for w in batch] for batch in BATCHES]
    return {
        "fixed": FixedBatchesSpout(batches, ["word"]),
        "told": ToldFixed(batches, ["word"]),
        "files": TextFiles(str(text), PARTITIONS * TAKE),
        "partitioned": MemoryTransactionalSpout(ROWS_OF_PARTITION, ["word"], TAKE),
        "opaque": OpaqueMemoryTransactionalSpout(ROWS_OF_PARTITION, ["word"], TAKE),
        "told opaque": ToldOpaque(ROWS_OF_PARTITION, ["word"], TAKE),
    }


KINDS = ["fixed", "told", "files", "partitioned", "opaque", "told opaque"]


def topology_on(spout: Any, *, reads: bool) -> Topology:
    builder = TransactionalTopologyBuilder(TOPOLOGY_ID, "words", spout, parallelism=2)
    fields = "line" if isinstance(spout, TextFiles) else "word"
    builder.set_bolt("pass", Pass(fields), 2).shuffle_grouping("words")
    builder.set_committer_bolt("store", Store() if reads else BlindStore(), 1).global_grouping("pass")
    return builder.build()


class Pass(BaseBatchBolt):
    output_fields = ("word",)

    def __init__(self, field: str) -> None:
        self.field = field

    def execute(self, tup):
        self.collector.emit([tup[self.field]])


def folded() -> tuple[list[Counter[str]], list[int]]:
    """Counts and chain after 0, 1, 2, … transactions."""
    counts, chains = [Counter[str]()], [0]
    for batch in BATCHES:
        counts.append(counts[-1] + Counter(batch))
        chains.append(chained(chains[-1], Counter(batch)))
    return counts, chains


@dataclass
class World:
    """A server, the runs on it, and what they have to leave there.

    Attributes:
        ended: how runs have ended -> how many.
    """

    topology: Topology
    server: Server
    random: Random
    reads: bool
    runs: list[tuple[ExitStack, Coordinator]] = field(default_factory=list)
    ended: Counter[str] = field(default_factory=Counter)
    now_s: float = 0.0

    def start(self) -> None:
        """A new run, which the older ones may outlive for a while."""
        nonce = f"{self.random.getrandbits(128):032x}"
        store = RedisStore("redis://forgetful", TOPOLOGY_ID, client=self.server, **self.time())
        options = RunOptions(
            max_spout_pending=self.random.choice([1, 2, 5, 16]),
            commit_group_max=self.random.choice([1, 3, 8]),
            early_commit=self.random.random() < 0.5,
        )
        stack = ExitStack()
        try:
            store.check_server()
            generation = f"{self.random.getrandbits(128):032x}"
            around: dict[str, Any] = {"nonce": nonce, "new_generation": generation, "clock": lambda: self.now_s}
            run = assembled_in_process(self.topology, store, self.random, options, **around)
            coordinator = stack.enter_context(run)
        except TransactionError as error:
            self.note(error)
        else:
            self.runs.append((stack, coordinator))

    def time(self) -> dict[str, Any]:
        def sleep(seconds: float) -> None:
            self.now_s += seconds

        return {"clock": lambda: self.now_s, "sleep": sleep}

    def reader(self, reading: Any, topology_id: str, shard_count: int) -> RedisReader:
        return reader_on(self.server, reading.nonce, topology_id, shard_count, timeout_s=10.0, **self.time())

    def step(self, place: int) -> None:
        """One turn of a run."""
        stack, coordinator = self.runs[place]
        try:
            is_done = coordinator.turn()
        except TransactionError as error:
            self.note(error)
        else:
            if not is_done:
                return
            self.ended["done"] += 1
            assert self.committed() == TRANSACTIONS, "a run that says done is done"
        del self.runs[place]
        stack.close()

    def note(self, error: TransactionError) -> None:
        """Runs end by one of these, each for a reason the server gave; anything else is a fault of ours."""
        text = str(error)
        for reason in (
            "REGRESSED",
            "returned to an earlier state",
            "was taken over by a newer coordinator",
            "did not answer",
            "is gone",
        ):
            if reason in text:
                self.ended[reason] += 1
                return
        if type(error).__name__ == "ReplayLimitError" and ("StaleRead" in text or "did not answer" in text):
            self.ended["overtaken"] += 1
            return
        raise AssertionError(f"a run ended by {error!r}") from error

    def committed(self) -> int:
        return int(self.server.holds(CONTROL, "committed") or 0)

    def check(self, expected: tuple[list[Counter[str]], list[int]]) -> None:
        txid = self.committed()
        found = {name.decode(): int(count) for name, count in self.server.inner.hgetall(COUNTS).items()}
        assert found == expected[0][txid], f"counts as of txid {txid}"
        if self.reads:
            assert int(self.server.inner.get(f"{{{TOPOLOGY_ID}}}:chain") or 0) == expected[1][txid]
