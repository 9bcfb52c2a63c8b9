"""A server in memory that loses requests, answers and last writes by plan: for simulated runs of any topology."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, Protocol

import redis

from state.redis_server.in_memory import in_memory_client

LATENCY_S = 0.001
TIMEOUT_S = 30.0
"""How long a client waits for an answer that was lost, unless its connection breaks at once."""


class Losses(Protocol):
    """The plan of faults."""

    def strikes(self, fault: str) -> bool:
        """Returns whether a fault strikes at this opportunity."""

    def drawn(self, fault: str) -> Random:
        """Returns the random numbers for the details of the last strike."""


class Waiting(Protocol):
    """The calling process, which lets time pass until the answer."""

    @property
    def name(self) -> str:
        """The caller's name in a story."""

    @property
    def wait(self) -> Callable[[float], None]:
        """The function that lets time pass, in seconds."""


class LossyServer:
    """The server: its functions are the real ones, and its data is always the result of a prefix of its calls.

    To lose its last writes, it repeats all earlier calls on an empty server.

    Args:
        faults: the plan of faults.
        tell: takes a line about each event.

    Attributes:
        inner: a client of the data that suffers no faults.
        calls: how many commands it has received.
    """

    durability = "memory"

    def __init__(self, faults: Losses, tell: Callable[[str], None]) -> None:
        self._faults, self._tell = faults, tell
        self._applied: list[tuple[Any, ...]] = []
        self._writes: list[int] = []
        self.inner = in_memory_client()
        self.calls = 0

    def client(self, caller: Waiting) -> LossyClient:
        """Returns a client of this server."""
        return LossyClient(self, caller)

    def connection_options(self, caller: Waiting) -> dict[str, Any]:
        """Returns further options for a run's store, in addition to the client."""
        return {}

    def call(self, caller: Waiting, arguments: tuple[Any, ...]) -> Any:
        """Runs one command, from its request to its answer."""
        self.calls += 1
        faults = self._faults
        if self._writes and faults.strikes("server.goes_back"):
            most = len(self._writes)
            self._go_back(min(most, faults.drawn("server.goes_back").choice([1, 1, 2, 3, most])))
        caller.wait(LATENCY_S)
        if faults.strikes("server.loses_request"):
            caller.wait(faults.drawn("server.loses_request").choice([0.0, TIMEOUT_S]))
            raise redis.ConnectionError("the request was lost")
        reply = self._apply(arguments)
        if faults.strikes("server.loses_answer"):
            self._tell(f"{caller.name} does not get an answer of the server")
            caller.wait(faults.drawn("server.loses_answer").choice([0.0, TIMEOUT_S]))
            raise redis.TimeoutError("the answer was lost")
        caller.wait(LATENCY_S)
        return reply

    def _apply(self, arguments: tuple[Any, ...]) -> Any:
        name = arguments[0]
        reply = self.inner.execute_command(*arguments)
        if name == "FCALL" or str(name).startswith("FUNCTION"):
            if name == "FCALL" and reply[0] == b"OK":
                self._writes.append(len(self._applied))
            self._applied.append(arguments)
        return reply

    def _go_back(self, lost: int) -> None:
        end = self._writes[-lost]
        self._applied, self._writes = self._applied[:end], self._writes[:-lost]
        self.inner.close()
        self.inner = in_memory_client()
        for arguments in self._applied:
            with suppress(redis.ResponseError):  # refused as the first time
                self.inner.execute_command(*arguments)
        self._tell(f"the server loses its last {lost} writes" if lost > 1 else "the server loses its last write")


class LossyClient:
    """Replaces redis-py's client for a store.

    Args:
        server: the server.
        caller: the calling process.
    """

    def __init__(self, server: LossyServer, caller: Waiting) -> None:
        self._server, self._caller = server, caller

    def execute_command(self, *arguments: Any, **_options: Any) -> Any:
        """Sends one command and waits for its answer."""
        return self._server.call(self._caller, arguments)

    def close(self) -> None:
        """Does nothing: the server outlives its clients."""
