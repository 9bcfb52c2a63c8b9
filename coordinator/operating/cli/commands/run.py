"""``txbatch run``: runs a topology, on Spark or in this process."""

from __future__ import annotations

from typing import Annotated

import typer

from coordinator.operating.cli.command import AsJson, EngineOptions, LogOptions, Parameters, ServerOptions, command
from coordinator.operating.cli.parameters import parse_pairs
from coordinator.operating.cli.run_command import TypedRun, execute
from coordinator.operating.cli.run_options import EndOptions, LimitOptions, ObserverOptions, RunArguments
from coordinator.run_request import RunRequest

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=RunArguments)
@command
def run(
    *,
    target: Annotated[
        str,
        typer.Argument(metavar="MODULE:FACTORY", help="As in visits.topology:topology or word_count.py:topology."),
    ],
    parameters: Parameters = None,
    typed: ServerOptions,
    spark: EngineOptions,
    limits: LimitOptions,
    ending: EndOptions,
    log: LogOptions,
    observed: ObserverOptions,
    as_json: AsJson = False,
) -> int:
    """Run a topology: a finite input to its end, a continuous one until Ctrl-C or SIGTERM.

    The first signal lets the run commit what is in flight; a second one stops it at once. After SIGTERM the run
    ends within --stop-timeout. However a run ends, the next one continues after the last commit.

    A plain topology runs until Ctrl-C or SIGTERM, or with --stop-when-idle until its spouts are idle. It has no
    state and needs no server.
    """
    server, options, given = typed.choice(), limits.options(), parse_pairs("-p", parameters or ())
    request = RunRequest(server=server, **spark.asked(), options=options)
    return execute(
        TypedRun(
            target=target,
            parameters=given,
            request=request,
            as_json=as_json,
            is_logged=log.is_given,
            ending=ending,
            observed=observed,
        )
    )
