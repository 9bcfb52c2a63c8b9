"""``txbatch verify``: whether what a server holds of a topology is whole, and with a refold whether it is right."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer

from coordinator.building.topology import Topology
from coordinator.cli.command_options import (
    AllowPlaintext,
    AsJson,
    DataDir,
    Debug,
    Parameters,
    Redis,
    SparkConf,
    SparkMaster,
    TopologyId,
    server_of_command,
)
from coordinator.cli.exits import ExitCode
from coordinator.cli.loading import load_factory, make_topology
from coordinator.cli.parameters import parse_pairs
from coordinator.cli.streams.terminal import say, say_json
from coordinator.cli.suggestions import lines_of, server_options
from coordinator.inspection.finding import Weight, count_of
from coordinator.inspection.verify.refold import Runner, on_spark, refold, refuse_unrepeatable, scratch_server
from coordinator.inspection.verify.verifier import Refold, Verification, Verifier
from coordinator.server_choice import ServerChoice
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


def verify(
    *,
    topology_id: TopologyId,
    target: Target = None,
    parameters: Parameters = None,
    redis: Redis = None,
    data_dir: DataDir = None,
    allow_plaintext: AllowPlaintext = False,
    master: SparkMaster = "local[*]",
    conf: SparkConf = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check that what is stored of a topology is undamaged; changes nothing, and may be used during a run.

    Exit code 0: no damage found. 4: damage found. The last lines say what this can find, and what it cannot.
    """
    with server_of_command(redis, data_dir, allow_plaintext=allow_plaintext, debug=debug) as server:
        # standard output is for the result: what user code prints goes to standard error
        with contextlib.redirect_stdout(sys.stderr):
            repeated = _to_refold(topology_id, target, parameters or (), master, conf or ())
            verdict = _verified(server, topology_id, repeated)
        if as_json:
            say_json(_plain(verdict))
        else:
            say(*_shown(verdict, server, server_options(redis, data_dir)))
    raise typer.Exit(ExitCode.DONE if verdict.is_sound else ExitCode.STATE)


def _verified(server: ServerChoice, topology_id: str, repeated: tuple[Topology, Refold] | None) -> Verification:
    with server.store(topology_id) as store:
        verifier = Verifier(store.records())
        return verifier.verify() if repeated is None else verifier.verify(*repeated)


def _to_refold(
    topology_id: str, target: str | None, parameters: Sequence[str], master: str, conf: Sequence[str]
) -> tuple[Topology, Refold] | None:
    """Returns the topology to refold and what refolds it, None without ``--refold``."""
    if target is None:
        if parameters:
            raise TopologyError("-p is for the factory of --refold, which was not given; leave it out, or give both")
        return None
    topology, module_name = _repeatable(topology_id, target, parameters)
    runner: Runner = on_spark(master, parse_pairs("--conf", conf), module_name)
    return topology, partial(refold, topology=topology, run_to=runner, server=scratch_server)


def _repeatable(topology_id: str, target: str, parameters: Sequence[str]) -> tuple[Topology, str]:
    factory, module_name = load_factory(target)
    topology = make_topology(factory, target, parse_pairs("-p", parameters))
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


def _shown(verdict: Verification, server: ServerChoice, options: str) -> list[str]:
    failed, warned = (count_of(verdict.findings, weight) for weight in (Weight.FAIL, Weight.WARN))
    said = f"{counted(failed, 'fault')} found" if failed else "no damage found"
    said += f", {counted(warned, 'warning')}" if warned else ""
    return [
        f"{verdict.topology_id} on {server}",
        *lines_of(verdict.findings, options),
        f"{verdict.topology_id}: {said}",
        *verdict.can_and_cannot,
    ]
