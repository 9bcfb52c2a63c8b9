"""Watches a topology's own code while it runs: random draws, effects, reads and emitted values, each with its line.

It uses Python's profile and audit events, so that runs without a watch lose no time. An audit hook cannot be removed:
watch only in a copy of the process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple, Self

from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.batches.batch_bolt_executor import BatchBoltExecutor
from coordinated_bolt.user_code import is_ours, is_users
from coordinator.spouts.batch_emitters import BatchEmitter
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.transactional.spout_calls import SpoutCalls
from state.kinds.session import StateSession
from state.values.own_copy import own_copy

EMITTED: Mapping[CodeType, str] = {
    AttemptCollector.emit.__code__: "values",
    AttemptCollector.emit_all.__code__: "rows",
    AttemptCollector.emit_batch.__code__: "batch",
    AttemptCollector.emit_direct.__code__: "values",
}
"""Code that emits tuples -> the parameter that holds them."""
READ, ENDED = StateSession.read.__code__, BatchBoltExecutor.drop.__code__
CLOCKS = (
    "time",
    "time_ns",
    "monotonic",
    "monotonic_ns",
    "perf_counter",
    "perf_counter_ns",
    "localtime",
    "gmtime",
    "clock_gettime",
    "clock_gettime_ns",
)
CALENDAR_CALLS = {
    *("time.time()", "time.time_ns()", "datetime.now()", "datetime.utcnow()", "datetime.today()", "date.today()"),
}
"""Calls that return the time of day, and not how much time has passed."""
OTHERS = {("posix", "urandom"), ("posix", "getpid"), ("builtins", "id"), ("_socket", "gethostname")}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
EFFECTS = (
    *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown"),
    *("os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.kill"),
)
CREATING, REMOVING = ("open", "os.mkdir"), ("os.remove", "os.rmdir")
NAMING = {"os.rename": (0, 1), "os.link": (0, 1), "os.symlink": (1,)}
NAMING |= dict.fromkeys(("os.truncate", "os.chmod", "os.chown"), (0,))
"""Effects on paths -> the indexes of the arguments that are paths."""
IN_MEMORY = (":memory:", "")
"""Names of SQLite databases that no other process can open."""
CONNECTIONS = ("socket.connect", "socket.sendto", "subprocess.Popen", "sqlite3.connect")
"""Effects, except in a spout, which has to reach its input."""
CALLS_OF_SPOUTS = (SpoutKind, SpoutCalls, BatchEmitter)
"""Classes that call the code of a spout."""


class Sighting(NamedTuple):
    """Something that user code did.

    Attributes:
        what: the call or effect, such as "random.random()".
        component_id: the component whose code did it; "" if it is not known.
        place: file and line.
    """

    what: str
    component_id: str
    place: str


@dataclass(slots=True)
class Sightings:
    """Everything that was seen.

    Attributes:
        draws: calls whose results a replay does not repeat.
        effects: effects outside the topology.
        changed: values that were changed after they were emitted.
        reads: (state, field) -> file and line where it was read first.
    """

    draws: list[Sighting] = field(default_factory=list)
    effects: list[Sighting] = field(default_factory=list)
    changed: list[Sighting] = field(default_factory=list)
    reads: dict[tuple[str, Any], str] = field(default_factory=dict)


class Watch:
    """Watches the calling thread inside a ``with`` block.

    Args:
        components: class of a component -> its id.
    """

    def __init__(self, components: Mapping[type, str]) -> None:
        self._components = components
        self.seen = Sightings()
        self._held: list[tuple[Any, Any, Sighting]] = []
        self._created: dict[str, list[Sighting]] = {}
        self._is_on = False
        sys.addaudithook(self._audit)

    def __enter__(self) -> Self:
        self._is_on = True
        sys.setprofile(self._profile)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        sys.setprofile(None)
        self._is_on = False
        for path, effects in self._created.items():  # a file that was created and is gone was a scratch file
            for seen in effects if os.path.lexists(path) else ():
                _note(self.seen.effects, seen)
        self._created.clear()

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            drawn = drawn_by(argument)
            user, through = _caller(frame) if drawn else (None, "")
            if user is not None:
                _note(self.seen.draws, self._sighting(through or drawn, user))
        elif event == "call":
            code = frame.f_code
            if code in EMITTED:
                self._emitted(frame, frame.f_locals[EMITTED[code]])
            elif code is READ:
                user, _ = _caller(frame, past_ours=True)
                for read in frame.f_locals["fields"] if user is not None else ():
                    self.seen.reads.setdefault((frame.f_locals["name"], read), _place(user))
            elif code is ENDED:
                self._compare()

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        what = self._is_on and _effect(event, arguments)
        if what:
            user, _ = _caller(sys._getframe(1))  # noqa: SLF001 - the way to a caller's line
            if user is not None and not (event in CONNECTIONS and _held_by(user, *CALLS_OF_SPOUTS)):
                _note(self._effects_on(event, arguments), self._sighting(what, user))

    def _effects_on(self, event: str, arguments: tuple[Any, ...]) -> list[Sighting]:
        """Returns the list for an effect: that of a file or folder the transaction has created, or all effects."""
        if event in CREATING and (path := _absolute(event, arguments)) and not os.path.lexists(path):
            return self._created.setdefault(path, [])
        if event in CREATING or event in REMOVING:
            folder = arguments[-1] if event in REMOVING and arguments[-1] >= 0 else None
            with suppress(OSError, TypeError):
                found = os.stat(arguments[0], dir_fd=folder, follow_symlinks=False)
                for path, effects in self._created.items():
                    if os.path.lexists(path) and os.path.samestat(os.lstat(path), found):
                        return effects
        names = [_name(arguments[number]) for number in NAMING.get(event, ())]
        if names and all(map(self._is_created, names)):
            return self._created.setdefault(names[-1], [])
        return self.seen.effects

    def _is_created(self, name: str) -> bool:
        """Returns whether the transaction has created the file or folder, or a folder around it."""
        return name in self._created or any(name.startswith(f"{folder}/") for folder in self._created)

    def _sighting(self, what: str, frame: FrameType) -> Sighting:
        return Sighting(what, self._component(frame), _place(frame))

    def _emitted(self, frame: FrameType, values: Any) -> None:
        user, _ = _caller(frame, past_ours=True)
        if user is not None and isinstance(values, Collection) and not isinstance(values, (str, bytes)):
            with suppress(Exception):  # the collector refuses values that cannot travel
                copy = own_copy(list(values))
                self._held.append((values, copy, self._sighting("emit", user)))

    def _compare(self) -> None:
        for values, copy, seen in self._held:
            with suppress(Exception):
                if list(values) != copy and seen not in self.seen.changed:
                    self.seen.changed.append(seen)
        self._held.clear()

    def _component(self, frame: FrameType | None) -> str:
        """Returns the component whose code runs: the bolt of the innermost task, or a component found by its class."""
        executor = _held_by(frame, BatchBoltExecutor)
        if executor is not None:
            return str(executor.component_id)
        found = ""
        while frame is not None and not found:
            found = self._components.get(type(frame.f_locals.get("self")), "")
            frame = frame.f_back
        return found


def _held_by(frame: FrameType | None, *kinds: type) -> Any:
    """Returns the innermost object of these types whose method is on the stack; None if there is none."""
    while frame is not None:
        own = frame.f_locals.get("self")
        if isinstance(own, kinds):
            return own
        frame = frame.f_back
    return None


def drawn_by(function: Callable[..., Any]) -> str:
    """Returns a call as text, such as "time.time()"; "" if the function's result depends on its arguments alone."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    module = getattr(function, "__module__", None) or type(owner).__module__
    if module == "time" and name in CLOCKS:
        return f"time.{name}()"
    if type(owner).__module__ in ("random", "_random") and name != "seed":
        return f"random.{name}()"
    if isinstance(owner, type) and issubclass(owner, date) and name in ("now", "today", "utcnow"):
        return f"{owner.__name__}.{name}()"
    return f"{module}.{name}()" if (module, name) in OTHERS else ""


