"""Starts the pulse of a run, with this machine's clocks and identity (driver)."""

from __future__ import annotations

import time

from coordinator.transactional.options import RunOptions
from coordinator.transactional.pulse.identity import identity_of_this_process
from coordinator.transactional.pulse.pulse_writer import PulseWriter
from coordinator.transactional.pulse.run_pulse_side import RunPulseSide
from state.records.run_pulse import to_json
from state.redis_topology.store import RedisStore


def observe_by_pulse(store: RedisStore, options: RunOptions, master: str) -> RunPulseSide:
    """Returns what observes a run and tells its pulse; called once the store is acquired.

    Args:
        store: owned by the run.
        options: of the run.
        master: Spark master.
    """
    sender, started_at = store.pulse_sender(), time.time()
    identity = identity_of_this_process(
        fence=sender.fence,
        started_at=started_at,
        master=master,
        durability=options.durability,
        server_can_lose=store.durability.server_can_lose,
        history=options.history,
    )
    writer = PulseWriter(sender, to_json(identity), wall_clock=time.time, kept=options.history)
    writer.start()
    return RunPulseSide(writer, clock=time.monotonic, epoch_s=started_at - time.monotonic())
