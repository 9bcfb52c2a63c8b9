"""Durability levels: what a run requires, and what a server provides. Pure.

Data and position are written together, so a server that loses its last writes is still consistent. But effects upstream
cannot be undone: an acknowledged message or a deleted file does not return. So everything that is released upstream
waits for a level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from state.printable import counted

SNAPSHOTS_ONLY = "everything since its last snapshot"
ALMOST_ALWAYS = "always, but not while it rewrites its file"
"""The effect of appendfsync always under no-appendfsync-on-rewrite yes."""


class DurabilityLevel(StrEnum):
    """The confirmation that a commit needs before anything is released upstream."""

    MEMORY = "memory"
    """The server has answered."""
    FSYNC = "fsync"
    """It is in the server's append-only file, and that file is on disk."""
    REPLICA = "replica"
    """The required number of replicas has received it."""
    SERVICE = "service"
    """The server has answered, and its service guarantees that this lasts. The user vouches for it; nothing checks."""


GUARANTEED = "nothing it has answered, by the service's contract, as you said"
"""What a power cut may take, at level service."""


def how_to_set(setting: str) -> str:
    """Returns how to change a server's setting, such as "maxmemory-policy noeviction"."""
    return f"CONFIG SET {setting}, or in its parameter group or console where a managed service blocks CONFIG"


@dataclass(frozen=True, slots=True)
class Durability:
    """The durability that a run asks for: a level, and for level replica how many replicas have to confirm.

    `because` is the reason, such as "done files are deleted", if the run chose the level and not its user.
    """

    level: DurabilityLevel = DurabilityLevel.MEMORY
    replicas: int = 1
    because: str = ""

    @property
    def waits(self) -> bool:
        return self.level in (DurabilityLevel.FSYNC, DurabilityLevel.REPLICA)


@dataclass(frozen=True, slots=True)
class ServerDurability:
    """A server's measured durability; None and "" stand for unknown.

    Attributes:
        name: product and version, such as "redis 7.2.4".
        appendfsync: how often it syncs its append-only file: "always", "everysec", "no" or `ALMOST_ALWAYS`.
        snapshots: it makes automatic snapshots.
        confirms_replicas: this user may call WAIT.
        replicas: how many replicas are connected and have caught up.
    """

    name: str = ""
    has_append_file: bool | None = None
    appendfsync: str = ""
    snapshots: bool | None = None
    confirms_replicas: bool = False
    replicas: int = 0

    def can_lose(self) -> str:
        """Returns what a power cut may take, such as "its last second or two of commits (appendfsync everysec)"."""
        if self.has_append_file is None:
            return "everything: it does not say that it keeps anything on disk"
        if self.has_append_file:
            return {
                "always": "nothing it has answered (appendfsync always)",
                ALMOST_ALWAYS: "what it has answered while it rewrote its file (no-appendfsync-on-rewrite yes)",
                "everysec": "its last second or two of commits (appendfsync everysec)",
                "no": "its last half minute of commits or more (appendfsync no)",
            }.get(
                self.appendfsync,
                "its last commits (it keeps an append-only file; this user may not read how often it syncs it)",
            )
        if self.snapshots is None:
            return f"{SNAPSHOTS_ONLY}, if it makes any (appendonly no)"
        return f"{SNAPSHOTS_ONLY} (appendonly no)" if self.snapshots else "everything (appendonly no, no snapshots)"

    def can_lose_of(self, *, committed_txid: int, synced_txid: int) -> str:
        """Returns what a power cut may take of a topology, given the last txid confirmed at durability fsync.

        A server's settings may have changed since a run: each run sets the private server to its own durability.
        """
        if not synced_txid or not self.has_append_file or self.appendfsync == "always":
            return f"a power cut may take from this server {self.can_lose()}"
        if synced_txid < committed_txid:
            return (
                f"nothing up to txid {synced_txid:,}, which is on disk; of later ones, as the server is set now, a "
                f"power cut may take {self.can_lose()}"
            )
        return (
            "nothing of this topology: all that is committed is on disk; the server, as it is set now, could lose "
            f"{self.can_lose()}"
        )

    def lacks(self, asked: Durability) -> str:
        """Returns why the server cannot give a level and what to change, "" if it can."""
        if asked.level is DurabilityLevel.FSYNC:
            return self._lacks_syncs()
        if asked.level is DurabilityLevel.REPLICA:
            return self._lacks_replicas(asked.replicas)
        return ""

    def _lacks_syncs(self) -> str:
        if self.has_append_file is None:
            return "it does not say that it keeps anything on disk, as INFO persistence would; use a server that does"
        if not self.has_append_file:
            return f"it keeps no append-only file (appendonly no); turn it on: {how_to_set('appendonly yes')}"
        if not self.appendfsync:
            return (
                "it does not let this user read how often it syncs its append-only file; grant what `txbatch acl "
                "TOPOLOGY --durability fsync` prints, or ask for another level where a managed service blocks CONFIG"
            )
        if self.appendfsync == ALMOST_ALWAYS:
            return (
                "it does not sync its append-only file while it rewrites it; set no-appendfsync-on-rewrite no "
                f"({how_to_set('no-appendfsync-on-rewrite no')})"
            )
        if self.appendfsync != "always":
            return (
                f"it has appendfsync {self.appendfsync}, under which {self.name} answers before its disk has; set "
                f"appendfsync always ({how_to_set('appendfsync always')})"
            )
        return ""

    def _lacks_replicas(self, wanted: int) -> str:
        if not self.confirms_replicas:
            return "it does not let this user call WAIT; grant what `txbatch acl TOPOLOGY --durability replica` prints"
        if self.replicas < wanted:
            return (
                f"it has {counted(self.replicas, 'connected replica')}, and {wanted} must confirm; attach replicas, or "
                "ask for fewer (--durability-replicas)"
            )
        return ""


