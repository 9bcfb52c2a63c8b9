"""Simulations at a level that waits: the server may lose everything after the last barrier it confirmed, never before.

What was told upstream cannot be taken back, so it must never be lost again: neither by a server that goes back, nor by
a run that dies before it has told what it committed. Backups and servers that come back empty keep to no level, and who
drops a topology wants it lost, so these faults are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

import redis

from coordinator.testing.simulated.process import Caller
from coordinator.transactional.machine.releases import Releases
from state.attempt import TransactionAttempt
from tests.simulation.append_only_file import Moment
from tests.simulation.fault_rates import swarm_rates
from tests.simulation.invariants import ViolatedError, records_of
from tests.simulation.scenario import Scenario
from tests.simulation.sim_server import SimServer
from tests.simulation.simulation import Simulation
from tests.simulation.workload import TOPOLOGY_ID

NO_LEVEL_HELPS = ("server.comes_back_empty", "server.is_restored", "server.tears_a_write", "operator.")
INFO = {
    "redis_version": "7.2.4",
    "role": "master",
    "maxmemory_policy": "noeviction",
    "aof_enabled": 1,
    "slave0": {"state": "online"},
}
ANSWERS_AFTER_S = (0.0, 0.0, 0.001, 0.001, 0.05, 0.05, 0.3, 0.3, 2.0, 7.0)
SETTINGS = [b"appendonly", b"yes", b"appendfsync", b"always", b"no-appendfsync-on-rewrite", b"no"]


class DurableServer(SimServer):
    """A server that keeps to a level.

    Attributes:
        lives: how often it has lost something, and with it every connection.
    """

    def __init__(self, *given: Any, level: str, **more: Any) -> None:
        super().__init__(*given, **more)
        self.durability = level
        self.lives = 0
        self._durable = self._file.last

    @property
    def now_s(self) -> float:
        return self._timeline.now_s

    def connection_options(self, caller: Caller) -> dict[str, Any]:
        return {"own_connection": lambda client: SimOwnConnection(self, caller)}

    def call(self, caller: Caller, arguments: tuple[Any, ...], place: int | None = None) -> Any:
        reply: Any = {"INFO": INFO, "CONFIG": SETTINGS, "WAIT": 1}.get(arguments[0])
        return super().call(caller, arguments, place) if reply is None else reply

    def last_write(self) -> Moment:
        """What the last write has left."""
        return self._file.last

    def confirm(self, written: Moment) -> None:
        """What this write has left, and everything before it, is durable from here on."""
        if self._place(written) > self._place(self._durable):
            self._durable = written

    def next_delay_s(self) -> float:
        """How long a question waits for its answer."""
        return self._random.choice(ANSWERS_AFTER_S)

    def _place(self, moment: Moment) -> int:
        """Where this is in the history, -1 if it is forgotten."""
        return max((place for place, found in enumerate(self._file.moments) if found is moment), default=-1)

    def _losable(self) -> int:
        """Everything but what a barrier has confirmed."""
        return super()._losable() - max(0, self._place(self._durable))

    def _go_back(self, random: Random) -> None:
        most = self._losable()
        if most:
            self._start_again(random.randint(1, most))

    def _start_again(self, lost: int) -> None:
        self.lives += 1
        super()._start_again(lost)


class SimOwnConnection:
    """One connection: it ends with the server's life, and what it asks is about its own last write."""

    def __init__(self, server: DurableServer, caller: Caller) -> None:
        self._server, self._caller = server, caller
        self._life = -1
        self._written: Moment | None = None
        self._due_s: float | None = None

    def execute_command(self, *arguments: Any) -> Any:
        if self._life != self._server.lives:
            self._written = None  # another connection
        self._life, self._due_s = self._server.lives, None
        try:
            reply = self._server.call(self._caller, arguments)
        except (redis.ConnectionError, redis.TimeoutError):
            self.close()
            raise
        self._check()
        self._written = self._server.last_write()
        return reply

    def ask(self, *arguments: Any) -> None:
        self._check()
        self._due_s = self._server.now_s + self._server.next_delay_s()

    def answer(self, timeout_s: float) -> Any | None:
        if self._due_s is None:
            raise redis.ConnectionError("nothing was asked")
        if self._server.now_s < self._due_s:
            self._caller.wait(min(timeout_s, self._due_s - self._server.now_s))
        self._check()
        if self._server.now_s < self._due_s:
            return None
        self._due_s = None
        if self._written is not None:  # else it is asked of nothing, and answers at once
            self._server.confirm(self._written)
        return 1 if self._server.durability == "replica" else SETTINGS

    def close(self) -> None:
        self._life, self._written, self._due_s = -1, None, None

    def _check(self) -> None:
        if self._life != self._server.lives:
            self.close()
            raise redis.ConnectionError("the server was started again")


class DurableSimulation(Simulation):
    """The world of one scenario at a level, with books of what was told upstream."""

    def __init__(self, scenario: Scenario, level: str, rates: Mapping[str, float]) -> None:
        super().__init__(replace(scenario, rates=tuple(kept_by_a_level(rates).items())))
        self.server: DurableServer = self._new_server(DurableServer, level=level)
        self.told: dict[int, int] = {}

    def _is_confirmed(self, attempt: TransactionAttempt) -> bool:
        """A spout is told: from here on this must not be lost."""
        if attempt.txid > max(self.told, default=0) + 1:
            raise ViolatedError(f"told of txid {attempt.txid}, and last of {max(self.told, default=0)}")
        self.told[attempt.txid] = attempt.attempt_id
        return super()._is_confirmed(attempt)

    def _changed(self, how: str) -> None:
        super()._changed(how)
        committed, receipts = records_of(self.server.inner, TOPOLOGY_ID)
        if committed < max(self.told, default=0):
            raise ViolatedError(f"{max(self.told)} transactions were released upstream, and {committed} are left")
        for txid, receipt in receipts.items():
            attempt_id = int(receipt.split()[0], 16)
            if self.told.get(txid, attempt_id) != attempt_id:
                raise ViolatedError(f"another attempt of txid {txid} is committed than was released upstream")

    def check_end(self) -> None:
        """Whether everything that is committed was told."""
        committed, _ = records_of(self.server.inner, TOPOLOGY_ID)
        if max(self.told, default=0) != committed:
            raise ViolatedError(f"told of {max(self.told, default=0)} transactions, and {committed} are committed")


def kept_by_a_level(rates: Mapping[str, float]) -> dict[str, float]:
    """Fault -> probability without the faults against which no level helps."""
    return {fault: rate for fault, rate in rates.items() if not fault.startswith(NO_LEVEL_HELPS)}


def play(seed: int, level: str, kind: str, rates: Mapping[str, float] | None = None) -> DurableSimulation:
    """Plays a seed at a level, with a spout that is told.

    Args:
        seed: of everything.
        level: that runs ask for.
        kind: of spout.
        rates: fault -> probability; None draws a swarm.

    Raises:
        AssertionError: something does not hold.
    """
    faults = swarm_rates(seed) if rates is None else rates
    simulation = DurableSimulation(Scenario.of(seed, kind), level, faults)
    simulation.play()
    simulation.check_end()
    return simulation


def released_at_once(self, attempts, *, published=Releases.published):
    """A planted bug: what a level waits for is released before it is confirmed; replaces `Releases.published`."""
    self._waits, waits = False, self._waits
    yield from published(self, attempts)
    self._waits = waits
