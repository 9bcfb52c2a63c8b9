"""``txbatch dead-letters list|export|republish|drop``: the tuples that a topology has refused."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from coordinator.operating.cli.command import (
    AsJson,
    ChangedTarget,
    EngineOptions,
    Parameters,
    ServerOptions,
    TopologyId,
    Yes,
    command,
    command_group,
)
from coordinator.operating.cli.letter_json import json_of
from coordinator.operating.cli.parameters import parse_pairs
from coordinator.operating.cli.run_command import TypedRun, execute, run_alone
from coordinator.operating.cli.run_options import RepublishOptions, RunArguments
from coordinator.operating.cli.terminal import ask, say, say_json
from coordinator.run_request import RunRequest
from coordinator.server_choice import ServerChoice
from coordinator.transactional.start.republish_choice import LetterNumber, LettersGiven, no_such_letter
from state.commits.dead_letters import DeadLetter
from state.errors import TopologyError
from state.printable import counted, one_line
from state.redis_owner.letter_pages import LetterPage, RedisDeadLetters

_LETTER_ID = re.compile(r"(\d{1,16})\.(\d{1,6})")
_VALUE_LIMIT = 200

Until = Annotated[
    int | None, typer.Option("--until", min=1, metavar="TXID", help="Leave out the letters of later transactions.")
]
After = Annotated[
    str | None,
    typer.Option("--after", metavar="ID", help="Start after this letter, as in 17.0, to see the next page."),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=10_000, metavar="N", help="Most letters to show.")]

Letters = Annotated[
    list[str] | None,
    typer.Option("--letter", metavar="ID", help="Only this letter, by its id as listed, as in 17.0; may be repeated."),
]

app = command_group("Look at the tuples that bolts and sources have refused, export, republish or drop them.")


@app.command("list")
@command
def list_letters(
    *,
    topology_id: TopologyId,
    after: After = None,
    until: Until = None,
    limit: Limit = 20,
    typed: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Show dead letters in order of transactions, all as of one committed transaction; may be used during a run."""
    server = typed.choice()
    cursor = None if after is None else _parsed("--after", after)
    with server.store(topology_id) as store:
        page = _known(store.dead_letters.page(after=cursor, until_txid=until, limit=limit), topology_id, server)
    if as_json:
        say_json(_plain(page, topology_id))
    else:
        say(*_lines(page, topology_id, server))


@app.command("export")
@command
def export_letters(*, topology_id: TopologyId, until: Until = None, typed: ServerOptions) -> None:
    """Print dead letters on standard output as JSON Lines, all as of one committed transaction.

    What is committed meanwhile is left out. Standard error says up to which transaction the letters are complete, and
    the command that deletes exactly these.
    """
    server = typed.choice()
    with server.store(topology_id) as store:
        _export(store.dead_letters, topology_id, server, until)


@app.command("republish", cls=RunArguments)
@command
def republish_letters(
    *,
    target: ChangedTarget,
    components: Annotated[
        list[str] | None,
        typer.Option("--component", metavar="ID", help="Only what this component refused; may be repeated."),
    ] = None,
    letters: Letters = None,
    parameters: Parameters = None,
    typed: ServerOptions,
    spark: EngineOptions,
    accepted: RepublishOptions,
    as_json: AsJson = False,
) -> int:
    """Publish dead letters as new transactions, each exactly once, through the components that refused them.

    This is a run of its own, which reads no new input, so the input need not be what it was, unless an earlier run has
    left transactions to finish; stop the topology's run first. A letter is deleted by the
    commit that publishes it; if it is refused again, it becomes a letter of the new transaction.
    """
    server = typed.choice()
    options, chosen = accepted.options(), _chosen(components or (), letters or ())
    given = parse_pairs("-p", parameters or ())
    request = RunRequest(server=server, **spark.asked(), options=options, republish_letters=chosen)
    return execute(TypedRun(target=target, parameters=given, request=request, as_json=as_json), runner=run_alone)


