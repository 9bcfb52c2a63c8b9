"""Named points at which a test may kill, stop or delay a process. In production each is a call that does nothing.

The simulation and the tests with real processes use the same names, so that each can repeat the other's cases. A point
named ``x.sending`` is reached just before a request leaves the process, ``x.answered`` when its answer has arrived; the
process cannot observe what happens in between.

Nothing in the packages installs a visit, whatever the environment says: a test's own program calls `install` and then
the command's `main`. A forked process inherits the visit; a spawned one, such as a Spark worker, has to install it
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

Visit = Callable[[str], None]
"""Called with the name of each point that a process reaches, on the thread that reaches it."""

POINTS: Mapping[str, str] = MappingProxyType(
    {
        # driver: start
        "library.loading": "the server lacks the function library, or has another; it is about to be loaded",
        "library.loaded": "the server has the function library",
        "start.looked": "what earlier runs left is accepted; nothing is taken over yet",
        "acquire.sending": "the call that fences the former owner out is about to be sent",
        "acquire.answered": "the call is answered; what it says was not looked at",
        # driver: every transaction
        "metadata.sending": "metadata is about to be stored",
        "metadata.answered": "the store has answered; nothing that depends on the metadata was emitted",
        "wave.submitting": "a wave is about to be handed to the engine",
        "wave.submitted": "the engine has the wave",
        "wave.processed": "the engine has reported how the processing phase ended; the machine does not know yet",
        "group.submitting": "the commit phase of a group is about to be handed to the engine",
        "group.submitted": "the engine has the group",
        "group.executed": "the engine has reported how the commit phase ended; the machine does not know yet",
        "wave.releasing": "what the engine keeps of a wave is about to be given up",
        "commit.sending": "a group is about to be published",
        "commit.answered": "the store has answered; the machine does not know yet",
        "spout.notifying": "the spout's committer is about to be notified of a durable group",
        "spout.notified": "the spout's committer was notified of one transaction of it, perhaps not of the others",
        # driver: a file that is done
        "done_file.checked": "it is the file that was read; it has its name still",
        "done_file.set_aside": "it was renamed to a private name; whether it is the same file was not looked at",
        "done_file.compared": "it is the file that was read, under its private name; nothing was removed",
        # driver: end
        "confirm.sending": "the run is done and about to ask whether the server still holds everything",
        "confirm.answered": "the server has answered; the run has not said that it is done",
        # a drop
        "drop.scanned": "the keys of the topology are known; nothing was changed",
        "drop.fenced": "no owner can write any more; nothing was deleted",
        "drop.states_deleted": "some or all of the states are deleted; the topology's own keys are there",
        "drop.ended": "everything is deleted",
        # an import
        "import.staged": "some entries are staged under keys of their own; the topology was not touched",
        "import.restored": "the server has answered; the import has not said that it is done",
        # driver: a topology over many slots
        "shards.taken": "home and every shard are fenced; nothing that an earlier run has left is mended",
        "shards.staging": "the parts of a group are about to be staged on the shards",
        "shards.staged": "every shard has answered; the group is not decided",
        "shards.applying": "the group is decided; no shard has applied its part",
        "shards.applied": "every shard has answered; the machine does not know yet",
        # driver: plain topologies
        "offset.saving": "the offset of a partition is about to be stored",
        "offset.saved": "the offset of a partition is stored",
        "plain_wave.submitting": "a wave of messages is about to be handed to the engine",
        "plain_wave.drained": "the engine has reported how the wave ended; no spout was notified yet",
        "plain_message.notified": "a spout was notified of how one message of a wave ended, perhaps not of the others",
        # executor
        "task.beginning": "a task of a stage is about to read its frames",
        "batch.emitted": "a spout's task has emitted a batch, and did not report it",
        "batch.executed": "a task has executed all tuples of a batch; finish_batch has not run",
        "batch.finished": "finish_batch has run; the counts were not sent",
        "frame.packed": "a frame is packed, and not in the shuffle yet",
    }
)
"""Name -> what has happened and what has not, when the point is reached."""

_visit: Visit | None = None


def reached(point: str) -> None:
    """Reports that the process has reached one of `POINTS` (driver and executor, also in user code's threads).

    Does nothing, in some 40 ns, unless a visit is installed. Exceptions of the visit pass through, because they have to
    look like the end of the process. Callers give a literal, so that a test can compare all points.
    """
    if _visit is not None:
        _visit(point)


def install(visit: Visit | None) -> None:
    """Makes every point that this process reaches from now on call `visit`; None removes it. For tests.

    A visit may kill the process, wait, or raise, at points of its choice.
    """
    global _visit  # noqa: PLW0603 - so that no caller has to pass it down
    _visit = visit


@contextmanager
def installed(visit: Visit) -> Iterator[None]:
    """Installs a visit for a block, and restores the former one afterwards. For tests."""
    before = _visit
    install(visit)
    try:
        yield
    finally:
        install(before)
