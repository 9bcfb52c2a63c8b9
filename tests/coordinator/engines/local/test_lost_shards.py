"""What was imported, or has lost its record, is never taken for a beginning; other versions refuse the format."""

from __future__ import annotations

import re
from typing import Any

import pytest

from coordinator.engines.local.cluster import LocalCluster
from state.errors import StateRefusedError
from state.redis_client.function_library import SHARDED_FORMAT, STORED_FORMAT
from state.troubles import Trouble
from tests.support.topologies.sharded_topology import Sharded, over
from tests.support.topologies.typed_states import WORDS, typed_topology

pytestmark = pytest.mark.redis


@pytest.fixture
def sharded(redis_backend, monkeypatch) -> Sharded:
    """As over several servers: each shard keeps the parts of the one before it."""

    def around(places):
        return [[(number - 1) % len(places)] for number in range(len(places))]

    monkeypatch.setattr("state.redis_shards.sharded_store.wards_of", around)
    return Sharded(redis_backend.client())


def all_keys(client: Any, pattern: str) -> dict[bytes, bytes]:
    return {key: client.dump(key) for key in client.keys(pattern)}


def lose(client: Any, pattern: str, then: dict[bytes, bytes] | None = None) -> None:
    """A server comes back empty, or as it was."""
    client.delete(*client.keys(pattern))
    for key, packed in (then or {}).items():
        client.restore(key, 0, packed)


def test_a_shard_that_comes_back_empty_is_given_everything_if_nothing_was_imported(sharded):
    expected = sharded.run()
    lose(sharded.client, "{typed.1}*")
    assert sharded.run() == expected
    assert sharded.faults() == []


@pytest.mark.parametrize("before", [1, 2, 3], ids="{}_shards_before".format)
@pytest.mark.parametrize("is_empty", [True, False], ids=["empty", "as_before_the_import"])
def test_a_shard_that_has_lost_an_import_is_named(sharded, before, is_empty):
    sharded.shard_count = 3
    with LocalCluster(seed=1) as cluster:
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
    with pytest.raises(StateRefusedError, match=r"shard 1 of topology 'typed'.* has txid 0 and not what") as refused:
        sharded.run()
    assert refused.value.trouble is Trouble.REGRESSED
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


def test_a_home_that_comes_back_empty_is_given_everything_by_the_shards_that_were_its_own(sharded):
    expected = sharded.run()
    sharded.topology.drop()
    sharded.run(last_txid=5)
    lose(sharded.client, "{typed}:*")
    sharded.shard_count = 2
    with pytest.raises(StateRefusedError, match="has its state on 3 shards and is given shards=2"):
        sharded.run()
    sharded.shard_count = 3
    assert sharded.run() == expected
    assert sharded.faults() == []
    sharded.put_back(sharded.exported(), 3)
    lose(sharded.client, "{typed}:*")
    with pytest.raises(StateRefusedError, match=r"has lost|has another history|keeps no decision"):
        sharded.run()
    assert sharded.topology.drop(shard_count=3).deleted


def formats(client: Any) -> set[str]:
    controls = [*client.keys("{typed}:txbatch:control"), *client.keys("{typed.*}:txbatch:shard")]
    return {client.hget(key, "format").decode() for key in controls}


def test_what_lies_on_shards_has_a_format_that_other_versions_refuse(sharded):
    expected = sharded.run()
    assert formats(sharded.client) == {SHARDED_FORMAT}
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
