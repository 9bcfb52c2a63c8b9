"""Lets a command run a topology only if nobody else does: a replay must not take a running topology over."""

from __future__ import annotations

from typing import Any

from coordinator.building.topology import Topology
from coordinator.cli.run_command import Runner
from coordinator.server_choice import ServerChoice
from coordinator.transactional.run_summary import RunStatistics
from state.errors import TopologyError
from state.troubles import Trouble


def alone(runner: Runner, server: ServerChoice) -> Runner:
    """Returns a runner that refuses a topology that is running, or was never started; called by commands that replay.

    Args:
        runner: runs the topology, as `coordinator.run` does.
        server: holds its state.
    """

    def run_alone(topology: Topology, **arguments: Any) -> RunStatistics:
        topology_id = topology.topology_id
        with server.store(topology_id) as store:
            if not store.has_records():
                raise TopologyError(
                    f"topology {topology_id!r} is not stored on {server}; check the topology id and the server"
                ).about(Trouble.UNKNOWN_TOPOLOGY)
            is_running = store.connected_runs() > 0
        if is_running:
            raise TopologyError(
                f"topology {topology_id!r} is running, and a replay would take it over; stop that run, "
                "replay, and start it again"
            )
        return runner(topology, **arguments)

    return run_alone
