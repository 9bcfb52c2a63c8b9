"""A topology over shards: home and each shard have a server of their own, and each goes wrong on its own.

Where all shards have applied what home has decided, together they show the fold of what was read. A shard that has lost
more than the others can give back stops every run by name, until somebody drops the topology.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import redis

from coordinator.testing.simulated.fault_plan import SHARD_POINTS
from coordinator.testing.simulated.process import Caller, Process
from state.errors import TransactionError
from state.keys import Keys
from tests.simulation.driver import Driver
from tests.simulation.fault_rates import swarm_rates
from tests.simulation.invariants import Program
from tests.simulation.memory_redis import MemoryRedis
from tests.simulation.scenario import Scenario
from tests.simulation.sim_server import SimClient, SimServer
from tests.simulation.simulation import Simulation
from tests.simulation.workload import SPOUTS, TOPOLOGY_ID

HOME = Keys(TOPOLOGY_ID)
APART = ("restore home and all shards from one backup", "does not belong to the topology as it is in its home slot")
"""What runs say that cannot go on with what the servers hold."""
LOSSES = (
    *("server.goes_back", "server.comes_back_empty", "server.is_restored", "server.tears_a_write", "server.moves"),
    *("server.has_another_version", "server.lends_a_key"),
)
"""Faults by which a server holds less or other than it has answered for."""


class Joined:
    """All servers as one, for who looks at hashes."""

    def __init__(self, home: MemoryRedis, shards: Sequence[MemoryRedis]) -> None:
        self._home, self._shards = home, shards

    def hash(self, key: str) -> Mapping[bytes, bytes]:
        """A record as home has it, without what belongs to shards; a state as all shards have it."""
        name = HOME.state_name(key)
        if HOME.is_record(key):
            found = self._home.hash(key)
            return {field: value for field, value in found.items() if not field.startswith(b"shards:")}
        joined: dict[bytes, bytes] = {}
        for number, shard in enumerate(self._shards):
            joined |= shard.hash(HOME.shard(number).state(name))
        return joined


class ShardedServers:
    """The servers; what they have in common is that of a `SimServer`."""

    former = None

    def __init__(self, home: SimServer, shards: Sequence[SimServer]) -> None:
        self.home, self.shards = home, tuple(shards)
        self.durability = home.durability

    @property
    def all(self) -> tuple[SimServer, ...]:
        return (self.home, *self.shards)

    @property
    def inner(self) -> Joined:
        return Joined(self.home.inner, [shard.inner for shard in self.shards])

    @property
    def calls(self) -> int:
        return sum(server.calls for server in self.all) // 2

    @property
    def replies(self) -> Counter[tuple[str, str]]:
        return sum((server.replies for server in self.all), Counter())

    @property
    def is_damaged(self) -> bool:
        return any(server.is_damaged for server in self.all)

    def is_known_damaged(self, caller: str) -> bool:
        return any(server.is_known_damaged(caller) for server in self.all)

    def client(self, caller: Caller) -> RoutingClient:
        """A client that finds the server of each key."""
        return RoutingClient(self, caller)

    def connection_options(self, caller: Caller) -> dict[str, Any]:
        """What a run's store is given beyond a client."""
        return {}

    def mend(self) -> None:
        """Everything is as it was."""
        for server in self.all:
            server.mend()

    def agree(self) -> bool:
        """Whether every shard has applied what home has decided, in one history."""
        home = self.home.inner
        committed = home.hash(HOME.control).get(b"committed")
        if b"dropping" in home.hash(HOME.control):
            return False  # its shards go one after the other
        chains = [value for name, value in home.hash(HOME.metadata).items() if name.startswith(b"shards:")]
        for number, server in enumerate(self.shards):
            control = server.inner.hash(HOME.shard(number).control)
            if control.get(b"committed") != committed or b"dropping" in control:
                return False
            if chains and control.get(b"chain", b"") not in chains[0]:
                return False
        return True


class RoutingClient:
    """What redis-py's client is to the stores of home and shards."""

    follows = True

    def __init__(self, servers: ShardedServers, caller: Caller) -> None:
        self._clients: list[SimClient] = [server.client(caller) for server in servers.all]
        self._last = self._clients[0]

    @property
    def moves(self) -> int:
        return sum(client.moves for client in self._clients)

    def execute_command(self, *arguments: Any) -> Any:
        """Sends one command to the server of its first key, and waits for its answer."""
        text = next((str(each) for each in arguments[1:] if str(each).startswith(f"{{{TOPOLOGY_ID}")), "")
        number = text.removeprefix(f"{{{TOPOLOGY_ID}").partition("}")[0].removeprefix(".")
        if not text and arguments[0] in ("FUNCTION", "INFO"):  # each server has its own; one may lack the library
            return min((client.execute_command(*arguments) for client in self._clients), key=len)
        self._last = self._clients[int(number) + 1 if number else 0]
        return self._last.execute_command(*arguments)

    def place_of(self, key: str) -> str:
        """The server of a key."""
        return key.partition("}")[0]

    def leave(self, error: redis.RedisError) -> None:
        """The next command goes to wherever the server is then."""
        self._last.leave(error)

    def close(self) -> None:
        """A client may be closed; the servers stay."""


class ShardedSimulation(Simulation):
    """The world of one scenario over shards.

    Args:
        has_losses: whether servers may lose or change what they hold.

    Attributes:
        compared: how often all shards were seen to hold what home had decided.
        named: how many runs were stopped by what a server had lost, before anybody dropped the topology.
    """

    def __init__(self, scenario: Scenario, shard_count: int, *, has_losses: bool = True) -> None:
        random, rates = Random(f"{scenario.seed} shards"), swarm_rates(scenario.seed)
        rates |= {f"kill@{point}": random.choice([0.0, 0.0, 0.03, 0.2]) for point in SHARD_POINTS}
        rates |= {f"stop@{point}": random.choice([0.0, 0.0, 0.03, 0.1]) for point in SHARD_POINTS}
        if not has_losses:
            rates |= dict.fromkeys(LOSSES, 0.0)
        super().__init__(replace(scenario, rates=tuple(rates.items())))
        self._shard_count = shard_count
        shards = [self._new_server(SimServer, keys=HOME.shard(number)) for number in range(shard_count)]
        self.server: Any = ShardedServers(self.server, shards)
        self.compared = self.named = 0

    def _program(self) -> Program:
        program = super()._program()
        return replace(program, topology=replace(program.topology, shard_count=self._shard_count))

    def _changed(self, how: str) -> None:
        if self.server.agree() and not any(shard.is_damaged for shard in self.server.shards):
            self.compared += 1
            super()._changed(how)
        elif how.endswith(" acquire OK") and not how.startswith("repeated "):
            self._causes.took_over(how.removesuffix(" acquire OK"))
        elif how.startswith("server") or " drop_" in how:
            self._records.forget()
            self._history.forget()

    def _ended(self, driver: Process, error: TransactionError | None) -> None:
        if error is not None and any(said in str(error) for said in APART):
            self.named += not self._causes._has_dropped
            self._needs_drop = True
        super()._ended(driver, error)
        if error is None and isinstance(driver, Driver):
            assert self.server.agree() or not self._is_calm, "a run is done, and not every shard has applied everything"


def simulate_shards(seed: int, shard_count: int, *, has_losses: bool) -> ShardedSimulation:
    """Plays a seed over shards; raises what does not hold."""
    simulation = ShardedSimulation(
        Scenario.of(seed, kind=sorted(SPOUTS)[seed % len(SPOUTS)]), shard_count, has_losses=has_losses
    )
    simulation.play()
    return simulation
