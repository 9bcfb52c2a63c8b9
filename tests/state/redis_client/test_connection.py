"""The retry loop and the error table, over a client that plays a script."""

from __future__ import annotations

import pytest
import redis
from redis import exceptions
from redis._parsers.base import BaseParser

from state.errors import ProtocolError, StateRefusedError, StateUnreachableError, TopologyError
from state.redis_client.connection import RedisConnection, connect
from state.redis_client.redis_errors import hint_for
from state.redis_owner.store import RedisStore
from tests.support.stores.scripted_client import Scripted, Time


def connection_over(*answers, revive=None, timeout_s=60.0):
    client, time = Scripted(*answers), Time()
    connection = RedisConnection(
        client, "redis://here", timeout_s=timeout_s, revive=revive, clock=time.clock, sleep=time.sleep
    )
    return connection, client, time


def parsed(line):
    """The exception redis-py makes of an error line, whatever parser is in use."""
    return BaseParser.parse_error(line)


RETRIED = [
    exceptions.ConnectionError("Connection refused"),
    exceptions.TimeoutError("Timeout reading from socket"),
    parsed("LOADING Redis is loading the dataset in memory"),
    parsed("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."),
    parsed("TRYAGAIN Multiple keys request during rehashing of slot"),
    parsed("CLUSTERDOWN The cluster is down"),
    parsed("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."),
    parsed("NOREPLICAS Not enough good replicas to write."),
    parsed("ERR max number of clients reached"),
    parsed("ERR Script killed by user with FUNCTION KILL. script: txbatch_10_commit, on @user_function:701."),
    parsed("ERR Script killed by user with SCRIPT KILL... script: txbatch_10_commit, on @user_function:701."),
]
STOPPED = [
    ("NOAUTH Authentication required.", "asks for a password"),
    ("WRONGPASS invalid username-password pair or user is disabled.", "refused the user name or password"),
    ("ERR invalid password", "refused the user name or password"),
    ("NOPERM this user has no permissions to run the 'fcall' command", "does not let this user"),
    ("READONLY You can't write against a read only replica.", "is a replica; give the address of its primary"),
    ("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist", "free disk space"),
    ("OOM command not allowed when used memory > 'maxmemory'.", "is out of memory; raise maxmemory"),
    ("WRONGTYPE Operation against a key holding the wrong kind of value", "holds a key of another type"),
    ("MOVED 3999 127.0.0.1:6381", "write redis+cluster://, or give the owner's address"),
    ("CROSSSLOT Keys in request don't hash to the same slot", "is a cluster that spreads"),
    ("ERR unknown command 'FCALL', with args beginning with: ", "does not allow FUNCTION LOAD and FCALL"),
    ("ERR unknown command 'function', with args beginning with: 'LIST' ", "as OCI Cache does for sharded clusters"),
    ("ERR FUNCTION LOAD is not allowed in this plan", "choose a service or plan that allows them (it said: FUNCTION"),
    ("ERR unknown command 'ZMSCORE', with args beginning with: ", "use Redis >= 7.0 or Valkey >= 7.2"),
    ("ERR something \x1b[31mred\ntxbatch: done", r"does not know: something \x1b[31mred\ntxbatch: done"),
    ("WEIRD code nobody has seen", "does not know: WEIRD code"),
]
HANDSHAKES = [
    ("Error 1 connecting to h:1. [SSL: WRONG_VERSION_NUMBER] wrong version number", "does not speak TLS"),
    ("Error 1 connecting to h:1. [SSL] record layer failure (_ssl.c:1000)", "does not speak TLS"),
    ("[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert", "asks for a client certificate"),
    ("Error 136 connecting to h:1. [X509: NO_CERTIFICATE_OR_CRL_FOUND] no certificate", "certificates named in"),
    ("Error 1: [SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate", "untrusted"),
]
MISTAKEN = [
    ("ERR DB index is out of range", "has no database of that number; give one it has"),
    ("ERR SELECT is not allowed in cluster mode", "is a cluster, which has only database 0"),
]
FINAL = [
    *((parsed(line), StateRefusedError, sentence) for line, sentence in STOPPED),
    *((exceptions.ConnectionError(text), StateRefusedError, sentence) for text, sentence in HANDSHAKES),
    *((parsed(line), TopologyError, sentence) for line, sentence in MISTAKEN),
]


@pytest.mark.parametrize("error", RETRIED, ids=str)
def test_what_passes_is_asked_again_unchanged(error):
    connection, client, time = connection_over(error, error, b"answer")
    assert connection.call("FCALL", "f", "0") == b"answer"
    assert client.commands == [("FCALL", "f", "0")] * 3
    assert time.slept == [0.02, 0.04]


@pytest.mark.parametrize(("error", "kind", "sentence"), FINAL, ids=[sentence for _, _, sentence in FINAL])
def test_what_does_not_pass_stops_at_once(error, kind, sentence):
    connection, client, _ = connection_over(error)
    with pytest.raises(kind, match=r"^server redis://here ") as refused:
        connection.call("FCALL", "f", "0")
    assert sentence in str(refused.value)
    assert len(client.commands) == 1


def test_a_key_of_another_type_is_named():
    connection, _, _ = connection_over(parsed("WRONGTYPE Operation against a key holding the wrong kind of value"))
    with pytest.raises(StateRefusedError, match=r"\(it said: WRONGTYPE .*; the key is '\{t\}:counts'\)$"):
        connection.call("HGET", b"{t}:counts", "a")


def test_the_loop_is_bounded_and_backs_off_to_a_second():
    connection, _, time = connection_over(exceptions.ConnectionError("Connection refused"))
    with pytest.raises(StateUnreachableError, match=r"did not answer for 60 s; last error: Connection refused; start"):
        connection.call("PING")
    assert time.slept[:8] == [0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0]
    assert 58 < time.now <= 60


