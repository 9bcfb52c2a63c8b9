"""Small components of sub-topologies, which write down what is done to them, and ways to run them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.components.spouts import BaseSpout
from coordinator.plain.batch_subtopology_builder import BatchSubtopologyBuilder
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.plain.tasks.messages import Message, MessageKind
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.testing.cluster.plain_run import PlainRun
from state.errors import FailedException

TIMEOUT_S = 30.0


class Diary:
    """What was done, in order; bolts are made by unpickling, so there is one for all, cleared by `cluster`."""

    entries: ClassVar[list[tuple[Any, ...]]] = []

    @classmethod
    def write(cls, *entry: Any) -> None:
        cls.entries.append(entry)

    @classmethod
    def of(cls, *kinds: str) -> list[tuple[Any, ...]]:
        return [entry for entry in cls.entries if entry[0] in kinds]


def cluster(**options: Any) -> LocalCluster:
    Diary.entries.clear()
    Requests.replays = {}
    return LocalCluster(**options)


class Requests(BaseSpout):
    """Emits (request, payload) for each request, and once more what fails if `replays` says so.

    Args:
        requests: request -> payload.
        replay: whether what fails is emitted again.
    """

    output_fields = ("request", "payload")
    replays: ClassVar[dict[Any, int]] = {}

    def __init__(self, requests: Mapping[Any, Any], *, replay: bool = False) -> None:
        self.requests = dict(requests)
        self.waiting = list(self.requests)
        self.replay = replay

    def next_tuple(self):
        if self.waiting:
            request = self.waiting.pop(0)
            self.collector.emit([request, self.requests[request]], message_id=request)

    def ack(self, message_id):
        Diary.write("acked", message_id)

    def fail(self, message_id):
        Diary.write("failed", message_id)
        if self.replay:
            self.replays[message_id] = self.replays.get(message_id, 0) + 1
            self.waiting.append(message_id)


class Recorded(BaseBatchBolt):
    """Writes down every call; subclasses add behaviour.

    Args:
        failing: "method:request" -> fail the batch there, for the first so many times.
    """

    output_fields = ("request", "value")

    def __init__(self, failing: Mapping[str, int] | None = None) -> None:
        self.failing = dict(failing or {})

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.request = None
        self._did("prepare")

    def execute(self, tup):
        assert tup.attempt == self.attempt
        self.request = tup["request"]
        self._did("execute", tup["request"], tup[1])
        self._fail_if_told("execute")
        self.work(tup)

    def work(self, tup):
        """What the bolt does with a tuple."""

    def finish_batch(self):
        self._fail_if_told("finish")
        self.finish()
        self._did("finish", self.request)

    def finish(self):
        """What the bolt does at the end."""

    def cleanup(self):
        self._did("cleanup")

    def _did(self, what: str, *arguments: Any) -> None:
        Diary.write(what, self.context.component_id, self.context.task_id, self.attempt, *arguments)

    def _fail_if_told(self, where: str) -> None:
        name = f"{where}:{self.request}"
        past = [entry for entry in Diary.of("raised") if (entry[1], entry[4]) == (self.context.component_id, name)]
        if len(past) < self.failing.get(name, 0):
            self._did("raised", name)
            raise FailedException(f"told to fail in {name}")


class Pass(Recorded):
    """Passes every tuple on."""

    def work(self, tup):
        self.collector.emit(tup.values)


class Spread(Recorded):
    """(request, n) becomes n times (request, n)."""

    def work(self, tup):
        self.collector.emit_all([list(tup.values)] * tup[1])


class PartialCount(Recorded):
    """Counts the tuples of each request, and tells at the end; a request it heard nothing of is not known here."""

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.counts = Counter[Any]()

    def work(self, tup):
        self.counts[tup["request"]] += 1

    def finish(self):
        for request, count in self.counts.items():
            self.collector.emit([request, count])


class Open(Spread):
    """The master of G4: names the request on a stream of its own, as nothing else may come of it."""

    def declare_output_fields(self, declarer):
        declarer.declare(("request", "value"))
        declarer.declare_stream("begin", ("request", "value"))

    def work(self, tup):
        self.collector.emit(tup.values, "begin")
        super().work(tup)


class Total(Recorded):
    """Adds up what it is told of its request, and says so at the end, zero included."""

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.total = 0
        self.owns = None

    def work(self, tup):
        if tup.stream_id == "begin":
            self.owns = tup["request"]
        else:
            self.total += tup["value"]

    def finish(self):
        if self.owns is not None:
            self.collector.emit([self.owns, self.total])


class Outside(BaseBasicBolt):
    """A plain bolt downstream of the sub-topology: writes down what it gets."""

    def __init__(self, failing: bool = False) -> None:
        self.failing = failing

    def execute(self, tup, collector):
        Diary.write("got", *tup.values)
        if self.failing:
            raise FailedException("told to")


def square_builder(
    requests: Mapping[Any, int],
    *,
    replay: bool = False,
    failing: Mapping[str, Mapping[str, int]] | None = None,
    master_tasks: int = 1,
    spread: Spread | None = None,
    outside: Outside | None = None,
    ackers: int = 1,
) -> TopologyBuilder:
    """Golden case G4: a request of n makes n squared tuples over 3 tasks, which are counted by 3 and added up by 3."""
    told = defaultdict(dict, {name: dict(of) for name, of in (failing or {}).items()})
    builder = TopologyBuilder("test")
    builder.set_message_timeout_s(TIMEOUT_S)
    builder.set_acker_count(ackers)
    builder.set_spout("spout", Requests(requests, replay=replay))
    batches = BatchSubtopologyBuilder("master", Open(told["master"]), master_tasks)
    batches.master_declarer.shuffle_grouping("spout")
    batches.set_bolt("spread", spread or Spread(told["spread"]), 3).shuffle_grouping("master")
    batches.set_bolt("count", PartialCount(told["count"]), 3).shuffle_grouping("spread")
    total = batches.set_bolt("total", Total(told["total"]), 3)
    total.fields_grouping("master", ["request"], "begin").fields_grouping("count", ["request"])
    batches.extend_topology(builder)
    if outside is not None:
        builder.set_bolt("outside", outside).shuffle_grouping("total")
    return builder


def drop(kind: MessageKind, *, nth: int = 0, to: Callable[[Message], bool] = lambda message: True):
    """A fault that loses the nth message of a kind."""
    return _fault(kind, nth, to, 0)


def double(kind: MessageKind, *, nth: int = 0, to: Callable[[Message], bool] = lambda message: True):
    """A fault that doubles the nth message of a kind."""
    return _fault(kind, nth, to, 2)


def _fault(kind: MessageKind, nth: int, to: Callable[[Message], bool], copies: int):
    seen = Counter[MessageKind]()

    def fault(message: Message) -> list[Message]:
        if message.kind is not kind or not to(message):
            return [message]
        seen[kind] += 1
        return [message] * (copies if seen[kind] == nth + 1 else 1)

    return fault


INSIDE = ("master", "spread", "count", "total")


def assert_nothing_is_left(run: PlainRun, components=INSIDE) -> None:
    """No batch is under way, and `cleanup` was called for every `prepare`."""
    assert [run.open_batch_count(component) for component in components] == [0] * len(components)
    instances = [Counter(entry[1:4] for entry in Diary.of(what)) for what in ("prepare", "cleanup")]
    assert instances[0] == instances[1]
    assert set(instances[0].values()) <= {1}
