"""Options for authentication reach the clients, of the driver and of workers; a wrong secret is not shown."""

from __future__ import annotations

import logging

import pytest

from coordinator.sources.kafka import FromEnvironment, KafkaTopic, KafkaTransactionalSpout
from coordinator.sources.kafka.client_settings import ClientSettings, Option
from coordinator.sources.kafka.offset_ranges import OffsetRange
from coordinator.sources.kafka.partition_reader import make_reader
from state import SourceError
from tests.support.kafka.broker import PASSWORD, USER
from tests.support.kafka.messages import cut_all, emitted, numbers, produce

pytestmark = [pytest.mark.nightly, pytest.mark.kafka]
WRONG = "not-the-password"
OPTIONS: dict[str, Option] = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": USER,
    "sasl.password": FromEnvironment("KAFKA_TEST_PASSWORD"),
}


def test_a_topic_is_read_by_a_user_with_a_password(broker, make_topic, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("KAFKA_TEST_PASSWORD", PASSWORD)
    topic = make_topic()
    produce(broker.address, topic, numbers(0, 5))
    spout = KafkaTransactionalSpout(KafkaTopic(broker.sasl_address, topic, options=OPTIONS))
    (cut,) = cut_all(spout)
    assert emitted(spout, cut) == numbers(0, 5)
    assert PASSWORD not in repr(cut) + spout.fingerprint() + caplog.text


def test_a_wrong_password_ends_a_read_with_what_to_check(broker, make_topic, monkeypatch):
    monkeypatch.setenv("KAFKA_TEST_PASSWORD", WRONG)
    reader = make_reader(ClientSettings(broker.sasl_address, OPTIONS), make_topic(), 0, reads_committed=True)
    with pytest.raises(SourceError, match="check the user, its secret") as refused:
        list(reader.read(OffsetRange(0, 5)))
    reader.close()
    assert WRONG not in str(refused.value)


def test_a_wrong_password_ends_the_start_with_what_to_check(broker, make_topic, monkeypatch):
    monkeypatch.setenv("KAFKA_TEST_PASSWORD", WRONG)
    spout = KafkaTransactionalSpout(KafkaTopic(broker.sasl_address, make_topic(), options=OPTIONS))
    with pytest.raises(SourceError, match="check the user, its secret") as refused:
        spout.fingerprint()
    assert WRONG not in str(refused.value)
