"""A server that has moved is found again, and nothing is put together from two servers."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from redis import exceptions
from redis._parsers.base import BaseParser

from state.errors import StateRefusedError, StateUnreachableError, TopologyError
from state.redis_admin.topology_reader import reader_at
from state.redis_client.address import places_of
from state.redis_client.connection import RedisConnection, connect
from state.redis_client.redis_errors import Remedy
from state.redis_owner.store import RedisStore
from state.redis_server.program import find_server_program
from tests.support.stores.admin import overview_of
from tests.support.stores.builders import acquire, owner_on
from tests.support.stores.moving_servers import ClusteredServers, WatchedServers
from tests.support.stores.scripted_client import Scripted, Time


class Moving(Scripted):
    """Plays a script, and counts how often its place was left."""

    follows = True

    def __init__(self, *answers: Any) -> None:
        super().__init__(*answers)
        self.left: list[str] = []
        self.moves = 0

    def leave(self, error: redis.RedisError) -> None:
        self.left.append(type(error).__name__)
        self.moves += 1


def connection_over(client: Any) -> RedisConnection:
    time = Time()
    return RedisConnection(client, "redis+cluster://here", timeout_s=60.0, clock=time.clock, sleep=time.sleep)


def parsed(line: str) -> Any:
    return BaseParser.parse_error(line)


LEFT = [
    exceptions.ConnectionError("Connection refused"),
    exceptions.TimeoutError("Timeout reading from socket"),
    parsed("MOVED 3999 127.0.0.1:6381"),
    parsed("READONLY You can't write against a read only replica."),
    parsed("CLUSTERDOWN The cluster is down"),
    parsed("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."),
    parsed("LOADING Redis is loading the dataset in memory"),
    parsed("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"),
    parsed("ERR WAIT cannot be used with replica instances."),
]
WAITED_FOR = [
    parsed("ASK 3999 127.0.0.1:6381"),
    parsed("TRYAGAIN Multiple keys request during rehashing of slot"),
    parsed("BUSY Redis is busy running a script."),
    parsed("NOREPLICAS Not enough good replicas to write."),
]


@pytest.mark.parametrize("error", [*LEFT, *WAITED_FOR], ids=str)
def test_a_call_is_repeated_elsewhere_if_its_place_is_gone_or_no_longer_right_and_else_in_place(error):
    client = Moving(error, b"answer")
    assert connection_over(client).call("FCALL", "f", "0") == b"answer"
    assert client.left == ([type(error).__name__] if error in LEFT else [])
    assert client.commands == [("FCALL", "f", "0")] * 2


@pytest.mark.parametrize(
    "error", [parsed("NOAUTH Authentication required."), parsed("OOM command not allowed")], ids=str
)
def test_what_does_not_pass_stops_there_too(error):
    client = Moving(error)
    with pytest.raises(StateRefusedError):
        connection_over(client).call("FCALL", "f", "0")
    assert client.left == []


def test_a_replica_that_answers_info_is_left():
    client = Moving({"role": "slave"}, {"role": "master"})
    assert connection_over(client).info() == {"role": "master"}
    assert client.left == ["ReadOnlyError"]
    plain = Scripted({"role": "slave"})
    assert connection_over(plain).info() == {"role": "slave"}
    assert connection_over(plain).remedy_of(parsed("MOVED 3999 127.0.0.1:6381")) is Remedy.STOP


@pytest.mark.parametrize("is_raced", [False, True])
def test_a_takeover_that_may_be_applied_at_two_servers_is_refused(redis_backend, is_raced):
    """Tasks that have stayed at the other would take for their run's what it holds, whichever request has won there."""

    client = redis_backend.client()

    class LosesTheAnswer:
        follows = True
        moves = 0

        def execute_command(self, *arguments: Any) -> Any:
            reply = client.execute_command(*arguments)
            if str(arguments[1]).endswith("_acquire") and not self.moves:
                raise redis.TimeoutError("no answer in time")
            return reply

        def leave(self, error: redis.RedisError) -> None:
            self.moves += 1
            if is_raced:
                acquire(RedisStore("redis://here", "moved", client=redis_backend.client()), "9" * 32)

        def close(self) -> None:
            pass

    store = RedisStore("redis://here", "moved", client=LosesTheAnswer(), sleep=lambda seconds: None)
    with pytest.raises(StateUnreachableError, match=r"has moved just when topology 'moved' was taken over.*again"):
        acquire(store)


