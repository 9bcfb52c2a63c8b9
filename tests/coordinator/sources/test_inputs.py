"""Several sources in one topology keep the contract of one, and each of them its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest

from coordinated_bolt import TopologyContext
from coordinator import LocalCluster, RunOptions, RunSoFar, Topology, TransactionalRun, prove, run, stream
from coordinator.operating.inspection.examination import examine_other_readers
from coordinator.server_choice import ServerChoice
from coordinator.sources import Batches, CsvFiles, Follow, Inputs, JsonLines, RedisStreams, TextFiles, first
from coordinator.sources.redis_streams.redis_streams import URL_VARIABLE
from coordinator.sources.several.shared_input import may_meet
from coordinator.spouts.committing import ICommitterTransactionalSpout
from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState, ListState, SourceError, StateRefusedError, TopologyError, ValueState
from tests.coordinator.sources.contract import Keep, SourceContract, SourceWorld
from tests.support.approved import approved, refusals, wrongly
from tests.support.runs.collecting import Collecting
from tests.support.sources.file_worlds import JsonWorld, TextWorld
from tests.support.topologies.components import collecting

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


class Balance(Collecting):
    """Adds orders to their customers and takes off what is returned, whichever of the two comes first."""

    cents = HashState("cents")
    customers = HashState[str]("customers", field=int)
    returned = HashState("returned", field=int)
    order = ListState("order")

    def finish_batch(self) -> None:
        orders = [tup.values for tup in self.tuples if tup.stream_id == "orders"]
        returns = [tup.values for tup in self.tuples if tup.stream_id == "returns"]
        self.order.append(f"{len(orders)} orders, {len(returns)} returns")
        for order, customer, cents in orders:
            self.customers.put(order, customer)
            self.cents.increment(customer, cents - (self.returned.get(order) or 0))
        for order, cents in returns:
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
    return balances_builder(inputs).build()


def balances_builder(inputs: Inputs) -> TransactionalTopologyBuilder:
    builder = TransactionalTopologyBuilder("balances", "inputs", inputs)
    keep = builder.set_committer_bolt("balance", Balance())
    for name in inputs.sources:
        keep.global_grouping("inputs", name)
    return builder


def both(folder: Path, **more: Any) -> Inputs:
    return Inputs(orders=orders(folder, **more), returns=returns(folder, **more))


def idle(cluster: LocalCluster, topology: Topology, **options: Any) -> TransactionalRun:
    """A run that has committed what there is."""
    submitted = cluster.submit(topology, options=RunOptions(**options))
    submitted.run_until_idle()
    return submitted


def test_a_source_that_has_ended_does_not_end_the_others(cluster: LocalCluster, folder: Path) -> None:
    run = idle(cluster, balances(both(folder)))
    assert run.is_done
    assert run.state("cents") == {"ann": 1300, "bob": 50, "eve": 100}
    assert run.state("order") == ["2 orders, 1 returns", "2 orders, 1 returns", "1 orders, 0 returns"]


def test_a_source_may_be_added_between_runs_and_left_out(cluster: LocalCluster, folder: Path) -> None:
    idle(cluster, balances(Inputs(orders=orders(folder))))
    second = idle(cluster, balances(both(folder)), adopt=True)
    assert second.state("cents") == {"ann": 1300, "bob": 50, "eve": 100}
    left_out = balances(Inputs(returns=returns(folder)))
    with pytest.raises(StateRefusedError, match="input 'orders' is not read any more"):
        cluster.submit(left_out)
    idle(cluster, left_out, adopt="changed")
    (folder / "orders2.csv").write_text("order,customer,cents\n6,ann,1\n")
    again = idle(cluster, balances(both(folder)), adopt=True)
    assert again.state("cents") == {"ann": 1301, "bob": 50, "eve": 100}


def test_a_source_under_another_name_is_read_again_and_the_start_says_so(cluster: LocalCluster, folder: Path) -> None:
    idle(cluster, balances(both(folder)))
    renamed = balances(Inputs(orders=orders(folder), back=returns(folder)))
    with pytest.raises(StateRefusedError, match="input 'back' is what was read as 'returns'"):
        cluster.submit(renamed, options=RunOptions(adopt="changed"))


def test_a_part_of_an_input_that_was_left_out_has_no_position_and_one_that_is_not_given_is_refused_by_name(
    folder: Path,
) -> None:
    inputs, metadata = Inputs(orders=orders(folder)), {"orders": (1, []), "returns": (2, ["gone"])}
    context = TopologyContext("balances", "inputs", 0, 1, 1, {})
    coordinator = inputs.get_coordinator({}, context)
    assert (coordinator.position(metadata), coordinator.notes(metadata)) == ({}, {})
    assert coordinator.estimated_bytes(metadata) == 0
    coordinator.close()
    with pytest.raises(SourceError, match=r"the batch has a part of \['returns'\], which these inputs lack"):
        inputs.emitting_tasks(2, metadata, 1)


def test_a_topology_that_has_read_a_single_source_cannot_go_on_with_several(cluster, folder):
    idle(cluster, collecting("balances", orders(folder), Keep(), source="inputs"))
    for adopt in (False, True, "changed", "unchecked"):
        with pytest.raises((SourceError, StateRefusedError), match="has read a single source before"):
            idle(cluster, balances(both(folder)), adopt=adopt, accept_state_changes=True)


def test_a_topology_that_has_read_several_sources_cannot_go_on_with_one(cluster, folder):
    idle(cluster, balances(both(folder)))
    for adopt in (False, True):
        with pytest.raises((SourceError, StateRefusedError)):
            idle(
                cluster,
                collecting("balances", orders(folder), Keep(), source="inputs"),
                adopt=adopt,
                accept_state_changes=True,
            )


def test_what_is_committed_of_each_is_moved_away(cluster: LocalCluster, folder: Path) -> None:
    inputs = both(folder, follow=Follow(complete="rename", poll_s=0, done="move", done_path=str(folder / "done")))
    assert inputs.destruction
    run = idle(cluster, balances(inputs))
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
    topology = collecting("balances", both(folder, follow=follow), Refuses(), "orders", source="inputs")
    run = idle(cluster, topology, max_attempts=2, on_poison="quarantine")
    run.drain()
    run.run_until_idle()
    assert run.statistics.quarantined == [1]
    assert not (folder / "done").exists()
    assert (folder / "orders.csv").exists()
    assert (folder / "returns.jsonl").exists()


def test_a_change_of_one_input_is_named_with_it(cluster: LocalCluster, folder: Path) -> None:
    idle(cluster, balances(both(folder)), last_txid=1)
    (folder / "orders.csv").write_text(ORDERS.replace("ann,500", "ann,501"))
    with pytest.raises((SourceError, StateRefusedError), match=r"orders\.csv"):
        idle(cluster, balances(both(folder)))


class Bad(Collecting):
    places = ListState("places")

    def finish_batch(self) -> None:
        self.places.extend(f"{tup.stream_id} {bytes(tup['record'])!r}" for tup in self.tuples)


@pytest.mark.parametrize("is_heard", [True, False])
def test_bad_records_of_an_input_are_on_its_stream_of_them(cluster: LocalCluster, folder: Path, is_heard: bool) -> None:
    (folder / "orders2.csv").write_text("order,customer,cents\nsix,ann,1\n")
    inputs = both(folder, on_bad_record="dead_letter")
    builder = balances_builder(inputs)
    if is_heard:
        builder.set_committer_bolt("bad", Bad()).global_grouping("inputs", "orders_dead_letters")
    run = idle(cluster, builder.build())
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
            run_of_it = idle(cluster, topology)
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

    idle(cluster, topology(), last_txid=5)
    found = idle(cluster, topology(), adopt=True)
    assert found.is_done
    assert found.state("seen_slow") == {f"s{number}": 1 for number in range(8)}
    assert found.state("seen_quick") == {f"q{number}": 1 for number in range(5)}
    assert told == ([0, 3] if counts else [])


def test_fixed_batches_that_are_added_later_begin_with_their_first(cluster: LocalCluster) -> None:
    def go(**sources: Any) -> Any:
        found = idle(cluster, names_counted(**sources), adopt=True)
        assert found.is_done
        return found

    go(a=FixedBatchesSpout(rows_of("a", 3), ["id"]))
    found = go(a=FixedBatchesSpout(rows_of("a", 3), ["id"]), b=FixedBatchesSpout(rows_of("b", 6), ["id"]))
    assert found.state("seen_b") == {f"b{number}": 1 for number in range(6)}


def test_partitions_that_have_ended_give_no_more_transactions(cluster: LocalCluster) -> None:
    found = idle(cluster, names_counted(a=MemoryTransactionalSpout([[["x"], ["y"]], [["z"]]], ["id"], 1)))
    assert found.is_done
    assert found.statistics.committed == 2
    assert found.state("seen_a") == {"x": 1, "y": 1, "z": 1}


@pytest.mark.nightly
def test_several_inputs_can_be_proved(folder: Path) -> None:
    proof = prove(lambda: balances(both(folder)), seeds=10)
    assert proof.holds, str(proof)


class OwnCommitter(MemoryTransactionalSpout, ICommitterTransactionalSpout):
    def get_committer(self, conf: Any, context: Any) -> Any:
        raise AssertionError("it is not asked for one")


ONE = FixedBatchesSpout([], ["x"])
ENDLESS: dict[str, Any] = {
    "followed": TextFiles("/nowhere/*", follow=True),
    "followed by names": TextFiles("/nowhere/*", follow=Follow(complete="rename")),
    "a stream": RedisStreams("s", fields=["a"], url="redis://localhost"),
}
REFUSED = {
    "no source": Inputs,
    "inputs of inputs": lambda: Inputs(inner=Inputs(a=ONE)),
    "no spout": wrongly(Inputs, rows=Counter()),
    "an opaque spout": wrongly(Inputs, rows=OpaqueMemoryTransactionalSpout([[["a"]]], ["a"], 1)),
    "a committer of its own": lambda: Inputs(rows=OwnCommitter([[["a"]]], ["a"], 1)),
    **{f"first, and {name}": wrongly(Inputs, a=first(spout), b=ONE) for name, spout in ENDLESS.items()},
}


def test_what_is_no_input_is_refused():
    approved(refusals(REFUSED, TopologyError), "inputs-arguments")


NAMES = [f"name {number}" for number in range(40)]
BOUGHT = [(NAMES[number * 7 % 50 % 40] if number % 5 else "nobody", number) for number in range(200)]
SPENT = {name: sum(cents for who, cents in BOUGHT if (who if who in NAMES else "?") == name) for name in [*NAMES, "?"]}


def sums(folder: Path, per_customers: int, per_orders: int, *, orders_first: bool = False, tasks: int = 1) -> Topology:
    (folder / "customers.csv").write_text("who,city\n" + "".join(f"{name},x\n" for name in NAMES), encoding="utf-8")
    (folder / "orders.csv").write_text("who,cents\n" + "".join(f"{w},{c}\n" for w, c in BOUGHT), encoding="utf-8")
    customers = first(CsvFiles(str(folder / "customers.csv"), {"who": str, "city": str}, rows_per_batch=per_customers))
    orders = CsvFiles(str(folder / "orders.csv"), {"who": str, "cents": int}, rows_per_batch=per_orders)
    named: dict[str, Any] = {"orders": orders, "customers": customers}
    inputs = stream(Inputs(**(named if orders_first else dict(reversed(named.items())))), parallelism=tasks)
    cities = HashState("cities", str)
    inputs.output("customers").reduce_by("who", lambda before, city: city, "", into=cities, of="city")
    known = inputs.output("orders").enrich(cities, by="who", to="city")
    known.map(lambda who, city: who if city else "?", to="known", of=("who", "city")).sum_by(
        "known", "cents", into=HashState("sums")
    )
    return inputs.topology("first", parallelism=tasks)


@pytest.mark.parametrize("seed", range(12))
def test_every_row_finds_the_whole_table_however_the_input_is_cut_and_whenever_runs_die(tmp_path: Path, seed) -> None:
    draw = Random(seed)
    sizes = draw.choice([1, 3, 7, 40, 1000]), draw.choice([1, 9, 50, 1000])
    topology = sums(tmp_path, *sizes, orders_first=bool(seed % 2), tasks=1 + seed % 3)
    with LocalCluster(seed=seed) as cluster:
        for _ in range(draw.randint(0, 6)):
            run = cluster.submit(topology, options=RunOptions(max_spout_pending=draw.randint(1, 4)))
            for _ in range(draw.randint(1, 60)):
                if not run.is_done:
                    run.tick()
            run.close()
        run = cluster.submit(topology, options=RunOptions(max_spout_pending=draw.randint(1, 4)))
        run.run_until_idle()
        assert run.is_done
        assert run.state("sums") == {name: cents for name, cents in SPENT.items() if cents}


def looking(make: Any, as_of: Any = None) -> Any:
    a, b = (FixedBatchesSpout([[["k", 1]]], ["k", "n"]) for _ in "ab")
    s, table = stream(make(a, b)), HashState("table")
    for name in ("a", "b"):
        s.output(name).count_by("k", into=HashState(f"n{name}"))
    s.output("a").sum_by("k", "n", into=table)
    return lambda name: s.output(name).enrich(table, by="k", to="x", as_of=as_of).count_by("x", into=HashState("x"))


@pytest.mark.parametrize(
    ("make", "name", "is_taken"),
    [
        (lambda a, b: Inputs(a=first(a), b=b), "b", True),
        (lambda a, b: Inputs(a=a, b=b), "b", False),
        (lambda a, b: Inputs(a=a, b=first(b)), "b", False),
        (lambda a, b: Inputs(a=first(a), b=first(b)), "b", False),
        (lambda a, b: Inputs(a=first(a), b=b), "a", False),
    ],
)
def test_a_table_that_is_written_meanwhile_is_looked_into_as_of_a_transaction_only(make, name, is_taken) -> None:
    looking(make, "transaction")(name).topology("t")
    if is_taken:
        looking(make)(name).topology("t")
        return
    with pytest.raises(TopologyError, match=r"reads state 'table' while .*sum_by .* writes it, so the answer depends"):
        looking(make)(name).topology("t")


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.often("True")
def test_a_proof_cuts_the_input_otherwise_and_names_what_depends_on_it(is_first) -> None:
    customers = FixedBatchesSpout([[["ann", "x"]], [["bob", "x"]], [["cid", "x"]]], ["who", "city"])
    orders = FixedBatchesSpout([[["ann"], ["bob"]], [["cid"]], [["bob"]]], ["who"])
    inputs = stream(Inputs(customers=first(customers) if is_first else customers, orders=orders))
    cities = HashState("cities", str)
    inputs.output("customers").reduce_by("who", lambda before, city: city, "", into=cities, of="city")
    known = inputs.output("orders").enrich(cities, by="who", to="city", as_of="transaction")
    known.map(lambda who, city: who if city else "?", to="known", of=("who", "city")).count_by(
        "known", into=HashState("known")
    )
    proof = prove(inputs.topology("proved"), seeds=2, keep_hashes=True)
    assert proof.holds
    found = [(each.mistake, each.does_harm) for each in proof.mistakes if "state known" in each.evidence]
    assert found == ([] if is_first else [("cuts", False)]), proof


def files(pattern: str, **follow: Any) -> TextFiles:
    return TextFiles(pattern, 10, follow=Follow(complete="rename", **follow))


def trimmed(keys: str | list[str], url: str | None = "redis://localhost", **more: Any) -> RedisStreams:
    return RedisStreams(keys, fields=["a"], url=url, **more)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda: files("in/*.log", done="delete"), lambda: files("in/*.log")),
        (lambda: files("in/*.log", done="delete"), lambda: files("in/**")),
        (lambda: files("in/a*", done="delete"), lambda: files("in/*.[lm]og")),
        (lambda: files("in/*.log", done="delete"), lambda: files("in/../in/x.log")),
        (lambda: files("link/*.log", done="delete"), lambda: files("in/x.log", done="delete")),
        (lambda: files("in/*.log", done="move", done_path="done"), lambda: files("done/*.log")),
        (lambda: files("in/*.log", done="delete"), lambda: TextFiles("in/x.log", 10)),
        (lambda: files("in/*.log", done="delete"), lambda: JsonLines("in/*", ["a"], follow=True)),
        (lambda: trimmed("s", trim=True), lambda: trimmed("s", "redis://127.0.0.1:6379/0")),
        (lambda: trimmed("s", None, trim=True), lambda: trimmed(["r", "s"])),
    ],
)
def test_what_one_input_takes_away_no_other_may_read(tmp_path: Path, monkeypatch, one, other) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.log").write_text("x\n", encoding="utf-8")
    (tmp_path / "link").symlink_to("in")
    for named in ({"a": one(), "b": other()}, {"b": other(), "a": one()}):
        with pytest.raises(
            TopologyError, match=r"inputs '.' and '.' both read .*, and for 'a' .*: 'b' may not have|for 'b' done"
        ):
            Inputs(**named)


def test_inputs_that_meet_nowhere_or_take_nothing_away_are_taken(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Inputs(a=files("in/*.log", done="delete"), b=files("in/*.txt"), c=files("in/*/*.log"), d=files("other/*.log"))
    Inputs(a=files("a/*", done="move", done_path="done"), b=files("b/*", done="move", done_path="done"))
    Inputs(a=files("in/*.log"), b=files("in/*.log", done="list", done_path="list"))
    Inputs(a=trimmed("s", trim=True), b=trimmed("r"), c=trimmed("s", "redis://localhost:6380"))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("/a/**", "/a/b/c", True),
        ("/a/**/x", "/a/x", True),
        ("/a/**/x", "/b/**/x", False),
        ("/a/**/b/**", "/a/c", False),
        ("/a/x*y", "/a/*z", False),
        ("/a/x*y", "/a/?[!y]*", True),
        ("/a/*", "/a/b/c", False),
    ],
)
def test_patterns_that_may_match_one_path_meet(one: str, other: str, expected: bool) -> None:
    for left, right in ((one, other), (other, one)):
        assert may_meet(left.split("/"), right.split("/")) is expected


def test_doctor_names_other_topologies_that_read_what_this_one_takes_away(redis_server_url, tmp_path):
    (tmp_path / "x.log").write_text("x\n", encoding="utf-8")
    pattern, choice = str(tmp_path / "*.log"), ServerChoice(redis_server_url, tmp_path)

    def topology(name: str, source: Any, output: str = "") -> Any:
        lines = stream(source).output(output) if output else stream(source)
        return lines.count_by(None, into=ValueState("n")).topology(name)

    run(topology("reader", Inputs(lines=TextFiles(pattern, 10)), "lines"), engine="local", redis_url=redis_server_url)
    taking, keeping = (topology("taker", files(pattern, done=done)) for done in ("delete", "keep"))
    found = [each.found for each in examine_other_readers(choice, taking)]
    assert len(found) == 1
    assert re.match(r"topology 'reader' on this server has read '.*\*\.log', and here done files are deleted", found[0])
    assert not list(examine_other_readers(choice, keeping))
