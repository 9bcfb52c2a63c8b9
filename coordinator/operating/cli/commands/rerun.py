"""``txbatch rerun --dry-run``: runs a transaction again without committing it, and shows its tuples."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from coordinator.engines.local.dry_replay import DryReplay, replay_dry
from coordinator.operating.cli.command import command
from coordinator.operating.cli.command_options import AsJson, Parameters, ServerOptions, Txid
from coordinator.operating.cli.commands.dry_run import tuple_line
from coordinator.operating.cli.loading import load_topology
from coordinator.operating.cli.terminal import say, say_json, user_output_aside
from coordinator.operating.inspection.wording import words_of_spout, words_or_values
from coordinator.plain.plain_topology import PlainTopology
from coordinator.server_choice import ServerChoice
from coordinator.topology.building.topology import Topology
from state.errors import TopologyError
from state.printable import counted, one_line

SHOWN = 10
ENTRY_LIMIT = 200
NEVER = (
    "a committed transaction is never run again, and there is no undo; give --dry-run to run it without committing, or "
    "see `txbatch quarantine republish` and `txbatch dead-letters republish` for what was set aside"
)


@command
def rerun(
    *,
    target: Annotated[str, typer.Argument(metavar="MODULE:FACTORY", help="The topology, as for `txbatch run`.")],
    txid: Txid,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Commit nothing; required.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", min=0, metavar="N", help="Most tuples shown of each component.")
    ] = SHOWN,
    parameters: Parameters = None,
    typed: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Run a transaction again from the metadata kept of it, commit nothing, and show the tuples at each component.

    It runs in this process, without Spark. Your code runs, so whatever it does outside declared state it does again.
    Committers see an empty state.
    """
    if not dry_run:
        raise TopologyError(NEVER)
    server = typed.choice()
    with user_output_aside():
        topology, _ = load_topology(target, parameters)
        if isinstance(topology, PlainTopology):
            raise TopologyError(f"topology {topology.topology_id!r} is a plain one: it has no transactions")
        found = _run_again(topology, txid, server)
    if as_json:
        say_json(_plain(topology, txid, found, limit), default=repr)
    else:
        say(*_shown(topology, txid, found, limit))


def _run_again(topology: Topology, txid: int, server: ServerChoice) -> DryReplay:
    with server.store(topology.topology_id) as store:
        known, before = store.transaction(txid), store.transaction(txid - 1)
        stored = store.look()
    if known is None or before is None or stored is None:
        raise TopologyError(
            f"topology {topology.topology_id!r} is not stored on {server}; check the factory and the server: "
            "`txbatch list` shows what is there"
        )
    return replay_dry(topology, known, before, stored)


def _shown(topology: Topology, txid: int, found: DryReplay, limit: int) -> list[str]:
    lines = [f"txid {txid:,} of {topology.topology_id}, run again; nothing was committed"]
    lines += [f"  contained: {line}" for line in words_or_values(found.metadata, _words(topology, found))]
    for component_id, emitted in found.emitted.items():
        lines.append(f"  {component_id}: {counted(len(emitted), 'tuple')} emitted")
        streams = topology.component(component_id).streams
        lines += [
            f"    {one_line(tuple_line(stream, streams[stream].fields, values), ENTRY_LIMIT)}"
            for stream, values in emitted[:limit]
        ]
        lines += _more(len(emitted), limit)
    for name, content in sorted(found.states.items()):
        entries = _entries(content)
        lines.append(f"  state {name}: {len(entries):,} written, into an empty state")
        lines += [f"    {one_line(entry, ENTRY_LIMIT)}" for entry in entries[:limit]]
        lines += _more(len(entries), limit)
    if found.dead_letters:
        lines.append(f"  {counted(len(found.dead_letters), 'dead letter')}")
        lines += [f"    {one_line(repr(letter), ENTRY_LIMIT)}" for letter in found.dead_letters[:limit]]
    return lines


def _words(topology: Topology, found: DryReplay) -> dict[str, list[str]]:
    return words_of_spout(topology.spout.spec, found.metadata)


def _more(count: int, limit: int) -> list[str]:
    return [f"    … {count - limit:,} more (--limit)"] if count > limit else []


def _entries(content: Any) -> list[str]:
    if isinstance(content, dict):
        return [f"{name!r}: {value!r}" for name, value in sorted(content.items(), key=repr)]
    if isinstance(content, (set, frozenset, list)):
        return [repr(item) for item in (content if isinstance(content, list) else sorted(content, key=repr))]
    return [] if content is None else [repr(content)]


def _plain(topology: Topology, txid: int, found: DryReplay, limit: int) -> dict[str, Any]:
    return {
        "topology_id": topology.topology_id,
        "txid": txid,
        "contained": _words(topology, found),
        "components": {
            component_id: {
                "emitted": len(emitted),
                "tuples": [{"stream": stream, "values": values} for stream, values in emitted[:limit]],
            }
            for component_id, emitted in found.emitted.items()
        },
        "states": {name: {"written": len(_entries(content))} for name, content in sorted(found.states.items())},
        "dead_letters": len(found.dead_letters),
    }
