"""``txbatch verify``: whether what a server holds of a topology is whole, and with a refold whether it is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import typer

from coordinator.operating.cli.command import command
from coordinator.operating.cli.command_options import AsJson, Parameters, ServerOptions, SparkOptions, TopologyId
from coordinator.operating.cli.commands.doctor import finding_lines
from coordinator.operating.cli.exits import ExitCode
from coordinator.operating.cli.loading import load_topology
from coordinator.operating.cli.terminal import say, say_json, user_output_aside
from coordinator.operating.inspection.finding import Weight, count_of
from coordinator.operating.inspection.verify.refold import Runner, on_spark, refold, refuse_unrepeatable, scratch_server
from coordinator.operating.inspection.verify.verifier import Refold, Verification, Verifier
from coordinator.server_choice import ServerChoice
from coordinator.topology.building.topology import Topology
from state.errors import TopologyError
from state.printable import counted

Target = Annotated[
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
    target: Target = None,
    parameters: Parameters = None,
    typed: ServerOptions,
    spark: SparkOptions,
    as_json: AsJson = False,
) -> int:
    """Check that what is stored of a topology is undamaged; changes nothing, and may be used during a run.

    Exit code 0: no damage found. 4: damage found. The last lines say what this can find, and what it cannot.
    """
    server = typed.choice()
    with user_output_aside():
        repeated = _to_refold(topology_id, target, parameters, spark)
        verdict = _verified(server, topology_id, repeated)
    if as_json:
        say_json(_plain(verdict))
    else:
        say(*_shown(verdict, server, typed.completed))
    return ExitCode.DONE if verdict.is_sound else ExitCode.STATE


def _verified(server: ServerChoice, topology_id: str, repeated: tuple[Topology, Refold] | None) -> Verification:
    with server.store(topology_id) as store:
        verifier = Verifier(store.records())
        return verifier.verify() if repeated is None else verifier.verify(*repeated)


def _to_refold(
    topology_id: str, target: str | None, parameters: Sequence[str] | None, spark: SparkOptions
) -> tuple[Topology, Refold] | None:
    """Returns the topology to refold and what refolds it, None without ``--refold``."""
    if target is None:
        if parameters:
            raise TopologyError("-p is for the factory of --refold, which was not given; leave it out, or give both")
        return None
    topology, module_name = _repeatable(topology_id, target, parameters)
    runner: Runner = on_spark(spark.master, spark.settings(), module_name)
    return topology, partial(refold, topology=topology, run_to=runner, server=scratch_server)


def _repeatable(topology_id: str, target: str, parameters: Sequence[str] | None) -> tuple[Topology, str]:
    topology, module_name = load_topology(target, parameters)
    if not isinstance(topology, Topology):
        raise TopologyError(f"{target!r} makes a plain topology, which has no state to verify")
    if topology.topology_id != topology_id:
        raise TopologyError(
            f"{target!r} makes topology {topology.topology_id!r}, not {topology_id!r}; give the parameters of its runs"
        )
    refuse_unrepeatable(topology)
    return topology, module_name


def _plain(verdict: Verification) -> dict[str, Any]:
    finds, finds_not = verdict.can_and_cannot
    return {
        "topology": verdict.topology_id,
        "committed": verdict.committed,
        "is_sound": verdict.is_sound,
        "findings": [finding.to_dict() for finding in verdict.findings],
        "finds": finds,
        "finds_not": finds_not,
    }


def _shown(verdict: Verification, server: ServerChoice, completed: Callable[[str], str]) -> list[str]:
    failed, warned = (count_of(verdict.findings, weight) for weight in (Weight.FAIL, Weight.WARN))
    said = f"{counted(failed, 'fault')} found" if failed else "no damage found"
    said += f", {counted(warned, 'warning')}" if warned else ""
    return [
        f"{verdict.topology_id} on {server}",
        *finding_lines(verdict.findings, completed),
        f"{verdict.topology_id}: {said}",
        *verdict.can_and_cannot,
    ]
