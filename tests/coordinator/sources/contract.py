"""What every transactional source promises, as one test body: subclass `SourceContract` and describe a `SourceWorld`.

Deterministic replay, resume, growth, end, fingerprint, named errors, and state that is put back to an older copy. The
runs are whole ones, in process: the source is cut, read, committed and started again as it is on Spark. A test module
needs

    class TestTextFiles(SourceContract):
        @pytest.fixture
        def world(self, tmp_path): return TextFilesWorld(tmp_path)

and nothing else; what only this source promises is tested after it.
"""

from __future__ import annotations

import io
import pickle
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex
from typing import Any, ClassVar

import pytest

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt, OutputFieldsDeclarer
from coordinator import LocalCluster, RunOptions, TransactionalRun, TransactionalTopologyBuilder
from coordinator.operating.transfer.exporting import export_state
from coordinator.operating.transfer.importing import checked_export, import_state
from state import FailedException, FencedError, ListState, SourceError, StateRefusedError, UserCodeError
from state.codec import pack, unpack
from state.redis_admin.topology import RedisTopology

TOPOLOGY_ID = "source_contract"
SPEC_BYTES_MAX = 10_000
"""A spec travels with every task of every wave; an input of thousands of records must not be in it."""


class SourceWorld(ABC):
    """An input, from outside: how it is made, added to, and taken away.

    Attributes:
        rows: the values of every tuple the source has to emit, in the order they were added: the independent truth.
        adopt: the word with which a start reads on after `add`; False if it needs none.
        is_finite: whether a run ends by itself once everything was read.
        is_ordered: whether one task reads all rows in the order in which they were added.
        removes: whether what is committed is taken away, so that an older copy of the state has nothing to read.
        lost: pattern of the named error for rows that are gone, see `take_away`.
    """

    adopt: ClassVar[bool | str] = False
    is_finite: ClassVar[bool] = True
    is_ordered: ClassVar[bool] = True
    removes: ClassVar[bool] = False
    lost: ClassVar[str]

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []

    @abstractmethod
    def add(self, count: int) -> None:
        """Appends records to the input and their values to `rows`; called again after some were read."""

    @abstractmethod
    def spout(self) -> Any:
        """Makes a new spec over the input as it is now, which cuts transactions of a few rows (2 to 5)."""

    @abstractmethod
    def other_spout(self) -> Any:
        """Makes a spec over another input, which holds at least one record."""

    @abstractmethod
    def take_away(self) -> None:
        """Makes the records at the beginning impossible to read again: cut off, trimmed, rewritten."""

    def settle(self, run: TransactionalRun) -> None:
        """Moves a run until everything there is was read and committed; override it where that takes patience."""
        run.run_until_idle()


class Keep(BaseBatchBolt, ICommitter):
    """Appends every tuple to a list, and remembers what each attempt was given.

    Attributes:
        given: (txid, attempt id) -> packed tuples, in order.
        fail_once: txids of which the first attempt fails.
        stop_at: the transaction that never commits, as if the user's code had a bug.
    """

    kept = ListState("kept", value=bytes)
    given: ClassVar[dict[tuple[int, int], list[bytes]]] = {}
    fail_once: ClassVar[set[int]] = set()
    stop_at: ClassVar[int] = 0

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.mine: list[bytes] = []

    def execute(self, tup):
        self.mine.append(pack(list(tup.values)))

    def finish_batch(self):
        Keep.given[self.attempt.txid, self.attempt.attempt_id] = list(self.mine)
        if self.attempt.txid == Keep.stop_at:
            raise ValueError("stopped by the test")
        if self.attempt.txid in Keep.fail_once:
            Keep.fail_once.discard(self.attempt.txid)
            raise FailedException("the first attempt fails")
        self.kept.extend(self.mine)


def by_content(rows: list[list[Any]]) -> Counter[bytes]:
    return Counter(map(pack, rows))


class Copy:
    """The state of the topology at one moment, as an export or as a copy of the server's own keys."""

    def __init__(self, client: Any, *, is_export: bool) -> None:
        self._client = client
        self._keys = {key: client.dump(key) for key in client.keys(f"{{{TOPOLOGY_ID}}}:*")}
        self._export = io.BytesIO()
        if is_export:
            topology = self._topology()
            export_state(topology.records(), self._export)

    def put_back(self) -> None:
        """The topology's state is that again; an import replaces it in one step, and fences out a run."""
        if self._export.getvalue():
            packed = self._export.getvalue()
            export = checked_export(io.BytesIO(packed))
            import_state(
                self._topology().importer(), export, io.BytesIO(packed), generation=token_hex(16), replaces=True
            )
            return
        for key in self._client.keys(f"{{{TOPOLOGY_ID}}}:*"):
            self._client.delete(key)
        for key, packed in self._keys.items():
            self._client.restore(key, 0, packed)

    def _topology(self) -> RedisTopology:
        return RedisTopology("redis://given", TOPOLOGY_ID, client=self._client)


