"""Measures a server for `txbatch doctor`, and changes nothing on it: it loads no function and writes no key."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from redis.exceptions import NoPermissionError, RedisError

from state.errors import StateRefusedError
from state.keys import Keys
from state.redis_client.connection import RedisConnection, holds_code, text_of, texts_by_name
from state.redis_client.function_library import LIBRARY_NAME, library_code
from state.redis_client.rights import commands_on_keys


class LibraryState(Enum):
    LOADED = "loaded"
    MISSING = "missing"
    OTHER_CODE = "other code"
    """A library of this name with other code, from another build of txbatch."""
    UNKNOWN = "unknown"
    """The user may not list functions."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A server, measured.

    Attributes:
        server: its name in messages, without credentials.
        settings: the settings that the user may read.
        may_load: whether the user may load the function library.
        lacking: commands that a driver sends directly and the user may not send.
        lacking_on_keys: commands that the user may not run on the topology's keys; None if unknown.
        keys: the pattern of the topology's keys.
        grant: the command that prints the rights needed.
        clock_ahead_s: how far the server's clock is ahead, in seconds; None if the user may not call TIME.
    """

    server: str
    info: Mapping[str, str]
    settings: Mapping[str, str]
    library: LibraryState
    may_load: bool
    lacking: tuple[str, ...]
    lacking_on_keys: tuple[str, ...] | None
    keys: str
    grant: str
    round_trips_ms: tuple[float, ...]
    clock_ahead_s: float | None


ROUND_TRIPS = 20
SETTINGS = (
    "appendfsync",
    "maxclients",
    "no-appendfsync-on-rewrite",
    "save",
    "stop-writes-on-bgsave-error",
    "tcp-keepalive",
    "timeout",
)
NO_LIBRARY = "txbatch doctor asks whether this user may load a library; this is not one"
"""Sent to FUNCTION LOAD: the error shows whether the user lacks the right, or only this text is not a library."""
LACKING_SCRIPT = """
local lacking = {}
for _, command in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(command, '[^|]+') do
    words[#words + 1] = word
  end
  words[#words + 1] = KEYS[1]
  local known, allowed = pcall(redis.acl_check_cmd, unpack(words))
  if not (known and allowed) then
    lacking[#lacking + 1] = command
  end
end
return lacking
"""
"""Does the same as the library's function `lacking`, on a server that does not have the library yet."""


def measure(
    connection: RedisConnection,
    keys: Keys,
    *,
    clock: Callable[[], float],
    wall_clock: Callable[[], float],
    timeout_s: float,
    grant: str,
    fields_expire: bool = False,
) -> ServerFacts:
    """Measures a server for a user that will write these keys (driver); the first call waits `timeout_s`."""
    wanted = commands_on_keys(fields_expire=fields_expire)
    info = connection.call("INFO", timeout_s=timeout_s)
    library = _library(connection)
    return ServerFacts(
        server=connection.server,
        info=texts_by_name(info),
        settings=_settings(connection),
        library=library,
        may_load=_may(connection, "FUNCTION", "LOAD", NO_LIBRARY),
        lacking=tuple(name for name, command in _direct(keys).items() if not _may(connection, *command)),
        lacking_on_keys=_lacking_on_keys(connection, keys, library, wanted),
        keys=keys.pattern,
        grant=grant,
        round_trips_ms=tuple(_round_trip_ms(connection, keys, clock) for _ in range(ROUND_TRIPS)),
        clock_ahead_s=_clock_ahead_s(connection, wall_clock),
    )


def _direct(keys: Keys) -> dict[str, tuple[str, ...]]:
    """Returns a harmless form of each command that a driver sends directly; only the connection's name changes."""
    return {
        "CLIENT|LIST": ("CLIENT", "LIST", "ID", "0"),
        "CLIENT|SETNAME": ("CLIENT", "SETNAME", "txbatch:doctor"),
        "FCALL": ("FCALL", f"{LIBRARY_NAME}_doctor_asks", "1", keys.control),
        "FCALL_RO": ("FCALL_RO", f"{LIBRARY_NAME}_doctor_asks", "1", keys.control),
        "FUNCTION|LIST": ("FUNCTION", "LIST", "LIBRARYNAME", LIBRARY_NAME),
        "SCAN": ("SCAN", "0", "COUNT", "1"),
    }


def _may(connection: RedisConnection, *command: str) -> bool:
    """Returns whether the user may send a command; any answer but a missing right means yes."""
    try:
        connection.client.execute_command(*command)
    except NoPermissionError as error:
        return "key" in str(error).lower() and command[0].startswith("FCALL")  # it refuses the key, not the command
    except RedisError as error:  # such as "function not found": the right is not missing
        return "unknown command" not in str(error).lower()
    return True


def _library(connection: RedisConnection) -> LibraryState:
    try:
        found = connection.call("FUNCTION", "LIST", "LIBRARYNAME", LIBRARY_NAME, "WITHCODE")
    except StateRefusedError:
        return LibraryState.UNKNOWN
    if not found:
        return LibraryState.MISSING
    return LibraryState.LOADED if holds_code(found, library_code().encode()) else LibraryState.OTHER_CODE


def _settings(connection: RedisConnection) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name in SETTINGS:
        with contextlib.suppress(StateRefusedError):  # CONFIG is often blocked
            found |= texts_by_name(connection.call("CONFIG", "GET", name))
    return found


def _lacking_on_keys(
    connection: RedisConnection, keys: Keys, library: LibraryState, wanted: tuple[str, ...]
) -> tuple[str, ...] | None:
    try:
        if library is LibraryState.LOADED:
            reply = connection.function("lacking", "1", keys.control, *wanted, read_only=True)
        else:
            reply = connection.call("EVAL_RO", LACKING_SCRIPT, "1", keys.control, *wanted)
    except StateRefusedError as error:
        is_key = isinstance(error.__cause__, NoPermissionError) and "key" in str(error.__cause__).lower()
        return wanted if is_key else None
    return tuple(text_of(name) for name in reply)


def _round_trip_ms(connection: RedisConnection, keys: Keys, clock: Callable[[], float]) -> float:
    started_s = clock()
    with contextlib.suppress(StateRefusedError):  # a refusal takes equally long
        connection.call("EXISTS", keys.control)
    return (clock() - started_s) * 1000


def _clock_ahead_s(connection: RedisConnection, wall_clock: Callable[[], float]) -> float | None:
    before_s = wall_clock()
    try:
        seconds, microseconds = connection.call("TIME")
    except StateRefusedError:
        return None
    return float(seconds) + float(microseconds) / 1e6 - (before_s + wall_clock()) / 2
