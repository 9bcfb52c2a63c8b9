"""Starts the pulse of a run, with this machine's clocks and identity (driver)."""

from __future__ import annotations

import time

from coordinator.transactional.pulse.identity import identity_of_this_process
from coordinator.transactional.pulse.pulse_observer import PulseObserver
from coordinator.transactional.pulse.pulse_writer import PulseWriter
from state.records.run_pulse import to_json
from state.redis_topology.store import RedisStore


def pulse_observer(store: RedisStore, *, durability: str, history: int, master: str) -> PulseObserver:
    """Returns the observer that tells the pulse of a run; its writer starts once the run owns the topology.

    Args:
        store: of the run.
        durability: the level that the run waits for.
        history: how many transactions keep their story.
        master: Spark master.
    """

    def start_writer() -> PulseWriter:
        sender = store.pulse_sender()
        identity = identity_of_this_process(
            fence=sender.fence,
            started_at=time.time(),
            master=master,
            durability=durability,
            server_can_lose=store.durability.server_can_lose,
            history=history,
        )
        writer = PulseWriter(sender, to_json(identity), wall_clock=time.time, kept=history)
        writer.start()
        return writer

    return PulseObserver(start_writer, clock=time.monotonic, epoch_s=time.time() - time.monotonic())
