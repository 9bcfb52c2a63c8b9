"""A topic as the driver last saw it: brokers are asked again at intervals, and the run ends if they stay away."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from coordinator.sources.kafka.starting_point import require_within
from coordinator.sources.kafka.topic import Topic, TopicState
from coordinator.spouts.run_so_far import InputChange
from state.errors import FailedException, SourceError
from state.troubles import Trouble

_LOG = logging.getLogger("txbatch.kafka")
SHORT_S = 30.0
"""A log that ends before its position for longer than this has lost messages."""
LOOK_EVERY_S = 0.25
AFTER_FAILURE_S = 5.0
"""Pause after brokers did not answer; the run waits while they are asked."""
AWAY_S = 300.0
"""How long brokers or a partition may stay away before a run that has nothing else to do ends."""


class TopicView:
    """A topic as it was seen last (driver).

    Args:
        topic: the topic on its brokers.
        name: name of the topic, for messages.
        clock: monotonic seconds.
        needs_all: whether one partition that is away counts as if all were.
    """

    def __init__(self, topic: Topic, name: str, clock: Callable[[], float], *, needs_all: bool) -> None:
        self._topic, self._name, self._clock, self._needs_all = topic, name, clock, needs_all
        self._state: TopicState | None = None
        self._next_look_s = float("-inf")
        self._silent_since: float | None = None
        self._missing: Mapping[int, str] = {}
        self._missing_since = float("inf")
        self._short_since: float | None = None
        self._failure = ""

    def known(self) -> TopicState:
        """Returns the state that was seen last; the first call asks brokers, and raises the errors of `look_again`."""
        return self._state if self._state is not None else self.look_again(has_work=False)

    def look(self) -> TopicState:
        """Asks brokers for the state of the topic.

        Raises:
            FailedException: the brokers do not answer.
            SourceError: the topic does not exist, may not be read, or was created again.
        """
        began, before = self._clock(), self._state
        found = self._topic.look()
        if before is not None:
            require_same(self._name, before.topic_id, found.topic_id)
        if self._needs_all:
            found = found.whole()
        away_before = before.away if before is not None else {}
        self._silent_since = None
        for partition in sorted(found.away.keys() - away_before.keys()):
            _LOG.warning("left out until it is back: %s", found.away[partition])
        for partition in sorted(away_before.keys() & found.bounds.keys()):
            _LOG.warning("partition %d of topic %r is back", partition, self._name)
        self._state, self._failure = found, ""
        now = self._clock()
        self._next_look_s = now + max(LOOK_EVERY_S, now - began)  # slow brokers are asked less often
        return found

    def compared(self, former_ids: Iterable[str]) -> InputChange:
        """Returns whether the topic is another one than earlier runs read, as a change of the input.

        Args:
            former_ids: the topic ids that earlier runs have stored.

        Raises:
            FailedException, SourceError: see `look`.
        """
        found = self.look().topic_id
        others = [former for former in former_ids if former != found]
        return InputChange(impossible=(_made_again(self._name, others[0], found),)) if others else InputChange()

    def look_again(self, *, has_work: bool) -> TopicState:
        """Asks brokers for the state of the topic, unless it did so a moment ago.

        Args:
            has_work: whether known messages are left to read: then the run continues while brokers are away.

        Raises:
            FailedException: brokers are away, and there is nothing else to do.
            SourceError: they have been away for long, or see `look`.
        """
        if self._clock() >= self._next_look_s:
            try:
                return self.look()
            except FailedException as error:
                self._failure, self._next_look_s = str(error), self._clock() + AFTER_FAILURE_S
        if self._state is not None and (has_work or not self._failure):
            return self._state
        if self._silent_since is None:
            self._silent_since = self._clock()
        raise self._absence(self._failure, self._silent_since)

    def require_ends(self, positions: Mapping[int, int]) -> None:
        """Refuses to cut while a log ends before its position: a new leader may lag behind for a moment.

        Raises:
            FailedException: a log ends before its position.
            SourceError: it has done so for long.
        """
        bounds = self.known().bounds
        short = [each for each, held in sorted(bounds.items()) if positions.get(each, held.low) > held.end]
        if not short:
            self._short_since = None
            return
        if self._short_since is None:
            self._short_since = self._clock()
        partition, at, held = short[0], positions[short[0]], bounds[short[0]]
        if self._clock() - self._short_since > SHORT_S:
            require_within(self._name, partition, at, held)
        raise FailedException(
            f"partition {partition} of topic {self._name!r} was read to offset {at}, but its log ends at {held.end}; "
            "the broker is asked again"
        )

    def note_unreadable(self, reasons: Mapping[int, str]) -> None:
        """Records the partitions that have unread messages but cannot be read: partition -> reason."""
        if reasons.keys() != self._missing.keys():
            self._missing_since = self._clock()
        self._missing = reasons

    def missing(self) -> FailedException | SourceError:
        """Returns the error to raise while only missing partitions are left; a SourceError after a long time."""
        return self._absence(self._missing[min(self._missing)], self._missing_since)

    def _absence(self, reason: str, since_s: float) -> FailedException | SourceError:
        if self._clock() - since_s > AWAY_S:
            return SourceError(f"brokers have been away for {AWAY_S:g} s: {reason}")
        return FailedException(reason)


def require_same(name: str, former: str, found: str) -> None:
    """Refuses a topic that was deleted and created again.

    Raises:
        SourceError: the topic ids differ.
    """
    if former != found:
        raise SourceError(_made_again(name, former, found)).about(Trouble.INPUT_GONE)


def _made_again(name: str, former: str, found: str) -> str:
    return (
        f"topic {name!r} was deleted and made again: its id was {former} and is {found} now, and offsets of the one "
        "mean nothing in the other; drop the topology and start over, or take another topology id"
    )