@dataclass(frozen=True, slots=True)
class DurabilityReport:
    """The durability that a run waits for, and what a power cut may take from its server; shown by the command line."""

    asked: Durability = Durability()
    server_can_lose: str = ""

    def first_line(self) -> str:
        return f"a power cut may take from this server {self.server_can_lose}; {self._waiting()}"

    def last_line(self, released_txid: int) -> str:
        """Returns the line for the end of a run, when everything up to a txid is as durable as it asked.

        At level memory it is "", because the first line has said everything.
        """
        match self.asked.level:
            case DurabilityLevel.FSYNC:
                return f"on disk up to txid {released_txid:,}, confirmed by the server (durability fsync)"
            case DurabilityLevel.REPLICA:
                count = counted(self.asked.replicas, "replica")
                return f"on {count} up to txid {released_txid:,}, confirmed (durability replica)"
            case DurabilityLevel.SERVICE:
                durable = f"durable up to txid {released_txid:,} by the service's contract"
                return f"{durable}, as you said (durability service)"
        return ""

    def to_dict(self, released_txid: int) -> dict[str, str | int]:
        return {
            "level": self.asked.level.value,
            "released_txid": released_txid,
            "server_can_lose": self.server_can_lose,
        }

    def _waiting(self) -> str:
        match self.asked.level:
            case DurabilityLevel.FSYNC:
                reason = f", because {self.asked.because}" if self.asked.because else ""
                return f"what is released upstream waits for its disk (durability fsync{reason})"
            case DurabilityLevel.REPLICA:
                count = counted(self.asked.replicas, "replica")
                return f"what is released upstream waits for {count} (durability replica)"
            case DurabilityLevel.SERVICE:
                return "what is released upstream waits for its answer only (durability service)"
        return "what is released upstream waits for its answer only (durability memory)"


def durable_txids(control: Mapping[str, str]) -> dict[str, int]:
    """Returns level -> last txid known to have reached the level, from the fields of a control key."""
    found = {level.value: control.get(durable_field(level), "") for level in DurabilityLevel}
    return {level: int(txid) for level, txid in found.items() if txid.isdecimal()}


def confirmed_line(level: str, txid: int) -> str:
    """Returns the txid up to which a topology is known to have reached a level; for level service, on whose word."""
    if level == DurabilityLevel.SERVICE:
        return f"up to txid {txid:,} by the service's contract, as the run's user said (durability service)"
    return f"up to txid {txid:,} at durability {level}"


def durable_field(level: DurabilityLevel) -> str:
    """Returns the field of the control key that keeps the last txid known to have reached a level."""
    return f"durable_{level.value}"
