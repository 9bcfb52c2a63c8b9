"""``txbatch quarantine list|show|republish|drop``: the batches that a run has set aside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from coordinator.operating.cli.command import (
    AsJson,
    ChangedTarget,
    Describing,
    EngineOptions,
    Parameters,
    ServerOptions,
    TopologyId,
    Yes,
    command,
    command_group,
)
from coordinator.operating.cli.loading import read_words
from coordinator.operating.cli.parameters import parse_pairs
from coordinator.operating.cli.run_command import TypedRun, execute, run_alone
from coordinator.operating.cli.run_lines import moment
from coordinator.operating.cli.run_options import DEFAULTS, MaxAttempts, RepublishOptions, RunArguments
from coordinator.operating.cli.terminal import ask, say, say_json
from coordinator.operating.inspection.wording import WordsByScope, words_or_values
from coordinator.run_request import RunRequest
from coordinator.server_choice import ServerChoice
from coordinator.transactional.machine.metadata_log import COORDINATOR_SCOPE
from coordinator.transactional.start.republish_choice import records_of
from state.commits.quarantine import QuarantineRecord
from state.errors import TopologyError
from state.printable import block, counted, one_line
from state.redis_admin.topology import RedisTopology

Txid = Annotated[int, typer.Argument(metavar="TXID", min=1, help="The txid under which the batch was set aside.")]
Txids = Annotated[
    list[int] | None, typer.Option("--txid", metavar="TXID", min=1, help="A quarantined txid; may be repeated.")
]
All = Annotated[bool, typer.Option("--all", help="All quarantined batches.")]

app = command_group("Look at quarantined batches, republish or drop them.")


@app.command("list")
@command
def list_batches(*, topology_id: TopologyId, typed: ServerOptions, as_json: AsJson = False) -> None:
    """List the quarantined batches of a topology."""
    server = typed.choice()
    records = _records(topology_id, server)
    if as_json:
        say_json({"topology": topology_id, "quarantined": [_brief(record) for record in records]})
    else:
        say(*map(_line, records) if records else [f"topology {topology_id!r} has no quarantined batches"])


@app.command()
@command
def show(
    *,
    topology_id: TopologyId,
    txid: Txid,
    factory: Describing = None,
    parameters: Parameters = None,
    typed: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Show one quarantined batch: what failed, where, and what re-creates the batch."""
    server = typed.choice()
    (record,) = records_of(topology_id, _records(topology_id, server), [txid])
    batch, source = record.batch, record.source_fingerprint
    metadata = {COORDINATOR_SCOPE: batch.metadata, **batch.positions}
    words = read_words(topology_id, source, metadata, factory, parameters)
    if as_json:
        say_json(_whole(record, words), default=repr)
    else:
        say(*_record_lines(record, words))


@app.command(cls=RunArguments)
@command
def republish(
    *,
    target: ChangedTarget,
    txids: Txids = None,
    republish_all: All = False,
    parameters: Parameters = None,
    typed: ServerOptions,
    spark: EngineOptions,
    max_attempts: MaxAttempts = DEFAULTS.max_attempts,
    accepted: RepublishOptions,
    as_json: AsJson = False,
) -> int:
    """Publish quarantined batches as new transactions, each exactly once.

    This is a run of its own, which reads no new input; stop the topology's run first. A batch leaves the quarantine
    in the same step that publishes it. If it fails again, the run halts and the batch stays where it is.
    """
    server = typed.choice()
    options, wanted = accepted.options(max_attempts=max_attempts), _wanted(txids, is_all=republish_all)
    given = parse_pairs("-p", parameters or ())
    request = RunRequest(server=server, **spark.asked(), options=options, republish=wanted)
    return execute(TypedRun(target=target, parameters=given, request=request, as_json=as_json), runner=run_alone)


