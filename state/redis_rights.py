"""Which commands txbatch uses on a server, and the least a user must be allowed to run a topology.

A function that met a missing right after its first write would leave a torn commit, for Lua does not roll
back. So the rights are checked when a run starts, and every function proves those it needs before it writes.
"""

from __future__ import annotations

from state.errors import StateRefusedError
from state.keys import Keys
from state.redis_connection import RedisConnection

COMMANDS_ON_KEYS = (
    "DEL",
    "EXISTS",
    "GET",
    "HDEL",
    "HGET",
    "HGETALL",
    "HLEN",
    "HMGET",
    "HSET",
    "RPUSH",
    "SADD",
    "SET",
    "SMISMEMBER",
    "SREM",
    "TYPE",
    "UNLINK",
    "ZADD",
    "ZMSCORE",
    "ZREM",
)
"""What the function library calls on the keys of a topology; all of them, whatever state it declares."""

COMMANDS = (
    "CLIENT|LIST",
    "CLIENT|SETNAME",
    "FCALL",
    "FCALL_RO",
    "FUNCTION|LIST",
    "FUNCTION|LOAD",
    "INFO",
    "SCAN",
    "SELECT",
)
"""What the driver and its readers send themselves; SELECT if their URL names a database, CLIENT so that a drop
can tell that a run was going."""


def require_all_rights(connection: RedisConnection, keys: Keys) -> None:
    """Makes sure that the user may run every command of the function library; called once at start.

    Raises:
        StateRefusedError: the user lacks a right, or the server a command; all of them are named.
        StateUnreachableError: no answer within the time allowed.
    """
    reply = connection.function("lacking", "1", keys.control, *COMMANDS_ON_KEYS, read_only=True)
    lacking = [name.decode() if isinstance(name, bytes) else str(name) for name in reply]
    if lacking:
        raise StateRefusedError(
            f"server {connection.server} does not let this user run {', '.join(lacking)} on keys "
            f"{keys.pattern!r}, or does not have these commands; nothing was written; grant what "
            f"`txbatch acl {keys.topology_id}` prints, and undo any rename-command"
        )


def acl_rules(keys: Keys, *, loads_functions: bool = True) -> list[str]:
    """The rules of a user that can run this topology, look at it and drop it, and nothing else.

    Args:
        keys: of the topology.
        loads_functions: False if another user loads the function library; this one can then not change it.
    """
    commands = [*COMMANDS_ON_KEYS, *COMMANDS]
    if not loads_functions:
        commands.remove("FUNCTION|LOAD")
    return ["reset", "on", f"~{keys.pattern}", *(f"+{command.lower()}" for command in sorted(commands))]
