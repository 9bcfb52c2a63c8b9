"""A run's report on a transaction that it has committed, or could not commit: attempts, times and counts. Pure.

Stories travel with the pulse, apart from the commits: those of the last second before a crash are lost. The exact facts
of a transaction are in its record; see `transaction_history`. Transactions that failed and were not committed are
reported when the run ends.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

STORY_ATTEMPTS_MAX = 10
"""Most attempts that a story keeps: the last ones."""


@dataclass(frozen=True, slots=True)
class AttemptStory:
    """An attempt at a transaction; its id in 16 hexadecimal digits, times in seconds since the epoch.

    `failed` is the kind of failure, "lower failed" if a lower attempt failed and this one was dropped, "" if committed.
    """

    attempt_id: str
    wave: int = 0
    started_at: float = 0.0
    ended_at: float = 0.0
    failed: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ComponentStory:
    """The work of a component's tasks for the committed attempt.

    Attributes:
        tuples_in: ``source component/stream`` -> tuples executed; an edge of the topology.
        tuples_out: stream id -> tuples emitted.
        dead_letters: tuples refused.
    """

    tuples_in: dict[str, int] = field(default_factory=dict)
    tuples_out: dict[str, int] = field(default_factory=dict)
    busy_ms: float = 0.0
    dead_letters: int = 0


@dataclass(frozen=True, slots=True)
class TransactionStory:
    """A run's report on one transaction.

    Attributes:
        cut_at: when the run first cut it, or took it over; like all times in seconds since the epoch.
        processed_at: when the processing phase of the committed attempt ended; 0 if there was none.
        sent_at, committed_at: when its commit was sent, and answered; 0 if the run has not committed it.
        attempts: the last attempts, ascending.
        attempt_count: the number of all attempts in this run.
        first_txid, last_txid: the group with which it was published.
        input_bytes: estimated size of its input; 0 if unknown.
        group_bytes: size of the group's commit.
        tuples: tuples that the spout emitted.
        components: component id -> its work.
        set_aside: its batch was quarantined, and it was committed empty.
        republishes: the quarantined txid that it published; 0 if none.
        republished_letters: dead letters that it published.
    """

    cut_at: float = 0.0
    processed_at: float = 0.0
    sent_at: float = 0.0
    committed_at: float = 0.0
    attempts: tuple[AttemptStory, ...] = ()
    attempt_count: int = 0
    first_txid: int = 0
    last_txid: int = 0
    input_bytes: int = 0
    group_bytes: int = 0
    tuples: int = 0
    components: dict[str, ComponentStory] = field(default_factory=dict)
    set_aside: bool = False
    republishes: int = 0
    republished_letters: int = 0

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def story_of(text: str) -> TransactionStory | None:
    """Returns the story in a stored text, None if it cannot be read: another version wrote it, or somebody else."""
    try:
        data = json.loads(text)
        known = {name: data[name] for name in (entry.name for entry in fields(TransactionStory)) if name in data}
        known["attempts"] = tuple(AttemptStory(**each) for each in known.get("attempts", ()))
        known["components"] = {name: ComponentStory(**done) for name, done in known.get("components", {}).items()}
        return TransactionStory(**known)
    except (ValueError, TypeError, AttributeError):
        return None


LOWER_FAILED = "lower failed"
"""The `failed` word of an attempt that was dropped without a failure of its own."""


class StoryChoice(StrEnum):
    """The transactions that a reader wants to see."""

    ALL = "all"
    FAILED = "failed"
    """An attempt failed by itself, not because a lower one did."""
    REPLAYED = "replayed"
    """There was more than one attempt, for whatever reason."""
    SET_ASIDE = "set aside"
    """Its batch was quarantined, and it was committed empty."""

    def chosen(self, text: str) -> TransactionStory | None:
        """Returns the story in a stored text, None if it is not wanted or cannot be read.

        Most texts are rejected by a search for a word that a wanted one must contain, much faster than by parsing.
        """
        if not self._may_be_wanted(text):
            return None
        story = story_of(text)
        return story if story is not None and self.is_wanted(story) else None

    def _may_be_wanted(self, text: str) -> bool:
        match self:
            case StoryChoice.FAILED:
                return '"failed":' in text
            case StoryChoice.REPLAYED:
                return '"attempt_count":1,' not in text
            case StoryChoice.SET_ASIDE:
                return '"set_aside":' in text
        return True

    def is_wanted(self, story: TransactionStory) -> bool:
        """Returns whether the reader wants a transaction with this story."""
        match self:
            case StoryChoice.FAILED:
                return any(each.failed not in ("", LOWER_FAILED) for each in story.attempts)
            case StoryChoice.REPLAYED:
                return story.attempt_count > 1
            case StoryChoice.SET_ASIDE:
                return story.set_aside
        return True
