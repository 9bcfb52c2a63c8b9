"""A committer whose keys stand in its tuples reads once a group, and reads the same as if it did not."""

from __future__ import annotations

from typing import Any

from committers.committer import ICommitter
from committers.committer_executor import CommitTask
from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.transport.blocks import Inbox
from coordinated_bolt.transport.wave_attempts import WaveAttempts
from state import HashState, SetState, ValueState
from state.commits.packed_writes import unpacked
from state.kinds import session
from tests.support.stores.memory_store import MemoryStore
from tests.support.tasks.outboxes import attempt_outbox
from tests.support.tasks.wire import alone
from tests.support.tasks.wirings import RecordingBolt, Sent, attempt, wire

ATTEMPTS = tuple(attempt(txid) for txid in range(1, 5))


class Reading(MemoryStore):
    """Committed state that notes what it is asked for."""

    def __init__(self, **states: dict[Any, Any]) -> None:
        super().__init__()
        self.states.update(states)
        self.asked: list[tuple[str, list[Any]]] = []

    def read(self, name, kind, fields, as_of_txid):
        self.asked.append((name, list(fields)))
        return super().read(name, kind, fields, as_of_txid)


class Balances(BaseBatchBolt, ICommitter):
    """Adds 1 to every account it is sent, one read for each."""

    balances = HashState("balances", value=int).prefetch("value")

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.accounts: list[Any] = []

    def execute(self, tup):
        self.accounts.append(tup[0])

    def finish_batch(self):
        for account in self.accounts:
            self.balances.put(account, (self.balances.get(account) or 0) + 1)


class Unprefetched(Balances):
    balances = HashState("balances", value=int)


class Twice(BaseBatchBolt, ICommitter):
    """Reads one value twice."""

    total = ValueState("total", value=int)

    def execute(self, tup):
        pass

    def finish_batch(self):
        self.total.get()
        self.total.get()


class Distinct(BaseBatchBolt, ICommitter):
    """Counts the numbers it has not seen."""

    seen = SetState("seen", value=int).prefetch("value")
    fresh = ValueState("fresh", value=int)

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.numbers: list[int] = []

    def execute(self, tup):
        self.numbers.append(tup[0])

    def finish_batch(self):
        new = [number for number, known in self.seen.contains_many(self.numbers).items() if not known]
        self.seen.add_many(new)
        self.fresh.increment(len(new))


def run(bolt, store, *transactions, damaged=()):
    """Runs the transactions, each a list of values, as one group; returns (verdicts, the state it leaves)."""
    attempts = ATTEMPTS[: len(transactions)]
    frames = Sent()
    emitter = wire(RecordingBolt(), task_id=1, upstream=(), targets=(10,))
    for each, values in zip(attempts, transactions, strict=True):
        outbox = attempt_outbox(emitter, each, frames.carrier)
        for value in values:
            AttemptCollector(emitter, each, outbox).emit([value])
        outbox.close()
    inbox = Inbox([alone(frame, attempts) for frame in frames], WaveAttempts(attempts))
    wiring = wire(bolt, targets=(), needs_id=True, component_id="store")
    report = CommitTask(wiring, store, Sent().carrier).run_group(attempts, inbox, composed=True)
    (write_set,) = report.write_sets
    return report.results, {name: dict(unpacked(writes).puts) for name, writes in write_set.states.items()}


def test_the_first_read_takes_along_what_the_whole_group_will_read():
    store = Reading(balances={"a": 10, "b": 20})
    _, left = run(Balances(), store, ["a", "b"], [], ["b", "c"], ["d"])
    assert store.asked == [("balances", ["a", "b", "c", "d"])]
    assert left == {"balances": {"a": 11, "b": 22, "c": 1, "d": 1}}


def test_keys_that_are_tuples_are_put_together_of_their_fields():
    handle = HashState("sums", field=(str, int)).prefetch("who", "n")
    columns: list[list[Any]] = [["ann", "bob"], [1, "no number"], ["cid"], [3]]
    assert list(handle._prefetched(lambda names: iter(columns))) == ["ann|1", "cid|3"]


def test_answers_and_recorded_reads_are_those_without_prefetching():
    transactions = (["a", "b", "a"], ["c", "a"], ["b"], ["d", "e"])
    states = {"a": 10, "c": 5}
    with_it, without = (
        run(bolt, Reading(balances=dict(states)), *transactions) for bolt in (Balances(), Unprefetched())
    )
    assert with_it[1] == without[1] == {"balances": {"a": 13, "b": 2, "c": 6, "d": 1, "e": 1}}
    assert [result.reads for result in with_it[0]] == [result.reads for result in without[0]]


def test_what_was_read_for_one_transaction_is_not_read_again_for_the_next():
    store = Reading()
    run(Twice(), store, [1], [2], [3])
    assert [name for name, _ in store.asked] == ["total"]


def test_a_new_group_reads_anew():
    store = Reading(balances={"a": 10})
    run(Unprefetched(), store, ["a"])
    store.states["balances"]["a"] = 50
    _, left = run(Unprefetched(), store, ["a"])
    assert left == {"balances": {"a": 51}}


def test_values_that_cannot_be_keys_are_passed_over_until_they_are_used():
    store = Reading(balances={"b": 1})
    results, _ = run(Balances(), store, ["a"], [None, "b"], ["c"])
    assert store.asked == [("balances", ["a", "b", "c"])]
    assert [result.failure is None for result in results] == [True, False]
    assert "declares str" in results[1].failure.text


def test_a_read_takes_along_no_more_than_the_limit_and_the_next_miss_takes_the_next(monkeypatch):
    monkeypatch.setattr(session, "PREFETCH_MAX", 3)
    store = Reading()
    run(Balances(), store, ["a"], ["b", "c"], ["d"], ["e"])
    assert [fields for _, fields in store.asked] == [["a", "b", "c"], ["d", "e"]]


def test_members_of_sets_are_prefetched_as_well():
    store = Reading(seen={2: True})
    results, left = run(Distinct(), store, [1, 2], [2, 3], [1, 4])
    assert [name for name, _ in store.asked] == ["seen"]
    assert not any(result.failure for result in results)
    assert set(left["seen"]) == {1, 3, 4}
