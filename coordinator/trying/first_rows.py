"""The first rows that a component of a topology emits, read in this process; nothing is committed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from coordinated_bolt.streams.declared import DEFAULT_STREAM
from coordinator.topology.building.topology import Topology
from coordinator.topology.pictures.picture_maker import class_name
from coordinator.trying.dry_run import dry_run
from state.html_tables import bounded_table, notebook_display, section
from state.printable import counted, one_line, table_lines

CELL_MAX = 60
"""Longest text of a cell on a terminal, in characters."""
BATCHES_MAX = 100
"""How many transactions are searched for rows at most."""


class FirstRows(NamedTuple):
    """Some rows, as a terminal and a notebook show them.

    Attributes:
        fields: names of the fields.
        rows: the rows' values.
        origin: the source, and how much of it was read.
    """

    fields: tuple[str, ...]
    rows: list[list[Any]]
    origin: str

    def show(self) -> None:
        """Shows the rows in a notebook, if there is one, otherwise on standard output."""
        if display := notebook_display():
            display(self)
        else:
            sys.stdout.write(f"{self}\n")

    def __repr__(self) -> str:
        cells = ([one_line(_text(value), CELL_MAX) for value in row] for row in self.rows)
        return "\n".join([*table_lines([self.fields, self._types(), *cells]), self._caption()])

    def _repr_html_(self) -> str:
        heads = [f"{field}: {kinds}" for field, kinds in zip(self.fields, self._types(), strict=True)]
        return section(bounded_table(heads, self.rows, caption=self._caption()))

    def _caption(self) -> str:
        return f"{counted(len(self.rows), 'row')} of {self.origin}"

    def _types(self) -> Sequence[str]:
        """Returns the types of each field's shown values."""
        columns = zip(*self.rows, strict=True) if self.rows else ([] for _ in self.fields)
        return [" | ".join(sorted({type(value).__name__ for value in column})) or "-" for column in columns]


def first_rows(topology: Topology, component_id: str, most: int) -> FirstRows:
    """Returns the first rows that a component emits on its default stream.

    Raises:
        TopologyError, TransactionError: see `dry_run`.
    """
    (component,) = (each for each in topology.components if each.component_id == component_id)
    rows: list[list[Any]] = []
    txid = 0
    for batch in dry_run(topology, batches=BATCHES_MAX):
        txid = batch.txid
        (emitted,) = (each.emitted for each in batch.components if each.component_id == component_id)
        rows += [values for _, values in emitted]
        if len(rows) >= most:
            break
    read = f"{class_name(topology.spout.spec)}, {counted(txid, 'transaction')} read"
    return FirstRows(component.streams[DEFAULT_STREAM].fields, rows[:most], read)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value) if isinstance(value, bytes | list | dict) else str(value)
