"""A barrier is confirmed only by an answer on the very connection of its write."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import redis

from state.errors import StateRefusedError
from state.records.durability import Durability, DurabilityLevel
from state.redis_client.connection import RedisConnection
from state.redis_owner.barrier import ASK_MS, SILENT_S, Barrier, PooledConnection
from tests.support.stores.builders import owner_on, unanswered
from tests.support.stores.scripted_client import Time

BROKEN = redis.ConnectionError("gone")
ALWAYS = [b"appendonly", b"yes", b"appendfsync", b"always", b"no-appendfsync-on-rewrite", b"no"]


class ScriptedConnection:
    """Plays answers to questions; None is no answer yet. Writes down what it is sent."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sent: list[Any] = []
        self.breaks_at_ask = 0

    def execute_command(self, *arguments: Any) -> Any:
        self.sent.append(arguments)
        return [b"OK", b""]

    def ask(self, *arguments: Any) -> None:
        self.sent.append(arguments)
        if self.breaks_at_ask:
            self.breaks_at_ask -= 1
            raise BROKEN

    def answer(self, timeout_s: float) -> Any | None:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.sent.append("closed")


WAIT = ("WAIT", "2", str(ASK_MS))
WRITE = ("write",)


def asked(connection: ScriptedConnection, asks: Durability, time: Time | None = None) -> Barrier:
    """A barrier whose question was asked."""
    clock = time or Time()
    wrapped = RedisConnection(connection, "redis://h", timeout_s=1.0, clock=clock.clock, sleep=clock.sleep)
    barrier = Barrier(connection, wrapped, asks, clock=clock.clock)
    barrier.ask(lambda: connection.execute_command(*WRITE))
    return barrier


def replicas(*answers: Any) -> tuple[Barrier, ScriptedConnection]:
    connection = ScriptedConnection(*answers)
    return asked(connection, Durability(DurabilityLevel.REPLICA, 2)), connection


@pytest.mark.parametrize(
    ("first", "sent"),
    [(None, [WRITE, WAIT]), (1, [WRITE, WAIT, WAIT]), (BROKEN, [WRITE, WAIT, WRITE, WAIT])],
    ids=["no answer yet", "too few: asked again", "broken: written again before the question"],
)
def test_enough_replicas_confirm_what_was_written_before_the_question(first, sent):
    barrier, connection = replicas(first, 2)
    assert connection.sent == [WRITE, WAIT]
    assert [barrier.answer(), barrier.answer()] == [False, True]
    assert connection.sent == sent
    assert not barrier.is_open


def test_a_connection_that_breaks_between_write_and_question_begins_again():
    connection = ScriptedConnection(redis.ConnectionError("nothing was asked"), 2)
    connection.breaks_at_ask = 1
    barrier = asked(connection, Durability(DurabilityLevel.REPLICA, 2))
    assert connection.sent == [WRITE, WAIT, "closed"]
    assert barrier.answer() is False
    assert connection.sent[3:] == [WRITE, WAIT]


def test_a_connection_that_says_nothing_for_long_is_given_up():
    time = Time()
    connection = ScriptedConnection(None, None, 2)
    barrier = asked(connection, Durability(DurabilityLevel.REPLICA, 2), time)
    time.now = SILENT_S
    assert barrier.answer() is False
    time.now = SILENT_S + 0.1
    assert barrier.answer() is False
    assert connection.sent[2:] == ["closed", WRITE, WAIT]


def test_an_answer_that_the_server_refuses_stops_the_run():
    barrier, _ = replicas(redis.exceptions.NoPermissionError("this user has no permissions to run the 'wait' command"))
    with pytest.raises(StateRefusedError, match=r"`txbatch acl TOPOLOGY` prints .*no longer confirms durability rep"):
        barrier.answer()


def test_at_level_fsync_a_server_that_syncs_always_confirms_with_its_next_reply():
    connection = ScriptedConnection(ALWAYS)
    barrier = asked(connection, Durability(DurabilityLevel.FSYNC))
    assert connection.sent == [WRITE, ("CONFIG", "GET", "appendonly", "appendfsync", "no-appendfsync-on-rewrite")]
    assert barrier.answer() is True


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        (b"appendfsync", b"everysec", "everysec"),
        (b"appendonly", b"no", "never"),
        (b"no-appendfsync-on-rewrite", b"yes", "always, but not while it rewrites its file"),
    ],
)
def test_at_level_fsync_any_other_setting_confirms_nothing(name, value, found):
    settings = list(ALWAYS)
    settings[settings.index(name) + 1] = value
    barrier = asked(ScriptedConnection(settings), Durability(DurabilityLevel.FSYNC))
    with pytest.raises(StateRefusedError, match=f"has appendfsync '{found}' now"):
        barrier.answer()
    assert barrier.is_open


class TestPooledConnection:
    """On every backend that is a server."""

    @pytest.fixture
    def own(self, redis_backend):
        connection = PooledConnection(redis_backend.client())
        yield connection
        connection.close()

    def test_an_answer_can_be_fetched_later_and_is_not_waited_for(self, own):
        assert own.execute_command("SET", "a", "1") == b"OK"
        own.ask("BLPOP", "nothing", "0.05")
        assert own.answer(0.0) is None
        own.close()

    def test_the_answer_is_that_of_the_question(self, own):
        own.execute_command("SET", "a", "1")
        own.ask("GET", "a")
        assert own.answer(5.0) == b"1"
        with pytest.raises(redis.ConnectionError, match="nothing was asked"):
            own.answer(0.0)

    def test_a_question_is_never_asked_on_another_connection_than_the_last_command(self, own, redis_backend):
        own.execute_command("SET", "a", "1")
        redis_backend.client().execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        with suppress(redis.ConnectionError):  # it may notice only when the answer is fetched
            own.ask("GET", "a")
            assert own.answer(5.0) is None
        with pytest.raises(redis.ConnectionError, match="the connection of the last command is closed"):
            own.ask("GET", "a")
        assert own.execute_command("GET", "a") == b"1"

    def test_a_command_while_a_question_is_open_gets_its_own_reply(self, own):
        own.execute_command("SET", "a", "1")
        own.ask("BLPOP", "nothing", "0")
        assert own.execute_command("GET", "a") == b"1"

    def test_an_error_reply_keeps_the_connection(self, own):
        number = own.execute_command("CLIENT", "ID")
        with pytest.raises(redis.ResponseError):
            own.execute_command("NO SUCH COMMAND")
        assert own.execute_command("CLIENT", "ID") == number


@pytest.mark.redis
def test_a_repeated_barrier_writes_again_because_it_may_be_on_another_connection(redis_backend):
    """WAIT on a connection that has written nothing would confirm whatever was lost."""
    client = redis_backend.client()
    store = owner_on(redis_backend.url)
    with unanswered(store):
        store.note_durable(1)
    before = client.info("persistence")["rdb_changes_since_last_save"]
    store.note_durable(1)
    assert client.info("persistence")["rdb_changes_since_last_save"] > before
    store.close()