@pytest.mark.parametrize("command", [("SCAN",), ("HSCAN", "{a}:counts")])
def test_pieces_of_two_servers_are_not_put_together(command):
    """A cursor of one server, or of its former process, means nothing to another: entries would be left out."""
    first, second = {"run_id": "a"}, {"run_id": "b"}
    pieces = connection_over(Scripted(first, [b"7", [b"x"]], [b"0", [b"y"]], second)).scanned(*command)
    assert next(pieces) == [b"x"]
    with pytest.raises(StateUnreachableError, match="restarted or has moved while its keys were listed"):
        next(pieces)
    same = connection_over(Scripted(first, [b"7", [b"x"]], [b"0", [b"y"]], first)).scanned(*command)
    assert list(same) == [[b"x"], [b"y"]]


def test_one_piece_is_of_one_server():
    client = Scripted({"run_id": "a"}, [b"0", [b"x"]])
    assert list(connection_over(client).scanned("SCAN")) == [[b"x"]]
    assert len(client.commands) == 2


@pytest.fixture(scope="module")
def cluster():
    with ClusteredServers(find_server_program()) as servers:
        yield servers


@pytest.fixture(scope="module")
def watched():
    with WatchedServers(find_server_program()) as servers:
        yield servers


@pytest.mark.redis
def test_every_topology_of_a_cluster_is_listed_wherever_it_is(cluster):
    ids = [f"topology{number}" for number in range(9)]
    for each in ids:
        owner_on(cluster.url, each).close()
    owners = {cluster.owner(f"{{{each}}}:x").port for each in ids}
    assert len(owners) == 3
    reader = reader_at(cluster.url)
    listed = reader.topologies()
    assert [each.topology_id for each in listed] == ids
    assert not any(each.fault for each in listed)
    for each in ids:
        assert reader.overview(each) is not None
    reader.close()


@pytest.mark.redis
def test_mistakes_in_an_address_of_sentinels_are_named(watched):
    def refused(url: str, kind: type[Exception], timeout_s: float = 0.0) -> str:
        with connect(url) as client, pytest.raises(kind) as raised:
            RedisConnection(client, "there", timeout_s=timeout_s).call("INFO")
        return str(raised.value)

    hosts = watched.url.partition("://")[2].partition("/")[0]
    unknown = refused(f"redis+sentinel://{hosts}/nobody", StateUnreachableError)
    assert "no sentinel that answers knows a primary of 'nobody' that is up" in unknown
    login = refused(f"{watched.url}?sentinel_password=canary", StateRefusedError)
    assert "sentinel_password" in login
    assert "canary" not in login
    server = watched.primary().port
    assert "is not a sentinel" in refused(f"redis+sentinel://127.0.0.1:{server}/orders", TopologyError)
    assert "is not a cluster; write redis://" in refused(f"redis+cluster://127.0.0.1:{server}", TopologyError)
    assert places_of(watched.url)


@pytest.mark.redis
def test_a_plain_address_of_a_node_says_where_the_topology_is(cluster):
    owner = cluster.owner("{moved}:x")
    other = next(each for each in cluster.primaries() if each is not owner)
    store = RedisStore(f"redis://127.0.0.1:{other.port}", "moved")
    with pytest.raises(StateRefusedError, match=r"does not own this topology; write redis\+cluster://"):
        overview_of(store)
    store.close()