@app.command("drop")
@command
def drop_letters(
    *,
    topology_id: TopologyId,
    until: Annotated[
        int | None, typer.Option("--until", min=1, metavar="TXID", help="Delete the letters up to this transaction.")
    ] = None,
    letters: Letters = None,
    typed: ServerOptions,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete single dead letters, or those of all transactions up to a committed one; a run continues undisturbed."""
    server = typed.choice()
    if (until is None) is not bool(letters):
        raise TopologyError("give either --until TXID, or --letter ID for each letter to delete")
    numbers = sorted({_parsed("--letter", each) for each in letters or ()})
    which = ", ".join(f"{txid}.{number}" for txid, number in numbers) if until is None else f"up to txid {until:,}"
    with server.store(topology_id) as store:
        first = _known(store.dead_letters.page(until_txid=until, limit=1), topology_id, server)
        these = [_letter(store.dead_letters, topology_id, *number) for number in numbers]
        if not (yes or ask(f"delete the dead letters of {topology_id!r} {which}?")):
            raise TopologyError(f"the dead letters of topology {topology_id!r} were kept")
        if until is None:
            count = store.dead_letters.drop_these(these, generation=first.generation)
        else:
            count = store.dead_letters.drop(until_txid=until, generation=first.generation)
    if as_json:
        which_ones = (
            {"letters": [f"{txid}.{number}" for txid, number in numbers]} if until is None else {"until": until}
        )
        say_json({"topology": topology_id, **which_ones, "dropped": count})
    else:
        say(f"topology {topology_id!r}: {counted(count, 'dead letter')} {which} deleted on {server}")


def _export(letters: RedisDeadLetters, topology_id: str, server: ServerChoice, until: int | None) -> None:
    first = _known(letters.page(until_txid=until, limit=1), topology_id, server)
    last = first.committed_txid if until is None else min(until, first.committed_txid)
    count = 0
    for letter in letters.all(until_txid=last):
        say_json(json_of(letter))
        count += 1
    sys.stdout.flush()
    say(
        f"exported {counted(count, 'dead letter')} of topology {topology_id!r}, complete up to txid {last:,}; to "
        f"delete them: `txbatch dead-letters drop {topology_id} --until {last}`",
        to=sys.stderr,
    )


def _letter(stored: RedisDeadLetters, topology_id: str, txid: int, number: int) -> DeadLetter:
    """Returns one letter; raises if it is not stored, so that a mistyped id deletes nothing."""
    page = stored.page(after=(txid, number - 1), until_txid=txid, limit=1)
    if not page.letters or page.letters[0].number != number:
        raise no_such_letter(topology_id, (txid, number))
    return page.letters[0]


def _chosen(components: Sequence[str], letters: Sequence[str]) -> LettersGiven:
    if components and letters:
        raise TopologyError("--component and --letter exclude each other; give one of them")
    return [_parsed("--letter", each) for each in letters] or list(components) or "all"


def _known(page: LetterPage, topology_id: str, server: ServerChoice) -> LetterPage:
    if not page.generation:
        raise server.unknown_topology(topology_id)
    return page


def _parsed(option: str, letter_id: str) -> LetterNumber:
    found = _LETTER_ID.fullmatch(letter_id)
    if found is None:
        raise TopologyError(f"{option} {letter_id!r} is not the id of a dead letter; give one as listed, such as 17.0")
    return int(found[1]), int(found[2])


def _next_of(page: LetterPage) -> str | None:
    return None if page.is_last else page.letters[-1].letter_id


def _plain(page: LetterPage, topology_id: str) -> dict[str, Any]:
    return {
        "topology": topology_id,
        "committed": page.committed_txid,
        "stored": page.stored_count,
        "letters": [json_of(letter) for letter in page.letters],
        "next": _next_of(page),
    }


def _lines(page: LetterPage, topology_id: str, server: ServerChoice) -> list[str]:
    lines = [
        f"{topology_id} on {server}: {counted(page.stored_count, 'dead letter')}, committed up to txid "
        f"{page.committed_txid:,}"
    ]
    for letter in page.letters:
        lines += _lines_of(letter)
    following = _next_of(page)
    if following is not None:
        lines.append(f"more with --after {following}")
    return lines


def _lines_of(letter: DeadLetter) -> list[str]:
    refused = f"{letter.source_component}/{letter.stream_id}" if letter.stream_id else "never emitted"
    head = f"{letter.letter_id}  {letter.component_id}[{letter.task_index}] <- {refused}: {one_line(letter.reason)}"
    values = zip(letter.fields, letter.values, strict=True)
    return [head, *(f"    {one_line(name)} = {one_line(repr(value), _VALUE_LIMIT)}" for name, value in values)]
