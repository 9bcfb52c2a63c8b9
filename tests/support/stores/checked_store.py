"""A store that compares itself with the fold of what is committed."""

from __future__ import annotations

from typing import Any

from state.commits.commit import Commit, CommitReply
from state.values.state_kind import VALUE_FIELD
from tests.support.stores.memory_store import MemoryStore


class CheckedStore(MemoryStore):
    """Compares what it holds after every commit with the fold of what is committed."""

    def __init__(self, expected: list[dict[str, Any]]) -> None:
        super().__init__()
        self.expected = expected

    def commit(self, commit: Commit) -> CommitReply:
        reply = super().commit(commit)
        self.check()
        return reply

    def check(self) -> None:
        expected = self.expected[self.committed_txid]
        found = {name: _plain(self.states.get(name, {}), empty) for name, empty in self.expected[0].items()}
        assert found == expected, f"state as of txid {self.committed_txid}"
        assert self.states.keys() <= expected.keys()


def _plain(held: dict[Any, Any], empty: Any) -> Any:
    """What a state holds, as the fold spells it."""
    if isinstance(empty, set):
        return set(held)
    return held if isinstance(empty, dict) else held.get(VALUE_FIELD, empty)