@app.command("drop")
@command
def drop_batches(
    *,
    topology_id: TopologyId,
    txids: Txids = None,
    drop_all: All = False,
    typed: ServerOptions,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Give quarantined batches up for good: they never reach the state. The topology may be running."""
    server = typed.choice()
    wanted = _wanted(txids, is_all=drop_all)
    with server.store(topology_id) as store:
        records = records_of(topology_id, _found(store, server), None if isinstance(wanted, str) else wanted)
        dropped = _dropped(store, records, None if yes else ask)
    if as_json:
        say_json({"topology": topology_id, "dropped": dropped})
    else:
        shown = ", ".join(map(str, dropped))
        say(f"{counted(len(dropped), 'record')} dropped from the quarantine of {topology_id!r}: txid {shown}")


def _records(topology_id: str, server: ServerChoice) -> list[QuarantineRecord]:
    with server.store(topology_id) as store:
        return _found(store, server)


def _found(store: RedisTopology, server: ServerChoice) -> list[QuarantineRecord]:
    topology_id = store.keys.topology_id
    if not store.has_records():
        raise server.unknown_topology(topology_id)
    return store.quarantined()


def _wanted(txids: Sequence[int] | None, *, is_all: bool) -> Sequence[int] | str:
    if bool(txids) == is_all:
        raise TopologyError("say which batches: give --txid TXID, once or several times, or --all")
    return "all" if is_all else txids or ()


def _dropped(
    store: RedisTopology, records: Sequence[QuarantineRecord], confirm: Callable[[str], bool] | None
) -> list[int]:
    """Drops the records and returns their txids.

    Raises TopologyError if the user does not confirm, or a record was dropped or republished since it was read.
    """
    topology_id = store.keys.topology_id
    shown = ", ".join(str(record.txid) for record in records)
    question = f"give up the quarantined {'batch' if len(records) == 1 else 'batches'} of txid {shown} for good?"
    if confirm is not None and not confirm(question):
        raise TopologyError(f"the quarantine of topology {topology_id!r} was kept")
    dropped: list[int] = []
    for record in records:
        if not store.discard(record):
            so_far = f"; dropped before it: {', '.join(map(str, dropped))}" if dropped else ""
            raise TopologyError(
                f"quarantined txid {record.txid} of topology {topology_id!r} is no longer there: it was dropped or "
                f"republished meanwhile{so_far}"
            )
        dropped.append(record.txid)
    return dropped


def _line(record: QuarantineRecord) -> str:
    cause = record.cause
    return (
        f"txid {record.txid:>6,}  {moment(record.set_aside_at_s)}  {cause.place:<20}  "
        f"{counted(cause.attempt_count, 'attempt')}  {one_line(cause.reason, 200)}"
    )


def _record_lines(record: QuarantineRecord, words: WordsByScope) -> list[str]:
    batch, cause = record.batch, record.cause
    metadata = {COORDINATOR_SCOPE: batch.metadata, **batch.positions}
    lines = [
        f"txid {record.txid:,}, quarantined {moment(record.set_aside_at_s)}",
        f"  failed in         {cause.place}, {counted(cause.attempt_count, 'attempt')}",
        f"  reason            {one_line(cause.reason, 1_000)}",
        *([f"  tuple             {one_line(cause.tuple_text, 1_000)}"] if cause.tuple_text else []),
        f"  number            {batch.number:,} of the spout's batches",
        *(f"  contained         {line}" for line in words_or_values(metadata, words)),
        *_by_scope("began at", batch.starts),
        f"  topology          {record.topology_fingerprint}",
        f"  source            {one_line(record.source_fingerprint, 1_000)}",
    ]
    traceback = block(cause.traceback_text, line_limit=1_000, lines_max=200) if cause.traceback_text else ""
    return [*lines, *(f"  | {line}" for line in traceback.rstrip().splitlines())]


def _by_scope(name: str, positions: Mapping[str, Any]) -> list[str]:
    return [f"  {name:<17} {scope}: {one_line(repr(value), 500)}" for scope, value in sorted(positions.items())]


def _brief(record: QuarantineRecord) -> dict[str, Any]:
    cause = record.cause
    return {
        "txid": record.txid,
        "time": datetime.fromtimestamp(record.set_aside_at_s, UTC).strftime("%Y-%m-%d %H:%M:%SZ"),
        "component": cause.component_id,
        "task": cause.task_index,
        "attempts": cause.attempt_count,
        "reason": cause.reason,
    }


def _whole(record: QuarantineRecord, words: WordsByScope) -> dict[str, Any]:
    return {
        **_brief(record),
        "tuple": record.cause.tuple_text,
        "traceback": record.cause.traceback_text,
        "contained": dict(words),
        "batch": asdict(record.batch),
        "topology_fingerprint": record.topology_fingerprint,
        "source_fingerprint": record.source_fingerprint,
    }
