"""Stream groupings: which tasks of a subscriber receive a tuple.

A grouping is a shipped spec. For each attempt and emitting task it makes a `Chooser`, whose choices depend only
on the tuples and on a seed derived from attempt and task.
"""

from __future__ import annotations

import copy
import pickle
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from coordinated_bolt.streams.choosers import (
    Chooser,
    CustomChooser,
    FieldsChooser,
    FixedChooser,
    PartialKeyChooser,
    ShuffleChooser,
)
from state.errors import TopologyError

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Grouping(ABC):
    """The spec of a grouping, made by the topology builder."""

    def check(self, fields: tuple[str, ...], *, direct: bool) -> None:
        """Refuses a stream that this grouping cannot be used on.

        Raises:
            TopologyError: the stream is not suitable; the message follows a description of the subscription.
        """
        if direct:
            raise TopologyError("the stream is direct and takes only direct_grouping")

    @abstractmethod
    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        """Returns a chooser for one attempt and one emitting task."""


@dataclass(frozen=True, slots=True)
class ShuffleGrouping(Grouping):
    """Exactly even per emitter: round robin in a shuffled order; in a chain, everything to the chained task."""

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return ShuffleChooser(range(target_count), seed)


@dataclass(frozen=True, slots=True)
class NoneGrouping(ShuffleGrouping):
    """For users who do not care which task; the same as shuffle."""


@dataclass(frozen=True, slots=True)
class LocalOrShuffleGrouping(Grouping):
    """Shuffles over the tasks on the emitter's worker, or over all tasks if none is known to be there.

    On Spark only a task chained to the emitter is known to be on the same worker. Otherwise this equals shuffle: the
    plan does not know which executor will run a task, and a recomputed task may run on another executor, yet must
    choose the same.

    Attributes:
        local_positions: targets on the emitter's worker, the same whenever the attempt is computed; set by a plan that
            knows them.

    Source: backtype.storm.topology.InputDeclarer.localOrShuffleGrouping.
    """

    local_positions: tuple[int, ...] = field(default=(), repr=False)  # not part of the topology's fingerprint

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        """Returns a chooser for one attempt and one emitting task.

        Raises:
            ValueError: a local position is not a valid target.
        """
        if any(not 0 <= position < target_count for position in self.local_positions):
            raise ValueError(f"local positions {list(self.local_positions)} are not all from 0 to {target_count - 1}")
        return ShuffleChooser(sorted(set(self.local_positions)) or range(target_count), seed)


@dataclass(frozen=True, slots=True)
class FieldsGrouping(Grouping):
    """Sends equal values of the named fields to the same task.

    Equality is Python's: ``1``, ``1.0``, ``True`` and ``Decimal("1.00")`` are one key, and so are mappings with the
    same items in different order and the same instant in two time zones. NaN, which equals nothing in Python, is one
    key too.

    Attributes:
        names: the fields to compare.
    """

    names: tuple[str, ...]

    def check(self, fields: tuple[str, ...], *, direct: bool) -> None:
        Grouping.check(self, fields, direct=direct)
        _check_names("fields_grouping", self.names, fields)

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return FieldsChooser(target_count, [fields.index(name) for name in self.names])


@dataclass(frozen=True, slots=True)
class PartialKeyGrouping(Grouping):
    """Sends equal values of the named fields to two tasks, each tuple to the task that this emitter has used less.

    The load stays balanced where few keys make up most of the tuples, provided that attempts have many tuples and no
    key has more than two tasks can take. The results for one key are then spread over two tasks; a bolt downstream, on
    a fields grouping, must merge them.

    Attributes:
        names: the fields to compare.

    Source: backtype.storm.grouping.PartialKeyGrouping; Nasir et al., The Power of Both Choices, 2015.
    Differs from Storm: the two candidates for a key are always different tasks; the fields are named; use is
    counted per attempt, so that a recomputed attempt chooses the same.
    """

    names: tuple[str, ...]

    def check(self, fields: tuple[str, ...], *, direct: bool) -> None:
        Grouping.check(self, fields, direct=direct)
        _check_names("partial_key_grouping", self.names, fields)

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return PartialKeyChooser(target_count, [fields.index(name) for name in self.names])


