"""The commands that txbatch uses on a server: the least rights a user needs in order to run a topology.

Lua does not roll back: a function that found a right missing after its first write would leave a torn commit.
The rights are therefore checked when a run starts, and every function checks those it needs before it writes.
"""

from __future__ import annotations

from state.errors import StateRefusedError
from state.keys import Keys
from state.records.durability import DurabilityLevel
from state.redis_client.connection import RedisConnection, text_of
from state.troubles import Trouble

COMMANDS_ON_KEYS = (
    *("DEL", "EXISTS", "GET", "GETRANGE", "HDEL", "HEXISTS", "HGET", "HGETALL", "HINCRBY", "HLEN", "HMGET"),
    *("HSET", "LRANGE", "LTRIM", "PEXPIREAT", "PFADD", "RPUSH", "SADD", "SET", "SMISMEMBER", "SREM", "TYPE", "UNLINK"),
    *("XADD", "XINFO|STREAM", "XTRIM"),
    *("ZADD", "ZCARD", "ZCOUNT", "ZMSCORE", "ZRANGEBYSCORE", "ZREM", "ZREMRANGEBYRANK", "ZREMRANGEBYSCORE"),
)
"""Every command that the function library calls on keys for a run, whatever states the topology declares."""

COMMANDS = (
    *("CLIENT|LIST", "CLIENT|SETNAME", "FCALL", "FCALL_RO", "FUNCTION|LIST", "FUNCTION|LOAD"),
    *("INFO", "SCAN", "SELECT"),
)
"""Commands that the driver and its readers send directly: SELECT if the URL names a database, CLIENT to tell a drop
that a run is connected."""

COMMANDS_OF_LEVEL = {DurabilityLevel.FSYNC: ("CONFIG|GET",), DurabilityLevel.REPLICA: ("WAIT",)}
"""Additional commands to confirm a level. CONFIG GET also shows a server's passwords, so only level fsync has it."""

COMMANDS_OF_EXPIRING_FIELDS = ("HPEXPIREAT", "HPEXPIRETIME")
"""Additional commands if fields expire; servers before Redis 7.4 and Valkey 9 lack them."""

COMMANDS_TO_VERIFY = (
    *("DBSIZE", "EXEC", "HSCAN", "KEYS", "LLEN", "MULTI", "PEXPIRETIME", "PFCOUNT", "PTTL", "RENAME"),
    *("SCARD", "SISMEMBER", "SMEMBERS", "SSCAN", "XLEN", "XRANGE", "XSETID", "ZCARD", "ZRANGE", "ZSCAN", "ZSCORE"),
)
"""Commands of `txbatch verify` and `txbatch state` only; a run does not need the right to use them."""


def commands_on_keys(*, fields_expire: bool) -> tuple[str, ...]:
    """Returns the commands that a run calls on keys; `fields_expire`: whether fields of a state may expire."""
    return (*COMMANDS_ON_KEYS, *(COMMANDS_OF_EXPIRING_FIELDS if fields_expire else ()))


def require_all_rights(
    connection: RedisConnection,
    keys: Keys,
    level: DurabilityLevel = DurabilityLevel.MEMORY,
    *,
    fields_expire: bool = False,
) -> None:
    """Checks that the user may run every command that the topology needs; called once at start.

    The message names all missing rights, and the command that prints how to grant them.
    """
    wanted = commands_on_keys(fields_expire=fields_expire)
    lacking = [text_of(name) for name in connection.function("lacking", "1", keys.control, *wanted, read_only=True)]
    if lacking and set(lacking) <= set(COMMANDS_OF_EXPIRING_FIELDS):
        raise StateRefusedError(
            f"server {connection.server} cannot have fields of a hash expire: it lacks {', '.join(lacking)}, or this "
            "user may not run it; nothing was written; take Redis 7.4, Valkey 9 or later, grant what `txbatch acl "
            f"{keys.topology_id} --expiring-fields` prints, or have parts expire, as in HashState(...).per('day', "
            "date, expire_at=...)"
        ).about(Trouble.SERVER_UNFIT)
    if lacking:
        option = f" --durability {level.value}" if level in COMMANDS_OF_LEVEL else ""
        option += " --expiring-fields" if fields_expire else ""
        raise StateRefusedError(
            f"server {connection.server} does not let this user run {', '.join(lacking)} on keys "
            f"{keys.pattern!r}, or lacks these commands; nothing was written; grant what "
            f"`txbatch acl {keys.topology_id}{option}` prints, and undo any rename-command"
        ).about(Trouble.SERVER_RIGHTS)


def acl_rules(
    *keys: Keys,
    loads_functions: bool = True,
    level: DurabilityLevel = DurabilityLevel.MEMORY,
    fields_expire: bool = False,
) -> list[str]:
    """Returns the ACL rules of a user that can run, inspect and drop a topology with these keys, and do nothing else.

    A topology with shards has the keys of each shard. Without `loads_functions`, another user loads the function
    library, and this user cannot change it. A server without the commands of `fields_expire` refuses rules that name
    them.
    """
    commands = [
        *commands_on_keys(fields_expire=fields_expire),
        *COMMANDS,
        *COMMANDS_TO_VERIFY,
        *COMMANDS_OF_LEVEL.get(level, ()),
    ]
    if not loads_functions:
        commands.remove("FUNCTION|LOAD")
    patterns = [f"~{each.pattern}" for each in keys]
    return ["reset", "on", *patterns, *(f"+{command.lower()}" for command in sorted(commands))]
