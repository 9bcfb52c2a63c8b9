"""Small ways to wire single tasks by hand, and bolts that tell what was done to them."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import xor
from typing import Any, ClassVar

from coordinated_bolt.completeness.acker import ACKER_COMPONENT
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.components.component import IComponent
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.groupings import DirectGrouping, Grouping, ShuffleGrouping
from coordinated_bolt.streams.routing import OutputStream, Subscriber
from coordinated_bolt.streams.tuples import TupleOrigin
from coordinated_bolt.transport import outbox
from coordinated_bolt.transport.edges import EdgeDigest
from coordinated_bolt.transport.frames import Frame, FrameKind
from coordinated_bolt.transport.outbox import SingleFrames
from coordinated_bolt.wiring import TaskWiring, UpstreamTask
from state.attempt import TransactionAttempt
from state.codec import unpack

ONE_FIELD = StreamSpec("default", ("value",))


def attempt(txid: int, attempt_id: int | None = None) -> TransactionAttempt:
    return TransactionAttempt(txid, 1000 + txid if attempt_id is None else attempt_id)


def wire(
    bolt: IComponent,
    *,
    component_id: str = "bolt",
    task_id: int = 10,
    upstream: Sequence[int] = (1,),
    upstream_streams: Sequence[StreamSpec] = (ONE_FIELD,),
    streams: Mapping[str, OutputStream] | None = None,
    targets: Sequence[int] = (),
    needs_id: bool = False,
    ackers: Sequence[int] = (),
    frame_tuples: int = outbox.FRAME_TUPLES,
) -> TaskWiring:
    """A task that hears `upstream`, all tasks of the component "source", and tells `targets`."""
    return TaskWiring(
        topology_id="test",
        component_id=component_id,
        task_id=task_id,
        task_index=0,
        task_count=1,
        tasks_of={
            "source": tuple(upstream),
            component_id: (task_id,),
            "sink": tuple(targets),
            ACKER_COMPONENT: tuple(ackers),
        },
        conf={"key": "value"},
        spec=pickle.dumps(bolt),
        upstream={task: UpstreamTask("source", tuple(upstream_streams)) for task in upstream},
        streams=streams if streams is not None else output(targets),
        targets=tuple(targets),
        needs_id=needs_id,
        frame_tuples=frame_tuples,
    )


def output(targets: Sequence[int], grouping: Grouping | None = None, *specs: StreamSpec) -> dict[str, OutputStream]:
    """Streams whose only subscriber is the component "sink"."""
    made = {}
    for index, spec in enumerate(specs or (ONE_FIELD,)):
        chosen = DirectGrouping() if spec.direct else grouping or ShuffleGrouping()
        subscribers = (Subscriber("sink", tuple(targets), chosen),) if targets else ()
        made[spec.stream_id] = OutputStream(index, spec, subscribers)
    return made


def origin_of(wiring: TaskWiring, of: TransactionAttempt, source: int = 1, stream_index: int = 0) -> TupleOrigin:
    return wiring.origin(of, source, stream_index)


class Calls:
    """What was done to bolts; instances are made by unpickling, so the record is the class's."""

    log: ClassVar[list[tuple[Any, ...]]] = []

    @classmethod
    def take(cls) -> list[tuple[Any, ...]]:
        taken, cls.log[:] = list(cls.log), []
        return taken


class RecordingBolt(BaseBatchBolt):
    """Records its calls, passes every tuple on, and raises where it is told to.

    Args:
        raising: method name -> the exception to raise in it; "execute:7" raises at the value 7 only.
    """

    def __init__(self, raising: Mapping[str, Exception] | None = None) -> None:
        self.raising = dict(raising or {})

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self._did("prepare")

    def execute(self, tup):
        self._did("execute", tup[0])
        if f"execute:{tup[0]}" in self.raising:
            raise self.raising[f"execute:{tup[0]}"]
        self.collector.emit([tup[0]])

    def finish_batch(self):
        self._did("finish_batch")
        self.context.count("finished")

    def cleanup(self):
        self._did("cleanup")

    def _did(self, what: str, *arguments: Any) -> None:
        Calls.log.append((what, str(self.attempt).split(":", maxsplit=1)[0], *arguments))
        if what in self.raising:
            raise self.raising[what]


class Sent(list[Frame]):
    """Where frames go; `carrier` puts them there."""

    @property
    def carrier(self) -> SingleFrames:
        return SingleFrames(self.append)

    def to(self, target: int) -> list[Frame]:
        return [frame for frame in self if frame.target == target]

    def edges(self, attempt: TransactionAttempt) -> int:
        """The xor of the edges of an attempt, as those that read these frames compute them."""
        digests: dict[tuple[int, int], EdgeDigest] = {}
        for frame in self:
            if frame.attempt == attempt and frame.kind is FrameKind.REGULAR:
                digest = digests.setdefault(
                    (frame.sender, frame.target), EdgeDigest(attempt, frame.sender, frame.target)
                )
                digest.add(frame.sequence, frame.payload, sum(len(rows) for _, rows in unpack(frame.payload)))
        return reduce(xor, (digest.edge_id() for digest in digests.values()), 0)
