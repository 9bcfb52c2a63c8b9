"""Groups whose commit phase has run already, in the job of their wave.

A committer that only writes does the same in the processing phase as later: what it returns is a
proposal, and only a tree that closes makes it a commit. So the commit phase of a wave can be run on
trust, one job for both phases. Where the trust was wrong the general way is still open, the commit phase
as a job of its own over the same shuffled data. What it teaches is kept here, so that a run whose guesses
are wrong soon stops guessing. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coordinator.transactional.engine import EarlyCommit, GroupExecuted
from state.attempt import TransactionAttempt

WASTED_MAX = 3
"""Groups run in vain, each one of use taken off, before a run stops trying."""


class EarlyCommits:
    """Says which groups of a wave are run early, and keeps what they have reported.

    Args:
        is_on: whether any are.
    """

    def __init__(self, *, is_on: bool) -> None:
        self.is_on = is_on
        self._wasted = 0
        self._kept: dict[int, GroupExecuted] = {}

    def plan(self, attempts: tuple[TransactionAttempt, ...], limit: int, *, composed: bool) -> EarlyCommit:
        """The groups of a new wave: few, of equal size, none larger than `limit`."""
        if not self.is_on:
            return EarlyCommit()
        group_count = -(-len(attempts) // limit)
        size = -(-len(attempts) // group_count)
        groups = tuple(attempts[first : first + size] for first in range(0, len(attempts), size))
        return EarlyCommit(groups, composed=composed)

    def keep(self, executed: Iterable[GroupExecuted]) -> None:
        """A wave is processed; a committer that has read state says that this topology needs the general way."""
        for group in executed:
            if any(verdict.reads for report in group.reports for verdict in report.verdicts):
                self.turn_off()
            elif self.is_on:
                self._kept[group.attempts[0].txid] = group

    def limit(self, currtx: int, otherwise: int) -> int:
        """Most transactions of the group that begins at `currtx`: as many as were run early, or up to those."""
        if currtx in self._kept:
            return len(self._kept[currtx].attempts)
        return min([otherwise, *(first - currtx for first in self._kept if first > currtx)])

    def take(self, attempts: tuple[TransactionAttempt, ...]) -> GroupExecuted | None:
        """What these very attempts have reported as a group, if they have."""
        group = self._kept.pop(attempts[0].txid, None)
        return group if group is not None and group.attempts == attempts else None

    def settled(self, *, is_wasted: bool) -> None:
        """A group that was taken went out, or has to be run again."""
        self._wasted = self._wasted + 1 if is_wasted else max(0, self._wasted - 1)
        if self._wasted >= WASTED_MAX:
            self.turn_off()

    def forget_all_but(self, is_current: Callable[[TransactionAttempt], bool]) -> None:
        """Groups with an attempt that is void are void themselves."""
        self._kept = {first: group for first, group in self._kept.items() if all(map(is_current, group.attempts))}

    def turn_off(self) -> None:
        """This run goes the general way from now on."""
        self.is_on = False
        self._kept.clear()
