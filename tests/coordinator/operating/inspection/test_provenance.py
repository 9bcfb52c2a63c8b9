"""A value is explained by the transactions that changed it: what each added, and the input that it read."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import nullcontext
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from coordinator import CsvFiles, HashState, HyperLogLogState, StreamState, run, stream
from coordinator.operating.inspection.provenance import Provenance, explain_value
from coordinator.operating.inspection.verify.refold import on_this_machine
from coordinator.topology.building.topology import Topology
from coordinator.transactional.options import EngineName, RunOptions
from state.errors import TopologyError
from state.redis_admin.topology import RedisTopology
from tests.conftest import Backend
from tests.support.cli.in_process import txbatch
from tests.support.topologies.kept_states import LINES, kept_topology

pytestmark = pytest.mark.redis
PER_BATCH = 5
BATCHES = [LINES[at : at + PER_BATCH] for at in range(0, len(LINES), PER_BATCH)]
ROWS = [("ann", "2026-11-01", "1.50"), ("bob", "2026-11-01", "2.25"), ("ann", "2026-11-02", "0.10")] * 3


def explained(
    backend: Backend, topology: Topology, state: str, field: str | None = None, last: int = 100
) -> Provenance:
    url = str(backend.url)
    run_to = on_this_machine(__name__, master="local[*]", conf={}, engine=EngineName.LOCAL)
    store = RedisTopology(url, topology.topology_id)
    try:
        return explain_value(
            store.records(), topology, state, field, last=last, run_to=run_to, server=lambda: nullcontext(url)
        )
    finally:
        store.close()


@pytest.fixture
def kept(redis_backend: Backend) -> Backend:
    run(kept_topology(), redis_url=redis_backend.url, engine="local")
    return redis_backend


def of_orders(folder: Path) -> Topology:
    """Nine orders in transactions of two, kept in parts, by keys of two fields, and in states without fields."""
    (folder / "orders.csv").write_text("who,day,price\n" + "".join(f"{','.join(row)}\n" for row in ROWS))
    orders = stream(CsvFiles(str(folder / "orders.csv"), {"who": str, "day": date, "price": Decimal}, 2))
    orders.sum_by(["who", "day"], "price", into=HashState("spent", Decimal, (str, date), scale=2))
    orders.count_by("who", into=HashState("daily").per("day", date))
    orders.distinct_by("who", into=HyperLogLogState("buyers"))
    orders.select("who").append(into=StreamState("alerts"))
    return orders.topology("orders")


def test_the_changes_of_a_count_are_those_of_a_loop_over_the_batches(kept):
    found = explained(kept, kept_topology(), "counts", "word1")
    expected = [(txid, Counter(batch)["word1"]) for txid, batch in enumerate(BATCHES, start=1) if "word1" in batch]
    assert [(each.txid, each.added) for each in found.changes] == expected
    assert sum(each.added for each in found.changes) == found.stored == Counter(LINES)["word1"]
    assert found.is_explained
    assert found.committed == len(BATCHES)


@pytest.mark.parametrize(
    ("state", "field", "stored", "change_count"),
    [
        ("weights", "word1", 3.0, 6),
        ("by_length", "5", 40, 8),
        ("ranks", "word2", 6.0, 6),
        ("seen", "word6", True, 1),
        ("last", None, "word4", 8),
    ],
)
def test_each_kind_of_state_that_has_values_is_explained(kept, state, field, stored, change_count):
    found = explained(kept, kept_topology(), state, field)
    assert (found.stored, found.change_count, found.is_explained) == (stored, change_count, True)


def test_only_the_last_changes_are_returned(kept):
    found = explained(kept, kept_topology(), "by_length", "5", last=2)
    assert [(each.txid, each.before, each.after) for each in found.changes] == [(7, 30, 35), (8, 35, 40)]
    assert found.change_count == 8


def test_a_value_that_was_altered_is_not_explained(kept):
    kept.client().hincrby("{kept}:counts", "word1", 5)
    found = explained(kept, kept_topology(), "counts", "word1")
    assert (found.stored, found.found, found.is_explained) == (11, 6, False)


def test_decimals_keys_of_several_fields_parts_and_the_lines_of_a_file_are_shown_as_in_an_export(
    redis_backend, tmp_path
):
    topology = of_orders(tmp_path)
    run(topology, redis_url=redis_backend.url, engine="local")
    spent = explained(redis_backend, topology, "spent", "ann|2026-11-01")
    assert [(each.txid, each.added, each.after) for each in spent.changes] == [
        (1, "1.50", "1.50"),
        (2, "1.50", "3.00"),
        (4, "1.50", "4.50"),
    ]
    assert spent.changes[0].contained == (f"{tmp_path}/orders.csv: records 1 to 2, in bytes 14 to 54",)
    assert explained(redis_backend, topology, "daily:2026-11-02", "ann").stored == 3


def test_a_state_that_began_later_is_explained_from_there(redis_backend, tmp_path):
    def counted(*names: str) -> Topology:
        orders = stream(CsvFiles(str(tmp_path / "orders.csv"), {"who": str}, 2))
        for name in names:
            orders.count_by("who", into=HashState(name))
        return orders.topology("orders")

    of_orders(tmp_path)
    url = redis_backend.url
    run(counted("counts"), redis_url=url, engine="local", options=RunOptions(last_txid=2))
    later = counted("counts", "late")
    run(later, redis_url=url, engine="local", options=RunOptions(accept_state_changes=True))
    found = explained(redis_backend, later, "late", "ann")
    assert [(each.txid, each.added) for each in found.changes] == [(3, 1), (4, 1), (5, 1)]
    assert found.is_explained


@pytest.mark.parametrize(
    ("state", "field", "message"),
    [
        ("spent", None, "state 'spent' of topology 'orders' has many entries; name a field or member"),
        ("spent", "eve|2026-11-01", "state 'spent' of topology 'orders' has never had a value for 'eve|2026-11-01'"),
        ("daily", "ann", "state 'daily' of topology 'orders' has parts; name one, as in daily:PART"),
        ("buyers", "ann", "cannot be explained: a hyperloglog has no fields"),
        ("alerts", "1", "cannot be explained: a stream has no fields; the id of an entry begins with the txid"),
        ("sums", "ann", "topology 'orders' declares no state 'sums'"),
    ],
)
def test_what_cannot_be_explained_is_refused(redis_backend, tmp_path, state, field, message):
    topology = of_orders(tmp_path)
    run(topology, redis_url=redis_backend.url, engine="local")
    with pytest.raises(TopologyError) as refused:
        explained(redis_backend, topology, state, field)
    assert message in str(refused.value)


def test_the_command_shows_it_and_its_exit_code_says_whether_it_is_explained(kept, capsys):
    why = ("why", "kept", "counts", "word1", "--factory", f"{kept_topology.__module__}:kept_topology")
    where = ("--last", "1", "--engine", "local", "--redis", str(kept.url))
    assert txbatch(*why, *where) == 0
    assert capsys.readouterr().out.splitlines() == [
        "counts word1 of kept: 6, committed up to txid 8",
        "  changed by 6 transactions, the last 1 of them here",
        "  txid 8, added 1: 6",
        "    1 partition",
        "    partition 0: rows 36 to 40",
    ]
    kept.client().hincrby("{kept}:counts", "word1", 5)
    assert txbatch(*why, *where, "--json") == 4
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (shown["stored"], shown["found"], shown["is_explained"]) == (11, 6, False)
