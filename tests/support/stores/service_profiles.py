"""Managed services as their documentation describes them: real servers with commands taken away and INFO altered.

What is simulated is listed in docs/managed-redis.md, with what was only read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import redis

from state.redis_server.program import find_server_program
from tests.conftest import redis_program, running_server

AWS = ("BGREWRITEAOF", "BGSAVE", "CONFIG", "DEBUG", "MIGRATE", "REPLICAOF", "SAVE", "SHUTDOWN", "SLAVEOF", "SYNC")
REDIS_SOFTWARE = ("BGREWRITEAOF", "BGSAVE", "DEBUG", "MIGRATE", "MODULE", "REPLICAOF", "SAVE", "SHUTDOWN", "SLAVEOF")
AIVEN = ("ACL", "BGREWRITEAOF", "BGSAVE", "CLUSTER", "COMMAND", "CONFIG", "DEBUG", "FAILOVER", "LASTSAVE", "MIGRATE")
PERSISTENCE = ("aof_enabled", "rdb_last_bgsave_status", "rdb_changes_since_last_save", "loading")


@dataclass(frozen=True, slots=True)
class Profile:
    """A service.

    Attributes:
        program: "valkey" or "redis".
        blocked: commands that the server does not know.
        denied: ACL rules that take away others.
        info: fields of INFO that the service sets; None leaves one out.
        is_cluster: every slot is on the one node that clients see.
        arguments_max: most arguments of one call.
        refused: what the start says, if it is refused.
        unknown: what the server does not say of itself.
        levels: the levels of durability that a run may ask for.
    """

    name: str
    program: str = "valkey"
    blocked: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    info: Mapping[str, str | None] = field(default_factory=dict)
    is_cluster: bool = False
    arguments_max: int = 1_000_000
    refused: str = ""
    unknown: tuple[str, ...] = ()
    levels: tuple[str, ...] = ("memory", "service")


PROFILES = (
    Profile(
        "MemoryDB",
        blocked=(*AWS, "PSYNC", "MODULE"),
        denied=("-acl|setuser", "-acl|deluser", "-acl|load", "-acl|save"),
        info=dict.fromkeys(PERSISTENCE),
        is_cluster=True,
    ),
    Profile("ElastiCache, nodes", "redis", AWS, info={"maxmemory_policy": "volatile-lru", "evicted_keys": "12"}),
    Profile(
        "ElastiCache Serverless",
        blocked=(*AWS, "WAIT", "PSYNC", "MODULE"),
        info={"maxmemory_policy": "volatile-lru", **dict.fromkeys(PERSISTENCE)},
        is_cluster=True,
        arguments_max=3_999,
    ),
    Profile(
        "Memorystore for Valkey",
        denied=("-@admin", "-@dangerous", "+info", "+keys", "+client|list", "+client|setname", "+flushall"),
        info={"maxmemory_policy": "volatile-lru"},
    ),
    Profile(
        "Azure Cache for Redis",
        "redis",
        ("CONFIG", "DEBUG", "SAVE", "BGSAVE", "SHUTDOWN"),
        info={"redis_version": "6.0.14"},
        refused=r"is redis 6.0.14, but txbatch needs redis >= 7.0; upgrade it",
    ),
    Profile(
        "Azure Managed Redis",
        "redis",
        (*REDIS_SOFTWARE, "CLUSTER"),
        ("-config|set", "-acl|setuser"),
        {"redis_mode": None, "maxmemory_policy": "noeviction"},
        unknown=("its mode",),
    ),
    Profile(
        "Redis Cloud",
        "redis",
        (*REDIS_SOFTWARE, "CLUSTER", "CONFIG"),
        info={"maxmemory_policy": None, "redis_mode": None, **dict.fromkeys(PERSISTENCE)},
        unknown=("its mode", "its maxmemory-policy"),
    ),
    Profile(
        "Redis Cloud, evicting",
        "redis",
        (*REDIS_SOFTWARE, "CONFIG"),
        info={"maxmemory_policy": "allkeys-lru"},
        refused=r"'allkeys-lru', which may silently delete .*or in its parameter group or console where a managed",
    ),
    Profile(
        "Upstash",
        "redis",
        ("FUNCTION", "FCALL", "FCALL_RO", "CONFIG", "WAIT", "CLUSTER"),
        info=dict.fromkeys(("role", "redis_mode", "maxmemory_policy", *PERSISTENCE)),
        refused=r"does not allow FUNCTION LOAD and FCALL, .*docs/managed-redis.md",
    ),
    Profile("OCI Cache", "valkey", ("BGREWRITEAOF", "BGSAVE", "DEBUG", "MIGRATE", "SAVE"), ("-acl", "-config|set")),
    Profile(
        "OCI Cache, sharded",
        "valkey",
        ("EVAL", "EVAL_RO", "EVALSHA", "FCALL", "FCALL_RO", "FUNCTION", "SCRIPT"),
        is_cluster=True,
        refused=r"does not allow FUNCTION LOAD and FCALL, .*OCI Cache does for sharded clusters",
    ),
    Profile("Aiven for Valkey", "valkey", (*AIVEN, "MONITOR", "REPLICAOF", "SAVE", "SHUTDOWN", "SLAVEOF")),
    Profile(
        "a replica's address",
        "valkey",
        AWS,
        info={"role": "slave", "redis_version": None, "valkey_version": None},
        refused=r"is a slave; give the primary's address",
    ),
)


class ServiceClient(redis.Redis):
    """A client that sees a profile's INFO, and may send as many arguments as the service takes."""

    profile: Profile
    longest = 0

    def execute_command(self, *arguments: Any, **options: Any) -> Any:
        self.longest = max(self.longest, len(arguments))
        if len(arguments) > self.profile.arguments_max:
            raise redis.ResponseError(f"ERR too many arguments: {len(arguments)}")
        reply: Any = super().execute_command(*arguments, **options)
        if arguments[0] == "INFO":
            reply = {name: value for name, value in (reply | dict(self.profile.info)).items() if value is not None}
        return reply


@contextmanager
def service(profile: Profile) -> Iterator[ServiceClient]:
    """Runs a server as the service would, and yields a client of it."""
    program = find_server_program() if profile.program == "valkey" else redis_program()
    options = [part for command in profile.blocked for part in ("--rename-command", command, "")]
    if profile.is_cluster:
        options += ["--cluster-enabled", "yes"]
    with running_server(program, *options) as url:
        client = ServiceClient.from_url(url, protocol=2)
        assert isinstance(client, ServiceClient)
        client.profile = profile
        with client:
            if profile.is_cluster:
                super(ServiceClient, client).execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
                while client.cluster("INFO")["cluster_state"] != "ok":
                    time.sleep(0.02)  # the server says so within two seconds
            if profile.denied:
                super(ServiceClient, client).execute_command("ACL", "SETUSER", "default", *profile.denied)
            yield client
