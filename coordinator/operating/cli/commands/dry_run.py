"""``txbatch dry-run``: runs the first batches, or a transaction again, here; shows every tuple, and commits nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, TextIO

import typer

from coordinator.operating.cli.command import AsJson, FactoryTarget, Parameters, ServerOptions, command
from coordinator.operating.cli.letter_json import json_of, json_value
from coordinator.operating.cli.loading import load_topology
from coordinator.operating.cli.terminal import say, say_json, user_output_aside
from coordinator.operating.inspection.wording import words_of_spout, words_or_values
from coordinator.server_choice import ServerChoice
from coordinator.topology.building.topology import Topology
from coordinator.trying.dry_rerun import rerun_dry
from coordinator.trying.dry_run import DryBatch, DryChange, DryWrites, runnable
from coordinator.trying.dry_run import dry_run as dry_batches
from coordinator.watching.statistics.run_statistics import expired_when_written
from state.errors import TopologyError
from state.printable import counted, one_line
from state.troubles import Trouble

Fields = Mapping[tuple[str, str], Sequence[str]]
"""(component, stream) -> names of the values."""


@command
def dry_run(
    *,
    target: FactoryTarget,
    parameters: Parameters = None,
    batches: Annotated[int, typer.Option(min=1, metavar="N", help="Most batches to run.")] = 1,
    txid: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Run this transaction again, from the metadata that is kept of it."),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=0, metavar="N", help="Most tuples of each component, and changes of each whole state.")
    ] = 20,
    typed: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Run batches in this process, or a transaction again, and show every component's tuples; nothing is committed.

    Needs no Spark, and a server only for --txid, which is read. State is in memory and empty at the start. The source
    is read from its beginning, and nothing is acknowledged to it. Your code runs: what it does outside its state it
    does, except that committers with external effects are left out; with --txid, such a topology is refused. A
    committed transaction is never run again for real, and there is no undo.
    """
    out = sys.stdout
    with user_output_aside():
        loaded, _ = load_topology(target, parameters)
        topology = runnable(loaded)
        fields, contained = _fields_of(topology), list[str]()
        if txid is None:
            found = dry_batches(topology, batches=batches)
        else:
            found, contained = _run_again(topology, txid, typed.choice())
        if as_json:
            _print_json(topology.topology_id, found, fields, limit, out, contained=contained)
        else:
            _print_text(topology.topology_id, found, fields, limit, out, contained=contained)


def _run_again(topology: Topology, txid: int, server: ServerChoice) -> tuple[Iterator[DryBatch], list[str]]:
    """Returns the batch of a transaction, and its input in words."""
    with server.store(topology.topology_id) as store:
        known, before = store.transaction(txid), store.transaction(txid - 1)
        stored = store.look()
    if known is None or before is None or stored is None:
        raise TopologyError(
            f"topology {topology.topology_id!r} is not stored on {server}; check the factory and the server: "
            "`txbatch list` shows what is there"
        ).about(Trouble.UNKNOWN_TOPOLOGY)
    found = rerun_dry(topology, known, before, stored)
    return found, words_or_values(known.metadata, words_of_spout(topology.spout.spec, known.metadata))


def _print_text(
    topology_id: str, batches: Iterator[DryBatch], fields: Fields, limit: int, out: TextIO, *, contained: Sequence[str]
) -> None:
    """Prints each batch once it has run, so that an error follows the batches before it."""
    count = 0
    for line in contained:
        say(f"contained: {line}", to=out)
    for batch in batches:
        count += 1
        say(*_lines(topology_id, batch, fields, limit), to=out, flush=True)
    if not count:
        say(f"{topology_id}: the input has no batch for now", to=out)


def _print_json(
    topology_id: str, batches: Iterator[DryBatch], fields: Fields, limit: int, out: TextIO, *, contained: Sequence[str]
) -> None:
    """Prints one line with all batches up to an error; prints nothing if an error occurs before any batch."""
    shown: list[dict[str, Any]] = []
    is_refused = True
    try:
        for batch in batches:
            shown.append(_plain(batch, fields, limit))  # noqa: PERF401 - keeps the batches before an error
        is_refused = False
    finally:
        if shown or not is_refused:
            said = {"contained": contained} if contained else {}
            say_json({"topology": topology_id, **said, "batches": shown}, to=out, flush=True)


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
            _tuple_line(stream_id, fields[component.component_id, stream_id], values)
            for stream_id, values in component.emitted[:limit]
        ]
        yield from _cut(tuples, len(component.emitted), "    ")
    if batch.writes is None:
        yield "  the commit phase was not run"
        return
    yield "  would write" if batch.writes else "  would write nothing"
    for shown, left in _by_state(batch.writes, limit):
        for writes, most in shown:
            changes = counted(len(writes.changes), "change")
            yield f"    {writes.key} ({writes.redis_type}), by {writes.component_id}: {changes}"
            yield from _cut([_change_line(change) for change in writes.changes[:most]], len(writes.changes), "      ")
        if left:
            parts, changes = counted(len(left), "part"), counted(sum(len(each.changes) for each in left), "change")
            yield f"    … {parts} more of state {left[0].state}, by {left[0].component_id}: {changes}"
    if batch.expired_parts:
        yield f"  {expired_when_written(batch.expired_parts)}"
    if batch.dead_letters:
        yield f"  {counted(len(batch.dead_letters), 'dead letter')}"
        letters = [f"{letter.component_id}: {letter.reason}" for letter in batch.dead_letters[:limit]]
        yield from _cut(letters, len(batch.dead_letters), "    ")


def _by_state(writes: Sequence[DryWrites], limit: int) -> Iterator[tuple[list[tuple[DryWrites, int]], list[DryWrites]]]:
    """Yields, for each state, the shown parts with their limits of changes, and the parts that are left out."""
    for _, parts in groupby(writes, key=lambda each: (each.component_id, each.state)):
        room, shown, left = limit, list[tuple[DryWrites, int]](), list[DryWrites]()
        for part in parts:
            if shown and not room:
                left.append(part)
                continue
            shown.append((part, room))
            room -= min(room, len(part.changes))
        yield shown, left


def _cut(lines: Sequence[str], count: int, indent: str) -> Iterator[str]:
    yield from (one_line(f"{indent}{line}") for line in lines)
    if count > len(lines):
        yield f"{indent}… {count - len(lines):,} more"


def _tuple_line(stream_id: str, names: Sequence[str], values: Sequence[Any]) -> str:
    """Returns a tuple with the names of its fields, and its stream if that is not the default."""
    stream = "" if stream_id == "default" else f"{stream_id}: "
    return stream + ", ".join(f"{name}={value!r}" for name, value in zip(names, values, strict=True))


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
    states = list(_by_state(batch.writes or (), limit))
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
        "writes": None if batch.writes is None else [_plain_writes(*each) for shown, _ in states for each in shown],
        "dead_letters": [json_of(letter) for letter in batch.dead_letters[:limit]],
        **({"left_out": [_plain_left(left) for _, left in states if left]} if any(left for _, left in states) else {}),
        **({"expired_parts": batch.expired_parts} if batch.expired_parts else {}),
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


def _plain_left(left: Sequence[DryWrites]) -> dict[str, Any]:
    changes = sum(len(each.changes) for each in left)
    return {"component": left[0].component_id, "state": left[0].state, "parts": len(left), "changes": changes}
