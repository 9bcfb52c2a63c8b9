"""Stream groupings: which tasks of a subscriber a tuple goes to.

A grouping is a spec that is shipped; per attempt and emitting task it makes a `Chooser`, whose choices
depend on nothing but the tuples and a seed made of attempt and task.
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

__all__ = [
    "AllGrouping",
    "Chooser",
    "CustomGrouping",
    "DirectGrouping",
    "FieldsGrouping",
    "GlobalGrouping",
    "Grouping",
    "GroupingContext",
    "LocalOrShuffleGrouping",
    "NoneGrouping",
    "PartialKeyGrouping",
    "ShippedGrouping",
    "ShuffleGrouping",
]

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Grouping(ABC):
    """The spec of a grouping, made by the topology builder."""

    def check(self, fields: tuple[str, ...], *, direct: bool) -> None:
        """Refuses a stream this grouping cannot be used on.

        Raises:
            TopologyError: with the reason, to be put behind the subscription's description.
        """
        if direct:
            raise TopologyError("the stream is direct and takes only direct_grouping")

    @abstractmethod
    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        """A chooser for one attempt and one emitting task."""


@dataclass(frozen=True, slots=True)
class ShuffleGrouping(Grouping):
    """Exactly even per emitter: round robin over a shuffled order."""

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return ShuffleChooser(range(target_count), seed)


@dataclass(frozen=True, slots=True)
class NoneGrouping(ShuffleGrouping):
    """The user does not care; the same as shuffle."""


@dataclass(frozen=True, slots=True)
class LocalOrShuffleGrouping(Grouping):
    """Shuffle over the tasks on the emitter's worker, over all tasks where none is known to be there.

    On Spark it equals shuffle: which executor will run a task is not known when the topology is planned,
    and may be another when the task is computed again, which then has to choose as it did before.

    Attributes:
        local_positions: targets on the emitter's worker, the same whenever the attempt is computed; filled in by
            a plan that knows the workers.

    Source: backtype.storm.topology.InputDeclarer.localOrShuffleGrouping.
    """

    local_positions: tuple[int, ...] = field(default=(), repr=False)  # no part of the topology's fingerprint

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        """A chooser for one attempt and one emitting task.

        Raises:
            ValueError: a local position is no target.
        """
        if any(not 0 <= position < target_count for position in self.local_positions):
            raise ValueError(f"local positions {list(self.local_positions)} are not all from 0 to {target_count - 1}")
        return ShuffleChooser(sorted(set(self.local_positions)) or range(target_count), seed)


@dataclass(frozen=True, slots=True)
class FieldsGrouping(Grouping):
    """Equal values of the named fields go to the same task.

    Equal as Python compares them: ``1``, ``1.0``, ``True`` and ``Decimal("1.00")`` are one key, so are two mappings
    filled in another order and one moment in two time zones; and every NaN, which equals nothing, is one key too.

    Attributes:
        names: the fields that are compared.
    """

    names: tuple[str, ...]

    def check(self, fields: tuple[str, ...], *, direct: bool) -> None:
        Grouping.check(self, fields, direct=direct)
        _check_names("fields_grouping", self.names, fields)

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return FieldsChooser(target_count, [fields.index(name) for name in self.names])


@dataclass(frozen=True, slots=True)
class PartialKeyGrouping(Grouping):
    """Equal values of the named fields go to one of two tasks, the one this emitter has used less.

    Loads stay even where few keys make up most of the tuples, if attempts have many tuples and no key has
    more than two tasks can take. What is computed of one key is then in two tasks: a stage further down,
    on a fields grouping, has to merge it.

    Attributes:
        names: the fields that are compared.

    Source: backtype.storm.grouping.PartialKeyGrouping; Nasir et al., The Power of Both Choices, 2015.
    Differs from Storm: the candidates of a key are never the same task; the fields are named; use is
    counted per attempt, so that an attempt computed again chooses the same.
    """

    names: tuple[str, ...]

    def check(self, fields: tuple[str, ...], *, direct: bool) -> None:
        Grouping.check(self, fields, direct=direct)
        _check_names("partial_key_grouping", self.names, fields)

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return PartialKeyChooser(target_count, [fields.index(name) for name in self.names])


@dataclass(frozen=True, slots=True)
class AllGrouping(Grouping):
    """Every task receives a copy."""

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return FixedChooser(range(target_count))


@dataclass(frozen=True, slots=True)
class GlobalGrouping(Grouping):
    """Everything goes to the task with the lowest id."""

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return FixedChooser(range(1))


@dataclass(frozen=True, slots=True)
class DirectGrouping(Grouping):
    """The emitter names the task, by `emit_direct` on a direct stream."""

    def check(self, fields: tuple[str, ...], *, direct: bool) -> None:
        if not direct:
            raise TopologyError("direct_grouping needs a stream declared with direct=True")

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        return FixedChooser(())


@dataclass(frozen=True, slots=True)
class GroupingContext:
    """What a custom grouping is told before it chooses.

    Attributes:
        fields: of the stream.
        target_count: number of the subscriber's tasks; it chooses among the positions 0..target_count-1.
        seed: of this attempt and emitting task; what is random comes from ``random.Random(seed)``.
    """

    fields: tuple[str, ...]
    target_count: int
    seed: int


class CustomGrouping(Grouping):
    """A grouping of the user's own; subclass it and give an object to `custom_grouping`.

    The object is made on the driver and shipped, so what `__init__` sets must pickle. Each emitting task makes a
    copy of it per subscription when it first emits on the stream: in a transactional topology for every attempt, in a
    plain one for as long as the task lives. The copy sees `prepare`, then `choose_tasks` for every tuple, in the
    order of the emits, where the task runs: a task of a plain spout on Spark runs on the driver.

    An attempt may be computed again and then has to choose the same: decide by the values, by what this copy was
    shown before, and by the seed; never by a clock, by `hash` or by unseeded randomness.

    Its `repr` stands in the topology's fingerprint, which is stored with the state. The default is the class's name
    alone, in which a changed parameter does not show: write one, or make the class a dataclass.

    Source: backtype.storm.grouping.CustomStreamGrouping. Differs from Storm: tasks are chosen by position
    among the subscriber's, which is the `task_index` they find in their context.
    """

    context: GroupingContext

    def check(self, fields: tuple[str, ...], *, direct: bool) -> None:
        """Refuses a stream this grouping cannot be used on; extend it for checks of your own.

        Called on the driver whenever a topology is built, for each subscription.
        """
        Grouping.check(self, fields, direct=direct)
        if _ADDRESS.search(repr(self)):
            raise TopologyError(
                f"the repr of custom grouping {self!r} holds an address, so no two runs would agree on the topology; "
                "give the class a __repr__ that shows its parameters only"
            )

    def chooser(self, target_count: int, fields: tuple[str, ...], seed: int) -> Chooser:
        live = copy.deepcopy(self)
        live.prepare(GroupingContext(fields, target_count, seed))
        return CustomChooser(target_count, live.choose_tasks, repr(self))

    def prepare(self, context: GroupingContext) -> None:
        """Called first, once per copy; where the task runs."""
        object.__setattr__(self, "context", context)  # a frozen dataclass may be a grouping too

    @abstractmethod
    def choose_tasks(self, values: tuple[Any, ...]) -> Sequence[int]:
        """Called for every tuple.

        Returns:
            A list of any number of positions, from 0 to ``context.target_count - 1``: the tuple goes to each of these
            tasks, twice to one that is named twice, and to none if the list is empty.
        """

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}()"


@dataclass(frozen=True, slots=True)
class ShippedGrouping(Grouping):
    """A custom grouping on its way to executors: pickled as bolts are, so its class may come from anywhere.

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
            raise TopologyError(f"there is no field {name!r}; the stream has {fields}")