class RestoreContract:
    """What holds for every source when the state it is continued from is an older copy.

    Subclasses give the fixture `world`, and may give further ones.
    """

    @pytest.fixture(autouse=True)
    def forget(self) -> None:
        Keep.given, Keep.fail_once, Keep.stop_at = {}, set(), 0

    @pytest.fixture
    def cluster(self) -> Iterator[LocalCluster]:
        with LocalCluster(seed=3) as made:
            yield made

    @contextmanager
    def run(
        self,
        cluster: LocalCluster,
        spout: Any,
        *,
        parallelism: int = 1,
        max_pending: int = 3,
        adopt: bool | str = False,
    ) -> Iterator[TransactionalRun]:
        builder = TransactionalTopologyBuilder(TOPOLOGY_ID, "source", spout, parallelism=parallelism)
        keep = builder.set_committer_bolt("keep", Keep())
        declarer = OutputFieldsDeclarer("source")
        spout.declare_output_fields(declarer)
        for stream_id in declarer.streams:
            keep.global_grouping("source", stream_id)
        run = cluster.submit(builder.build(), options=RunOptions(max_spout_pending=max_pending, adopt=adopt))
        try:
            yield run
        finally:
            run.close()

    def read(self, cluster: LocalCluster, world: SourceWorld, **more: Any) -> list[list[Any]]:
        """Runs until everything is committed, and returns all that was ever committed."""
        with self.run(cluster, world.spout(), **more) as run:
            world.settle(run)
            assert run.is_done is world.is_finite
            return self.kept(run)

    def stop_at(self, cluster: LocalCluster, world: SourceWorld, txid: int) -> None:
        """Ends a run before a transaction commits: it, and what follows it, is cut and stored."""
        Keep.stop_at = txid
        with pytest.raises(UserCodeError, match="stopped by the test"), self.run(cluster, world.spout()) as run:
            world.settle(run)
        Keep.stop_at = 0

    def kept(self, run: TransactionalRun) -> list[list[Any]]:
        return [unpack(packed) for packed in run.state("kept")]

    @pytest.mark.parametrize("is_export", [True, False], ids=["imported", "restored"])
    def test_an_older_copy_of_the_state_is_continued_exactly_or_refused_by_name(self, cluster, world, is_export):
        world.add(23)
        self.stop_at(cluster, world, 3)
        copy = Copy(cluster.client, is_export=is_export)
        world.add(9)
        self.read(cluster, world, adopt=world.adopt)
        copy.put_back()
        self.check_continued(cluster, world)

    @pytest.mark.parametrize("is_export", [True, False], ids=["imported", "restored"])
    def test_a_run_whose_state_is_put_back_stops_by_name_and_the_next_continues_exactly(
        self, cluster: LocalCluster, world: SourceWorld, is_export: bool
    ) -> None:
        world.add(23)
        self.stop_at(cluster, world, 2)
        copy = Copy(cluster.client, is_export=is_export)
        with self.run(cluster, world.spout(), max_pending=2) as run:
            while run.statistics.committed < 2:
                run.tick()
            copy.put_back()
            with pytest.raises((FencedError, StateRefusedError)):
                world.settle(run)
        self.check_continued(cluster, world)

    def check_continued(self, cluster: LocalCluster, world: SourceWorld) -> None:
        """A run adds what the state lacks, or, if that is gone from the input, changes nothing and says so."""
        if not world.removes:
            assert by_content(self.read(cluster, world, adopt=world.adopt)) == by_content(world.rows)
            return
        before = cluster.client.lrange(f"{{{TOPOLOGY_ID}}}:kept", 0, -1)
        with pytest.raises((SourceError, StateRefusedError)):
            self.read(cluster, world, adopt=world.adopt)
        assert cluster.client.lrange(f"{{{TOPOLOGY_ID}}}:kept", 0, -1) == before


