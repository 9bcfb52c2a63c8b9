"""A server that speaks TLS, as it is reached and as it is missed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from state.errors import StateRefusedError, StateUnreachableError
from state.redis_client import connection as redis_connection
from state.redis_client import whereabouts
from state.redis_client.connection import RedisConnection, connect
from state.redis_owner.store import RedisStore
from tests.support.stores.admin import admin_of
from tests.support.stores.tls_server import TlsServer, running_tls_server

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def server() -> Iterator[TlsServer]:
    with running_tls_server() as running:
        yield running


def check(url):
    """Checks the server, and asks it for a topology it does not have."""
    store = RedisStore(url, "words", unreachable_timeout_s=0.1)
    try:
        store.check_server()
        return admin_of(store).overview()
    finally:
        store.close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_server_whose_certificate_is_trusted_is_used(server, host):
    assert check(f"rediss://{host}:{server.tls_port}?ssl_ca_certs={server.certificate}") is None


def test_after_the_handshake_a_slow_answer_is_waited_for_as_long_as_ever(server):
    with connect(f"rediss://localhost:{server.tls_port}?ssl_ca_certs={server.certificate}") as client:
        connection = client.connection_pool.get_connection()
        assert connection._sock.gettimeout() == redis_connection.SOCKET_TIMEOUT_S
        client.connection_pool.release(connection)


def test_a_handshake_nobody_answers_ends_with_the_time_for_connections(server, monkeypatch):
    monkeypatch.setattr(whereabouts, "CONNECT_TIMEOUT_S", 0.2)
    url = f"rediss://localhost:{server.plain_port}"
    with connect(url) as client:
        started = time.monotonic()
        with pytest.raises(StateUnreachableError, match="if this port does not speak TLS, write redis://"):
            RedisConnection(client, url, timeout_s=0.1).call("PING")
    assert time.monotonic() - started < 5


def test_a_client_certificate_that_is_asked_for_is_named():
    with running_tls_server(asks_for_certificates=True) as asking:
        url = f"rediss://localhost:{asking.tls_port}?ssl_ca_certs={asking.certificate}"
        with pytest.raises((StateRefusedError, StateUnreachableError), match="certificate"):
            check(url)
        assert check(f"{url}&ssl_certfile={asking.certificate}&ssl_keyfile={asking.key}") is None


def test_a_file_that_holds_no_certificate_is_named(server, tmp_path):
    (tmp_path / "empty.pem").write_text("no certificate\n")
    with pytest.raises(StateRefusedError, match="a file does not hold what its option says"):
        check(f"rediss://localhost:{server.tls_port}?ssl_ca_certs={tmp_path / 'empty.pem'}")
