"""What an import, a drop or a server has left half-way over shards is refused by name, by readers and by runs."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import partial
from itertools import chain, count
from typing import Any
from unittest import mock

import pytest

from coordinator.operating.inspection.finding import Weight
from coordinator.operating.inspection.verify.verifier import Verifier
from coordinator.operating.transfer.exporting import export_state
from coordinator.operating.transfer.looking import StateTotals, chosen_state, field_line, lines_of_state, state_totals
from state import StateRefusedError, TopologyError, snapshot
from state.fault_points import installed
from state.records.declared_states import declared_states_of
from state.redis_admin.all_records import RedisRecords
from state.redis_client.connection import RedisConnection
from state.redis_client.function_library import SHARDED_FORMAT, STORED_FORMAT
from state.troubles import Trouble
from tests.support.stores.builders import all_keys, lose
from tests.support.topologies.sharded_topology import Sharded, over
from tests.support.topologies.typed_states import WORDS, KeepTyped, typed_topology

pytestmark = pytest.mark.redis
HANDLES: list[Any] = [KeepTyped.counts, KeepTyped.views, KeepTyped.recent]


class Died(BaseException):
    """The command is killed."""


@pytest.fixture
def sharded(redis_backend, monkeypatch) -> Sharded:
    """As over several servers: each shard keeps the parts of the one before it."""

    def around(places):
        return [[(number - 1) % len(places)] for number in range(len(places))]

    monkeypatch.setattr("state.redis_shards.sharded_store.copy_keepers", around)
    monkeypatch.setattr("state.redis_admin.sharded_records.PAUSE_S", 0.0)
    monkeypatch.setattr("state.redis_admin.sharded_records.STILL_S", 0.0)
    return Sharded(redis_backend.client())


def lines(records: RedisRecords, name: str) -> list[Any]:
    return list(lines_of_state(records, chosen_state(records, name)))


READERS: dict[str, Callable[[RedisRecords], Any]] = {
    "state list": state_totals,
    "state get": lambda records: lines(records, "counts"),
    "state get, parts": lambda records: lines(records, "views"),
    "state get, one part": lambda records: lines(records, "views:2026-11-22"),
    "state get, ranked": lambda records: lines(records, "best"),
    "state get FIELD": lambda records: field_line(records, chosen_state(records, "counts"), WORDS[0]),
    "refold": lambda records: records.image(declared_states_of(records.description()).values()).states,
}


def states_in(records: RedisRecords) -> list[bytes]:
    """Returns the lines of an export that are about states."""
    export_state(records, out := io.BytesIO())
    return sorted(line for line in out.getvalue().splitlines() if b'"state"' in line and b"txbatch" not in line)


def readers_of(sharded: Sharded) -> dict[str, Callable[[], Any]]:
    """Everything that reads states, as a function without arguments."""

    def reading(read: Callable[[RedisRecords], Any]) -> Callable[[], Any]:
        return lambda: read(sharded.topology.records())

    found = {name: reading(read) for name, read in READERS.items()}
    return found | {"state export": reading(states_in), "snapshot": lambda: snapshot(sharded.client, "typed", HANDLES)}


@pytest.mark.often("3-0-drop.states_deleted-3", "1-0-drop.fenced-1")
@pytest.mark.parametrize(
    ("before", "after", "point", "visits"),
    [
        *((3, 3, "import.restored", 3), (3, 5, "import.restored", 3), (3, 2, "import.restored", 2)),
        *((3, 0, "drop.fenced", 4), (3, 0, "drop.states_deleted", 3)),
        *((1, 0, "drop.fenced", 1), (1, 0, "drop.states_deleted", 1)),
    ],
)
def test_what_is_half_imported_or_half_dropped_is_refused(sharded, before, after, point, visits):
    for last in range(visits):
        sharded.shard_count, seen = before, count()
        sharded.run(last_txid=4)
        packed, whole = sharded.exported(), {name: read() for name, read in readers_of(sharded).items()}

        def visited(name: str, last: int = last, seen: count[int] = seen) -> None:
            if name == point and next(seen) == last:
                raise Died

        with installed(visited), pytest.raises(Died):
            sharded.put_back(packed, after) if after else sharded.topology.drop()
        assert sharded.faults()
        for read in readers_of(sharded).values():
            with pytest.raises(StateRefusedError, match=r"'typed' is (partly dropped|not whole)"):
                read()
        sharded.put_back(packed, before)
        assert {name: read() for name, read in readers_of(sharded).items()} == whole
        assert sharded.faults() == []
        sharded.topology.drop()


def overtaking(sharded: Sharded, read: Callable[[], Any], packed: bytes, after: int, at: int) -> tuple[Any, bool]:
    """Reads while an import over another number of shards is made before one of the calls; says whether it was."""
    calls, send = count(), RedisConnection._repeated

    def overtaken(self: RedisConnection, *given: Any, **more: Any) -> Any:
        if next(calls) == at:
            sharded.put_back(packed, after)
        return send(self, *given, **more)

    with mock.patch.object(RedisConnection, "_repeated", overtaken):
        return read(), next(calls) > at


def counted(found: tuple[int, list[StateTotals]]) -> Any:
    return found[0], [(each.state.name, each.entry_count, each.part_count) for each in found[1]]


OVERTAKEN: dict[str, Callable[[RedisRecords], Any]] = {
    **{name: partial(lambda read, records: sorted(map(repr, read(records))), read) for name, read in READERS.items()},
    "state list": lambda records: counted(state_totals(records)),
    "state export": states_in,
    "verify": lambda records: [each for each in Verifier(records).verify().findings if each.weight is Weight.FAIL],
}


@pytest.mark.often("*-1-3", "snapshot-3-1")
@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 2), (1, 3), (3, 1)])
@pytest.mark.parametrize("name", [*OVERTAKEN, "snapshot"])
def test_a_reader_that_an_import_overtakes_reads_all_shards_or_says_so(sharded, before, after, name):
    """The topology is at rest: each reader finds the same before and after."""
    sharded.shard_count, refusals = before, []
    sharded.run(last_txid=4)

    def reader() -> Callable[[], Any]:
        if name == "snapshot":
            return lambda: snapshot(sharded.client, "typed", HANDLES)
        return partial(OVERTAKEN[name], sharded.topology.records())

    packed, whole, is_met = sharded.exported(), reader()(), True
    for at in chain(range(0, 20, 3), count(20, 19)):
        sharded.put_back(packed, before)
        try:
            found, is_met = overtaking(sharded, reader(), packed, after, at)
            assert found == whole, at
        except StateRefusedError as error:
            refusals.append(str(error))
        if not is_met:
            break
    assert all("imported" in each and each.endswith("read it again") for each in refusals), refusals
    assert not refusals or name != "snapshot"


def test_an_import_over_a_shard_that_has_lost_its_record_says_what_leads_on(sharded):
    expected = sharded.run()
    packed = sharded.exported()
    sharded.client.delete("{typed.0}:txbatch:shard")
    with pytest.raises(TopologyError, match=r"'typed' was not imported.*`txbatch drop typed --also \w+`, then import$"):
        sharded.put_back(packed, 3)
    sharded.topology.drop()
    sharded.put_back(packed, 3)
    assert sharded.run() == expected


@pytest.mark.parametrize("slot", ["{typed.1}*", "{typed}*"], ids=["shard", "home"])
def test_one_slot_that_comes_back_empty_is_given_everything_unless_it_was_imported(sharded, slot):
    expected = sharded.run()
    lose(sharded.client, slot)
    with pytest.raises(StateRefusedError):
        snapshot(sharded.client, "typed", HANDLES)
    if slot == "{typed}*":
        sharded.shard_count = 2
        with pytest.raises(StateRefusedError, match="has its state on 3 shards, but was given shards=2"):
            sharded.run()
        sharded.shard_count = 3
    assert sharded.run() == expected
    assert sharded.faults() == []
    sharded.put_back(sharded.exported(), 3)
    lose(sharded.client, slot)
    with pytest.raises(StateRefusedError, match=r"has no decision about it|has txid 0 and not what") as refused:
        sharded.run()
    assert refused.value.trouble is Trouble.REGRESSED


@pytest.mark.parametrize("before", [1, 2, 3])
@pytest.mark.parametrize("is_empty", [True, False])
def test_a_shard_that_has_lost_an_import_is_named(cluster, sharded, before, is_empty):
    cluster.client = sharded.client
    cluster.submit(over(typed_topology((*WORDS, "")), 3))  # has taken over, and committed nothing
    earlier = {} if is_empty else all_keys(sharded.client, "{typed.1}*")
    sharded.topology.drop()
    sharded.shard_count = before
    sharded.run(last_txid=4)
    sharded.put_back(sharded.exported(), 3)
    sharded.run()
    lose(sharded.client, "{typed.1}*", earlier)
    held = all_keys(sharded.client, "*:counts")
    with pytest.raises(StateRefusedError, match=r"shard 1 of topology 'typed'.* has txid 0 and not what"):
        sharded.run()
    assert all_keys(sharded.client, "*:counts") == held


@pytest.mark.parametrize(
    "gone",
    [
        *("{typed.1}:txbatch:shard", "{typed.1}:txbatch:*", "{typed.[12]}:txbatch:*"),
        *("{typed}:txbatch:control", "{typed*}:txbatch:*"),
    ],
)
def test_records_that_are_gone_while_their_states_are_there_are_refused(sharded, gone):
    sharded.run(last_txid=5)
    lose(sharded.client, gone)
    for _ in range(2):
        with pytest.raises(StateRefusedError, match=r"gone|lost|no record") as refused:
            sharded.run()
    (remedy,) = re.findall("`txbatch drop typed(.*?)`", str(refused.value))
    sharded.topology.drop(re.findall(r"--also (\S+)", remedy), int((re.findall(r"--shards (\d)", remedy) or [0])[0]))
    assert sharded.run()


def formats(client: Any) -> set[str]:
    controls = [*client.keys("{typed}:txbatch:control"), *client.keys("{typed.*}:txbatch:shard")]
    return {client.hget(key, "format").decode() for key in controls}


def test_what_lies_on_shards_has_a_format_that_other_versions_refuse(sharded):
    expected = sharded.run()
    packed = sharded.exported()
    for shard_count, found in ((1, STORED_FORMAT), (3, SHARDED_FORMAT), (2, SHARDED_FORMAT)):
        sharded.put_back(packed, shard_count)
        assert formats(sharded.client) == {found}
    for key in (b"{typed}:txbatch:control", *sharded.client.keys("{typed.*}:txbatch:shard")):
        sharded.client.hset(key, "format", STORED_FORMAT)  # as an earlier version has left it
    assert sharded.faults() == []
    assert sharded.exported()
    assert sharded.run() == expected
    assert formats(sharded.client) == {SHARDED_FORMAT}
