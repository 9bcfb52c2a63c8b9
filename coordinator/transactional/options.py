"""The bounds of a run, checked."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from state.commit import COMMIT_OPERATIONS_LIMIT
from state.errors import TopologyError

SWITCHES = ("accept_state_changes", "early_commit")
ADOPT_WORDS = {
    "skip": "what lies before the position and was never read stays unread",
    "again": "what was read is read a second time",
    "changed": "what was read and is different or gone now stays counted as it was",
    "unchecked": "nothing is compared, for spouts that cannot tell",
}
"""What may be accepted of another input, and what that means."""
DEFAULT_WINDOW = 64
"""Transactions under way where neither the user nor the engine says another number."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How much a run may have under way.

    Attributes:
        max_spout_pending: width of the window of uncommitted transactions; None takes the engine's: 64 on Spark, and
            1 on LocalCluster, as in Storm.
        commit_group_max: most transactions of one atomic commit; 1 commits them one by one.
        commit_operations_max: a group of more than one transaction stays below so many changes; the default blocks
            the server for about 60 ms.
        max_attempts: a txid that failed so often stops the run.
        adopt: continue although the input is another one than in earlier runs. True does so if everything that was
            read is still the same and nothing is skipped or read again; what else may happen is named: "skip",
            "again", "changed", several with commas between, or "unchecked".
        accept_state_changes: continue even if a state is no longer declared, is declared with other types, or holds
            something that the topology has no record of writing.
        early_commit: committers that only write run in the job that processes their wave, one job for both phases
            instead of two. Nothing is published earlier. A run that meets a committer that reads state, has external
            effects or has bolts below it goes the general way by itself.
    """

    max_spout_pending: int | None = None
    commit_group_max: int = 64
    commit_operations_max: int = 75_000
    max_attempts: int = 5
    adopt: bool | str = False
    accept_state_changes: bool = False
    early_commit: bool = True

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name == "adopt":
                adopted_words(value)
                continue
            if entry.name in SWITCHES or (entry.name == "max_spout_pending" and value is None):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise TopologyError(f"option {entry.name} is {value!r}; give an integer of at least 1")
        if self.commit_operations_max > COMMIT_OPERATIONS_LIMIT:
            raise TopologyError(
                f"option commit_operations_max is {self.commit_operations_max}; the server takes at most "
                f"{COMMIT_OPERATIONS_LIMIT}"
            )

    def window(self) -> int:
        """The width of the window, as given or as by default."""
        return DEFAULT_WINDOW if self.max_spout_pending is None else self.max_spout_pending

    def or_window(self, window: int) -> RunOptions:
        """The same with another width by default, as an engine wants it."""
        return self if self.max_spout_pending is not None else replace(self, max_spout_pending=window)


def adopted_words(adopt: bool | str) -> frozenset[str] | None:
    """What `RunOptions.adopt` accepts of an input that is not simply longer; None accepts no other input.

    Raises:
        TopologyError: a word that has no meaning.
    """
    if isinstance(adopt, bool):
        return frozenset() if adopt else None
    words = frozenset(word.strip() for word in adopt.split(",")) if isinstance(adopt, str) else frozenset({repr(adopt)})
    if not words <= ADOPT_WORDS.keys():
        known = "; ".join(f"{word}: {meaning}" for word, meaning in ADOPT_WORDS.items())
        raise TopologyError(
            f"option adopt is {adopt!r}; give True, or one or more of these with commas between: {known}"
        )
    return words
