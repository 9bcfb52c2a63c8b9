"""The acker: a tree is complete when everything that was sent has been received.

Each root has one 64-bit value. Senders and receivers xor edge ids into it; it is zero once every edge has
been put in twice. In a transactional topology a root is an attempt and `BatchAcker` puts the edges in; in a plain one
it is a tuple with a message id, and `AckerTask` does. On Spark, a wave of a plain topology has
`WaveTrees` instead. Pure: no clock, no transport.

Source: backtype.storm.daemon.acker. Differs from JStorm: a FAIL before INIT is kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

ACKER_COMPONENT = "__acker"
"""Component id of the acker tasks."""

Root = TypeVar("Root", bound=Hashable)


class AckOutcome(Enum):
    """How a tree ended."""

    ACKED = "acked"
    FAILED = "failed"


@dataclass(slots=True)
class _Tree:
    value: int = 0
    initialised: bool = False
    failed: bool = False


class Acker(Generic[Root]):
    """Trees by root. INIT, ACK and FAIL may arrive in any order.

    A tree whose edges have cancelled ends as ACKED, even if it has failed, as in Storm. A bolt that fails a tuple does
    not ack it, so its tree stays open; `BatchAcker` keeps failures itself.
    """

    def __init__(self) -> None:
        self._trees: dict[Root, _Tree] = {}

    def init(self, root: Root, edges: int) -> AckOutcome | None:
        """Records that a root was emitted; `edges` is the xor of its first edges, zero without subscribers.

        A second INIT of a tree is ignored; it would otherwise cancel the first and close the tree.
        """
        tree = self._tree(root)
        if not tree.initialised:
            tree.initialised = True
            tree.value ^= edges
        return self._outcome(root, tree)

    def ack(self, root: Root, edges: int) -> AckOutcome | None:
        """Records that a task has received some edges and sent others; `edges` is the xor of all."""
        tree = self._tree(root)
        tree.value ^= edges
        return self._outcome(root, tree)

    def fail(self, root: Root) -> AckOutcome | None:
        """Records that a task has failed the root."""
        tree = self._tree(root)
        tree.failed = True
        return self._outcome(root, tree)

    def forget(self, root: Root) -> None:
        """Drops a root that nobody waits for any more."""
        self._trees.pop(root, None)

    def __contains__(self, root: Root) -> bool:
        return root in self._trees

    def __len__(self) -> int:
        return len(self._trees)

    def _tree(self, root: Root) -> _Tree:
        tree = self._trees.get(root)
        if tree is None:
            tree = self._trees[root] = _Tree()
        return tree

    def _outcome(self, root: Root, tree: _Tree) -> AckOutcome | None:
        if not tree.initialised:
            return None
        if tree.value == 0:
            outcome = AckOutcome.ACKED
        elif tree.failed:
            outcome = AckOutcome.FAILED
        else:
            return None
        del self._trees[root]
        return outcome


class WaveTrees:
    """The trees of one wave of a plain topology, evaluated once, when all of the wave's reports are in (driver).

    So the order of the reports does not matter. A tree is complete if its edges cancel; a failed tuple was not acked,
    and leaves its tree open.
    """

    def __init__(self) -> None:
        self._acked: dict[int, int] = {}

    def ack(self, roots: Sequence[int], edges: Sequence[int]) -> None:
        """Records a task's edges in some distinct trees, each as the xor of the edges received and sent there."""
        acked = self._acked
        if acked.keys().isdisjoint(roots):
            acked.update(zip(roots, edges, strict=True))
            return
        for root, edge in zip(roots, edges, strict=True):
            acked[root] = acked.get(root, 0) ^ edge

    def complete(self, begun: Mapping[int, int]) -> Set[int]:
        """Returns the roots whose trees are complete, of `begun`: root -> xor of the first edges of its tree."""
        acked = self._acked
        if begun.items() <= acked.items():
            return begun.keys()
        return {root for root, edges in begun.items() if acked.get(root, 0) == edges}
