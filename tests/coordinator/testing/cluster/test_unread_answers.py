"""What nobody reads is refused: rows that a method returns or yields, and tuples that come after the end of a batch."""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from coordinated_bolt import BaseBasicBolt, BaseBatchBolt, BaseRichBolt, BaseSpout
from coordinator import FixedBatchesSpout, LocalCluster, SpoutEmitter, TopologyBuilder, TransactionalTopologyBuilder
from state import FailedException, HashState, UserCodeError
from tests.support.runs.collecting import Collecting

ROWS = [["a"], ["b"]]
RETURNED = r"TypeError: {} returned \[\['a'\], \['b'\]\], which goes nowhere; call collector.emit for each row"
YIELDED = "TypeError: {} has a yield in it, so none of it was run; call collector.emit for each row"
AWAITED = "TypeError: {} is an async def, so none of it was run; define it with a plain def"


class Batch(BaseBatchBolt):
    output_fields = ("value",)

    def execute(self, tup):
        self.collector.emit(tup.values)


class Basic(BaseBasicBolt):
    output_fields = ("value",)

    def execute(self, tup, collector):
        collector.emit(tup.values)


class Rich(BaseRichBolt):
    output_fields = ("value",)

    def execute(self, tup):
        self.collector.ack(tup)


class Asked(BaseSpout):
    output_fields = ("value",)

    def __init__(self):
        self.waiting = [["a"]]

    def next_tuple(self):
        if self.waiting:
            self.collector.emit(self.waiting.pop(), "id")


class Keep(Collecting):
    kept = HashState("kept", value=int)

    def finish_batch(self):
        self.kept.increment("tuples", len(self.tuples))


def returns(self, *_):
    return ROWS


def yields(self, *_):
    yield from ROWS


async def awaits(self, *_):
    return ROWS


def transactional(bolt: Any) -> Any:
    builder = TransactionalTopologyBuilder("t", "spout", FixedBatchesSpout([[["a"]], [["b"]]], ["value"]))
    if isinstance(bolt, Keep):
        builder.set_committer_bolt("bolt", bolt).shuffle_grouping("spout")
    else:
        builder.set_bolt("bolt", bolt).shuffle_grouping("spout")
        builder.set_committer_bolt("keep", Keep()).shuffle_grouping("bolt")
    return builder.build()


def plain(component: Any) -> Any:
    builder = TopologyBuilder("t")
    is_spout = isinstance(component, BaseSpout)
    builder.set_spout("spout", component if is_spout else Asked())
    builder.set_bolt("bolt", Rich() if is_spout else component).shuffle_grouping("spout")
    return builder.build()


def ended(topology: Any) -> str:
    with LocalCluster() as cluster:
        with pytest.raises(UserCodeError) as raised:
            cluster.submit(topology).run_until_idle()
        return str(raised.value)


def changed(base: type, method: str, mistake: Any) -> Any:
    mistake = type(mistake)(mistake.__code__, mistake.__globals__, method)  # it is called what it is called by
    return type("Mistaken", (base,), {method: mistake})()


as_each_mistake = pytest.mark.parametrize(
    ("mistake", "story"),
    [(returns, RETURNED), (yields, YIELDED), (awaits, AWAITED)],
    ids=["returns", "yields", "awaits"],
)


@as_each_mistake
@pytest.mark.parametrize(
    ("base", "method"),
    [(Batch, name) for name in ("prepare", "execute", "execute_batch", "finish_batch")]
    + [(Basic, name) for name in ("prepare", "execute", "execute_batch")]
    + [(Keep, name) for name in ("execute", "finish_batch")],
)
def test_rows_that_a_batch_bolt_returns_or_yields_are_refused_by_name(base, method, mistake, story):
    said = ended(transactional(changed(base, method, mistake)))
    assert re.search(story.format(method), said), said
    assert "'bolt'" in said


@as_each_mistake
@pytest.mark.parametrize(
    ("base", "method"),
    [
        (Rich, "prepare"),
        (Rich, "execute"),
        (Basic, "prepare"),
        (Basic, "execute"),
        (Asked, "open"),
        (Asked, "next_tuple"),
    ],
)
def test_rows_that_a_plain_component_returns_or_yields_are_refused_by_name(base, method, mistake, story):
    said = ended(plain(changed(base, method, mistake)))
    assert re.search(story.format(method), said), said
    assert ("'spout'" if base is Asked else "'bolt'") in said


class Feeding(SpoutEmitter):
    def emit_batch(self, attempt, metadata, collector):
        return ROWS


class Feed(FixedBatchesSpout):
    def get_emitter(self, conf, context):
        return Feeding()


def test_rows_that_an_emitter_returns_are_refused_by_name():
    builder = TransactionalTopologyBuilder("t", "spout", Feed([[["a"]]], ["value"]))
    builder.set_committer_bolt("keep", Keep()).shuffle_grouping("spout")
    assert re.search(RETURNED.format("emit_batch"), ended(builder.build()))


class Late(Batch):
    """Emits a tuple of the first batch once it has ended, when the second is on its way."""

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        KEPT.setdefault(attempt.txid, collector)

    def execute(self, tup):
        if self.attempt.txid == 2:
            late = threading.Thread(target=self.emit_late, args=(tup,))
            late.start()
            late.join()

    def emit_late(self, tup):
        with suppress(RuntimeError):  # as a thread's error that nobody looks at
            self.late(tup)

    def late(self, tup):
        KEPT[1].emit(["late"])  # too late


class LateLetter(Late):
    def late(self, tup):
        KEPT[1].dead_letter(tup, "too late")  # too late


KEPT: dict[int, Any] = {}


@pytest.mark.parametrize("bolt", [Late(), LateLetter()], ids=lambda bolt: type(bolt).__name__)
def test_a_tuple_that_comes_after_its_batch_has_ended_is_no_success(bolt):
    KEPT.clear()
    said = ended(transactional(bolt))
    line = next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "# too late" in text)
    assert "a tuple was emitted after finish_batch had returned, of attempt 1:" in said
    assert f"{__file__}:{line if type(bolt) is Late else line + 5}; emit it before that" in said


class LateForGood(Late):
    """Emits a tuple of the first batch when it is told to."""

    def execute(self, tup):
        self.collector.emit(tup.values)


def test_a_tuple_that_comes_after_its_run_has_ended_fails_nothing_of_the_next_run():
    KEPT.clear()
    for _ in range(2):  # each on a server of its own
        with LocalCluster() as cluster:
            run = cluster.submit(transactional(LateForGood()))
            run.run_until_idle()
            assert run.statistics.failed_attempts == 0
            assert run.state("kept") == {"tuples": 2}
        with pytest.raises(RuntimeError, match="emitted after finish_batch had returned"):
            KEPT[1].emit(["late"])


def test_what_an_attempt_emits_after_it_has_failed_is_refused_and_fails_nothing_else(cluster):
    KEPT.clear()
    run = cluster.submit(transactional(FailsOnce()))
    run.run_until_idle()
    assert run.state("kept") == {"tuples": 2}
    assert FailsOnce.refused == ["RuntimeError"]


class FailsOnce(Batch):
    refused: ClassVar[list[str]] = []

    def execute(self, tup):
        if not KEPT:
            KEPT[0] = self.collector
            raise FailedException("once")
        if 1 not in KEPT:
            KEPT[1] = self.collector
            try:
                KEPT[0].emit(["of an attempt that nobody misses"])
            except RuntimeError as error:
                FailsOnce.refused.append(type(error).__name__)
        super().execute(tup)
