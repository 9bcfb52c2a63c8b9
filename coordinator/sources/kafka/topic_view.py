"""A topic as the driver last saw it: looked at again every so often, and brokers that stay away end the run."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.sources.kafka.topic import Topic, TopicState
from state.errors import FailedException, SourceError
from state.troubles import Trouble

LOOK_EVERY_S = 0.25
AFTER_FAILURE_S = 5.0
"""Brokers that gave no answer are not asked again for so long: the run waits while they are asked."""
AWAY_S = 300.0
"""Brokers that give no answer for so long, while nothing else is left to do, end the run."""


class TopicView:
    """What is known of a topic (driver).

    Args:
        topic: asked.
        name: of the topic, for messages.
        clock: seconds, monotonic.
    """

    def __init__(self, topic: Topic, name: str, clock: Callable[[], float]) -> None:
        self._topic, self._name, self._clock = topic, name, clock
        self._state: TopicState | None = None
        self._next_look_s = float("-inf")
        self._away_since: float | None = None
        self._failure = ""

    def known(self) -> TopicState:
        """What was seen last; looks if nothing was seen yet."""
        return self._state if self._state is not None else self.look()

    def look(self) -> TopicState:
        """Asks brokers.

        Raises:
            FailedException: no answer.
            SourceError: the topic is not there, may not be read, or was made again.
        """
        found = self._topic.look()
        if self._state is not None and found.topic_id != self._state.topic_id:
            raise SourceError(made_again(self._name, self._state.topic_id, found.topic_id)).about(Trouble.INPUT_GONE)
        self._state, self._away_since, self._failure = found, None, ""
        self._next_look_s = self._clock() + LOOK_EVERY_S
        return found

    def look_again(self, *, has_work: bool) -> TopicState:
        """Looks unless that was a moment ago.

        Args:
            has_work: whether something known is left to do: then brokers that are away are asked another time.

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
        if self._away_since is None:
            self._away_since = self._clock()
        if self._clock() - self._away_since > AWAY_S:
            raise SourceError(f"brokers have been away for {AWAY_S:g} s: {self._failure}")
        raise FailedException(self._failure)


def made_again(name: str, former: str, found: str) -> str:
    """The sentence for a topic that was deleted and made again."""
    return (
        f"topic {name!r} was deleted and made again: its id was {former} and is {found} now, and offsets of the one "
        "mean nothing in the other; drop the topology and start over, or take another topology id"
    )
