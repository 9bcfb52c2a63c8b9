"""``txbatch doctor``: whether server, Spark, machine and code are fit for a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated

import typer

from coordinator.operating.cli.command import command
from coordinator.operating.cli.command_options import AsJson, Parameters, ServerOptions, SparkOptions
from coordinator.operating.cli.exits import ExitCode
from coordinator.operating.cli.loading import load_topology
from coordinator.operating.cli.terminal import say, say_json, user_output_aside
from coordinator.operating.inspection.doctor.examination import Patient, examine
from coordinator.operating.inspection.finding import Finding, Weight, count_of, has_failed
from state.errors import TopologyError
from state.printable import SENTENCE_LIMIT, counted, one_line

Target = Annotated[
    str | None, typer.Argument(metavar="[MODULE:FACTORY]", help="Topology to examine too, as for `txbatch run`.")
]


@command
def doctor(
    *,
    target: Target = None,
    parameters: Parameters = None,
    typed: ServerOptions,
    spark: SparkOptions,
    with_spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Whether to start Spark and try a job.")
    ] = True,
    as_json: AsJson = False,
) -> int:
    """Examine server, Spark, machine and code before a run; changes nothing. Exit code 0: fit, 1: something fails.

    Without MODULE:FACTORY the rights are asked for keys of a topology that does not exist.
    """
    if target is None and parameters:
        raise TopologyError("-p is for a factory, which was not given; leave it out, or give MODULE:FACTORY")
    load = None if target is None else partial(load_topology, target, parameters)
    master = spark.master if with_spark else None
    patient = Patient(typed.choice(), master, spark.settings(), target or "", load)
    with user_output_aside():
        findings = examine(patient)
    if as_json:
        say_json({"is_fit": not has_failed(findings), "findings": [finding.to_dict() for finding in findings]})
    else:
        say(*_shown(findings, typed.completed))
    return ExitCode.JOB_FAILED if has_failed(findings) else ExitCode.DONE


def finding_lines(findings: Iterable[Finding], completed: Callable[[str], str]) -> Iterator[str]:
    """Yields the lines that show the findings.

    `completed` completes the commands that a remedy suggests; see `ServerOptions.completed`.
    """
    for finding in findings:
        yield one_line(f"{finding.weight.upper():<5} {finding.subject}: {finding.found}", SENTENCE_LIMIT)
        if finding.weight is not Weight.OK:
            yield f"      why: {finding.why}"
            yield one_line(f"      do:  {completed(finding.remedy)}", SENTENCE_LIMIT)


def _shown(findings: Sequence[Finding], completed: Callable[[str], str]) -> list[str]:
    failed, warned = (count_of(findings, weight) for weight in (Weight.FAIL, Weight.WARN))
    said = f"doctor: {counted(len(findings), 'finding')}, {counted(warned, 'warning')}, {counted(failed, 'failure')}"
    return [*finding_lines(findings, completed), said]
