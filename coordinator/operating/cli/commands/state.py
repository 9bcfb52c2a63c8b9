"""``txbatch state``: what a topology has stored, as readers see it and as a file; and what changes it."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from coordinator.operating.cli.command import (
    AsJson,
    EngineOptions,
    Parameters,
    ServerOptions,
    TopologyId,
    command,
    command_group,
)
from coordinator.operating.cli.commands.drop import keys_left
from coordinator.operating.cli.commands.examine import Factory, repeatable
from coordinator.operating.cli.run_lines import moment
from coordinator.operating.cli.terminal import copy_out, say, say_json, user_output_aside
from coordinator.operating.inspection.verify.refold import scratch_server
from coordinator.operating.transfer.exporting import export_state
from coordinator.operating.transfer.importing import checked_export, import_state
from coordinator.operating.transfer.looking import StateTotals, chosen_state, field_line, lines_of_state, state_totals
from coordinator.operating.transfer.redoing import redo_state
from coordinator.operating.transfer.renaming import rename_state
from coordinator.operating.transfer.state_lines import FIELD_EXPIRES
from state.errors import StateRefusedError, TopologyError
from state.printable import counted, json_line, one_line, printable, table_lines
from state.troubles import Trouble
from state.values.shards import SHARDS_MAX

app = command_group("Look at a topology's state, export it, put an export back, rename a state or compute it again.")


@app.command("list")
@command
def list_states(*, topology_id: TopologyId, typed: ServerOptions, as_json: AsJson = False) -> None:
    """Show the states that a topology has declared, their keys, types and sizes, as of one committed transaction."""
    server = typed.choice()
    with server.store(topology_id) as store:
        committed, totals = state_totals(store.records())
    if as_json:
        states = [each.as_json() for each in totals]
        say_json({"topology": topology_id, "committed": committed, "states": states})
        return
    say(f"{topology_id} on {server}: {counted(len(totals), 'state')}, committed up to txid {committed:,}")
    rows = [StateTotals.HEADINGS, *(each.as_row() for each in totals)]
    say(*table_lines([[one_line(cell, 200) for cell in row] for row in rows]))


@app.command("get")
@command
def get_state(
    *,
    topology_id: TopologyId,
    state: Annotated[str, typer.Argument(metavar="STATE[:PART]", help="As in its key: counts, or views:2026-11-21.")],
    field: Annotated[str | None, typer.Argument(metavar="[FIELD]", help="Only this field or member.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Most entries to show.")] = 100,
    lowest: Annotated[bool, typer.Option("--lowest", help="Begin a sorted set with the lowest score.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Show what a HyperLogLog holds, not its count.")] = False,
    typed: ServerOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON Lines, as in an export.")] = False,
) -> None:
    """Show the entries of a state, or one of them; may be used during a run.

    A state with parts needs one; without it, its parts are shown. A sorted set begins with its best scores, so
    --limit 10 shows the top ten; of a HyperLogLog its count is shown. Which entries of a hash or set a limit leaves
    is up to the server.
    """
    server = typed.choice()
    with server.store(topology_id) as store:
        chosen = chosen_state(store.records(), _text_of(state))
        if field is not None:
            _show(field_line(store.records(), chosen, _text_of(field)), as_json=as_json, alone=True)
            return
        for place, line in enumerate(lines_of_state(store.records(), chosen, is_raw=raw, from_lowest=lowest)):
            if place == limit:
                say(f"there is more than these {limit:,}; raise --limit, or name a FIELD", to=sys.stderr)
                return
            _show(line, as_json=as_json)


def _text_of(argument: str) -> str:
    """Returns the typed text, which is UTF-8 even in another locale, where its bytes arrive as surrogates."""
    try:
        return argument.encode("utf-8", "surrogateescape").decode()
    except UnicodeError:
        raise TopologyError(f"{argument!r} is not valid UTF-8; names of fields and parts have to be") from None


@app.command("export")
@command
def export_states(
    *,
    topology_id: TopologyId,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write here, and only once it is whole.  [default: -]"),
    ] = None,
    typed: ServerOptions,
) -> None:
    """Write state and position as JSON Lines, all as of one committed transaction.

    Up to 100,000 entries are read at one moment, even while a run commits. More are read piece by piece, and again if a
    run has written meanwhile; stop it, if that never ends.
    """
    server = typed.choice()
    with server.store(topology_id) as store, _destination(output) as out:
        committed_txid, line_count = export_state(store.records(), out)
    say(
        f"exported topology {topology_id!r} as of txid {committed_txid:,}: {counted(line_count, 'line')}"
        f"{f' in {str(output)!r}' if output else ''}",
        to=sys.stderr,
    )


@app.command("import")
@command
def import_states(
    *,
    topology_id: TopologyId,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `txbatch state export` has written.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Delete what the topology holds now, in the same step.")
    ] = False,
    fence: Annotated[
        bool, typer.Option("--fence", help="Do so even if it is running: that run stops with exit code 3.")
    ] = False,
    rename: Annotated[bool, typer.Option("--rename", help="Accept an export of another topology id.")] = False,
    shards: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, max=SHARDS_MAX, help="Spread it over N shards.  [default: as it was exported]"
        ),
    ] = None,
    typed: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Put an export back: state and position together, or nothing.

    The next run continues after the last transaction of the export, and reads again what had been read since. Its input
    must still have that. The whole file is checked before the server is changed.
    """
    server = typed.choice()
    with _opened(file) as source:
        export = checked_export(source)
        if export.topology_id != topology_id and not rename:
            raise TopologyError(
                f"{str(file)!r} is an export of topology {export.topology_id!r}, not of {topology_id!r}; give "
                "--rename if that is what you want"
            ).about(Trouble.IMPORT_REFUSED)
        with server.store(topology_id, may_create=True) as store:
            store.check_server(fields_expire=any(state.fields_expire for state in export.states.values()))
            export = export if shards is None else export.over(shards)
            target = store.importer(export.shard_count)
            if target.existing() and not replace:
                raise TopologyError(
                    f"topology {topology_id!r} exists on {server}; give --replace to delete what it holds"
                ).about(Trouble.IMPORT_REFUSED)
            if store.connected_runs() and not fence:
                raise TopologyError(
                    f"topology {topology_id!r} is running, and an import would take it over; stop that run, or "
                    "give --fence"
                ).about(Trouble.IMPORT_REFUSED)
            source.seek(0)
            replaced = import_state(target, export, source, generation=secrets.token_hex(16), replaces=replace)
    if as_json:
        fields = {"topology": topology_id, "committed": export.committed_txid, "lines": export.line_count}
        say_json({**fields, "replaced_keys": replaced, "left_keys": target.left})
    else:
        gone = f", {counted(replaced, 'key')} replaced" if replaced else ""
        say(
            f"topology {topology_id!r} is as of txid {export.committed_txid:,} on {server}: "
            f"{counted(export.line_count, 'line')} put in place{gone}; its next run continues from there"
            f"{keys_left(target.left)}"
        )