class SourceContract(RestoreContract):
    """All tests of a source whose replays are exact."""

    @pytest.mark.parametrize("parallelism", [1, 2, 3])
    def test_every_record_is_committed_exactly_once(self, cluster, world, parallelism):
        world.add(23)
        kept = self.read(cluster, world, parallelism=parallelism)
        assert by_content(kept) == by_content(world.rows)
        assert len(Keep.given) > 2, "the input was cut into several transactions"

    def test_one_task_reads_in_the_order_of_the_input(self, cluster: LocalCluster, world: SourceWorld) -> None:
        if not world.is_ordered:
            pytest.skip("this source has partitions, which have no order among them")
        world.add(23)
        assert self.read(cluster, world) == world.rows

    def test_a_replay_emits_the_same_tuples_in_the_same_order(self, cluster: LocalCluster, world: SourceWorld) -> None:
        world.add(23)
        Keep.fail_once = {1, 2, 4}
        kept = self.read(cluster, world)
        given = Counter(txid for txid, _ in Keep.given)
        assert {txid for txid, attempts in given.items() if attempts > 1} >= {1, 2, 4}
        for txid in given:
            first, *others = [rows for (number, _), rows in Keep.given.items() if number == txid]
            assert all(other == first for other in others)
        assert by_content(kept) == by_content(world.rows)

    @pytest.mark.parametrize("txid", [1, 3])
    def test_the_next_run_replays_what_was_cut_even_if_the_input_has_grown(self, cluster, world, txid):
        world.add(23)
        self.stop_at(cluster, world, txid)
        before = {number: rows for (number, _), rows in Keep.given.items() if number >= txid}
        Keep.given = {}
        world.add(9)
        kept = self.read(cluster, world, adopt=world.adopt)
        after = {number: rows for (number, _), rows in Keep.given.items()}
        assert before
        assert {number: after[number] for number in before} == before
        assert by_content(kept) == by_content(world.rows)

    def test_a_drained_run_is_continued(self, cluster: LocalCluster, world: SourceWorld) -> None:
        world.add(23)
        with self.run(cluster, world.spout(), max_pending=1) as run:
            for _ in range(10_000):  # bounded: far more steps than two transactions take
                if run.statistics.committed >= 2:
                    break
                run.tick()
            run.drain()
            run.run_until_idle()
            assert run.is_done
            assert 0 < len(self.kept(run)) < len(world.rows)
        assert by_content(self.read(cluster, world)) == by_content(world.rows)

    def test_what_is_added_after_the_end_is_read_by_the_next_run(self, cluster, world):
        for count in (5, 1, 12):
            world.add(count)
            kept = self.read(cluster, world, adopt=world.adopt)
            assert by_content(kept) == by_content(world.rows)

    def test_a_run_on_an_input_read_to_its_end_adds_nothing(self, cluster: LocalCluster, world: SourceWorld) -> None:
        world.add(7)
        first = self.read(cluster, world)
        assert self.read(cluster, world) == first

    def test_another_batch_of_tasks_reads_on(self, cluster: LocalCluster, world: SourceWorld) -> None:
        world.add(23)
        self.stop_at(cluster, world, 3)
        kept = self.read(cluster, world, parallelism=3)
        assert by_content(kept) == by_content(world.rows)

    def test_the_fingerprint_is_one_line_that_stays_while_the_input_does(self, world: SourceWorld) -> None:
        world.add(5)
        first, again, other = (
            world.spout().fingerprint(),
            world.spout().fingerprint(),
            world.other_spout().fingerprint(),
        )
        assert first == again != other
        assert first.isprintable()

    def test_another_input_is_refused(self, cluster: LocalCluster, world: SourceWorld) -> None:
        world.add(5)
        self.read(cluster, world)
        with pytest.raises(StateRefusedError, match="was started on another input"):  # noqa: SIM117 - one submits
            with self.run(cluster, world.other_spout()):
                pass

    def test_records_that_are_gone_end_the_run_with_a_named_error_and_change_nothing(self, cluster, world):
        world.add(23)
        self.stop_at(cluster, world, 1)
        world.take_away()
        refused = (SourceError, StateRefusedError)  # at the replay, or already by what the start compares
        with pytest.raises(refused, match=world.lost), self.run(cluster, world.spout()) as run:
            world.settle(run)
        assert not cluster.client.exists(f"{{{TOPOLOGY_ID}}}:kept")

    def test_the_spec_is_small_and_works_where_it_arrives(self, cluster: LocalCluster, world: SourceWorld) -> None:
        world.add(300)
        packed = pickle.dumps(world.spout())
        assert len(packed) < SPEC_BYTES_MAX
        with self.run(cluster, pickle.loads(packed), max_pending=8) as run:
            world.settle(run)
            assert by_content(self.kept(run)) == by_content(world.rows)
