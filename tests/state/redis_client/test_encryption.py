"""Plain text stays on this machine, unless it is allowed explicitly."""

from __future__ import annotations

import pytest

from state.errors import StateRefusedError, TopologyError
from state.redis_client.address import require_encryption, require_encryption_at
from state.redis_owner.reader import RedisReader, load_redis_url

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
        "redis+sentinel://near,127.0.0.1:26380/orders",
        "redis+cluster://near,[::1]:7000",
        "rediss+cluster://near,far",
    ],
)
def test_what_stays_here_or_is_encrypted_passes(url):
    required(url)


@pytest.mark.parametrize(
    ("scheme", "place"),
    [
        *(("redis", f"{host}:6379") for host in ("far", "both", "nobody", "10.0.0.7", "[fe80::1%eth0]", "0.0.0.0")),
        ("redis+sentinel", "near,far/orders"),
        ("redis+cluster", "far:7000,near"),
    ],
)
def test_plain_text_is_refused_if_any_host_that_is_named_is_another_machine(scheme, place):
    with pytest.raises(TopologyError, match=r"is on another machine .* would be in plain text") as refused:
        required(f"{scheme}://:canary@{place}")

    assert f"server {scheme}://{place} " in str(refused.value)
    assert "--allow-plaintext" in str(refused.value)
    assert "canary" not in str(refused.value)


def test_plain_text_is_allowed_by_a_word_or_by_the_environment():
    required("redis://far", allow_plaintext=True)
    required("redis://far", environment={"TXBATCH_ALLOW_PLAINTEXT": "1\n"})
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


def test_plain_text_to_another_machine_that_was_found_is_refused():
    with pytest.raises(TopologyError, match=r"leads to 10\.0\.0\.7:6379.*use rediss\+cluster://, or.*PLAINTEXT=1"):
        require_encryption_at("redis+cluster://:canary@127.0.0.1", ("10.0.0.7", 6379), {})


@pytest.mark.parametrize(
    ("url", "host", "environment"),
    [
        ("redis+cluster://127.0.0.1", "127.0.0.2", {}),
        ("rediss+cluster://127.0.0.1", "10.0.0.7", {}),
        ("redis+cluster://127.0.0.1", "10.0.0.7", {"TXBATCH_ALLOW_PLAINTEXT": "1"}),
        ("redis+cluster://10.0.0.8", "10.0.0.7", {}),  # whoever named it was asked
    ],
)
def test_a_place_that_was_found_and_stays_here_or_is_allowed_passes(url, host, environment):
    require_encryption_at(url, (host, 6379), environment)
