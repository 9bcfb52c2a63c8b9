"""``txbatch prove``: plays a topology under faults in this process, and names what its code does wrong."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

import typer

from coordinator.operating.cli.command import AsJson, FactoryTarget, Parameters, command
from coordinator.operating.cli.exits import ExitCode
from coordinator.operating.cli.loading import load_topology
from coordinator.operating.cli.terminal import say, say_json, user_output_aside
from coordinator.plain.plain_topology import PlainTopology
from coordinator.proving.mistakes import BATCHES, Proof
from coordinator.proving.prove import SEEDS
from coordinator.proving.prove import prove as proof_of
from coordinator.topology.building.topology import Topology
from state.printable import counted

SENTENCE_EVERY_S = 5.0


@command
def prove(
    *,
    target: FactoryTarget,
    parameters: Parameters = None,
    seeds: Annotated[int, typer.Option(min=0, metavar="N", help="How many schedules to play.")] = SEEDS,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The first of them.")] = 0,
    minutes: Annotated[
        float | None, typer.Option(min=0, metavar="M", help="Begin no schedule after this time.", show_default=False)
    ] = None,
    batches: Annotated[int, typer.Option(min=1, metavar="N", help="Most transactions of the input to run.")] = BATCHES,
    keep_tasks: Annotated[bool, typer.Option("--keep-tasks", help="Keep the numbers of tasks as declared.")] = False,
    keep_hashes: Annotated[bool, typer.Option("--keep-hashes", help="Start no interpreter with other hashes.")] = False,
    exactly: Annotated[
        str | None,
        typer.Option(metavar="FAULTS", help="Faults that strike, as printed, instead of those that a seed draws."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Play a topology under faults, and name what its code does wrong.

    Every schedule has to leave the same state. Needs neither Spark nor a server. The input should be a small sample:
    your code runs many times, and what it does outside its state it does each time. Exit code 0: nothing was found; 1:
    a mistake, with the line and the schedule that shows it.
    """
    with user_output_aside():
        proof = proof_of(
            partial(_made, target, parameters),
            seeds=seeds,
            seed=seed,
            batches=batches,
            minutes=minutes,
            keep_tasks=keep_tasks,
            keep_hashes=keep_hashes,
            exactly=None if exactly is None else [fault for fault in exactly.split(",") if fault],
            on_seed=_progress(seeds),
        )
    again = _again(proof, target, parameters or ())
    if as_json:
        say_json(proof.to_json() | {"again": again}, default=repr)
    else:
        say(*proof.lines(), *(["", f"again: {again}"] if again else []))
    return ExitCode.DONE if proof.holds else ExitCode.JOB_FAILED


def _made(target: str, parameters: Sequence[str] | None) -> Topology | PlainTopology:
    return load_topology(target, parameters)[0]


def _progress(seeds: int) -> Callable[[int], None]:
    """Returns a function to call after each seed; it prints at intervals how many seeds were played."""
    played, said_s = 0, time.monotonic()

    def progress(_seed: int) -> None:
        nonlocal played, said_s
        played += 1
        if time.monotonic() - said_s > SENTENCE_EVERY_S:
            said_s = time.monotonic()
            say(f"{played:,} of {counted(seeds, 'seed')} played, all the same so far", to=sys.stderr, flush=True)

    return progress


def _again(proof: Proof, target: str, parameters: Sequence[str]) -> str:
    """Returns the command that plays the failing schedule again, "" if there is none."""
    if not proof.again:
        return ""
    words = ["txbatch", "prove", target, *(word for each in parameters for word in ("-p", each))]
    for name, value in proof.again.items():
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            words.append(",".join(value) if isinstance(value, list) else str(value))
    return shlex.join(words)
