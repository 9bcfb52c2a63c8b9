"""``txbatch acl``: what it prints is what a server takes, and enough to run a topology."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest

from coordinator import run
from coordinator.operating.transfer.exporting import export_state
from state.redis_admin.topology import RedisTopology
from state.redis_owner.store import RedisStore
from tests.conftest import Backend
from tests.support.stores.builders import acquire
from tests.support.topologies.kept_states import kept_topology


@pytest.fixture
def printed(output: Callable[..., str]) -> Callable[..., list[str]]:
    """The words of the line that the command prints."""

    def words(*arguments: str) -> list[str]:
        (line,) = output("acl", *arguments).splitlines()
        return line.split()

    return words


@contextmanager
def url_of_user(backend: Backend, rules: list[str]) -> Iterator[str]:
    """The address for the user alice, whom the server knows for a while."""
    client = backend.client()
    client.execute_command("ACL", "SETUSER", *rules)
    assert backend.url is not None
    try:
        yield backend.url.replace("unix://", "unix://alice@") + "?password=PASSWORD"
    finally:
        client.execute_command("ACL", "DELUSER", "alice")


@pytest.mark.redis
def test_the_printed_user_can_run_the_topology_and_nothing_else(redis_backend: Backend, printed) -> None:
    first, *rules = printed("words", "--user", "alice")
    assert (first, rules[0], rules[-1]) == ("user", "alice", ">PASSWORD")
    with url_of_user(redis_backend, rules) as url:
        with closing(RedisStore(url, "words")) as store:
            store.check_server()
            acquire(store)
        with (
            closing(RedisStore(url, "other")) as store,
            pytest.raises(Exception, match="does not let this user"),
        ):
            store.check_server()


@pytest.mark.redis
def test_with_shards_the_printed_user_can_run_export_and_drop_the_topology(redis_backend: Backend, printed) -> None:
    _, *rules = printed("kept", "--user", "alice", "--shards", "3")
    with url_of_user(redis_backend, rules) as url:
        run(replace(kept_topology(), shard_count=3), redis_url=url, engine="local")
        with closing(RedisTopology(url, "kept")) as topology:
            export_state(topology.records(), io.BytesIO())
            assert topology.drop().left == ()


def test_the_user_is_called_as_the_topology_unless_named_and_has_the_rights_that_are_asked_for(printed) -> None:
    usual = printed("words")
    assert usual[1] == "words"
    assert set(usual) - set(printed("words", "--no-functions")) == {"+function|load"}, "it finds the library loaded"
    assert set(printed("words", "--expiring-fields")) - set(usual) == {"+hpexpireat", "+hpexpiretime"}


@pytest.mark.redis
@pytest.mark.parametrize(("level", "right"), [("fsync", "+config|get"), ("replica", "+wait")])
def test_a_level_that_waits_takes_one_right_more(redis_backend: Backend, printed, level: str, right: str) -> None:
    _, *rules = printed("words", "--user", "alice", "--durability", level)
    assert set(rules) - set(printed("words", "--user", "alice")) == {right}
    with url_of_user(redis_backend, rules):
        pass


@pytest.mark.parametrize("arguments", [("wo rds",), ("words", "--user", "a b")])
def test_a_name_out_of_rule_is_a_usage_error(arguments: tuple[str, ...], complaint) -> None:
    assert "is not a valid name" in complaint("acl", *arguments)
