"""``txbatch dry-run``: the first batches of a topology in this process; shows every tuple, and commits nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TextIO

import typer

from coordinator.engines.local.dry_run import DryBatch, DryChange, DryWrites
from coordinator.engines.local.dry_run import dry_run as dry_batches
from coordinator.operating.cli.command import command
from coordinator.operating.cli.command_options import AsJson, FactoryTarget, Parameters
from coordinator.operating.cli.letter_json import json_of, json_value
from coordinator.operating.cli.loading import load_topology
from coordinator.operating.cli.terminal import say, say_json, user_output_aside
from coordinator.topology.building.topology import Topology
from state.printable import counted, one_line

Fields = Mapping[tuple[str, str], Sequence[str]]
"""(component, stream) -> names of the values."""


@command
def dry_run(
    *,
    target: FactoryTarget,
    parameters: Parameters = None,
    batches: Annotated[int, typer.Option(min=1, metavar="N", help="Most batches to run.")] = 1,
    limit: Annotated[
        int, typer.Option(min=0, metavar="N", help="Most tuples shown of each component, and changes of each state.")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """Run the first batches in this process and show every component's tuples; nothing is committed anywhere.

    Needs neither Spark nor a server. State is in memory and empty at the start. The source is read from its beginning,
    and not told of anything. Your code runs: what it does outside its state it does, except that committers with
    external effects are left out.
    """
    out = sys.stdout
    with user_output_aside():
        topology, _ = load_topology(target, parameters)
        fields = _fields_of(topology) if isinstance(topology, Topology) else {}
        found = dry_batches(topology, batches=batches)
        if as_json:
            _print_json(topology.topology_id, found, fields, limit, out)
        else:
            _print_text(topology.topology_id, found, fields, limit, out)


def _print_text(topology_id: str, batches: Iterator[DryBatch], fields: Fields, limit: int, out: TextIO) -> None:
    """Prints each batch once it has run, so that an error follows what it came from."""
    count = 0
    for batch in batches:
        count += 1
        say(*_lines(topology_id, batch, fields, limit), to=out, flush=True)
    if not count:
        say(f"{topology_id}: the input has no batch for now", to=out)


def _print_json(topology_id: str, batches: Iterator[DryBatch], fields: Fields, limit: int, out: TextIO) -> None:
    """Prints one line, with all batches up to an error; nothing if no batch was run because of it."""
    shown: list[dict[str, Any]] = []
    is_refused = True
    try:
        for batch in batches:
            shown.append(_plain(batch, fields, limit))  # noqa: PERF401 - an error leaves what came before it
        is_refused = False
    finally:
        if shown or not is_refused:
            say_json({"topology": topology_id, "batches": shown}, to=out, flush=True)


def _fields_of(topology: Topology) -> Fields:
    return {
        (component.component_id, stream_id): spec.fields
        for component in topology.components
        for stream_id, spec in component.streams.items()
    }


def _lines(topology_id: str, batch: DryBatch, fields: Fields, limit: int) -> Iterator[str]:
    yield f"{topology_id}: batch {batch.txid:,}, not committed"
    for component in batch.components:
        yield f"  {component.component_id} ({component.kind} {component.class_name}): " + (
            f"{counted(len(component.emitted), 'tuple')} emitted"
        )
        tuples = [
            tuple_line(stream_id, fields[component.component_id, stream_id], values)
            for stream_id, values in component.emitted[:limit]
        ]
        yield from _cut(tuples, len(component.emitted), "    ")
    if batch.writes is None:
        yield "  the commit phase was not run"
        return
    yield "  would write" if batch.writes else "  would write nothing"
    for writes in batch.writes:
        yield f"    {writes.key} ({writes.redis_type}), by {writes.component_id}: {_changes(writes)}"
        yield from _cut([_change_line(change) for change in writes.changes[:limit]], len(writes.changes), "      ")
    if batch.dead_letters:
        yield f"  {counted(len(batch.dead_letters), 'dead letter')}"
        letters = [f"{letter.component_id}: {letter.reason}" for letter in batch.dead_letters[:limit]]
        yield from _cut(letters, len(batch.dead_letters), "    ")


def _cut(lines: Sequence[str], count: int, indent: str) -> Iterator[str]:
    yield from (one_line(f"{indent}{line}") for line in lines)
    if count > len(lines):
        yield f"{indent}… {count - len(lines):,} more"


def tuple_line(stream_id: str, names: Sequence[str], values: Sequence[Any]) -> str:
    """Returns a tuple with the names of its fields, and its stream if that is not the default."""
    stream = "" if stream_id == "default" else f"{stream_id}: "
    return stream + ", ".join(f"{name}={value!r}" for name, value in zip(names, values, strict=True))


def _changes(writes: DryWrites) -> str:
    return counted(len(writes.changes), "change")


def _change_line(change: DryChange) -> str:
    field = "" if change.field == "" else f"{change.field!r} "
    match change.operation:
        case "delete":
            return f"{field}deleted"
        case "increment":
            return f"{field}+= {change.value!r}"
        case "append":
            return f"append {change.value!r}"
    return f"{field}= {change.value!r}"


def _plain(batch: DryBatch, fields: Fields, limit: int) -> dict[str, Any]:
    return {
        "txid": batch.txid,
        "components": [
            {
                "component": component.component_id,
                "kind": component.kind,
                "class": component.class_name,
                "emitted": len(component.emitted),
                "tuples": [
                    {
                        "stream": stream_id,
                        "values": {
                            name: json_value(value)
                            for name, value in zip(fields[component.component_id, stream_id], values, strict=True)
                        },
                    }
                    for stream_id, values in component.emitted[:limit]
                ],
            }
            for component in batch.components
        ],
        "writes": None if batch.writes is None else [_plain_writes(writes, limit) for writes in batch.writes],
        "dead_letters": [json_of(letter) for letter in batch.dead_letters[:limit]],
    }


def _plain_writes(writes: DryWrites, limit: int) -> dict[str, Any]:
    changes = [
        {"operation": change.operation, "field": json_value(change.field), "value": json_value(change.value)}
        for change in writes.changes[:limit]
    ]
    return {
        "component": writes.component_id,
        "key": writes.key,
        "type": writes.redis_type,
        "count": len(writes.changes),
        "changes": changes,
    }
