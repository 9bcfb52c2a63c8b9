"""Measures a server's durability: from INFO, from its settings where they are readable, and by trying."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from state.errors import StateRefusedError
from state.records.durability import ALMOST_ALWAYS, DurabilityLevel, ServerDurability
from state.redis_client.connection import RedisConnection, text_of, texts_by_name
from state.redis_owner.fitness import product_of

SYNC_SETTINGS = ("CONFIG", "GET", "appendonly", "appendfsync", "no-appendfsync-on-rewrite")
"""Asks for every setting that decides when commits are on disk."""
_REPLICA = re.compile(r"(slave|replica)\d+")


def measure_durability(
    connection: RedisConnection, info: Mapping[str, Any], asked: DurabilityLevel = DurabilityLevel.MEMORY
) -> ServerDurability:
    """Returns the durability of a server with this reply to INFO; writes nothing.

    Called at the start of a run, and by ``txbatch status``. Only the command that confirms the asked level is tried.
    """
    syncs = _allowed(connection, *SYNC_SETTINGS)
    save = _allowed(connection, "CONFIG", "GET", "save")
    has_append_file = _number(info, "aof_enabled") == 1 if "aof_enabled" in info else None
    return ServerDurability(
        name=" ".join(filter(None, product_of(info))),
        has_append_file=has_append_file,
        appendfsync=appendfsync_of(syncs or ()) if has_append_file else "",
        snapshots=None if not save else bool(texts_by_name(save).get("save")),
        confirms_replicas=asked is DurabilityLevel.REPLICA and _allowed(connection, "WAIT", "0", "1") is not None,
        replicas=sum(_is_in_step(value) for name, value in info.items() if _REPLICA.fullmatch(name)),
    )


def appendfsync_of(reply: Sequence[Any] | Mapping[Any, Any]) -> str:
    """Returns the effective appendfsync of a reply to `SYNC_SETTINGS`: "" if it is empty, "never" without the file."""
    found = texts_by_name(reply)
    if found.get("appendonly") == "no":
        return "never"
    appendfsync = found.get("appendfsync", "")
    if appendfsync == "always" and found.get("no-appendfsync-on-rewrite") == "yes":
        return ALMOST_ALWAYS
    return appendfsync


def _allowed(connection: RedisConnection, *command: str) -> Any | None:
    """Returns the reply, None if the server lacks the command or this user may not run it."""
    try:
        return connection.call(*command)
    except StateRefusedError:
        return None


def _is_in_step(value: Any) -> bool:
    """Returns whether a line of INFO replication names a replica that has caught up."""
    if isinstance(value, Mapping):
        return text_of(value.get("state", "")) == "online"
    return "state=online" in text_of(value)


def _number(info: Mapping[str, Any], name: str) -> int:
    text = text_of(info[name])
    return int(text) if text.isdecimal() else 0
