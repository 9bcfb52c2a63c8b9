"""An aggregation with the state that keeps it, and the checks of rows, which do not depend on other rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import compress
from operator import not_
from typing import Any, NamedTuple, get_args

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.streams.tuples import cut
from coordinated_bolt.user_traceback import WrongAnswerError
from coordinator.fluent.aggregations import Aggregation
from coordinator.fluent.ordered_aggregations import has_order
from coordinator.fluent.row_steps import ColumnLists
from state.errors import TopologyError
from state.kinds.handles import DeclaredState
from state.kinds.state_family import StateFamily
from state.values.first_wrong import Wrong

_SHOWN_MAX = 100
_ORDERED = frozenset({int, float, bool, str, bytes, Decimal})
"""Types whose values are not None and cannot contain None."""
_SAMPLES: tuple[Any, ...] = (
    None, True, 1, 1.0, Decimal(1), "a", b"a", dt.date(2026, 11, 28), dt.datetime(2026, 11, 28, tzinfo=dt.UTC)
)  # fmt: skip


class FieldOrigin(NamedTuple):
    """Where a field of rows comes from.

    Attributes:
        said: the step, with its function, or the component that made the field, for messages.
        declared: the type that the component declares, perhaps ``| None``; None if it declares no type.
        is_filtered: whether a filter or refusal on the way takes this field, and so may have removed some values.
    """

    said: str
    declared: Any = None
    is_filtered: bool = False

    def samples(self) -> list[Any]:
        """Returns a sample value for each declared type of the field."""
        kinds = get_args(self.declared) or (self.declared,)
        return [value for value in _SAMPLES if type(value) in kinds and not (value is None and self.is_filtered)]


@dataclass(frozen=True)
class KeptAggregation:
    """An aggregation that is kept in a state; shipped with the bolt that combines rows for it.

    Attributes:
        aggregation: how rows are aggregated.
        state: the state that keeps the result; it fits the aggregation.
        origins: field -> the step or component that made it.
    """

    aggregation: Aggregation
    state: DeclaredState
    origins: Mapping[str, FieldOrigin]

    def taken(
        self, group: ColumnLists, values: ColumnLists, collector: BatchOutputCollector
    ) -> tuple[ColumnLists, ColumnLists]:
        """Returns the group columns and the value columns of the rows that can be aggregated (executor).

        If values are compared, rows with None as their value become dead letters.

        Raises:
            WrongAnswerError: see `check`.
        """
        names = (*self.aggregation.group, *self.aggregation.takes)
        if self.aggregation.compares and not _ORDERED.issuperset(map(type, values[0])):
            ordered = [*map(has_order, values[0])]
            reason = f"{self.aggregation.said}: {self.aggregation.takes[0]!r} is None, which cannot be compared"
            for place in compress(range(len(ordered)), map(not_, ordered)):
                row = (column[place] for column in (*group, *values))
                collector.dead_letter(dict(zip(names, row, strict=True)), reason)
            group, values = ([list(compress(column, ordered)) for column in columns] for columns in (group, values))
        self.check(dict(zip(names, (*group, *values), strict=True)))
        return group, values

    def check(self, columns: Mapping[str, list[Any]]) -> None:
        """Checks rows, given as field -> column (executor).

        Raises:
            WrongAnswerError: the part, key or value of a row cannot be used.
        """
        for name, wrong in self._wrong(columns):
            shown = {field: cut(column[wrong.place], _SHOWN_MAX) for field, column in columns.items()}
            row = ", ".join(f"{field}={value}" for field, value in shown.items())
            raise WrongAnswerError(
                f"field {name!r} is {shown[name]}, which {self.aggregation.said} cannot take: {wrong.error}; "
                f"{self.origins[name].said} made it, in the row {row}"
            )

    def check_declared(self) -> None:
        """Checks the declared types of fields (driver).

        Raises:
            TopologyError: a value of a declared type could not be used.
        """
        samples = {name: samples for name, origin in self.origins.items() if (samples := origin.samples())}
        if self.aggregation.compares and (taken := self.aggregation.takes[0]) in samples:
            samples[taken] = list(filter(has_order, samples[taken]))
        for name, wrong in self._wrong(samples):
            origin = self.origins[name]
            remedy = "; filter None out first" if samples[name][wrong.place] is None else ""
            raise TopologyError(
                f"{self.aggregation.said}: field {name!r} is declared as {_name_of(origin.declared)} by {origin.said}, "
                f"which cannot be taken: {wrong.error}{remedy}"
            )

    def _wrong(self, columns: Mapping[str, list[Any]]) -> Iterator[tuple[str, Wrong]]:
        """Yields each given field that has a wrong value, with the fault."""
        aggregation, state = self.aggregation, self.state
        found: list[tuple[str, Wrong | None]] = []
        if isinstance(state, StateFamily):
            part = aggregation.part or ""
            found += [(part, state.first_wrong_part(columns[part]))] if part in columns else []
            state = state.template
        keys = ((place, key) for place, key in enumerate(aggregation.key) if key in columns)
        found += [(key, state.first_wrong_field(columns[key], place)) for place, key in keys]
        taken = (name for name in aggregation.takes if name in columns)
        found += [(name, aggregation.first_wrong(state, name, columns[name])) for name in taken]
        yield from ((name, wrong) for name, wrong in found if wrong is not None)


def _name_of(declared: Any) -> str:
    return declared.__name__ if isinstance(declared, type) else str(declared)
