"""A server that may, at any call, lose any suffix of what it has applied: a power cut, a lagging replica, a backup.

It is fakeredis with a history. What it holds is always what some prefix of the writes it applied has left.
Requests and answers get lost too, and a request may arrive a second time much later.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from random import Random
from typing import Any

import fakeredis
import redis

WRITES = ("_acquire", "_metadata", "_commit", "_drop_begin", "_drop_keys", "_drop_end")
HISTORY = 200


@dataclass
class Faults:
    """How often what goes wrong, each a probability of a call.

    Attributes:
        forget: some of the last writes are lost before the call.
        lose_request: the call never arrives.
        lose_answer: the call is applied, nobody hears of it.
        lose_both: the call is applied and lost again, with some of the writes before it, and nobody hears of it.
        repeat_late: an earlier write arrives once more before the call.
        flush_library: the function library is gone.
    """

    forget: float = 0.0
    lose_request: float = 0.0
    lose_answer: float = 0.0
    lose_both: float = 0.0
    repeat_late: float = 0.0
    flush_library: float = 0.0

    @classmethod
    def drawn(cls, random: Random) -> Faults:
        """A swarm: each fault is on or off, and often or seldom."""

        def rate() -> float:
            return random.choice([0.0, 0.0, 0.01, 0.05, 0.2])

        return cls(rate(), rate(), rate(), rate(), rate(), random.choice([0.0, 0.02]))


class ForgetfulServer:
    """The server, and a client of it.

    Attributes:
        faults: what goes wrong from now on.
        call_count: how many calls it was sent.
        forgotten: how many writes it has lost so far.
        replies: status of a write -> how often it was answered.
    """

    def __init__(self, random: Random) -> None:
        self.faults = Faults()
        self.call_count = self.forgotten = 0
        self.replies: dict[str, int] = {}
        self._random = random
        self._server = fakeredis.FakeServer(version=(7,))
        self.inner: Any = fakeredis.FakeRedis(server=self._server)
        self._history: list[dict[bytes, Any]] = [{}]
        self._sent: list[tuple[Any, ...]] = []

    def execute_command(self, *arguments: Any) -> Any:
        """What a client calls."""
        self.call_count += 1
        faults, draw = self.faults, self._random.random
        if draw() < faults.flush_library:
            self.inner.function_flush()
        if draw() < faults.forget:
            self._forget()
        if self._sent and draw() < faults.repeat_late:
            self._apply(self._random.choice(self._sent))
        if draw() < faults.lose_request:
            raise redis.ConnectionError("the request is lost")
        reply = self._apply(arguments)
        if draw() < faults.lose_answer:
            raise redis.ConnectionError("the answer is lost")
        if draw() < faults.lose_both:
            self._forget()
            raise redis.TimeoutError("the server was restarted")
        return reply

    def close(self) -> None:
        """A client may be closed; the server stays."""

    def holds(self, key: str, field: str) -> bytes | None:
        """One field of a hash, unnoticed."""
        value: bytes | None = self.inner.hget(key, field)
        return value

    def reset(self) -> None:
        """Forgets its history: nothing that was there before returns."""
        self._history, self._sent = [{}], []

    def _apply(self, arguments: tuple[Any, ...]) -> Any:
        is_write = arguments[0] == "FCALL" and arguments[1].endswith(WRITES)
        reply = self.inner.execute_command(*arguments)
        if is_write:
            self._sent = [*self._sent[-HISTORY:], arguments]
            status = reply[0].decode()
            self.replies[status] = self.replies.get(status, 0) + 1
            if status == "OK":
                self._history = [*self._history[-HISTORY:], self._content()]
        return reply

    def _forget(self) -> None:
        """Loses the last writes: mostly few, at times nearly all."""
        most = len(self._history) - 1
        if not most:
            return
        lost = min(most, self._random.choice([1, 1, 2, 3, 5, 10, self._random.randint(1, most)]))
        self.forgotten += lost
        self._history = self._history[:-lost]
        self._content_becomes(copy.deepcopy(self._history[-1]))

    def _content(self) -> dict[bytes, Any]:
        return copy.deepcopy(dict(self._server.dbs[0]._dict))

    def _content_becomes(self, content: dict[bytes, Any]) -> None:
        database = self._server.dbs[0]._dict
        database.clear()
        database.update(content)
