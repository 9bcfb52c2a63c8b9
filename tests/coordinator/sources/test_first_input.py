"""A source of several that is read to its end before the others begin, so that look-ups do not depend on the cuts."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from coordinator import FixedBatchesSpout, LocalCluster, RunOptions, Topology, prove, stream
from coordinator.sources import CsvFiles, Follow, Inputs, RedisStreams, TextFiles, first
from state import HashState, TopologyError

NAMES = [f"name {number}" for number in range(40)]
ORDERS = [(NAMES[number * 7 % 50 % 40] if number % 5 else "nobody", number) for number in range(200)]
EXPECTED = {
    name: sum(cents for who, cents in ORDERS if (who if who in NAMES else "?") == name) for name in [*NAMES, "?"]
}


def sums(folder: Path, per_customers: int, per_orders: int, *, orders_first: bool = False, tasks: int = 1) -> Topology:
    (folder / "customers.csv").write_text("who,city\n" + "".join(f"{name},x\n" for name in NAMES), encoding="utf-8")
    (folder / "orders.csv").write_text("who,cents\n" + "".join(f"{w},{c}\n" for w, c in ORDERS), encoding="utf-8")
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
        assert run.state("sums") == {name: cents for name, cents in EXPECTED.items() if cents}


@pytest.mark.parametrize(
    "source",
    [
        lambda: TextFiles("/nowhere/*", follow=True),
        lambda: TextFiles("/nowhere/*", follow=Follow(complete="rename")),
        lambda: RedisStreams("s", fields=["a"], url="redis://localhost"),
    ],
)
def test_a_source_without_an_end_cannot_be_first(source) -> None:
    with pytest.raises(TopologyError, match=r"input 'a' is first\(\.\.\.\), and has no end after which the others"):
        Inputs(a=first(source()), b=FixedBatchesSpout([], ["x"]))


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
