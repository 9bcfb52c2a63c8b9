"""A collector on three streams, and what it has sent."""

from __future__ import annotations

from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.routing import OutputStream
from coordinated_bolt.transport import outbox
from coordinated_bolt.transport.frames import FrameKind
from state.codec import unpack
from tests.support.tasks.outboxes import attempt_outbox
from tests.support.tasks.wirings import RecordingBolt, Sent, attempt, wire

PAIRS = StreamSpec("pairs", ("key", "value"))
ORDERS = StreamSpec("orders", ("key", "value"), direct=True)
UNHEARD = StreamSpec("unheard", ("value",))


def make(*subscribers, of=None, task_id=10, specs=(PAIRS, ORDERS, UNHEARD), frame_tuples=outbox.FRAME_TUPLES):
    """A collector on three streams; the first two have these subscribers."""
    targets = sorted({task for subscriber in subscribers for task in subscriber.tasks})
    streams = {
        spec.stream_id: OutputStream(index, spec, subscribers if spec is not UNHEARD else ())
        for index, spec in enumerate(specs)
    }
    wiring = wire(RecordingBolt(), task_id=task_id, targets=targets, streams=streams, frame_tuples=frame_tuples)
    sent = Sent()
    box = attempt_outbox(wiring, of or attempt(1), sent.carrier)
    return AttemptCollector(wiring, of or attempt(1), box), box, sent


def contents(sent):
    return {
        target: [run for frame in sent.to(target) if frame.kind is FrameKind.REGULAR for run in unpack(frame.payload)]
        for target in sorted({frame.target for frame in sent})
    }