def _effect(event: str, arguments: tuple[Any, ...]) -> str:
    if event == "open":
        path, _, flags = arguments
        is_written = isinstance(flags, int) and flags & WRITING
        is_unnamed = is_written and os.path.isdir(path)  # noqa: PTH112 - bytes, and descriptors, too
        return f"opens {path!r} to write" if is_written and not is_unnamed and path != os.devnull else ""
    if event in EFFECTS:
        return f"{event}({arguments[0]!r})"
    if event == "sqlite3.connect" and arguments[0] in IN_MEMORY:
        return ""
    return event if event in CONNECTIONS else ""


def _absolute(event: str, arguments: tuple[Any, ...]) -> str:
    """Returns the absolute path that is created; "" if it may be relative to a folder's descriptor."""
    path, mode, folder = arguments
    if not isinstance(path, (str, bytes, os.PathLike)):
        return ""
    given, may_count_from_folder = Path(os.fsdecode(path)), mode is None if event == "open" else folder >= 0
    return str(given.absolute()) if given.is_absolute() or not may_count_from_folder else ""


def _name(path: Any) -> str:
    return str(Path(os.fsdecode(path)).absolute()) if isinstance(path, (str, bytes, os.PathLike)) else ""


def _note(seen: list[Sighting], noted: Sighting) -> None:
    if noted not in seen:
        seen.append(noted)


def _caller(frame: FrameType | None, *, past_ours: bool = False) -> tuple[FrameType | None, str]:
    """Returns the user's frame that made a call, and the library function in between; None if our code made it.

    With `past_ours`, frames of txbatch are skipped, too.
    """
    through = ""
    while frame is not None:
        file = frame.f_code.co_filename
        if is_users(file):
            return frame, through
        if file.startswith("<frozen importlib") or (is_ours(file) and not past_ours):
            break
        through = f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_name}()"
        frame = frame.f_back
    return None, ""


def _place(frame: FrameType | None) -> str:
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
