"""What a server holds is read whole, in pieces or at one moment, with plain commands, on every backend."""

from __future__ import annotations

import pytest

from state.errors import StateRefusedError, StateUnreachableError
from state.keys import Keys
from state.kinds.state_family import PartType
from state.records.declared_states import DescribedState
from state.records.stored_records import StoredKey
from state.redis_admin import all_records as redis_records
from state.redis_admin.all_records import RedisRecords
from state.redis_client.connection import RedisConnection, connect
from state.redis_client.rights import acl_rules
from state.values.state_kind import StateKind
from tests.conftest import Backend
from tests.support.stores.builders import described_state

CONTROL, METADATA, RECEIPTS = (f"{{wc}}:txbatch:{name}" for name in ("control", "metadata", "receipts"))


def records_of(client) -> RedisRecords:
    return RedisRecords(RedisConnection(client, "there", timeout_s=1.0), Keys("wc"))


def test_records_are_of_one_moment_and_decoded(backend: Backend):
    client = backend.client()
    client.hset(CONTROL, mapping={"committed": "2", "fence": b"\xff"})
    client.hset(METADATA, "coordinator:2", b"\x01")
    found = records_of(client).records()
    assert found.control == {"committed": "2", "fence": "\\xff"}
    assert (found.metadata, found.receipts) == ({"coordinator:2": b"\x01"}, {})
    assert found.kinds == {CONTROL: "hash", METADATA: "hash", RECEIPTS: "none"}


def test_a_record_of_another_type_reads_as_empty_and_says_its_type(backend: Backend):
    client = backend.client()
    client.set(METADATA, "x")
    found = records_of(client).records()
    assert (found.kinds[METADATA], found.metadata) == ("string", {})


def test_the_keys_below_the_tag_are_found_and_no_others(backend: Backend):
    client = backend.client()
    client.hset("{wc}:counts", "a", "1")
    client.set("{wc}:last", "x", px=90_000_000)
    client.set("{wc2}:counts", "x")
    client.set("wc", "x")
    found = {each.key: each for each in records_of(client).stored_keys()}
    assert found.keys() == {"{wc}:counts", "{wc}:last"}
    assert found["{wc}:counts"] == StoredKey("{wc}:counts", "hash", -1)
    assert 0 < found["{wc}:last"].ttl_ms <= 90_000_000


@pytest.mark.parametrize("count", [0, 1, 2_500])
def test_large_states_are_read_whole_in_pieces(backend: Backend, count: int):
    client, read = backend.client(), records_of(backend.client())
    numbers = [str(number) for number in range(count)]
    if count:
        client.hset("{wc}:h", mapping=dict.fromkeys(numbers, "1"))
        client.sadd("{wc}:s", *numbers)
        client.zadd("{wc}:z", {number: float(number) for number in numbers})
        client.rpush("{wc}:l", *numbers)
    for name, kind in (("h", StateKind.HASH), ("s", StateKind.SET), ("z", StateKind.SORTED_SET), ("l", StateKind.LIST)):
        entries = [entry for piece in read.entries(name, kind) for entry in piece]
        column = 1 if kind is StateKind.LIST else 0
        assert {entry[column] for entry in entries} == {number.encode() for number in numbers}
    if count == 2_500:
        assert len(list(read.entries("l", StateKind.LIST))) == 3
    assert list(read.entries("v", StateKind.VALUE)) == [[]]


def test_an_image_spells_every_score_the_same_on_every_server(backend: Backend):
    client = backend.client()
    client.zadd("{wc}:z", {"a": 0.1, "b": 3})
    client.hset(CONTROL, "committed", "7")
    image = records_of(client).image(
        map(described_state, "zvl", (StateKind.SORTED_SET, StateKind.VALUE, StateKind.LIST))
    )
    assert image.committed == "7"
    assert image.states == {"z": {b"a": b"0.1", b"b": b"3.0"}, "v": None, "l": ()}


def test_an_image_is_refused_if_it_would_block_the_server(backend: Backend, monkeypatch):
    monkeypatch.setattr(redis_records, "IMAGE_ENTRIES_MAX", 2)
    client = backend.client()
    client.sadd("{wc}:s", "a", "b")
    states = [described_state("s", StateKind.SET), described_state("l", StateKind.LIST)]
    assert records_of(client).image(states).states["s"] == frozenset({b"a", b"b"})
    client.rpush("{wc}:l", "c")
    with pytest.raises(StateRefusedError, match="hold 3 entries, more than the 2 that are compared at one moment"):
        records_of(client).image(states)


def test_an_image_is_of_one_moment_though_a_run_adds_a_part_while_parts_are_looked_for(backend: Backend):
    client = backend.client()
    client.hset(CONTROL, mapping={"committed": "1", "generation": "g", "revision": "1"})

    class Busy(RedisRecords):
        def names_of(self, state: DescribedState) -> list[str]:
            found = super().names_of(state)
            client.hset("{wc}:views:mon", "a", "1")
            client.hset(METADATA, "coordinator:2", b"\x02")
            client.hset(CONTROL, mapping={"committed": "2", "revision": "2"})
            return found

    read = Busy(RedisConnection(client, "there", timeout_s=1.0), Keys("wc"))
    image = read.image([described_state("views", part_type=PartType.STR)])
    assert (image.committed, image.metadata) == ("2", {"coordinator:2": b"\x02"})
    assert image.states == {"views:mon": {b"a": b"1"}}


@pytest.mark.redis
def test_the_least_user_of_a_topology_may_read_everything_and_one_without_multi_is_told(redis_backend: Backend):
    admin = redis_backend.client()
    admin.hset(CONTROL, "committed", "7")
    admin.zadd("{wc}:z", {"a": 1})
    admin.execute_command("ACL", "SETUSER", "alice", *acl_rules(Keys("wc")), ">canary")
    try:
        read = records_of(redis_backend.client(username="alice", password="canary"))
        assert read.records().control == {"committed": "7"}
        assert len(list(read.stored_keys())) == 2
        assert list(read.entries("z", StateKind.SORTED_SET)) == [[(b"a", b"1")]]
        assert read.image([described_state("z", StateKind.SORTED_SET)]).committed == "7"
        admin.execute_command("ACL", "SETUSER", "alice", "-multi")
        with pytest.raises(StateRefusedError, match=r"does not let this user run MULTI, .*`txbatch acl wc`"):
            read.records()
    finally:
        admin.execute_command("ACL", "DELUSER", "alice")


def test_a_server_that_is_gone_is_unreachable_and_nothing_was_changed(tmp_path):
    read = records_of(connect(f"unix://{tmp_path}/nobody.sock"))
    with pytest.raises(StateUnreachableError, match=r"did not answer for 1 s; last error: .*nothing is lost"):
        read.records()
