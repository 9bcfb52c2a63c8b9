"""The job of `record_jobs` by others: ``python -m benchmarks.record_contenders SIDE SOURCE ADDRESS``.

It imports nothing of ours, so that its start is theirs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import redis

KEY = "{records}:sums"


def bytewax_csv(folder: str) -> tuple[Any, Callable[[Any], tuple[str, int]]]:
    """Its source of CSV, and what makes day and amount of a row."""
    from bytewax.connectors.files import CSVSource

    return CSVSource(Path(folder, "rows.csv"), batch_size=1000), lambda row: (row["day"], int(row["amount"]))


def bytewax_json(folder: str) -> tuple[Any, Callable[[Any], tuple[str, int]]]:
    """Its source of lines, and what makes day and amount of a line of JSON."""
    from bytewax.connectors.files import FileSource

    def made(line: str) -> tuple[str, int]:
        row = json.loads(line)
        return row["day"], row["amount"]

    return FileSource(Path(folder, "rows.jsonl"), batch_size=1000), made


def run_bytewax(given: tuple[Any, Callable[[Any], tuple[str, int]]], address: str) -> None:
    """One process without recovery; the sums are written once, at the end."""
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.outputs import DynamicSink, StatelessSinkPartition
    from bytewax.testing import run_main

    class Writes(StatelessSinkPartition[Any]):
        def write_batch(self, items: list[Any]) -> None:
            with redis.Redis.from_url(address, protocol=2) as client:
                client.hset(KEY, mapping=dict(items))

    class Sums(DynamicSink[Any]):
        def build(self, step_id: str, worker_index: int, worker_count: int) -> Writes:
            return Writes()

    source, made = given
    flow = Dataflow("records")
    pairs = op.map("made", op.input("rows", flow, source), made)
    op.output("sums", op.reduce_final("add", pairs, lambda left, right: left + right), Sums())
    run_main(flow)


def run_pathway(folder: str, address: str) -> None:
    """One process, its static mode; the sums are written as it reports them."""
    import pathway as pw

    class Row(pw.Schema):  # type: ignore[misc] # not installed everywhere
        day: str
        amount: int

    table = pw.io.csv.read(f"{folder}/rows.csv", schema=Row, mode="static")
    sums = table.groupby(table.day).reduce(table.day, amount=pw.reducers.sum(table.amount))
    with redis.Redis.from_url(address, protocol=2) as client:

        def write(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
            if is_addition:
                client.hset(KEY, row["day"], row["amount"])

        pw.io.subscribe(sums, on_change=write)
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)


OTHERS: Mapping[str, Callable[[str, str], None]] = {
    "bytewax csv": lambda source, address: run_bytewax(bytewax_csv(source), address),
    "bytewax json": lambda source, address: run_bytewax(bytewax_json(source), address),
    "pathway csv": run_pathway,
}


if __name__ == "__main__":
    OTHERS[sys.argv[1]](*sys.argv[2:])
