"""Chooses transactions by what was told of them, without reading every story whole. Pure."""

from __future__ import annotations

from enum import StrEnum

from state.records.transaction_story import TransactionStory, story_of

LOWER_FAILED = "lower failed"
"""Why an attempt was dropped that has not failed itself."""


class StoryChoice(StrEnum):
    """Which transactions a reader wants to see."""

    ALL = "all"
    FAILED = "failed"
    """An attempt at it failed for a reason of its own."""
    REPLAYED = "replayed"
    """It was attempted more than once, for whatever reason."""
    SET_ASIDE = "set aside"
    """Its batch was quarantined, and it was committed empty."""

    def chosen(self, text: str) -> TransactionStory | None:
        """Returns the story in a stored text, None if it is not wanted or cannot be read.

        Most texts are turned down by a search for what a wanted one must contain, which is much quicker than parsing.
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
        """Returns whether a transaction with this story is one of them."""
        match self:
            case StoryChoice.FAILED:
                return any(each.failed not in ("", LOWER_FAILED) for each in story.attempts)
            case StoryChoice.REPLAYED:
                return story.attempt_count > 1
            case StoryChoice.SET_ASIDE:
                return story.set_aside
        return True
