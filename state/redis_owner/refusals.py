"""The errors and remedies for refusals by the function library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from state.commits.commit import CommitReply, CommitStatus, RefusalCause
from state.errors import StateRefusedError
from state.keys import Keys
from state.redis_client.connection import RedisConnection
from state.troubles import Trouble

TORN_REMEDY = (
    "restore its data from a copy taken at one moment; it holds part of a write: the server was restarted twice "
    "after a power failure, and kept that part in its append-only file the first time; or something other than "
    "txbatch wrote to the key that counts writes; or a cluster moved its slot under an older txbatch"
)


def refuse_remains(topology_id: str, control: Mapping[str, str]) -> None:
    """Refuses to read a topology that is partly dropped, or holds a part of a lost write."""
    if "dropping" in control:
        raise StateRefusedError(
            f"topology {topology_id!r} is partly dropped, and the rest is unusable; run `txbatch drop "
            f"{topology_id}` again"
        ).about(Trouble.DROPPING)
    if control.get("begun") != control.get("ended"):
        raise StateRefusedError(f"the state of topology {topology_id!r} is torn: {TORN_REMEDY}").about(Trouble.TORN)


class ReshapedError(StateRefusedError):
    """The number of shards has changed during a read; the reader has to find the shards again and repeat it."""

    def __init__(self, topology_id: str, now: str) -> None:
        super().__init__(f"topology {topology_id!r} was imported meanwhile, and has its state {now} now; read it again")


def another_life_error(topology_id: str) -> StateRefusedError:
    return StateRefusedError(f"topology {topology_id!r} was dropped or imported while it was read; read it again")


_ADVICE = {
    RefusalCause.LETTERS_FULL: (
        "; look at them with `txbatch dead-letters list {id}`, make room with `txbatch dead-letters drop {id} --until "
        "TXID`, or raise the limit with builder.set_dead_letters(total=...)"
    ),
    RefusalCause.LETTER_GONE: ", and nothing was published; republish the others again",
    RefusalCause.OPERATIONS: "; cut smaller transactions",
}
"""Cause of a refused commit -> remedy, appended to the library's sentence; {id} is the topology id."""
_TROUBLES = {"TORN": Trouble.TORN, "REGRESSED": Trouble.REGRESSED, "VERSION": Trouble.OTHER_VERSION}


def acquire_refusal(topology_id: str, status: str, details: list[str]) -> StateRefusedError:
    """Returns the error for an `acquire` that the library refused with this status and these details."""
    if status == "SOURCE_CHANGED":
        return StateRefusedError(
            f"topology {topology_id!r} was started on another input: stored fingerprint {details[0]!r}, given "
            f"{details[1]!r}; run `txbatch drop {topology_id}` to start over, choose another topology id, or "
            "continue on the new input with --adopt"
        ).about(Trouble.INPUT_CHANGED)
    if status == "TOPOLOGY_CHANGED":
        return StateRefusedError(
            f"topology {topology_id!r} was changed on the server while this run was starting: stored description "
            f"{details[0]!r}, given {details[1]!r}; start the run again"
        )
    if status == "DROPPING":
        return StateRefusedError(
            f"topology {topology_id!r} is being dropped, or its drop was interrupted; finish it with "
            f"`txbatch drop {topology_id}`"
        ).about(Trouble.DROPPING)
    remedy = {
        "TORN": f"start over with `txbatch drop {topology_id}`, or {TORN_REMEDY}",
        "REGRESSED": f"restore the server's data, or start over with `txbatch drop {topology_id}`",
        "VERSION": f"run the version of txbatch that wrote it, or start over with `txbatch drop {topology_id}`",
    }.get(status, f"remove the key, or start over with `txbatch drop {topology_id}`")
    return StateRefusedError(f"topology {topology_id!r} cannot start: {status}: {details[0]}; {remedy}").about(
        trouble_of(status)
    )


def advised(topology_id: str, reply: CommitReply) -> CommitReply:
    """Returns the reply to a commit; its detail ends with the remedy, if there is one."""
    return replace(reply, detail=reply.detail + _ADVICE.get(reply.cause, "").format(id=topology_id))


def trouble_of(status: str) -> Trouble:
    return _TROUBLES.get(status, Trouble.STATE_REFUSED)


def state_not_as_left(reply: CommitReply) -> str:
    """Returns the remedy if the server does not hold its owner's last writes."""
    if reply.status is CommitStatus.TORN:
        return f"this run stops and has changed nothing since; {TORN_REMEDY}"
    if reply.cause is RefusalCause.FIELD_DAMAGED:
        return (
            "what the server holds of the topology's own record is damaged; this run stops and has changed nothing "
            "since; restore the server's data, or start over with `txbatch drop`"
        )
    if reply.cause is RefusalCause.KEY_GONE:
        return (
            "the topology was dropped, or the server has lost its state; this run stops; restore the server's "
            "data, or run again to begin with the first transaction"
        )
    if reply.status is CommitStatus.REGRESSED:
        return (
            "the server has returned to an earlier state (a restored backup, a lagging replica, its last second or two "
            "lost); this run stops and has changed nothing since; run again to continue from what the server holds now"
        )
    return "the state in Redis is not the one this run left; find out what changed it before you run again"


def refuse_shard(connection: RedisConnection, keys: Keys) -> None:
    """Refuses a slot that is a shard of another topology; called before anything there is changed.

    Raises:
        StateRefusedError: the slot is a shard's.
    """
    if not keys.is_shard and int(connection.call("EXISTS", keys.other_control)):
        home, _, number = keys.topology_id.rpartition(".")
        raise StateRefusedError(
            f"topology id {keys.topology_id!r} is taken: shard {number} of topology {home!r} is stored in its slot; "
            f"choose another id, or delete that topology and all its shards by `txbatch drop {home}`; if it no longer "
            f"knows this shard, add --shards {int(number) + 1}"
        ).about(Trouble.STATE_CHANGED)
