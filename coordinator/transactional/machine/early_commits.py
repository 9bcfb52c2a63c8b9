"""Plans and keeps groups whose commit phase runs early, in the job of their wave. Pure.

A committer that only writes does the same in the processing phase as later: its write set is a proposal, which becomes
a commit only if the tree closes. So one job may run both phases, on the guess that all goes well. If the guess was
wrong, the commit phase runs again as a separate job over the same shuffled data. A run whose guesses are often wrong
stops guessing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coordinator.transactional.engine import EarlyCommit, GroupExecuted
from state.attempt import TransactionAttempt

WASTED_MAX = 16
"""A run stops trying when it has this many more wasted groups than useful ones. Two waves of groups may be in flight
when the first proves too large; the groups after them are smaller, so those must not end early commits.
"""


class EarlyCommits:
    """Chooses the groups of a wave that run early, and keeps their reports.

    Args:
        is_on: whether any group runs early.
    """

    def __init__(self, *, is_on: bool) -> None:
        self.is_on = is_on
        self._wasted = 0
        self._kept: dict[int, GroupExecuted] = {}

    def plan(self, attempts: tuple[TransactionAttempt, ...], limit: int, *, composed: bool) -> EarlyCommit:
        """Returns the groups of a new wave: as few as possible, of about equal size, none larger than `limit`."""
        if not self.is_on:
            return EarlyCommit()
        group_count = -(-len(attempts) // limit)
        size = -(-len(attempts) // group_count)
        groups = tuple(attempts[first : first + size] for first in range(0, len(attempts), size))
        return EarlyCommit(groups, composed=composed)

    def keep(self, executed: Iterable[GroupExecuted]) -> None:
        """Keeps the groups of a processed wave; a committer that has read state turns early commits off."""
        for group in executed:
            if any(report.results.reads for report in group.reports):
                self.turn_off()
            elif self.is_on:
                self._kept[group.attempts[0].txid] = group

    def limit(self, currtx: int, otherwise: int) -> int:
        """Returns the most transactions of the group at `currtx`: the early group there, or the gap to the next one."""
        if currtx in self._kept:
            return len(self._kept[currtx].attempts)
        return min([otherwise, *(first - currtx for first in self._kept if first > currtx)])

    def take(self, attempts: tuple[TransactionAttempt, ...]) -> GroupExecuted | None:
        """Returns the reports of an early group of exactly these attempts, None if there is none."""
        group = self._kept.pop(attempts[0].txid, None)
        return group if group is not None and group.attempts == attempts else None

    def settled(self, *, is_wasted: bool) -> None:
        """Counts a taken group as useful, or as wasted if it has to run again."""
        self._wasted = self._wasted + 1 if is_wasted else max(0, self._wasted - 1)
        if self._wasted >= WASTED_MAX:
            self.turn_off()

    def forget_all_but(self, is_current: Callable[[TransactionAttempt], bool]) -> None:
        """Forgets groups with an attempt that is no longer current."""
        self._kept = {first: group for first, group in self._kept.items() if all(map(is_current, group.attempts))}

    def turn_off(self) -> None:
        """Stops running groups early, for the rest of the run."""
        self.is_on = False
        self._kept.clear()
