"""``txbatch doctor`` and ``txbatch verify``: print what an examination has found.

`doctor` examines server, Spark, machine and code before a run. `verify` examines a stored topology: whether it is whole
and, with a refold, whether it is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from coordinator.operating.cli.command import (
    AsJson,
    EngineOptions,
    Parameters,
    ServerOptions,
    TopologyId,
    command,
)
from coordinator.operating.cli.exits import ExitCode
from coordinator.operating.cli.loading import load_topology
from coordinator.operating.cli.terminal import say, say_json, user_output_aside
from coordinator.operating.inspection.examination import examine
from coordinator.operating.inspection.finding import Finding, Weight, count_of, has_failed
from coordinator.operating.inspection.verify.refold import (
    Runner,
    on_this_machine,
    refold,
    refuse_unrepeatable,
    scratch_server,
)
from coordinator.operating.inspection.verify.verifier import Refold, Verification, Verifier
from coordinator.server_choice import ServerChoice
from coordinator.topology.building.topology import Topology
from coordinator.transactional.options import EngineName
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
    spark: EngineOptions,
    with_spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Whether to start Spark and try a job.")
    ] = True,
    as_json: AsJson = False,
) -> int:
    """Examine server, Spark, machine and code before a run; changes nothing. Exit code 0: fit, 1: something fails.

    With --engine local Spark is left out, as with --no-spark. Without MODULE:FACTORY the rights are asked for keys of a
    topology that does not exist.
    """
    if target is None and parameters:
        raise TopologyError("-p is for a factory, which was not given; leave it out, or give MODULE:FACTORY")
    load = None if target is None else partial(load_topology, target, parameters)
    has_spark = with_spark and spark.engine == EngineName.SPARK
    server, master, conf = typed.choice(), spark.master if has_spark else None, spark.settings()
    with user_output_aside():
        findings = examine(server, master=master, conf=conf, target=target or "", load=load)
    failed, warned = (count_of(findings, weight) for weight in (Weight.FAIL, Weight.WARN))
    if as_json:
        say_json({"is_fit": not has_failed(findings), "findings": [finding.to_dict() for finding in findings]})
    else:
        counts = f"{counted(len(findings), 'finding')}, {counted(warned, 'warning')}, {counted(failed, 'failure')}"
        say(*_finding_lines(findings, typed.completed), f"doctor: {counts}")
    return ExitCode.JOB_FAILED if has_failed(findings) else ExitCode.DONE


def _finding_lines(findings: Iterable[Finding], completed: Callable[[str], str]) -> Iterator[str]:
    """Yields the lines that show the findings.

    `completed` completes the commands that a remedy suggests; see `ServerOptions.completed`.
    """
    for finding in findings:
        yield one_line(f"{finding.weight.upper():<5} {finding.subject}: {finding.found}", SENTENCE_LIMIT)
        if finding.weight is not Weight.OK:
            yield f"      why: {finding.why}"
            yield one_line(f"      do:  {completed(finding.remedy)}", SENTENCE_LIMIT)


RefoldTarget = Annotated[
    str | None,
    typer.Option(
        "--refold",
        metavar="MODULE:FACTORY",
        help="Also compute the state again from the input, on a private scratch server, and compare every state.",
    ),
]


@command
def verify(
    *,
    topology_id: TopologyId,
    target: RefoldTarget = None,
    parameters: Parameters = None,
    typed: ServerOptions,
    spark: EngineOptions,
    as_json: AsJson = False,
) -> int:
    """Check that the records of a topology are undamaged; changes nothing, and may be used during a run.

    Exit code 0: no damage found. 4: damage found. The last lines say what this can find, and what it cannot.
    """
    server = typed.choice()
    with user_output_aside():
        repeated = _to_refold(topology_id, target, parameters, spark)
        with server.store(topology_id) as store:
            verifier = Verifier(store.records())
            found = verifier.verify() if repeated is None else verifier.verify(*repeated)
    if as_json:
        say_json(_plain_verification(found))
    else:
        say(*_verify_lines(found, server, typed.completed))
    return ExitCode.DONE if found.is_sound else ExitCode.STATE


def _to_refold(
    topology_id: str, target: str | None, parameters: Sequence[str] | None, engine: EngineOptions
) -> tuple[Topology, Refold] | None:
    """Returns the topology to refold and the function that refolds it; None without ``--refold``."""
    if target is None:
        if parameters:
            raise TopologyError("-p is for the factory of --refold, which was not given; leave it out, or give both")
        return None
    topology, runner = repeatable(topology_id, target, parameters, engine)
    return topology, partial(refold, topology=topology, run_to=runner, server=scratch_server)


Factory = Annotated[
    str, typer.Option("--factory", metavar="MODULE:FACTORY", help="Makes the topology, as for `txbatch run`.")
]


def repeatable(
    topology_id: str, target: str, parameters: Sequence[str] | None, engine: EngineOptions
) -> tuple[Topology, Runner]:
    """Returns the topology of a factory, whose input is to be read again, and what runs it."""
    topology, module_name = load_topology(target, parameters)
    if not isinstance(topology, Topology):
        raise TopologyError(f"{target!r} makes a plain topology, which has no state to compute again")
    if topology.topology_id != topology_id:
        raise TopologyError(
            f"{target!r} makes topology {topology.topology_id!r}, not {topology_id!r}; give the parameters of its runs"
        )
    refuse_unrepeatable(topology)
    return topology, on_this_machine(module_name, **engine.asked())


def _plain_verification(found: Verification) -> dict[str, Any]:
    finds, finds_not = found.can_and_cannot
    return {
        "topology": found.topology_id,
        "committed": found.committed,
        "is_sound": found.is_sound,
        "findings": [finding.to_dict() for finding in found.findings],
        "finds": finds,
        "finds_not": finds_not,
    }


def _verify_lines(found: Verification, server: ServerChoice, completed: Callable[[str], str]) -> list[str]:
    failed, warned = (count_of(found.findings, weight) for weight in (Weight.FAIL, Weight.WARN))
    summary = f"{counted(failed, 'fault')} found" if failed else "no damage found"
    summary += f", {counted(warned, 'warning')}" if warned else ""
    return [
        f"{found.topology_id} on {server}",
        *_finding_lines(found.findings, completed),
        f"{found.topology_id}: {summary}",
        *found.can_and_cannot,
    ]
