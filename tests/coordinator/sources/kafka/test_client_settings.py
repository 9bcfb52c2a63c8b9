"""Secrets reach clients and nothing else."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from coordinator.sources import TextLine
from coordinator.sources.kafka import KafkaOpaqueSpout, KafkaSpout, KafkaTopic, KafkaTransactionalSpout
from coordinator.sources.kafka.client_settings import ClientSettings, FromEnvironment, FromFile, Option
from coordinator.sources.kafka.partition_reader import make_reader
from state import SourceError, TopologyError

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


@pytest.mark.parametrize("name", [*OURS, "isolation.level"])
def test_an_option_the_spout_sets_itself_is_refused_with_what_to_use(name):
    with pytest.raises(TopologyError, match=f"{name!r} is set by the spout; use"):
        ClientSettings("h:1", {name: "x"})


@pytest.mark.parametrize("servers", ["", "  ", "user:pw@h:1", None, "kafka://h:1", "SSL://h:1,http://h:2"])
def test_servers_that_are_none_are_refused(servers):
    with pytest.raises(TopologyError, match="give host:port"):
        ClientSettings(servers, {})


WRONG: dict[str, list[Any]] = {
    "name": ["a b", ".."],
    "start": ["tomorrow", "2026-01-31T12:00:00", {0: -1}],
    "on_gone": ["ignore"],
    "isolation_level": ["dirty"],
    "on_tombstone": ["x"],
    "on_bad_record": ["x"],
    "origin_fields": [["colour"]],
}


@pytest.mark.parametrize(("name", "wrong"), [(name, wrong) for name in WRONG for wrong in WRONG[name]])
def test_an_argument_that_cannot_be_used_is_refused_when_the_topic_is_declared(name, wrong):
    with pytest.raises(TopologyError):
        KafkaTopic(**{"servers": "h:1", "name": "t", name: wrong})


NO_TOPIC = r"is 'h:1'; give a KafkaTopic\(servers, name\)"


@pytest.mark.parametrize(
    ("spout", "wrong", "named"),
    [
        (KafkaTransactionalSpout, {"messages_per_batch": 0}, "messages_per_batch=0"),
        (KafkaTransactionalSpout, {"linger_ms": -1}, "linger_ms=-1"),
        (KafkaTransactionalSpout, {"mirror_group": ""}, "mirror_group=''"),
        (KafkaOpaqueSpout, {"bytes_per_partition": "x"}, "bytes_per_partition='x'"),
        (KafkaSpout, {"on_give_up": "x"}, "on_give_up='x' is unknown; choose one of 'fail', 'skip', 'dead_letter'"),
        *((kind, {"topic": "h:1"}, NO_TOPIC) for kind in (KafkaTransactionalSpout, KafkaOpaqueSpout, KafkaSpout)),
    ],
)
def test_an_argument_that_cannot_be_used_is_refused_when_the_spout_is_made(spout, wrong, named):
    with pytest.raises(TopologyError, match=named):
        spout(**{"topic": KafkaTopic("h:1", "t"), **wrong})


@pytest.mark.parametrize("given", [{"user": str}, TextLine])
def test_a_format_that_is_none_is_refused_in_a_sentence(given):
    with pytest.raises(TopologyError, match="is not an object of a RecordFormat; give one such as"):
        KafkaTopic("h:1", "t", given)


def test_options_that_are_no_mapping_are_refused():
    options: Any = ["security.protocol=SSL"]
    with pytest.raises(TopologyError, match="options of a Kafka spout are a list; give a mapping"):
        KafkaTopic("h:1", "t", options=options)
