"""What is wrong with an address is said with its host and without its credentials."""

from __future__ import annotations

import pytest

from state.errors import TopologyError
from state.redis_client.address import (
    address_at,
    check_address,
    places_of,
    redact,
    secrets_in,
    sentinel_login,
    service_of,
)
from state.redis_client.connection import connect

SOUND = [
    "redis://",
    "redis://localhost",
    "redis://localhost:6379/",
    "redis://localhost:6379/0",
    "redis://user:p%40ss%2Fword@[::1]:6379/12",
    "redis://:p@ss@host",
    "rediss://host?ssl_cert_reqs=none&ssl_check_hostname=false&db=3",
    "unix:///tmp/redis.sock?db=1&password=x",
    "unix://:secret@/tmp/redis.sock",
    "redis://host?socket_timeout=2.5&socket_keepalive=yes&client_name=txbatch",
    "redis+sentinel://one:26379,two,[::1]:26380/orders",
    "redis+sentinel://user:p%2Fw@one,two/orders/3?sentinel_password=other&socket_timeout=5",
    "rediss+sentinel://one/orders?ssl_cert_reqs=none&sentinel_username=watcher&sentinel_password=x",
    "redis+cluster://one:7000,two:7001",
    "rediss+cluster://:secret@one/?ssl_check_hostname=false",
]

MISTAKES = [
    ("", "redis url is empty; give redis://host:6379"),
    ("db.example:6379", "'db.example:6379' has no scheme; give redis://host:6379"),
    ("canary", "'?' has no scheme"),
    ("canary@db.example:1", "'db.example:1' has no scheme"),
    ("http://:canary@db.example", "'http://db.example' begins with http://; give redis://"),
    ("redis://:canary@ db", "contains a space or a control character"),
    ("redis://db.example\x1b[31m", "contains a space or a control character"),
    ("redis://:can/ary@db.example:1", "'redis://db.example:1' has a '/' before its last '@'; if it is part"),
    ("redis://:c@n/ary@db.example:1", "'redis://db.example:1' has a '/' before its last '@'"),
    ("redis://:can?ary@db.example", "has a '?' before its last '@'"),
    ("redis://:can#ary@db.example", "has a '#' before its last '@'"),
    ("redis://db.example#canary", "'redis://db.example' contains a '#'"),
    (
        "redis://db.example:canary",
        "'redis://db.example:?' has a port that is not a number from 1 to 65535; give a port",
    ),
    ("redis://:canary@db.example:x", "has a port that is not a number"),
    ("redis://db.example:0", "'redis://db.example:0' has a port"),
    ("redis://db.example:65536", "'redis://db.example:65536' has a port"),
    ("redis://db.example/canary", "'redis://db.example/?' has a database that is not a number; give one as in"),
    ("redis://db.example/-1", "has a database that is not a number"),
    ("redis://db.example/1/2", "has a database that is not a number"),
    ("redis://db.example?db=canary", "'redis://db.example' has an option db that is not a database number"),
    ("redis://db.example/1?db=2", "gives the database twice"),
    ("redis://db.example?dbb=1", "has the unknown option 'dbb'; use one of client_name, db, password"),
    ("redis://db.example?decode_responses=true", "has the unknown option 'decode_responses'"),
    ("redis://db.example?retry_on_timeout=true", "has the unknown option 'retry_on_timeout'"),
    ("redis://db.example?db=1&db=2", "gives option db twice; keep one"),
    ("redis://db.example?db=", "gives option db no value"),
    ("redis://db.example?ssl_ca_certs=/x", "has option ssl_ca_certs without TLS; use rediss://"),
    ("rediss://db.example?ssl_ca_certs=/no/such", "names a file in ssl_ca_certs that is not on this host ('/no/such')"),
    ("rediss://db.example?ssl_cert_reqs=perhaps", "not one of required, optional, none"),
    ("rediss://db.example?ssl_check_hostname=perhaps", "not true or false"),
    ("redis://db.example?socket_timeout=soon", "not a number of seconds; give socket_timeout=5"),
    ("redis://[::1", "'redis://[::1' has an invalid host"),
    ("redis://db;example", "'redis://?' has an invalid host"),
    ("unix://redis.sock", "'unix://redis.sock' has no absolute path; give unix:///path/to/socket"),
    ("unix://", "has no absolute path"),
    ("redis+sentinel://one,two", "'redis+sentinel://one,two' has no service; give the name by which"),
    ("redis+sentinel://one/two words", "contains a space"),
    ("redis+sentinel://one/can$ary", "'redis+sentinel://one/?' has no service"),
    ("redis+sentinel://one,,two/orders", "names no host"),
    ("redis+sentinel://one,two:canary/orders", "'redis+sentinel://one,two:?/orders' has a port that is not a number"),
    ("redis+sentinel://:can/ary@one/orders", "'redis+sentinel://one/orders' has a '/' before its last '@'"),
    ("redis+sentinel://one/orders/canary", "'redis+sentinel://one/orders/?' has a database that is not a number"),
    ("redis+sentinel://one/orders/1?db=2", "gives the database twice"),
    ("redis+sentinel://one/orders?ssl_ca_certs=/x", "has option ssl_ca_certs without TLS; use rediss://"),
    ("redis+cluster://one/1", "'redis+cluster://one/1' has a database; leave it out: a cluster has only database 0"),
    ("redis+cluster://one?db=1", "has the unknown option 'db'"),
    ("redis+cluster://one?sentinel_password=canary", "has the unknown option 'sentinel_password'"),
    ("redis://one?sentinel_password=canary", "has the unknown option 'sentinel_password'"),
    ("redis://one,two", "'redis://?' has an invalid host"),
    ("redis+cluster://:canary@", "names no host"),
    ("redis+socket://:canary@one", "begins with ?://; give redis://"),
]