@dataclass(frozen=True, slots=True)
class AllGrouping(Grouping):
    """Sends a copy to every task."""

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return FixedChooser(range(target_count))


@dataclass(frozen=True, slots=True)
class GlobalGrouping(Grouping):
    """Sends everything to the task with the lowest id."""

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return FixedChooser(range(1))


@dataclass(frozen=True, slots=True)
class DirectGrouping(Grouping):
    """Lets the emitter name the task, with `emit_direct` on a direct stream."""

    def check(self, fields: tuple[str, ...], *, direct: bool) -> None:
        if not direct:
            raise TopologyError("direct_grouping needs a stream declared with direct=True")

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return FixedChooser(())


@dataclass(frozen=True, slots=True)
class GroupingContext:
    """The facts for a custom grouping, given before it chooses.

    Attributes:
        fields: the fields of the stream.
        target_count: number of the subscriber's tasks; valid positions are 0..target_count-1.
        seed: the seed of this attempt and emitting task; use ``random.Random(seed)`` for random choices.
    """

    fields: tuple[str, ...]
    target_count: int
    seed: int


class CustomGrouping(Grouping):
    """Base of user-defined groupings; subclass it and pass an instance to `custom_grouping`.

    The instance is made on the driver and shipped, so its attributes must pickle. Each emitting task makes a copy per
    subscription when it first emits on the stream: in a transactional topology for every attempt, in a plain one for
    the lifetime of the task. The copy sees `prepare`, then `choose_tasks` for every tuple in emit order, where the task
    runs; the tasks of a plain spout on Spark run on the driver.

    A recomputed attempt must choose the same: decide by the values, by earlier calls of this copy and by the seed;
    never by a clock, by `hash` or by unseeded randomness.

    Its `repr` becomes part of the topology's fingerprint, which is stored with the state. The default is only the
    class's name and does not show a changed parameter: write a ``__repr__``, or make the class a dataclass.

    Source: backtype.storm.grouping.CustomStreamGrouping. Differs from Storm: tasks are chosen by position
    within the subscriber, which is the `task_index` in their context.
    """

    context: GroupingContext

    def check(self, fields: tuple[str, ...], *, direct: bool) -> None:
        """Refuses a stream that this grouping cannot be used on; extend it with your own checks.

        Called for each subscription when a topology is built (driver).
        """
        Grouping.check(self, fields, direct=direct)
        if _ADDRESS.search(repr(self)):
            raise TopologyError(
                f"the repr of custom grouping {self!r} contains a memory address, so every run would see another "
                "topology; give the class a __repr__ that shows only its parameters"
            )

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        live = copy.deepcopy(self)
        live.prepare(GroupingContext(fields, target_count, seed))
        return CustomChooser(target_count, live.choose_tasks, repr(self))

    def prepare(self, context: GroupingContext) -> None:
        """Called first, once per copy (where the task runs)."""
        object.__setattr__(self, "context", context)  # a frozen dataclass may be a grouping too

    @abstractmethod
    def choose_tasks(self, values: tuple[Any, ...]) -> Sequence[int]:
        """Called for every tuple.

        Returns:
            A list of positions from 0 to ``context.target_count - 1``: the tuple goes to each of these tasks, twice
            to a task that is listed twice, and nowhere if the list is empty.
        """

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}()"


@dataclass(frozen=True, slots=True)
class ShippedGrouping(Grouping):
    """A custom grouping in the form shipped to executors: pickled like bolts, so its class may be defined anywhere.

    Attributes:
        spec: the pickled grouping.
    """

    spec: bytes

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        grouping: Grouping = pickle.loads(self.spec)
        return grouping.chooser(target_count, fields, seed)


def _check_names(method: str, names: tuple[str, ...], fields: tuple[str, ...]) -> None:
    if not names:
        raise TopologyError(f"{method} needs at least one field")
    for name in names:
        if name not in fields:
            raise TopologyError(f"field {name!r} does not exist; the stream has {fields}")
