"""Runs one acker task of a plain topology: keeps the trees of its share of the roots, and tells their spouts.

Source: backtype.storm.daemon.acker. Differs from JStorm: a FAIL that overtakes its INIT is kept.
"""

from __future__ import annotations

from coordinated_bolt.completeness.acker import Acker, AckOutcome
from coordinated_bolt.rotating_map import RotatingMap
from coordinated_bolt.transport.messages import Message, MessageKind, SendMessage, tree_message
from state.errors import ProtocolError

BUCKET_COUNT = 3
"""One more than the spout's map has: an acker remembers a tree for longer than its spout waits for it."""

REMEMBERED_FAILURES = 10_000
"""So many roots are known to have failed, so that the acks of what is left of their trees are let go at once."""

_ENDINGS = {AckOutcome.ACKED: MessageKind.ACKED, AckOutcome.FAILED: MessageKind.FAILED}


class AckerTask:
    """One acker task. Which roots it keeps is up to the senders, see `acker_of`.

    What is left of a tree nobody waits for, because its spout's time is over, is forgotten after two to three
    ticks without a word about it; of one that has failed nothing is kept.

    Args:
        task_id: the task.
        send: takes the messages for spout tasks.
    """

    def __init__(self, task_id: int, send: SendMessage) -> None:
        self._task_id = task_id
        self._send = send
        self._acker = Acker[int]()
        # root -> its spout task, None before INIT; touched by every message, so that it lasts as long as its tree
        self._spout_of = RotatingMap[int, int | None](BUCKET_COUNT, self._expire)
        self._failed: dict[int, None] = {}

    def receive(self, message: Message) -> None:
        """Takes in an INIT, ACK, FAIL or RESET_TIMEOUT.

        Raises:
            ProtocolError: ackers do not receive such messages.
        """
        root, outcome = message.root, None
        if root in self._failed:
            return
        spout = self._spout_of.get(root)
        match message.kind:
            case MessageKind.INIT:
                spout = message.sender
                outcome = self._acker.init(root, message.payload[1])
            case MessageKind.ACK:
                outcome = self._acker.ack(root, message.payload[1])
            case MessageKind.FAIL:
                outcome = self._acker.fail(root)
            case MessageKind.RESET_TIMEOUT:
                self._reset_timeout(root, spout)
            case _:
                raise ProtocolError(f"acker task {self._task_id} received {message}")
        if root in self._acker:
            self._spout_of.put(root, spout)
        elif outcome is not None and spout is not None:
            self._spout_of.remove(root)
            if outcome is AckOutcome.FAILED:
                self._remember(root)
            self._send(tree_message(_ENDINGS[outcome], self._task_id, spout, root))

    def tick(self) -> None:
        """A message timeout is over; never called when timeouts are disabled."""
        self._spout_of.rotate()

    def __len__(self) -> int:
        """Number of trees it keeps."""
        return len(self._acker)

    def _reset_timeout(self, root: int, spout: int | None) -> None:
        if spout is not None:  # before INIT the spout's time has hardly begun
            self._send(tree_message(MessageKind.RESET_TIMEOUT, self._task_id, spout, root))

    def _remember(self, root: int) -> None:
        self._failed[root] = None
        if len(self._failed) > REMEMBERED_FAILURES:
            del self._failed[next(iter(self._failed))]

    def _expire(self, root: int, _: int | None) -> None:
        self._acker.forget(root)