@pytest.mark.parametrize("url", SOUND)
def test_a_sound_address_is_taken(url):
    check_address(url)
    with connect(url):
        pass


@pytest.mark.parametrize(("url", "sentence"), MISTAKES)
def test_a_mistake_is_told_before_anybody_connects(url, sentence):
    with pytest.raises(TopologyError) as refused:
        connect(url)

    assert sentence in str(refused.value)
    assert "canary" not in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:canary@host:6379/0", "redis://host:6379/0"),
        ("rediss://user:canary@host?ssl_ca_certs=/x", "rediss://host"),
        ("unix:///tmp/s.sock?password=canary", "unix:///tmp/s.sock"),
        ("redis://user:can%40ary@[::1]:6379", "redis://[::1]:6379"),
        ("redis://:canary@[::1", "redis://[::1"),
        ("redis://:can/ary@host", "redis://host"),
        ("redis://:can@ary@host", "redis://host"),
        ("redis://:can?ary@host", "redis://?"),
        ("redis://user:canary", "redis://user:?"),
        ("unix:///tmp/s.sock?password=can@ary", "unix://?"),
        ("http://:canary@host", "http://host"),
        ("can ary://host", "?://host"),
        ("canary@host", "?"),
        ("canary@host:1", "host:1"),
        ("canary", "?"),
        ("host:6379", "host:6379"),
    ],
)
def test_credentials_are_never_shown_and_the_host_is(url, shown):
    assert redact(url) == shown


@pytest.mark.parametrize(
    ("url", "text", "shown"),
    [
        ("redis://:can%40ary@host", "AUTH can@ary or can%40ary failed", "AUTH … or … failed"),
        ("redis://u:canary@host", "redis://u:canary@host/0", "redis://host/0"),
        ("unix:///s?password=can%2Fary", "can/ary", "…"),
        ("redis://:abc@host", "abc redis://:abc@host", "abc redis://host"),
        ("redis://host:1", "redis://host:1", "redis://host:1"),
        ("", "nothing to hide", "nothing to hide"),
    ],
)
def test_a_password_is_hidden_in_other_text_too(url, text, shown):
    for secret, instead in secrets_in(url).items():
        text = text.replace(secret, instead)
    assert text == shown


@pytest.mark.parametrize("secret", ["[s3cr3tXYZ]", "s3cr3tXYZ[", "]s3cr3tXYZ", "s3cr3tXYZ℀"])
def test_a_password_that_python_takes_for_an_address_is_refused_and_not_shown(secret):
    with pytest.raises(TopologyError, match=r"percent-encode|write it as %5") as refused:
        check_address(f"redis://u:{secret}@127.0.0.1:1")
    assert "s3cr3t" not in str(refused.value)


def test_an_address_of_several_is_taken_apart():
    url = "rediss+sentinel://user:p%40ss@one,two:7000,[::1]/orders/3?sentinel_password=other&ssl_cert_reqs=none"
    assert places_of(url) == [("one", 26379), ("two", 7000), ("::1", 26379)]
    assert service_of(url) == "orders"
    assert sentinel_login(url) == {"password": "other"}
    assert address_at(url, ("10.0.0.7", 6380)) == "rediss://user:p%40ss@10.0.0.7:6380/3?ssl_cert_reqs=none"
    assert address_at("redis+cluster://one,two", ("::1", 1)) == "redis://[::1]:1"
    assert places_of("redis+cluster://one,two:7000/") == [("one", 6379), ("two", 7000)]


def test_nothing_secret_of_an_address_of_several_is_shown():
    url = "redis+sentinel://user:canary1@one,two:7000/orders/3?sentinel_username=watcher&sentinel_password=canary2"
    assert redact(url) == "redis+sentinel://one,two:7000/orders/3"
    assert {"canary1", "canary2", url} <= secrets_in(url).keys()
    assert redact("redis+cluster://canary:canary@one,two:x") == "redis+cluster://one,two:?"
