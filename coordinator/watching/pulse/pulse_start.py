"""Starts the pulse of a run, with this machine's clocks and identity (driver)."""

from __future__ import annotations

import getpass
import os
import platform
import socket
import time
from importlib.metadata import PackageNotFoundError, version

from coordinator.watching.pulse.pulse_observer import PulseObserver
from coordinator.watching.pulse.pulse_writer import PulseWriter
from state.records.run_pulse import RunIdentity, to_json
from state.redis_admin.pulse import PulseSender
from state.redis_client.presence import pid_space
from state.redis_owner.store import RedisStore


def pulse_observer(store: RedisStore, *, durability: str, history: int, master: str) -> PulseObserver:
    """Returns the observer that writes the pulse of a run; its writer starts once the run owns the topology.

    Args:
        store: the run's store.
        durability: the durability level that the run waits for.
        history: how many transactions keep a story.
        master: the Spark master.
    """

    def start_writer() -> PulseWriter:
        sender = PulseSender(store)
        versions = {"python": platform.python_version()}
        versions |= {name: found for name in ("pyspark", "txbatch") if (found := _version(name))}
        identity = RunIdentity(
            fence=sender.fence,
            host=socket.gethostname(),
            pid=os.getpid(),
            user=_user(),
            started_at=round(time.time(), 3),
            versions=versions,
            master=master,
            durability=durability,
            server_can_lose=store.durability.server_can_lose,
            history=history,
            pid_space=pid_space(),
        )
        writer = PulseWriter(sender, to_json(identity), wall_clock=time.time, kept=history)
        writer.start()
        return writer

    return PulseObserver(start_writer, clock=time.monotonic, epoch_s=time.time() - time.monotonic())


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return str(os.getuid())
