"""``txbatch why``: shows which transactions made a value what it is."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from coordinator.operating.cli.command import AsJson, EngineOptions, Parameters, ServerOptions, TopologyId, command
from coordinator.operating.cli.commands.examine import Factory, repeatable
from coordinator.operating.cli.exits import ExitCode
from coordinator.operating.cli.terminal import say, say_json, user_output_aside
from coordinator.operating.inspection.provenance import Change, Provenance, explain_value
from coordinator.operating.inspection.verify.refold import scratch_server
from state.printable import SENTENCE_LIMIT, counted, one_line


@command
def why(
    *,
    topology_id: TopologyId,
    state: Annotated[str, typer.Argument(metavar="STATE[:PART]", help="As in its key: counts, or views:2026-11-21.")],
    field: Annotated[str | None, typer.Argument(metavar="[FIELD]", help="Field or member, as in Redis.")] = None,
    factory: Factory,
    parameters: Parameters = None,
    last: Annotated[int, typer.Option("--last", min=1, metavar="N", help="Most transactions to show.")] = 20,
    typed: ServerOptions,
    engine: EngineOptions,
    as_json: AsJson = False,
) -> int:
    """Show which transactions changed one value, what each contributed, and what input it read; changes nothing.

    The whole input is read again, on a private scratch server. Exit code 0: it gives the value that is stored. 4: it
    gives another one.
    """
    server = typed.choice()
    with user_output_aside():
        topology, runner = repeatable(topology_id, factory, parameters, engine)
        with server.store(topology_id) as store:
            found = explain_value(
                store.records(), topology, state, field, last=last, run_to=runner, server=scratch_server
            )
    if as_json:
        say_json({**asdict(found), "is_explained": found.is_explained})
    else:
        say(*map(typed.completed, _lines(found)))
    return ExitCode.DONE if found.is_explained else ExitCode.STATE


def _lines(found: Provenance) -> list[str]:
    shown = found.name if found.field is None else f"{found.name} {found.field}"
    left_out = found.change_count - len(found.changes)
    earlier = f", the last {len(found.changes)} of them here" if left_out else ""
    lines = [
        f"{shown} of {found.topology_id}: {_shown(found.stored)}, committed up to txid {found.committed:,}",
        f"  changed by {counted(found.change_count, 'transaction')}{earlier}",
        *(line for change in found.changes for line in _change(change)),
    ]
    if not found.is_explained:
        lines.append(
            f"  the input gives {_shown(found.found)}: input, code or state has changed since; `txbatch verify "
            f"{found.topology_id} --refold MODULE:FACTORY` compares all of it"
        )
    return [one_line(line, SENTENCE_LIMIT) for line in lines]


def _change(change: Change) -> list[str]:
    added = "" if change.added is None else f", added {change.added}"
    head = f"  txid {change.txid:,}{added}: {_shown(change.after)}"
    return [head, *(f"    {line}" for line in change.contained)]


def _shown(value: object) -> str:
    return "none" if value is None else str(value)
