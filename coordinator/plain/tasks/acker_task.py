"""Runs one acker task of a plain topology: keeps the trees of its share of the roots, and reports to their spouts.

Source: backtype.storm.daemon.acker. Differs from JStorm: a FAIL that overtakes its INIT is kept.
"""

from __future__ import annotations

from coordinated_bolt.completeness.acker import Acker, AckOutcome
from coordinated_bolt.rotating_map import RotatingMap
from coordinator.plain.tasks.messages import Message, MessageKind, SendMessage, tree_message
from state.errors import ProtocolError

BUCKET_COUNT = 3
"""One more than the spout's map has, so that an acker remembers a tree longer than its spout waits."""

REMEMBERED_FAILURES = 10_000
"""How many failed roots are remembered, so that late acks for the rest of their trees are ignored."""

_ENDINGS = {AckOutcome.ACKED: MessageKind.ACKED, AckOutcome.FAILED: MessageKind.FAILED}


class AckerTask:
    """One acker task. The senders decide which roots it keeps; see `MessagePacker`.

    If no spout waits for a tree any more, after a timeout, the tree is forgotten two to three ticks after its last
    message. A failed tree is dropped at once.

    Args:
        task_id: id of the task.
        send: takes the messages for spout tasks.
    """

    def __init__(self, task_id: int, send: SendMessage) -> None:
        self._task_id = task_id
        self._send = send
        self._acker = Acker[int]()
        # root -> its spout task, None before INIT; every message renews the entry, which lasts as long as its tree
        self._spout_of = RotatingMap[int, int | None](BUCKET_COUNT, self._expire)
        self._failed: dict[int, None] = {}

    def receive(self, message: Message) -> None:
        """Handles an INIT, ACK, FAIL or RESET_TIMEOUT.

        Raises:
            ProtocolError: ackers must not receive messages of this kind.
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
                raise ProtocolError(f"acker task {self._task_id} received an unexpected {message}")
        if root in self._acker:
            self._spout_of.put(root, spout)
        elif outcome is not None and spout is not None:
            self._spout_of.remove(root)
            if outcome is AckOutcome.FAILED:
                self._remember(root)
            self._send(tree_message(_ENDINGS[outcome], self._task_id, spout, root))

    def tick(self) -> None:
        """Forgets old trees; called once per message timeout, and never if timeouts are disabled."""
        self._spout_of.rotate()

    def __len__(self) -> int:
        """Returns the number of trees that it keeps."""
        return len(self._acker)

    def _reset_timeout(self, root: int, spout: int | None) -> None:
        if spout is not None:  # before INIT the spout's timeout has hardly begun
            self._send(tree_message(MessageKind.RESET_TIMEOUT, self._task_id, spout, root))

    def _remember(self, root: int) -> None:
        self._failed[root] = None
        if len(self._failed) > REMEMBERED_FAILURES:
            del self._failed[next(iter(self._failed))]

    def _expire(self, root: int, _: int | None) -> None:
        self._acker.forget(root)
