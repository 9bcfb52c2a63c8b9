"""What a server's append-only file holds, write by write, and what comes back of it once its end is lost.

A function that changes several things is written as MULTI, its commands, EXEC. If a power cut leaves only the first
bytes of that, Redis 7 does not apply it when it loads the file, but cuts the file after the last whole command: MULTI
and the first commands stay, in front of whatever is written next. At the next start everything up to the next EXEC is
one transaction, so half of the lost write is applied under later ones; if no EXEC has followed, Redis cuts the file
where the MULTI began, and all that was written since is gone. test_append_only_file.py has a real server do both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from tests.simulation.memory_redis import Content, Unit

HISTORY = 200


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """What the server held after a write.

    Attributes:
        content: all of it.
        units: what has led here from the moment before, as the file has it; empty if it cannot be told.
        is_damaged: whether half of a lost write was applied to what is there.
    """

    content: Content
    units: tuple[Unit, ...] = ()
    is_damaged: bool = False

    @property
    def may_be_torn(self) -> bool:
        """Whether a cut can leave a part of it."""
        return bool(self.units) and len(self.units[0]) > 1


class AppendOnlyFile:
    """The last moments of a server.

    Args:
        applied: what commands make of what a server holds.
        control: the key without which the topology is gone, and with it what was damaged.

    Attributes:
        moments: the last ones, from the oldest; never empty.
    """

    def __init__(self, applied: Callable[[Content, Unit], Content], control: bytes) -> None:
        self._applied, self._control = applied, control
        self.moments = [Moment({})]
        self._torn_after: Moment | None = None
        self._half: Unit = ()

    @property
    def last(self) -> Moment:
        """What the server holds."""
        return self.moments[-1]

    def add(self, content: Content, units: Sequence[Unit]) -> None:
        """The server has written."""
        is_damaged = self.last.is_damaged and self._control in content
        self._add(Moment(content, tuple(units), is_damaged))

    def become(self, moment: Moment) -> None:
        """The server is started with another file: a copy, or none."""
        self._torn_after = None
        self._add(Moment(moment.content, (), moment.is_damaged))

    def cut(self, lost: int) -> None:
        """The server is started again, without its last writes."""
        kept = self.moments[: len(self.moments) - lost]
        if self._torn_after in kept:
            place = kept.index(self._torn_after) + 1
            kept[place:] = self._over_half(kept[place - 1], kept[place:])
        self._torn_after = None
        self.moments = kept

    def tear(self, lost: int, random: Random) -> None:
        """The same, and some first commands of the first lost write stay in the file."""
        torn, before = self.moments[len(self.moments) - lost], self._open_half(lost)
        self.cut(lost)
        if torn.may_be_torn:
            unit = torn.units[0]
            self._torn_after, self._half = self.last, (*before, *unit[: random.randint(0, len(unit))])

    def _add(self, moment: Moment) -> None:
        self.moments = [*self.moments[-HISTORY:], moment]

    def _open_half(self, lost: int) -> Unit:
        """The commands that no EXEC has ended, in a file without the last writes."""
        kept = self.moments[: len(self.moments) - lost]
        if self._torn_after not in kept:
            return ()
        units = [unit for moment in kept[kept.index(self._torn_after) + 1 :] for unit in moment.units]
        if any(len(unit) > 1 for unit in units):
            return ()
        return (*self._half, *(command for unit in units for command in unit))

    def _over_half(self, base: Moment, since: Sequence[Moment]) -> list[Moment]:
        """What follows a moment if half a write is in front of it."""
        ends = [place for place, moment in enumerate(since) if any(len(unit) > 1 for unit in moment.units)]
        if not ends:
            return []
        content, is_damaged = self._applied(base.content, self._half), bool(self._half) or base.is_damaged
        found = []
        for moment in since:
            for unit in moment.units:
                content = self._applied(content, unit)
                is_damaged = is_damaged and self._control in content
            found.append(Moment(content, moment.units, is_damaged))
        return [Moment(found[ends[0]].content, (), found[ends[0]].is_damaged), *found[ends[0] + 1 :]]
