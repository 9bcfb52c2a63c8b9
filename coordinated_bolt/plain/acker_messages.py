"""What one task of a plain topology tells the ackers; each message goes to the acker that keeps its root."""

from __future__ import annotations

from collections.abc import Sequence

from coordinated_bolt.plain.messages import MessageKind, SendMessage, acker_of, edges_message, tree_message


class AckerMessages:
    """Sends messages about trees, for the collectors and tasks that grow them (executor, or driver for spouts).

    Args:
        task_id: the sender.
        acker_tasks: every acker task; without any, nothing may be sent.
        send: takes the messages.
    """

    def __init__(self, task_id: int, acker_tasks: Sequence[int], send: SendMessage) -> None:
        self._task_id, self._acker_tasks, self._send = task_id, acker_tasks, send

    def init(self, root: int, edges: int) -> None:
        """Sends that a spout has begun a tree; `edges` is the xor of its first edges."""
        self._send_edges(MessageKind.INIT, root, edges)

    def ack(self, root: int, edges: int) -> None:
        """Sends the xor of the edges that the task has received and sent in a tree."""
        self._send_edges(MessageKind.ACK, root, edges)

    def fail(self, root: int) -> None:
        """Sends that a tree has failed."""
        self._send_root(MessageKind.FAIL, root)

    def reset_timeout(self, root: int) -> None:
        """Asks the spout of a tree to restart its timeout."""
        self._send_root(MessageKind.RESET_TIMEOUT, root)

    def _send_edges(self, kind: MessageKind, root: int, edges: int) -> None:
        self._send(edges_message(kind, self._task_id, acker_of(root, self._acker_tasks), root=root, edges=edges))

    def _send_root(self, kind: MessageKind, root: int) -> None:
        self._send(tree_message(kind, self._task_id, acker_of(root, self._acker_tasks), root))
