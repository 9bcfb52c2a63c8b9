"""A topic that is deleted under a run: asked for again as long as brokers may merely have begun, then named."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from coordinator.sources.kafka import KafkaTopic
from coordinator.sources.kafka.broker_errors import AbsentTopicError
from coordinator.sources.kafka.client_settings import ClientSettings
from coordinator.sources.kafka.offset_ranges import OffsetCut, OffsetRange
from coordinator.sources.kafka.topic import ABSENT_S, BrokerTopic
from coordinator.sources.kafka.topic_view import TopicView
from coordinator.sources.kafka.transactional_spout import KafkaEmitter
from state import FailedException, SourceError
from tests.support.topologies.plain_jobs import Clock


class Brokers:
    """Answers for the topic, unless it is deleted."""

    def __init__(self) -> None:
        self.is_there = True

    def describe_topics(self, *asked: Any, **more: Any) -> dict[str, Future[Any]]:
        answer: Future[Any] = Future()
        if self.is_there:
            answer.set_result(SimpleNamespace(topic_id="first", partitions=[]))
        else:
            answer.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
        return {"t": answer}


@pytest.fixture
def asked(monkeypatch):
    brokers, clock = Brokers(), Clock()
    monkeypatch.setattr(BrokerTopic, "_ask", lambda self, question: question(brokers))

    def made(**more: Any) -> BrokerTopic:
        return BrokerTopic(ClientSettings("b:9092", {}), "t", reads_committed=True, clock=clock, **more)

    return brokers, clock, made


@pytest.mark.parametrize("was_there", [False, True], ids=["driver", "worker"])
def test_a_topic_that_was_there_and_stays_away_is_named(asked, was_there) -> None:
    brokers, clock, made = asked
    topic = made(was_there=was_there)
    if not was_there:
        topic.topic_id()
    brokers.is_there = False
    for waited_s in (0, ABSENT_S - 1):
        clock.now_s = waited_s
        with pytest.raises(FailedException):
            topic.topic_id()
    brokers.is_there = True
    topic.topic_id()  # it is counted from the beginning again
    brokers.is_there = False
    for waited_s in (ABSENT_S, 2 * ABSENT_S - 1):
        clock.now_s = waited_s
        with pytest.raises(FailedException):
            topic.topic_id()
    clock.now_s = 2 * ABSENT_S
    with pytest.raises(SourceError, match="topic 't' was deleted while it was read: brokers b:9092 have not"):
        topic.topic_id()
    with pytest.raises(AbsentTopicError):
        made().topic_id()


def test_a_driver_that_has_work_left_ends_too(asked, monkeypatch) -> None:
    brokers, clock, made = asked
    topic = made(was_there=True)
    view = TopicView(topic, "t", clock, needs_all=True)
    monkeypatch.setattr(view, "_state", SimpleNamespace(topic_id="first", away={}, bounds={}))
    brokers.is_there = False
    view.look_again(has_work=True)
    clock.now_s = ABSENT_S + 1
    with pytest.raises(SourceError, match="topic 't' was deleted while it was read"):
        view.look_again(has_work=True)


def test_a_worker_whose_reads_bring_nothing_asks_for_the_topic_and_names_it(asked, monkeypatch) -> None:
    brokers, clock, made = asked
    topic = made(was_there=True)
    monkeypatch.setattr(KafkaTopic, "worker_topic_id", lambda self: topic.topic_id())

    def silent(*given: Any) -> Any:
        clock.now_s += ABSENT_S
        raise FailedException("brought nothing for 30 s")

    monkeypatch.setattr(KafkaTopic, "reader", lambda *given: SimpleNamespace(read=silent))
    emitter = KafkaEmitter(KafkaTopic("b:9092", "t"), cast(Any, SimpleNamespace(task_index=0, task_count=1)))
    cut = OffsetCut("first", {0: OffsetRange(0, 3)}).to_plain()
    brokers.is_there = False
    with pytest.raises(FailedException):
        emitter.emit_batch(cast(Any, None), cut, cast(Any, None))
    with pytest.raises(SourceError, match="topic 't' was deleted while it was read"):
        emitter.emit_batch(cast(Any, None), cut, cast(Any, None))
