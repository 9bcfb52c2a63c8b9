"""The server of a simulation: the real function library on a `MemoryRedis`, with a history it can fall back to.

What it holds is always what some prefix of the applied writes left, or a copy of an earlier time, or nothing; or, if
its append-only file was torn, what half of a write has left under later ones.
Between a request, its execution and its answer time passes, in which anybody else may act.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from itertools import count
from random import Random
from typing import Any

import redis

from coordinator.testing.simulated.fault_plan import FaultPlan
from coordinator.testing.simulated.process import Caller
from coordinator.testing.simulated.timeline import Timeline
from state.keys import Keys
from state.redis_client.function_library import STORED_FORMAT
from tests.simulation.append_only_file import HISTORY, AppendOnlyFile, Moment
from tests.simulation.invariants import records_of
from tests.simulation.memory_redis import INFO, MemoryRedis
from tests.simulation.workload import MARKS, TOPOLOGY_ID

ASKS = ("_confirm", "_last_group")
TELL = ("_commit", "_last_group")
WRITES = (
    *("_acquire", "_metadata", "_commit", "_barrier", "_drop_begin", "_drop_keys", "_drop_end", "_discard"),
    *("_take_shard", "_stage_part", "_apply_part"),
)
REFUSALS = (
    redis.exceptions.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."),
    redis.exceptions.ReadOnlyError("You can't write against a read only replica."),
    redis.exceptions.NoPermissionError("User default has no permissions to run the 'fcall' command"),
    redis.exceptions.ResponseError("MISCONF Errors writing to the AOF file: No space left on device"),
)
BUSY = (
    redis.exceptions.BusyLoadingError("Redis is loading the dataset in memory"),
    redis.exceptions.ResponseError("BUSY Redis is busy running a script."),
    redis.exceptions.ResponseError("TRYAGAIN Multiple keys request during rehashing of slot"),
)
UNFIT = (("role", "slave"), ("maxmemory_policy", "allkeys-lru"), ("evicted_keys", 3))
LATENCY_S = 0.001
NEXT_STARTS_S = (0.05, 2.0, 30.0, 300.0)
TIMEOUT_S = 30.0
FORMER_S = (0.01, 1.0, 12.0, 100.0)
"""How long a former primary keeps answering those who are connected to it."""
STALE = 0.3
"""How often sentinels still name a former primary that answers."""


class SimServer:
    """The server.

    Args:
        timeline: where time passes.
        faults: what goes wrong.
        random: draws latencies.
        changed: called after everything that may have changed what is held, with who did what; "server" is a fault.
        answered: called with a caller's name and the receipts that were there, when it hears what is committed.
        keys: of the topology, or of its shard that lies here.

    Attributes:
        inner: what it holds, to be looked at.
        replies: (function, status) -> how often it was answered.
        calls: how many commands it was sent.
        place: how often it has moved.
        former: where it was before, as long as that still answers those who are connected to it.
        durability: the level that runs on it ask for.
    """

    durability = "memory"

    def __init__(
        self,
        timeline: Timeline,
        faults: FaultPlan,
        random: Random,
        *,
        changed: Callable[[str], None],
        answered: Callable[[str, dict[int, bytes]], None],
        keys: Keys | None = None,
    ) -> None:
        own = keys or Keys(TOPOLOGY_ID)
        self._control, self._marks = own.control, own.state(MARKS)
        self._timeline, self._faults, self._random = timeline, faults, random
        self._changed, self._answered = changed, answered
        self._order = count(1)
        self._executed_at: dict[str, int] = {}
        self._damaged_at = 0
        self.inner = MemoryRedis()
        self._file = AppendOnlyFile(self.inner.applied, self._control.encode())
        self._copies = [self._file.last]
        self._sent: list[tuple[Any, ...]] = []
        self.replies: Counter[tuple[str, str]] = Counter()
        self.calls = 0
        self.place = 0
        self.former: MemoryRedis | None = None

    def client(self, caller: Caller) -> SimClient:
        """A client of it."""
        return SimClient(self, caller)

    def is_known_damaged(self, caller: str) -> bool:
        """Whether it was damaged already when it executed the caller's last command."""
        return self.is_damaged and self._executed_at.get(caller, 0) > self._damaged_at

    @property
    def is_damaged(self) -> bool:
        """Whether half of a write that it had lost is applied to what it holds."""
        return self._file.last.is_damaged

    def connection_options(self, caller: Caller) -> dict[str, Any]:
        """What a run's store is given beyond a client."""
        return {}

    def find(self, random: Random) -> int:
        """Where it is, or, as long as that answers, where it was."""
        return self.place - 1 if self.former is not None and random.random() < STALE else self.place

    def call(self, caller: Caller, arguments: tuple[Any, ...], place: int | None = None) -> Any:
        """One command, from its request to its answer, sent to where the server is or was."""
        self.calls += 1
        faults = self._faults
        self._befall()
        if place is None:
            place = self.place
        caller.wait(self._latency())
        if faults.strikes("server.loses_request"):
            caller.wait(self._patience("server.loses_request"))
            raise redis.ConnectionError("the request was lost")
        if faults.strikes("server.is_busy"):
            raise copy(faults.drawn("server.is_busy").choice(BUSY))  # else it would keep all it ever passed through
        if faults.strikes("server.refuses"):
            raise copy(faults.drawn("server.refuses").choice(REFUSALS))
        if faults.strikes("server.applies_later"):
            self._apply_later(arguments, place)
            raise redis.TimeoutError("no answer in time")
        reply = self._apply_at(place, caller.name, arguments)
        is_receipt = arguments[0] != "INFO" and str(arguments[1]).endswith(TELL) and reply[0] in (b"OK", b"ALREADY")
        held = self.inner if place == self.place else self.former
        receipts = records_of(held, TOPOLOGY_ID)[1] if is_receipt and held is not None else {}
        if faults.strikes("server.loses_answer"):
            caller.wait(self._patience("server.loses_answer"))
            raise redis.TimeoutError("the answer was lost")
        if faults.strikes("server.answers_late"):
            caller.wait(faults.drawn("server.answers_late").choice([0.5, 3.0, TIMEOUT_S - 1]))
        caller.wait(self._latency())
        if receipts:
            self._answered(caller.name, receipts)
        return reply

    def _befall(self) -> None:
        """What happens to the server itself."""
        faults = self._faults
        if faults.strikes("server.loses_library"):
            self.inner.flush_library()
        if faults.strikes("server.goes_back"):
            self._go_back(faults.drawn("server.goes_back"))
        if faults.strikes("server.tears_a_write"):
            self._tear(faults.drawn("server.tears_a_write"))
        if faults.strikes("server.is_restored"):
            copies = self._copies
            self._becomes(faults.drawn("server.is_restored").choice(copies), "restored")
        if faults.strikes("server.comes_back_empty"):
            self._becomes(Moment({}), "empty")
        if faults.strikes("server.has_another_version"):
            self._changes_for_a_while("server.has_another_version", self._control, "format")
        if faults.strikes("server.is_unfit"):
            self.inner.info |= [faults.drawn("server.is_unfit").choice(UNFIT)]
            self._timeline.after(faults.drawn("server.is_unfit").choice([1.0, 60.0]), object(), self.mend)
        if faults.strikes("server.lends_a_key"):
            self._changes_for_a_while("server.lends_a_key", self._marks, "")
        if faults.strikes("server.moves") and not self.is_damaged:
            self._move(faults.drawn("server.moves"))
        if self._sent and faults.strikes("server.repeats_earlier_call"):
            self._apply("repeated", faults.drawn("server.repeats_earlier_call").choice(self._sent))

    def _apply_at(self, place: int, caller: str, arguments: tuple[Any, ...]) -> Any:
        if place == self.place:
            return self._apply(caller, arguments)
        if self.former is None or place < self.place - 1:
            raise redis.ReadOnlyError("You can't write against a read only replica.")
        reply = self.former.execute_command(*arguments)
        if arguments[0] == "FCALL" and arguments[1].endswith(WRITES):
            status = reply[0].decode()
            self._timeline.note(f"{caller} {arguments[1]} -> {status}, at the former place")
            self._changed(f"former {caller} {status}")
        return reply

    def _apply(self, caller: str, arguments: tuple[Any, ...]) -> Any:
        self._executed_at[caller] = next(self._order)
        if arguments[0] == "HSET":
            self._keep()
        is_write = arguments[0] == "FCALL" and arguments[1].endswith(WRITES)
        try:
            reply = self.inner.execute_command(*arguments)
        except redis.ResponseError as error:
            self._timeline.note(f"{caller} {arguments[0]} -> {str(error)[:40]}")
            raise
        if arguments[0] in ("FCALL", "FCALL_RO"):
            function = arguments[1].partition("_")[2].partition("_")[2]
            status = reply[0].decode() if is_write or arguments[1].endswith(ASKS) else "answered"
            self.replies[function, status] += 1
            self._timeline.note(f"{caller} {function} -> {status}")
            if is_write:
                self._sent = [*self._sent[-HISTORY:], arguments]
                if status == "OK":
                    self._keep()
                self._changed(f"{caller} {function} {status}")
        return reply

    def _keep(self) -> None:
        """What it holds now is what some prefix of the applied writes has left."""
        self._file.add(self.inner.content(), self.inner.written())
        if self._random.random() < 0.05:
            self._copies = [*self._copies[-5:], self._file.last]

    def _apply_later(self, arguments: tuple[Any, ...], place: int) -> None:
        """The request lies in some buffer and is executed when nobody waits for it any more."""

        def arrive() -> None:
            with suppress(redis.ResponseError):  # such as a flushed library: nobody hears of it
                self._apply_at(place, "late", arguments)

        delay_s = self._faults.drawn("server.applies_later").choice([0.01, 0.1, 1.0, 40.0])
        self._timeline.after(delay_s, object(), arrive)

    def _changes_for_a_while(self, fault: str, key: str, field: str) -> None:
        """Another program has changed a key, and changes it back later."""
        if field and self.inner.hash(key):
            self.inner.execute_command("HSET", key, field, "9")
        elif not field:
            self.inner.execute_command("SET", key, "somebody else's")
        self._timeline.note(f"{fault} {key}")
        self._timeline.after(self._faults.drawn(fault).choice([0.01, 1.0, 60.0]), object(), self.mend)

    def mend(self) -> None:
        """What others have changed is as it was, and a former place is left."""
        self.former = None
        self.inner.info |= INFO
        if self.inner.hash(self._control).get(b"format") == b"9":
            self.inner.execute_command("HSET", self._control, "format", STORED_FORMAT)
        if self.inner.execute_command("TYPE", self._marks) == b"string":
            self.inner.execute_command("DEL", self._marks)

    def _go_back(self, random: Random) -> None:
        """Loses the last writes: mostly few, at times nearly all."""
        most = self._losable()
        if most:
            lost = min(most, random.choice([1, 1, 2, 3, 5, 10, random.randint(1, most)]))
            self._start_again(lost)

    def _move(self, random: Random) -> None:
        """A replica that may lack the last writes takes over; the former primary does not know it for a while."""
        former = MemoryRedis()
        former.become(self.inner.content())
        self.former, self.place = former, self.place + 1

        def end() -> None:
            if self.former is former:
                self.former = None

        self._timeline.after(random.choice(FORMER_S), object(), end)
        self._start_again(min(self._losable(), random.choice([0, 0, 1, 1, 2, 5])))

    def _tear(self, random: Random) -> None:
        """Loses the last writes, but for the first commands of one, which the next start applies."""
        moments = self._file.moments
        torn = [lost for lost in range(1, self._losable() + 1) if moments[-lost].may_be_torn]
        if torn:
            lost = random.choice(torn[:5])
            self._file.tear(lost, random)
            self._shows(f"back by {lost}, one torn")
            self._timeline.after(random.choice(NEXT_STARTS_S), object(), lambda: self._start_again(0))

    def _losable(self) -> int:
        """How many of the last writes may be lost."""
        return len(self._file.moments) - 1

    def _start_again(self, lost: int) -> None:
        """Loads its file, without the last writes."""
        self._file.cut(lost)
        self._shows(f"back by {lost}")

    def _becomes(self, moment: Moment, how: str) -> None:
        self._file.become(moment)
        self._shows(how)

    def _shows(self, how: str) -> None:
        """Holds what its file has."""
        self.inner.become(self._file.last.content)
        if self.is_damaged:
            how += ", damaged"
            self._damaged_at = next(self._order)
        self._timeline.note(f"server {how}")
        self._changed(f"server {how}")

    def _latency(self) -> float:
        return LATENCY_S * self._random.random()

    def _patience(self, fault: str) -> float:
        """How long it takes until a client notices: at once if the connection breaks, else its timeout."""
        return self._faults.drawn(fault).choice([0.0, TIMEOUT_S])


class SimClient:
    """What redis-py's client is to the store."""

    follows = True

    def __init__(self, server: SimServer, caller: Caller) -> None:
        self._server, self._caller = server, caller
        self._random = Random(f"{caller.name} finds")
        self._place: int | None = None
        self._settled = server.place
        self.moves = 0

    def execute_command(self, *arguments: Any) -> Any:
        """Sends one command and waits for its answer."""
        if self._place is None:
            self._place = self._server.find(self._random)
            self.moves += self._place != self._settled
            self._settled = self._place
        return self._server.call(self._caller, arguments, self._place)

    def leave(self, error: redis.RedisError) -> None:
        """The next command goes to wherever the server is then."""
        self._place = None

    def close(self) -> None:
        """A client may be closed; the server stays."""