@app.command("rename")
@command
def rename_states(
    *,
    topology_id: TopologyId,
    old: Annotated[str, typer.Argument(metavar="OLD", help="The state, without a part.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")],
    typed: ServerOptions,
) -> None:
    """Give a state another name: all its parts and its record in one step, while no run owns the topology.

    Then give it that name in the code. Everything that the topology holds is copied, so it takes as long as an export
    and an import.
    """
    server = typed.choice()
    with server.store(topology_id) as store:
        if store.connected_runs():
            raise TopologyError(f"topology {topology_id!r} is running; stop that run before you rename a state of it")
        committed = rename_state(store.records(), store.importer(), old, new, generation=secrets.token_hex(16))
    say(f"state {old!r} of topology {topology_id!r} is called {new!r} now, as of txid {committed:,}")


@app.command("redo")
@command
def redo_states(
    *,
    topology_id: TopologyId,
    state: Annotated[str, typer.Argument(metavar="STATE[:PART]", help="As in its key: counts, or views:2026-11-21.")],
    factory: Factory,
    parameters: Parameters = None,
    typed: ServerOptions,
    engine: EngineOptions,
) -> None:
    """Compute a state, or one part, again from the input, and put it in place in one step, while no run owns it.

    For a part that went wrong, and for a state that was added later: then it holds what all transactions before would
    have written. The whole input is read again, on a private scratch server; everything else stays as it is.
    """
    server = typed.choice()
    with user_output_aside():
        topology, runner = repeatable(topology_id, factory, parameters, engine)
        with server.store(topology_id) as store:
            if store.connected_runs():
                raise TopologyError(f"topology {topology_id!r} is running; stop that run before you redo a state of it")
            redone = redo_state(
                store.records(),
                store.importer(),
                topology,
                _text_of(state),
                generation=secrets.token_hex(16),
                run_to=runner,
                server=scratch_server,
            )
    say(f"state {state!r} of topology {topology_id!r} is computed again, as of txid {redone.committed:,}")
    if redone.unkept:
        say(
            f"NOT KEPT: {counted(redone.unkept, 'tuple')} became dead letters in the computation and not in the runs, "
            "so they are in no list; to have them, run the topology under another id"
        )


def _show(line: dict[str, Any], *, as_json: bool, alone: bool = False) -> None:
    if as_json:
        say_json(line)
        return
    head = ("state",) if line.keys() == {"state", "part"} else ("state", "part")
    values = [value for name, value in line.items() if name not in {*head, FIELD_EXPIRES}]
    shown = values[-1:] if alone else values
    if FIELD_EXPIRES in line and not alone:
        shown = [*shown, f"until {moment(line[FIELD_EXPIRES] / 1000)}"]
    say("\t".join(printable(value) if isinstance(value, str) else json_line(value) for value in shown))


@contextmanager
def _destination(output: Path | None) -> Iterator[IO[bytes]]:
    """Yields a file that can be rewritten from its start; its content becomes visible only if the block succeeds."""
    if output is not None and output.is_dir():
        raise TopologyError(f"{str(output)!r} cannot be written: it is a folder; name a file")
    if output is None or (output.exists() and not output.is_file()):  # a pipe or a device cannot be replaced
        with tempfile.TemporaryFile() as spool, nullcontext() if output is None else output.open("wb") as target:
            yield spool
            spool.seek(0)
            if target is None:
                copy_out(spool)
            else:
                shutil.copyfileobj(spool, target)
        return
    output = output.resolve()
    try:
        written = tempfile.NamedTemporaryFile(dir=output.parent, prefix=f".{output.name}.", delete=False)  # noqa: SIM115
    except OSError as error:
        raise TopologyError(f"{str(output)!r} cannot be written: {error.strerror}") from error
    try:
        with written:
            yield written
            written.flush()
            os.fsync(written.fileno())
        Path(written.name).replace(output)
    finally:
        Path(written.name).unlink(missing_ok=True)


@contextmanager
def _opened(file: Path) -> Iterator[IO[bytes]]:
    try:
        opened = file.open("rb")
    except OSError as error:
        raise TopologyError(f"{str(file)!r} cannot be read: {error.strerror}") from error
    with opened:
        if not opened.seekable():
            raise StateRefusedError(f"{str(file)!r} can be read only once, but has to be checked first; give a file")
        yield opened
