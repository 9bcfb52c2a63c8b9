"""Computes a topology's state again, from its input, on a scratch server (driver).

A refold is an ordinary run under another topology id, on a private server in a temporary folder that is deleted
afterwards. It ends after the transaction that the original has committed last. It never touches the original, and does
not notify the spout's committer, so nothing is acknowledged upstream. Effects of bolts outside declared state happen
again, as at every replay.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from coordinator.operating.inspection.verify.comparison import Refolded
from coordinator.run import run
from coordinator.spouts.row_spout import RowSpout
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_description import changes, described
from coordinator.topology.planning.pickling import pickle_spec
from coordinator.topology.planning.plan import make_plan
from coordinator.transactional.assembly import has_external_effects
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.machine.metadata_log import COORDINATOR_SCOPE, REPUBLISHED_SCOPE, is_own_scope
from coordinator.transactional.options import EngineName, RunOptions
from coordinator.transactional.start.spout_start import SpoutStart
from coordinator.watching.run_observer import Observation, Observer, TurnEnded
from state.codec import unpack
from state.errors import TopologyError
from state.keys import NAME_LENGTH_MAX, parse_metadata_field
from state.records.declared_states import DescribedState
from state.records.stored_records import StateImage, StoredRecords
from state.redis_admin.all_records import RedisRecords
from state.redis_admin.topology import RedisTopology
from state.redis_server.embedded import EmbeddedServer

SCRATCH_PREFIX = "refold-"


Runner = Callable[[Topology, str, RunOptions, Sequence[Observer]], object]
"""Runs a topology up to the last txid of its options, with its state on the server at an address, and observers."""
ScratchServer = Callable[[], AbstractContextManager[str]]
"""Opens an empty server, and returns its address."""


def refuse_unrepeatable(topology: Topology) -> None:
    """Refuses topologies whose state a second run cannot, or must not, compute; called before anything is read.

    Raises:
        TopologyError: the message names the spout or the committer, and the reason.
    """
    spout = topology.spout
    name = f"spout {spout.component_id!r} ({type(spout.spec).__name__})"
    reason = ""
    if SpoutKind(spout.spec).is_opaque:
        reason = f"{name} is opaque: it cuts other batches when it reads again, so the same txid holds other input"
    elif isinstance(spout.spec, RowSpout):
        reason = f"{name} reads DataFrames of the session that runs it: a new one need not return the same rows"
    elif has_external_effects(topology):
        owners = [c.component_id for c in topology.components if getattr(c.spec, "external_effects", False)]
        reason = f"committer {owners[0]!r} has external effects, which would happen again"
    if reason:
        raise TopologyError(
            f"topology {topology.topology_id!r} cannot be refolded: {reason}; its state cannot be computed again, only "
            "verified without --refold"
        )


def scratch_of(topology: Topology) -> Topology:
    """Returns the topology under the id, and in the single slot, that it has on a scratch server."""
    return replace(topology, topology_id=f"{SCRATCH_PREFIX}{topology.topology_id}"[:NAME_LENGTH_MAX], shard_count=1)


def why_out_of_order(metadata: Mapping[str, Any], *, has_quarantined: bool) -> str:
    """Returns why the input, read in its order, gives another state than the one that is stored; "" if it does not."""
    if any(parse_metadata_field(field)[0] == REPUBLISHED_SCOPE for field in metadata):
        return "a refold reads the input in its order, and republished batches were committed out of it"
    return "a refold reads everything, and quarantined batches are not in the state" if has_quarantined else ""


def refuse_another_state(records: RedisRecords, stored: StoredRecords, topology: Topology, subject: str) -> None:
    """Refuses to compute a state again if its topology, read in order up to the last commit, would give another one.

    Raises:
        TopologyError: the message begins with the subject, and says why and what to do.
    """
    differs = changes(stored.control["topology"], described(topology)).states
    reason = why_out_of_order(stored.metadata, has_quarantined=bool(records.quarantined()))
    if not int(stored.control["committed"]):
        reason = "nothing is committed; run it first"
    elif differs:
        reason = f"the factory's topology has other states than the stored one: {differs[0]}; give that of the last run"
    elif reason:
        reason += "; run the topology under another id to have all of it computed"
    if reason:
        raise TopologyError(f"{subject} cannot be computed again: {reason}")


def refold(
    stored: StateImage,
    states: Sequence[DescribedState],
    *,
    topology: Topology,
    run_to: Runner,
    server: ScratchServer,
) -> Refolded:
    """Computes states again, each from its first transaction to the last committed one.

    The topology comes from its factory, and has passed `refuse_unrepeatable`.

    Raises:
        TransactionError: the run failed; see `coordinator.run.run`.
    """
    last_txid = int(stored.committed)
    with recomputed(topology, last_txid, states, run_to=run_to, server=server) as found:
        refolded = found.records().image(states)
    return Refolded(refolded, moved_input(topology, stored.metadata, refolded.metadata, last_txid))


@contextmanager
def recomputed(
    topology: Topology, last_txid: int, states: Sequence[DescribedState], *, run_to: Runner, server: ScratchServer
) -> Iterator[RedisTopology]:
    """Runs a topology up to a transaction, and yields it as it is then on its scratch server.

    Each of the `states` holds what was written from the transaction on at which it began.
    """
    scratch = scratch_of(topology)
    with server() as url, closing(RedisTopology(url, scratch.topology_id)) as found:
        for first in sorted({1, last_txid + 1, *(state.began_txid for state in states)}):
            if 1 < first <= last_txid + 1:
                run_to(scratch, url, RunOptions(last_txid=first - 1, notifies_spout=False), ())
            found.empty(state for state in states if 1 < state.began_txid == first)
        yield found


def moved_input(
    topology: Topology, stored: Mapping[str, bytes], refolded: Mapping[str, bytes], last_txid: int
) -> tuple[str, ...]:
    """Returns the metadata fields of committed transactions whose input differs.

    Pending transactions are left out, since their input is still to be read, and so are notes of the spout.
    """
    ours, theirs = _settled(stored, last_txid), _settled(refolded, last_txid)
    fields = [field for field in sorted(ours.keys() | theirs.keys()) if ours.get(field) != theirs.get(field)]
    if not fields:
        return ()
    plan = make_plan(topology, pickle_spec)
    start = SpoutStart(topology, plan.wirings[plan.emitter_tasks[0]].context(), tries=1, pause=lambda _: None)
    with ExitStack() as resources:
        start.make(resources)

        def position(packed: bytes) -> Any:
            return start.position(unpack(packed))

        return tuple(
            field
            for field in fields
            if field not in ours
            or field not in theirs
            or not field.startswith(f"{COORDINATOR_SCOPE}:")
            or position(ours[field]) != position(theirs[field])
        )


def _settled(metadata: Mapping[str, bytes], last_txid: int) -> dict[str, bytes]:
    found = {}
    for field, packed in metadata.items():
        scope, txid = parse_metadata_field(field)
        if txid <= last_txid and not is_own_scope(scope):
            found[field] = packed
    return found


@contextmanager
def scratch_server() -> Iterator[str]:
    """Yields the address of a private server in a temporary folder, which is deleted with it."""
    with (
        tempfile.TemporaryDirectory(prefix="txbatch-refold-") as folder,
        EmbeddedServer(Path(folder) / "data") as server,
    ):
        yield server.url


def on_this_machine(factory_module: str, *, master: str, conf: Mapping[str, str], engine: EngineName) -> Runner:
    """Returns a runner that starts its engine for each run, on this machine: the scratch server has a Unix socket.

    Raises:
        TopologyError: the master is on other machines.
    """
    if not master.startswith("local") or master.startswith("local-cluster"):
        raise TopologyError(
            f"the input is read again on this machine, since the scratch server is private, but --master is {master!r};"
            " give local[*]"
        )

    def run_to(topology: Topology, url: str, options: RunOptions, observers: Sequence[Observer]) -> None:
        watch = StallWatch(stall_after_s(topology.message_timeout_s), time.monotonic)
        run(
            topology,
            redis_url=url,
            master=master,
            conf=conf,
            engine=engine,
            options=options,
            factory_module=factory_module,
            on_start=watch.begin,
            observers=[watch, *observers],
        )

    return run_to


STALL_MIN_S = 60.0
TIMEOUTS_WAITED = 3
"""Message timeouts without a commit after which the source counts as empty; failed attempts are tried again before."""


def stall_after_s(message_timeout_s: float) -> float:
    """Returns how many seconds a refold may go without a commit."""
    return max(STALL_MIN_S, TIMEOUTS_WAITED * message_timeout_s)


class StallWatch:
    """An observer that drains its run once it has committed nothing for `stall_s` seconds."""

    def __init__(self, stall_s: float, clock: Callable[[], float]) -> None:
        self._stall_s, self._clock = stall_s, clock
        self._run: Coordinator | None = None
        self._seen, self._since_s = -1, 0.0

    def begin(self, run: Coordinator) -> None:
        """Called once, when the run has started."""
        self._run = run

    def __call__(self, observation: Observation) -> None:
        if self._run is None or not isinstance(observation, TurnEnded):
            return
        committed = self._run.statistics.last_txid
        if committed != self._seen:
            self._seen, self._since_s = committed, self._clock()
        elif self._clock() - self._since_s >= self._stall_s:
            self._run.drain()
