"""Secrets reach clients and nothing else."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from coordinator.sources import TextLine
from coordinator.sources.kafka import KafkaOpaqueSpout, KafkaSpout, KafkaTopic, KafkaTransactionalSpout
from coordinator.sources.kafka.client_settings import ClientSettings, FromEnvironment, FromFile, Option
from coordinator.sources.kafka.partition_reader import make_reader
from state import SourceError, TopologyError
from tests.support.approved import approved, refusals

SECRET = "hunter22-and-more"
SECRET_NAMES = [
    *(f"sasl.{name}" for name in ("password", "jaas.config", "oauthbearer.client.secret", "oauthbearer.config")),
    *(f"ssl.{name}" for name in ("key.password", "keystore.password", "key.pem")),
    *(f"sasl.oauthbearer.assertion.private.key.{name}" for name in ("passphrase", "pem")),
]
OURS = ["bootstrap.servers", "metadata.broker.list", "group.id", "enable.auto.commit", "auto.offset.reset"]


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_secret_in_plain_text_is_refused_without_being_shown(name):
    with pytest.raises(TopologyError, match="is a secret") as refused:
        KafkaTopic("h:1", "t", options={name: SECRET})
    assert SECRET not in str(refused.value)


def test_a_secret_by_reference_is_in_no_pickle_repr_or_message(tmp_path, monkeypatch):
    (tmp_path / "key").write_text(SECRET + "\n")
    monkeypatch.setenv("KAFKA_SECRET", f"{SECRET}\r\n")
    given: dict[str, Option] = {
        "sasl.password": FromEnvironment("KAFKA_SECRET"),
        "ssl.key.password": FromFile(str(tmp_path / "key")),
    }
    settings = ClientSettings("h:1", given)
    assert settings.resolved()["sasl.password"] == settings.resolved()["ssl.key.password"] == SECRET
    assert SECRET not in repr(settings)
    assert SECRET.encode() not in pickle.dumps(KafkaTransactionalSpout(KafkaTopic("h:1", "t", options=given)))
    assert settings.without_secrets(f"bad value {SECRET}!") == "bad value …!"


def test_a_secret_that_is_not_there_is_named(tmp_path):
    missing = {"sasl.password": FromEnvironment("NO_SUCH_VARIABLE_HERE")}
    with pytest.raises(SourceError, match="'NO_SUCH_VARIABLE_HERE', which holds a Kafka secret, is not set"):
        ClientSettings("h:1", missing).resolved()
    with pytest.raises(SourceError, match="cannot be read: FileNotFoundError"):
        ClientSettings("h:1", {"sasl.password": FromFile(str(tmp_path / "none"))}).resolved()


def test_a_client_that_refuses_an_option_does_not_show_a_secret(monkeypatch):
    monkeypatch.setenv("KAFKA_SECRET", SECRET)
    settings = ClientSettings("h:1", {"sasl.password": FromEnvironment("KAFKA_SECRET"), "no.such.option": 1})
    wrong = ClientSettings("h:1", {"security.protocol": FromEnvironment("KAFKA_SECRET")})
    for given, told in ((settings, "fix the options"), (wrong, "…")):
        with pytest.raises(SourceError, match=told) as refused:
            make_reader(given, "t", 0, reads_committed=True)
        assert SECRET not in str(refused.value)


def spout(kind: Any, **given: Any) -> Any:
    return partial(kind, **{"topic": KafkaTopic("h:1", "t"), **given})


def topic(**given: Any) -> Any:
    return partial(KafkaTopic, **{"servers": "h:1", "name": "t", **given})


KINDS = (KafkaTransactionalSpout, KafkaOpaqueSpout, KafkaSpout)
SERVERS: tuple[Any, ...] = ("", "  ", "user:pw@h:1", None, "kafka://h:1", "SSL://h:1,http://h:2")
REFUSED: dict[str, Callable[[], Any]] = {
    **{f"option {name}": partial(ClientSettings, "h:1", {name: "x"}) for name in [*OURS, "isolation.level"]},
    **{f"servers {servers!r}": partial(ClientSettings, servers, {}) for servers in SERVERS},
    **{f"name {name!r}": topic(name=name) for name in ("a b", "..")},
    **{f"start {start!r}": topic(start=start) for start in ("tomorrow", "2026-01-31T12:00:00", {0: -1})},
    "on_gone": topic(on_gone="ignore"),
    "isolation_level": topic(isolation_level="dirty"),
    "on_tombstone": topic(on_tombstone="x"),
    "on_bad_record": topic(on_bad_record="x"),
    "origin_fields": topic(origin_fields=["colour"]),
    "a mapping for a format": topic(record_format={"user": str}),
    "a class for a format": topic(record_format=TextLine),
    "options that are a list": topic(options=["security.protocol=SSL"]),
    "messages_per_batch": spout(KafkaTransactionalSpout, messages_per_batch=0),
    "linger_ms": spout(KafkaTransactionalSpout, linger_ms=-1),
    "mirror_group": spout(KafkaTransactionalSpout, mirror_group=""),
    "bytes_per_partition": spout(KafkaOpaqueSpout, bytes_per_partition="x"),
    "on_give_up": spout(KafkaSpout, on_give_up="x"),
    **{f"servers for the topic of a {kind.__name__}": spout(kind, topic="h:1") for kind in KINDS},
}


def test_an_argument_that_cannot_be_used_is_refused_when_it_is_given():
    approved(refusals(REFUSED, TopologyError), "kafka-arguments")
