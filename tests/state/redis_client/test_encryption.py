"""Plain text stays on this machine, unless it is allowed explicitly."""

from __future__ import annotations

import pytest

from state.errors import StateRefusedError, TopologyError
from state.redis_client.address import require_encryption
from state.redis_topology.reader import RedisReader, load_redis_url

ADDRESSES = {"near": ["127.0.0.1", "::1"], "far": ["10.0.0.7"], "both": ["127.0.0.1", "10.0.0.7"], "nobody": []}


def required(url, **options):
    require_encryption(url, resolve=ADDRESSES.__getitem__, **{"environment": {}, **options})


@pytest.mark.parametrize(
    "url",
    [
        "unix:///tmp/redis.sock",
        "redis://",
        "redis://:secret@:6379",
        "redis://127.0.0.1:6379",
        "redis://127.3.2.1",
        "redis://[::1]:6379",
        "redis://near",
        "rediss://far",
        "rediss://10.0.0.7",
    ],
)
def test_what_stays_here_or_is_encrypted_passes(url):
    required(url)


@pytest.mark.parametrize("host", ["far", "both", "nobody", "10.0.0.7", "[fe80::1%eth0]", "0.0.0.0"])
def test_plain_text_to_another_machine_is_refused(host):
    with pytest.raises(TopologyError, match=r"is on another machine .* would be in plain text") as refused:
        required(f"redis://:canary@{host}:6379")

    assert f"server redis://{host}:6379 " in str(refused.value)
    assert "--allow-plaintext" in str(refused.value)
    assert "canary" not in str(refused.value)


def test_plain_text_is_allowed_by_a_word_or_by_the_environment():
    required("redis://far", allow_plaintext=True)
    required("redis://far", environment={"TXBATCH_ALLOW_PLAINTEXT": "1"})
    for word in ("", "0", "no"):
        with pytest.raises(TopologyError):
            required("redis://far", environment={"TXBATCH_ALLOW_PLAINTEXT": word})


def test_an_address_that_cannot_be_used_is_told_first():
    with pytest.raises(TopologyError, match="has a port that is not a number"):
        required("redis://far:x", allow_plaintext=True)


def test_an_executor_does_not_speak_plain_text_to_another_machine_either(monkeypatch):
    monkeypatch.setenv("TXBATCH_REDIS_URL", "redis://:canary@192.0.2.1")
    with pytest.raises(StateRefusedError, match=r"of this executor: server redis://192\.0\.2\.1 is on another machine"):
        load_redis_url(None)
    monkeypatch.setenv("TXBATCH_ALLOW_PLAINTEXT", "1")
    assert load_redis_url(None) == "redis://:canary@192.0.2.1"


def test_a_certificate_an_executor_does_not_have_is_refused_in_a_sentence():
    with pytest.raises(StateRefusedError, match="an executor cannot reach the state: redis url 'rediss://far' names a"):
        RedisReader("rediss://far?ssl_ca_certs=/no/such.pem", "words", nonce="0")
