"""``txbatch doctor``: whether server, Spark, machine and code are fit for a run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from coordinator.cli.command_options import (
    AllowPlaintext,
    AsJson,
    DataDir,
    Debug,
    Parameters,
    Redis,
    SparkConf,
    SparkMaster,
    command_errors,
)
from coordinator.cli.exits import ExitCode
from coordinator.cli.loading import load_factory, make_topology
from coordinator.cli.parameters import parse_pairs
from coordinator.cli.streams.terminal import say, say_json
from coordinator.cli.suggestions import lines_of, server_options
from coordinator.inspection.doctor.examination import AnyTopology, Patient, examine
from coordinator.inspection.finding import Finding, Weight, count_of, has_failed
from coordinator.server_choice import choose_server
from state.errors import TopologyError
from state.printable import counted

Target = Annotated[
    str | None, typer.Argument(metavar="[MODULE:FACTORY]", help="Topology to examine too, as for `txbatch run`.")
]


def doctor(
    *,
    target: Target = None,
    parameters: Parameters = None,
    redis: Redis = None,
    data_dir: DataDir = None,
    allow_plaintext: AllowPlaintext = False,
    master: SparkMaster = "local[*]",
    conf: SparkConf = None,
    with_spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Whether to start Spark and try a job.")
    ] = True,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Examine server, Spark, machine and code before a run; changes nothing. Exit code 0: fit, 1: something fails.

    Without MODULE:FACTORY the rights are asked for keys of a topology that does not exist.
    """
    with command_errors(debug=debug, redis_url=redis, data_dir=data_dir):
        if target is None and parameters:
            raise TopologyError("-p is for a factory, which was not given; leave it out, or give MODULE:FACTORY")
        server = choose_server(redis, data_dir, allow_plaintext=allow_plaintext)
        settings = parse_pairs("--conf", conf or ())
        load = None if target is None else partial(_made, target, parameters or ())
        patient = Patient(server, master if with_spark else None, settings, target or "", load)
        # standard output is for the result: what user code prints goes to standard error
        with contextlib.redirect_stdout(sys.stderr):
            findings = examine(patient)
        if as_json:
            say_json({"is_fit": not has_failed(findings), "findings": [finding.to_dict() for finding in findings]})
        else:
            say(*_shown(findings, server_options(redis, data_dir)))
    raise typer.Exit(ExitCode.JOB_FAILED if has_failed(findings) else ExitCode.DONE)


def _made(target: str, parameters: Sequence[str]) -> tuple[AnyTopology, str]:
    factory, module_name = load_factory(target)
    return make_topology(factory, target, parse_pairs("-p", parameters)), module_name


def _shown(findings: Sequence[Finding], options: str) -> list[str]:
    failed, warned = (count_of(findings, weight) for weight in (Weight.FAIL, Weight.WARN))
    said = f"doctor: {counted(len(findings), 'finding')}, {counted(warned, 'warning')}, {counted(failed, 'failure')}"
    return [*lines_of(findings, options), said]