def test_a_lost_connection_revives_the_embedded_server_before_the_next_try():
    revived = []
    connection, client, _ = connection_over(
        exceptions.ConnectionError("gone"),
        parsed("BUSY Redis is busy running a script."),
        b"answer",
        revive=lambda: revived.append("once"),
    )
    assert connection.call("PING") == b"answer"
    assert len(client.commands) == 3
    assert revived == ["once"]


def test_a_server_that_cannot_be_revived_stops_the_loop():
    def refuse():
        raise StateRefusedError("embedded server does not start")

    connection, _, _ = connection_over(exceptions.ConnectionError("gone"), revive=refuse)
    with pytest.raises(StateRefusedError, match="does not start"):
        connection.call("PING")


def test_a_write_kept_the_server_busy_for_as_much_longer_as_it_took_than_the_quickest_one():
    time, takes_s = Time(), [0.5, 0.25, 1.0, 0.125, 0.75]

    class Slow(Scripted):
        def execute_command(self, *arguments):
            time.sleep(takes_s.pop(0))
            return super().execute_command(*arguments)

    connection = RedisConnection(Slow(b"OK"), "s", timeout_s=60, clock=time.clock, sleep=time.sleep)
    found = []
    for read_only in (False, False, False, True, False):  # a read may be quicker: it waits for no disk
        connection.function("f", "0", read_only=read_only)
        found.append(connection.busy_s)
    assert found == [0, 0, 0.75, 0.75, 0.5]


def test_a_write_that_was_repeated_says_nothing_about_how_busy_the_server_was():
    connection, _, _ = connection_over(b"OK", exceptions.ConnectionError("gone"), b"OK")
    connection.function("f", "0")
    connection.function("f", "0")
    assert connection.busy_s == 0


def test_a_user_who_may_not_load_and_finds_nothing_loaded_is_told():
    denied = parsed("NOPERM this user has no permissions to run the 'function' command")
    missing = parsed("ERR Function not found")
    connection, _, _ = connection_over(missing, denied, missing, denied, missing, denied, missing)
    with pytest.raises(StateRefusedError, match="does not have txbatch's function library"):
        connection.function("commit", "0")


def test_a_library_that_is_loaded_and_gone_again_is_not_blamed_on_the_user_s_rights():
    missing = parsed("ERR Function not found")
    connection, client, _ = connection_over(missing, *([], b"OK", missing) * 3)
    with pytest.raises(StateRefusedError, match=r"was loaded 3 times .*another program .*FUNCTION FLUSH") as raised:
        connection.function("commit", "0")
    assert "may not load" not in str(raised.value)
    assert [command[0:2] for command in client.commands].count(("FUNCTION", "LOAD")) == 3


@pytest.mark.parametrize(
    ("server", "text", "hint"),
    [
        ("rediss://h", "The handshake operation timed out", "if this port does not speak TLS, write redis://"),
        (
            "rediss://h",
            "EOF occurred in violation of protocol",
            "if it asks for a client certificate, give ssl_certfile",
        ),
        ("redis://h", "Connection closed by server.", "if this port speaks TLS only, write rediss://"),
        ("redis://h", "Connection reset by peer", "if this port speaks TLS only, write rediss://"),
        ("redis://h", "Connection refused", ""),
        ("unix:///s", "Connection closed by server.", ""),
    ],
)
def test_silence_is_told_with_what_the_address_may_have_meant(server, text, hint):
    error = exceptions.ConnectionError(text)
    assert hint_for(error, server).startswith(f"; {hint}" if hint else "")
    assert bool(hint_for(error, server)) == bool(hint)


def test_a_server_that_was_away_is_mentioned_in_the_log(caplog):
    refused = exceptions.ConnectionError("Connection refused")
    connection, _, time = connection_over(*[refused] * 12, b"answer")
    connection.call("PING")
    assert [record.message for record in caplog.records] == [
        "server redis://here does not answer (Connection refused); trying again",
        f"server redis://here was away for {time.now:.1f} s (Connection refused); nothing is lost",
    ]
    assert time.now > 7
    assert (connection.away_count, connection.away_s) == (1, time.now)


def test_a_server_that_was_stopped_for_a_while_is_mentioned_in_the_log(caplog):
    connection, client, time = connection_over(b"answer")
    plain = client.execute_command
    client.execute_command = lambda *arguments: (time.sleep(7.0), plain(*arguments))[1]
    connection.call("PING")
    assert [record.message for record in caplog.records] == [
        "server redis://here took 7.0 s to answer one call; nothing is lost"
    ]
    assert connection.away_count == 1


def test_a_blink_of_the_server_is_not_worth_a_word(caplog):
    connection, _, _ = connection_over(exceptions.ConnectionError("gone"), b"answer")
    connection.call("PING")
    assert (caplog.records, connection.away_count) == ([], 0)


def test_arguments_that_cannot_be_sent_are_our_bug():
    connection, _, _ = connection_over(exceptions.DataError("invalid input"))
    with pytest.raises(ProtocolError):
        connection.call("SET", "a")


def test_nothing_a_store_says_about_itself_holds_the_password():
    store = RedisStore("redis://:canary@127.0.0.1:1", "wc", unreachable_timeout_s=0.01)
    with pytest.raises(StateUnreachableError, match=r"redis://127\.0\.0\.1:1") as refused:
        store.check_server()
    assert "canary" not in str(refused.value) + repr(store) + repr(vars(store))
    store.close()


def test_a_client_repeats_nothing_by_itself():
    with connect("redis://127.0.0.1:1") as client:
        assert client.get_retry().get_retries() == 0
        assert isinstance(client, redis.Redis)
