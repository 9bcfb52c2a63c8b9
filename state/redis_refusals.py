"""What it means that the function library has refused a call, and what to do about it."""

from __future__ import annotations

from state.commit import CommitReply, CommitStatus
from state.errors import StateRefusedError


def acquire_refusal(topology_id: str, status: str, details: list[str]) -> StateRefusedError:
    """The error for a refused `acquire`, whose status and details the library answered."""
    if status == "SOURCE_CHANGED":
        return StateRefusedError(
            f"topology {topology_id!r} was started on another input: stored fingerprint {details[0]!r}, given "
            f"{details[1]!r}; run `txbatch drop {topology_id}` to start over, choose another topology id, or "
            "adopt the new input from here on"
        )
    if status == "TOPOLOGY_CHANGED":
        return StateRefusedError(
            f"topology {topology_id!r} has changed since its last run, and nobody has agreed to that: stored "
            f"description {details[0]!r}, given {details[1]!r}; it was changed while this run started: start it again"
        )
    if status == "DROPPING":
        return StateRefusedError(
            f"topology {topology_id!r} is being dropped; finish it with `txbatch drop {topology_id}`"
        )
    remedy = {
        "REGRESSED": f"restore the server's data, or start over with `txbatch drop {topology_id}`",
        "VERSION": "run the version of txbatch that wrote it, or drop the topology",
    }.get(status, f"remove the key, or start over with `txbatch drop {topology_id}`")
    return StateRefusedError(f"topology {topology_id!r} cannot start: {status}: {details[0]}; {remedy}")


def state_not_as_left(reply: CommitReply) -> str:
    """What to do about a reply that says the server does not hold what its owner left there."""
    if reply.status is CommitStatus.REGRESSED and reply.detail.endswith("is gone"):
        return (
            "the topology was dropped, or the server has lost all it held of it; this run stops; restore the server's "
            "data, or run again to begin with the first transaction"
        )
    if reply.status is CommitStatus.REGRESSED:
        return (
            "the server has gone back to an earlier state (a restored backup, a lagging replica, a lost last second); "
            "this run stops and has changed nothing since; run again to continue from what the server holds now"
        )
    return "the state in Redis is not the one this run left; find out what changed it before you run again"
