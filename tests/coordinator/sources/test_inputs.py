"""Several sources in one topology keep the contract of one, and each of them its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from committers.committer import ICommitter
from coordinated_bolt import BaseBatchBolt, TopologyContext
from coordinator import ICommitterTransactionalSpout, LocalCluster, RunOptions, RunSoFar, Topology, prove, run, stream
from coordinator.sources import Batches, CsvFiles, Follow, Inputs, JsonLines, TextFiles
from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState, ListState, SourceError, StateRefusedError, TopologyError
from tests.conftest import Backend
from tests.coordinator.sources.contract import Keep, SourceContract, SourceWorld
from tests.support.cli.processes import killed_and_ended
from tests.support.sources.file_worlds import JsonWorld, TextWorld

ORDERS = "order,customer,cents\n1,ann,500\n2,bob,700\n3,ann,900\n4,eve,100\n5,bob,50\n"
RETURNS = '{"order": 2, "cents": 700}\n{"order": 3, "cents": 100}\n'


class InputsWorld(SourceWorld):
    """Lines of text and JSON Lines, which grow together; a transaction is a part of each."""

    is_ordered: ClassVar[bool] = False
    adopt: ClassVar[bool | str] = TextWorld.adopt
    lost: ClassVar[str] = TextWorld.lost

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.text, self.json = TextWorld(folder / "text"), JsonWorld(folder / "json")

    def add(self, count: int) -> None:
        self.text.add(count - count // 3)
        self.json.add(max(1, count // 3))
        self.rows = [*self.text.rows, *self.json.rows]

    def spout(self) -> Inputs:
        return Inputs(text=self.text.spout(), json=self.json.spout())

    def other_spout(self) -> Inputs:
        return Inputs(text=self.text.other_spout(), json=self.json.spout())

    def take_away(self) -> None:
        self.text.take_away()


class TestInputs(SourceContract):
    @pytest.fixture
    def world(self, tmp_path: Path) -> SourceWorld:
        for name in ("text", "json"):
            (tmp_path / name).mkdir()
        return InputsWorld(tmp_path)


class Balance(BaseBatchBolt, ICommitter):
    """Adds orders to their customers and takes off what is returned, whichever of the two comes first."""

    cents = HashState("cents")
    customers = HashState[str]("customers", field=int)
    returned = HashState("returned", field=int)
    order = ListState("order")

    def prepare(self, *arguments: Any) -> None:
        super().prepare(*arguments)
        self.orders: list[Any] = []
        self.returns: list[Any] = []

    def execute(self, tup: Any) -> None:
        (self.orders if tup.stream_id == "orders" else self.returns).append(tup.values)

    def finish_batch(self) -> None:
        self.order.append(f"{len(self.orders)} orders, {len(self.returns)} returns")
        for order, customer, cents in self.orders:
            self.customers.put(order, customer)
            self.cents.increment(customer, cents - (self.returned.get(order) or 0))
        for order, cents in self.returns:
            customer = self.customers.get(order)
            if customer is None:
                self.returned.increment(order, cents)
            else:
                self.cents.increment(customer, -cents)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "orders.csv").write_text(ORDERS)
    (tmp_path / "returns.jsonl").write_text(RETURNS)
    return tmp_path


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(seed=1) as made:
        yield made


def orders(folder: Path, **more: Any) -> CsvFiles:
    fields = {"order": int, "customer": str, "cents": int}
    return CsvFiles(str(folder / "orders*.csv"), fields=fields, rows_per_batch=2, **more)


def returns(folder: Path, **more: Any) -> JsonLines:
    return JsonLines(str(folder / "returns*.jsonl"), fields={"order": int, "cents": int}, lines_per_batch=1, **more)


def balances(inputs: Inputs) -> Topology:
    builder = TransactionalTopologyBuilder("balances", "inputs", inputs)
    keep = builder.set_committer_bolt("balance", Balance())
    for name in inputs.sources:
        keep.global_grouping("inputs", name)
    return builder.build()


def both(folder: Path, **more: Any) -> Inputs:
    return Inputs(orders=orders(folder, **more), returns=returns(folder, **more))


def test_a_source_that_has_ended_does_not_end_the_others(cluster: LocalCluster, folder: Path) -> None:
    run = cluster.submit(balances(both(folder)))
    run.run_until_idle()
    assert run.is_done
    assert run.state("cents") == {"ann": 1300, "bob": 50, "eve": 100}
    assert run.state("order") == ["2 orders, 1 returns", "2 orders, 1 returns", "1 orders, 0 returns"]


def test_a_source_may_be_added_between_runs_and_left_out(cluster: LocalCluster, folder: Path) -> None:
    cluster.submit(balances(Inputs(orders=orders(folder)))).run_until_idle()
    second = cluster.submit(balances(both(folder)), options=RunOptions(adopt=True))
    second.run_until_idle()
    assert second.state("cents") == {"ann": 1300, "bob": 50, "eve": 100}
    left_out = balances(Inputs(returns=returns(folder)))
    with pytest.raises(StateRefusedError, match="input 'orders' is not read any more"):
        cluster.submit(left_out)
    cluster.submit(left_out, options=RunOptions(adopt="changed")).run_until_idle()
    (folder / "orders2.csv").write_text("order,customer,cents\n6,ann,1\n")
    again = cluster.submit(balances(both(folder)), options=RunOptions(adopt=True))
    again.run_until_idle()
    assert again.state("cents") == {"ann": 1301, "bob": 50, "eve": 100}


def test_a_source_under_another_name_is_read_again_and_the_start_says_so(cluster: LocalCluster, folder: Path) -> None:
    cluster.submit(balances(both(folder))).run_until_idle()
    renamed = balances(Inputs(orders=orders(folder), back=returns(folder)))
    with pytest.raises(StateRefusedError, match="input 'back' is what was read as 'returns'"):
        cluster.submit(renamed, options=RunOptions(adopt="changed"))


def test_a_part_of_an_input_that_was_left_out_has_no_position(folder: Path) -> None:
    inputs, metadata = Inputs(orders=orders(folder)), {"orders": (1, []), "returns": (2, ["gone"])}
    context = TopologyContext("balances", "inputs", 0, 1, 1, {})
    coordinator = inputs.get_coordinator({}, context)
    assert (coordinator.position(metadata), coordinator.notes(metadata)) == ({}, {})
    assert coordinator.estimated_bytes(metadata) == 0
    coordinator.close()


def test_a_part_of_an_input_that_is_not_given_is_refused_by_name(folder: Path) -> None:
    with pytest.raises(SourceError, match=r"the batch has a part of \['returns'\], which these inputs lack"):
        Inputs(orders=orders(folder)).emitting_tasks(2, {"orders": (2, []), "returns": (2, [])}, 1)


def test_a_topology_that_has_read_a_single_source_cannot_go_on_with_several(cluster, folder):
    alone = TransactionalTopologyBuilder("balances", "inputs", orders(folder))
    alone.set_committer_bolt("keep", Keep()).global_grouping("inputs")
    cluster.submit(alone.build()).run_until_idle()
    for adopt in (False, True, "changed", "unchecked"):
        with pytest.raises((SourceError, StateRefusedError), match="has read a single source before"):
            cluster.submit(balances(both(folder)), options=RunOptions(adopt=adopt, accept_state_changes=True))


def test_a_topology_that_has_read_several_sources_cannot_go_on_with_one(cluster: LocalCluster, folder: Path) -> None:
    cluster.submit(balances(both(folder))).run_until_idle()
    alone = TransactionalTopologyBuilder("balances", "inputs", orders(folder))
    alone.set_committer_bolt("keep", Keep()).global_grouping("inputs")
    for adopt in (False, True):
        with pytest.raises((SourceError, StateRefusedError)):
            cluster.submit(alone.build(), options=RunOptions(adopt=adopt, accept_state_changes=True)).run_until_idle()


def test_what_is_committed_of_each_is_moved_away(cluster: LocalCluster, folder: Path) -> None:
    inputs = both(folder, follow=Follow(complete="rename", poll_s=0, done="move", done_path=str(folder / "done")))
    assert inputs.destruction
    run = cluster.submit(balances(inputs))
    run.run_until_idle()
    assert not run.is_done
    (folder / "orders2.csv").write_text("order,customer,cents\n6,ann,1\n")
    run.run_until_idle()
    run.drain()
    run.run_until_idle()
    assert run.state("cents") == {"ann": 1301, "bob": 50, "eve": 100}
    assert sorted(path.name for path in (folder / "done").iterdir()) == ["orders.csv", "orders2.csv", "returns.jsonl"]
    assert not list(folder.glob("*.csv"))


def test_files_of_a_quarantined_batch_are_not_moved_away(cluster: LocalCluster, folder: Path) -> None:
    class Refuses(Balance):
        def execute(self, tup: Any) -> None:
            assert tup[0] != 2, "mine"
            super().execute(tup)

    follow = Follow(complete="rename", poll_s=0, done="move", done_path=str(folder / "done"))
    builder = TransactionalTopologyBuilder("balances", "inputs", both(folder, follow=follow))
    builder.set_committer_bolt("balance", Refuses()).global_grouping("inputs", "orders")
    run = cluster.submit(builder.build(), options=RunOptions(max_attempts=2, on_poison="quarantine"))
    run.run_until_idle()
    run.drain()
    run.run_until_idle()
    assert run.statistics.quarantined == [1]
    assert not (folder / "done").exists()
    assert (folder / "orders.csv").exists()
    assert (folder / "returns.jsonl").exists()


def test_a_change_of_one_input_is_named_with_it(cluster: LocalCluster, folder: Path) -> None:
    cluster.submit(balances(both(folder)), options=RunOptions(last_txid=1)).run_until_idle()
    (folder / "orders.csv").write_text(ORDERS.replace("ann,500", "ann,501"))
    with pytest.raises((SourceError, StateRefusedError), match=r"orders\.csv"):
        cluster.submit(balances(both(folder))).run_until_idle()


class Bad(BaseBatchBolt, ICommitter):
    places = ListState("places")

    def prepare(self, *arguments: Any) -> None:
        super().prepare(*arguments)
        self.bad: list[str] = []

    def execute(self, tup: Any) -> None:
        self.bad.append(f"{tup.stream_id} {bytes(tup['record'])!r}")

    def finish_batch(self) -> None:
        self.places.extend(self.bad)


@pytest.mark.parametrize("is_heard", [True, False])
def test_bad_records_of_an_input_are_on_its_stream_of_them(cluster: LocalCluster, folder: Path, is_heard: bool) -> None:
    (folder / "orders2.csv").write_text("order,customer,cents\nsix,ann,1\n")
    inputs = both(folder, on_bad_record="dead_letter")
    builder = TransactionalTopologyBuilder("balances", "inputs", inputs)
    keep = builder.set_committer_bolt("balance", Balance())
    for name in inputs.sources:
        keep.global_grouping("inputs", name)
    if is_heard:
        builder.set_committer_bolt("bad", Bad()).global_grouping("inputs", "orders_dead_letters")
    run = cluster.submit(builder.build())
    run.run_until_idle()
    assert len(run.dead_letters()) == (not is_heard)
    if is_heard:
        assert run.state("places") == ["orders_dead_letters b'six,ann,1'"]


def test_a_stream_of_several_inputs_is_asked_for_by_the_name_of_one(folder: Path) -> None:
    with pytest.raises(TopologyError, match=r"on its default stream; name another by .*: 'orders', 'returns'"):
        stream(both(folder)).count_by("order", into=HashState("counts"))


@pytest.mark.parametrize("engine", ["cluster", "waves"])
def test_bad_records_of_every_attempt_are_counted(folder: Path, tmp_path: Path, engine: str) -> None:
    rows = "".join(f"{'six' if number % 10 == 0 else number},ann,1\n" for number in range(400))
    (folder / "orders.csv").write_text("order,customer,cents\n" + rows)
    topology = balances(Inputs(orders=orders(folder, on_bad_record="skip"), returns=returns(folder)))
    if engine == "cluster":
        with LocalCluster(seed=1) as cluster:
            run_of_it = cluster.submit(topology)
            run_of_it.run_until_idle()
            statistics = run_of_it.statistics
    else:
        statistics = run(topology, engine="local", data_dir=tmp_path / "data")
    assert statistics.bad_records.count == 40


def test_progress_is_that_of_the_source_with_most_before_it(folder: Path) -> None:
    (folder / "orders.csv").write_text("order,customer,cents\n" + "1,ann,5\n" * 40)
    context = TopologyContext("balances", "inputs", 0, 1, 1, {"inputs": (1,)})
    coordinator = both(folder).get_coordinator({}, context)
    metadata = None
    for txid in (1, 2, 3, 4):
        assert coordinator.is_ready()
        metadata = coordinator.initialize_transaction(txid, metadata)
        coordinator.run_so_far = RunSoFar(txid, metadata, txid)
    assert coordinator.progress() == pytest.approx(0.2, abs=0.05)
    coordinator.close()


def names_counted(**sources: Any) -> Topology:
    both = stream(Inputs(**sources))
    for name in sources:
        both.output(name).count_by("id", into=HashState[int](f"seen_{name}"))
    return both.topology("names")


def rows_of(name: str, count: int) -> list[list[list[str]]]:
    return [[[f"{name}{number}"]] for number in range(count)]


@pytest.mark.parametrize("counts", [True, False])
def test_a_source_of_batches_counts_its_own_however_many_transactions_there_were(cluster, counts):
    told = []

    def slow(taken: int) -> Iterator[Any]:
        told.append(taken)
        yield from (None, None)
        yield from rows_of("s", 8)[taken:]

    def listed() -> Iterator[Any]:
        yield from (None, None)
        yield from rows_of("s", 8)

    def topology() -> Topology:
        quick = Batches(lambda taken: rows_of("q", 5)[taken:], ["id"])
        return names_counted(quick=quick, slow=Batches(slow if counts else listed, ["id"]))

    cluster.submit(topology(), options=RunOptions(last_txid=5)).run_until_idle()
    found = cluster.submit(topology(), options=RunOptions(adopt=True))
    found.run_until_idle()
    assert found.is_done
    assert found.state("seen_slow") == {f"s{number}": 1 for number in range(8)}
    assert found.state("seen_quick") == {f"q{number}": 1 for number in range(5)}
    assert told == ([0, 3] if counts else [])


def test_fixed_batches_that_are_added_later_begin_with_their_first(cluster: LocalCluster) -> None:
    def go(**sources: Any) -> Any:
        found = cluster.submit(names_counted(**sources), options=RunOptions(adopt=True))
        found.run_until_idle()
        assert found.is_done
        return found

    go(a=FixedBatchesSpout(rows_of("a", 3), ["id"]))
    found = go(a=FixedBatchesSpout(rows_of("a", 3), ["id"]), b=FixedBatchesSpout(rows_of("b", 6), ["id"]))
    assert found.state("seen_b") == {f"b{number}": 1 for number in range(6)}


def test_partitions_that_have_ended_give_no_more_transactions(cluster: LocalCluster) -> None:
    found = cluster.submit(names_counted(a=MemoryTransactionalSpout([[["x"], ["y"]], [["z"]]], ["id"], 1)))
    found.run_until_idle()
    assert found.is_done
    assert found.statistics.committed == 2
    assert found.state("seen_a") == {"x": 1, "y": 1, "z": 1}


def test_several_inputs_can_be_proved(folder: Path) -> None:
    proof = prove(lambda: balances(both(folder)), seeds=10)
    assert proof.holds, str(proof)


def test_what_is_no_input_is_refused(folder: Path) -> None:
    with pytest.raises(TopologyError, match="Inputs has no source"):
        Inputs()
    with pytest.raises(TopologyError, match="input 'inner' has several sources itself"):
        Inputs(inner=Inputs(lines=TextFiles(str(folder / "*.csv"))))
    with pytest.raises(TopologyError, match="input 'rows' is a Counter, which is no transactional spout"):
        Inputs(rows=Counter())  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="and an opaque spout cannot be among others: give it a topology of its"):
        Inputs(rows=OpaqueMemoryTransactionalSpout([[["a"]]], ["a"], 1))  # type: ignore[arg-type]

    class Told(MemoryTransactionalSpout, ICommitterTransactionalSpout):
        def get_committer(self, conf: Any, context: Any) -> Any:
            raise AssertionError("it is not asked for one")

    with pytest.raises(TopologyError, match=r"'rows' is a Told, whose committer is your own; give it a topology"):
        Inputs(rows=Told([[["a"]]], ["a"], 1))


@pytest.mark.redis
@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.nightly
def test_a_run_of_several_inputs_that_is_killed_is_continued_exactly(redis_backend: Backend, tmp_path: Path) -> None:
    client: Any = redis_backend.client()
    orders_given, returns_given = range(60_000), range(0, 60_000, 7)
    (tmp_path / "in").mkdir()
    rows = "".join(f"{order},c{order % 50},{order % 9}\n" for order in orders_given)
    (tmp_path / "in" / "orders.csv").write_text("order,customer,cents\n" + rows)
    (tmp_path / "in" / "returns.jsonl").write_text("".join(f'{{"order": {o}, "cents": 1}}\n' for o in returns_given))
    page = Path(__file__).parents[3] / "docs" / "sources.md"
    job = re.search(r"```python\n([^`]*class Balance.*?)```", page.read_text(), re.DOTALL)
    assert job is not None
    (tmp_path / "jobs.py").write_text(job[1] + "\n\ndef topology():\n    return builder.build()\n")
    killed_and_ended(tmp_path, client, "balances", "jobs.py:topology", "--redis", str(redis_backend.url), after=5)
    sums = Counter({f"c{order % 50}": 0 for order in orders_given})
    for order in orders_given:
        sums[f"c{order % 50}"] += order % 9 - (order % 7 == 0)
    assert {name.decode(): int(cents) for name, cents in client.hgetall("{balances}:cents").items()} == sums
