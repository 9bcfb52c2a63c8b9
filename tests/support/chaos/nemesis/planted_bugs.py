"""Bugs to be planted in a driver, each one that implementations of exactly once have had; the nemesis must find them.

A guard of ours rarely stands alone: what the fence keeps out, the revision and the order of txids keep out too. A
bug therefore takes out every check that would hide it, as if nobody had thought of the matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redis.backoff import NoBackoff
from redis.retry import Retry

from coordinator.transactional.start import takeover
from state.commits.commit import CommitStatus
from state.keys import Keys
from state.metadata import MetadataSum
from state.redis_client import connection as redis_connection
from state.redis_client import function_library
from state.redis_owner import slot as redis_slot
from state.redis_owner import store as redis_store
from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.mutants.patch import LIBRARY, Patch, mutated

NO_ALREADY = (
    "elseif revision == owner.revision + 1 and owner.digest and found[7] == owner.digest then",
    "elseif false then",
)
WRITE_DATA = "  local expired = run_steps(steps)\n  local oldest"
WRITE_THE_REST = "  local oldest = write_history("
REGISTER = "register('commit', commit)\n"
REGISTER_DATA = "register('commit_data', function(keys, argv) return commit(keys, argv, 'data') end)\n"
IN_TWO_STEPS = [
    ("local function commit(keys, argv)\n", "local function commit(keys, argv, step)\n"),
    ("  if begun == ended then\n", "  if true then\n"),
    (WRITE_DATA, WRITE_DATA.replace("(steps)", "(step == 'data' and steps or {})")),
    (WRITE_THE_REST, f"  if step == 'data' then return {{'OK', ''}} end\n{WRITE_THE_REST}"),
    (REGISTER, REGISTER + REGISTER_DATA),
]


def _library(mutants: Sequence[str], *changes: tuple[str, str]) -> None:
    """Has this process load a function library with these mutants and these texts replaced."""
    known = [patch for name in mutants for patch in MUTANTS[name].patches]
    code = mutated([*known, *(Patch(LIBRARY, old, new) for old, new in changes)])[LIBRARY]
    setattr(function_library, "library_code", lambda: code)  # noqa: B010 - mypy lets nobody assign to a function


def _no_fence() -> None:
    """A zombie's commit counts as its owner's."""
    _library(["no-fence", "no-revision", "no-order"], NO_ALREADY)


def _no_witness() -> None:
    """Nothing tells the owner that the server has lost its last writes, nor the next one that there is a hole."""
    _library(["no-revision", "no-order"], NO_ALREADY)

    def believed(keys: Keys, items: Sequence[Any], _stored_sum: str) -> tuple[dict[str, bytes], MetadataSum]:
        packed = {items[i].decode(): bytes(items[i + 1]) for i in range(0, len(items), 2)}
        return packed, MetadataSum(packed)

    for module in (redis_store, redis_slot):
        setattr(module, "verified_metadata", believed)  # noqa: B010
    for check in ("check_coordinator_metadata", "check_partition_metadata"):
        setattr(takeover, check, lambda *_, **__: None)


def _retried_increment() -> None:
    """The client library repeats what it got no answer to, and the server cannot tell that it is the same call."""
    _library(["no-revision", "no-order"], NO_ALREADY)

    def retrying(url: str, **options: Any) -> Any:
        client = redis_connection.connect(url, **options)
        client.set_retry(Retry(NoBackoff(), 3))
        return client

    setattr(redis_slot, "connect", retrying)  # noqa: B010


def _two_step_commit() -> None:
    """First the data, then the txid."""
    _library([], *IN_TWO_STEPS)
    connection: Any = redis_connection.RedisConnection
    in_one = connection.function

    def function(self: Any, name: str, *arguments: Any, **options: Any) -> Any:
        if name == "commit":
            reply = in_one(self, "commit_data", *arguments, **options)
            if reply[0].decode() != CommitStatus.OK.value:
                return reply
        return in_one(self, name, *arguments, **options)

    connection.function = function


BUGS: dict[str, Callable[[], None]] = {
    "no fence": _no_fence,
    "no witness": _no_witness,
    "retried increment": _retried_increment,
    "two-step commit": _two_step_commit,
}


def plant(name: str) -> None:
    """Plants a bug in this process; called before anything connects."""
    BUGS[name]()
