"""Writes and reads a run's reports about itself; `run_pulse` has their content.

A separate function writes the pulse: it checks that the run still owns the topology and changes no revision. So a
fenced run writes nothing, and pulses are not part of the owner's sequence of writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from state.errors import StateRefusedError
from state.keys import Keys
from state.records.run_pulse import NOW_FIELD, RUN_FIELD, SEEN_FIELD, RunPulse, pulse_of
from state.redis_client.connection import RedisConnection, text_of, texts_by_name
from state.redis_client.packed_call import Argument
from state.redis_client.presence import is_gone
from state.redis_owner.store import RedisStore

CALL_TIMEOUT_S = 0.5
"""How long one pulse is tried; the next one carries the same facts."""


class PulseSender:
    """Sends the pulses of the run that owns a topology, from one thread at a time; calls are given up early."""

    def __init__(self, store: RedisStore) -> None:
        client = store.connection.client
        self._connection = store.another_connection(client, timeout_s=CALL_TIMEOUT_S, revive=None)
        self._keys, owned = store.keys, store.ownership
        self._owner = [owned.fence, owned.generation]

    @property
    def fence(self) -> str:
        return self._owner[0]

    def send(self, fields: Mapping[str, str], stories: Iterable[tuple[int, str]] = (), *, kept: int = 0) -> bool:
        """Writes fields and stories (by ascending txids); returns whether the run still owns the topology.

        Stories are kept for the last `kept` transactions.
        """
        keys = self._keys
        arguments: list[Argument] = [*self._owner, str(kept), str(len(fields))]
        for item in fields.items():
            arguments += item
        for txid, story in stories:
            arguments += (str(txid), story)
        reply = self._connection.function("pulse", "3", keys.control, keys.pulse, keys.stories, *arguments)
        status, sentence = map(text_of, reply[:2])
        if status == "TYPE":
            raise StateRefusedError(f"pulse of topology {keys.topology_id!r} cannot be written: {sentence}")
        return status == "OK"


def read_pulse(connection: RedisConnection, keys: Keys, *, with_samples: bool = False) -> RunPulse | None:
    """Returns the pulse of the topology's last run, None without one; needs neither ownership nor the library."""
    if with_samples:
        return _looked_after(pulse_of(texts_by_name(connection.call_or_none("HGETALL", keys.pulse) or {})))
    names = (RUN_FIELD, NOW_FIELD, SEEN_FIELD)
    found = zip(names, connection.call_or_none("HMGET", keys.pulse, *names) or [None] * len(names), strict=True)
    return _looked_after(pulse_of({name: text_of(value) for name, value in found if value is not None}))


def _looked_after(pulse: RunPulse | None) -> RunPulse | None:
    """Returns the pulse, marked if its process is gone; only a reader on the same machine can tell."""
    if pulse is None or pulse.now.state.has_ended:
        return pulse
    return replace(pulse, is_gone=is_gone(pulse.run.pid, pulse.run.pid_space))
