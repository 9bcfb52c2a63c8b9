"""Computes a topology's state again, from its input, on a scratch server (driver).

A refold is an ordinary run under another topology id, on a private server in a temporary folder that is deleted
afterwards. It ends after the transaction that the original has committed last. It never touches the original, and
tells the spout's committer nothing, so nothing is acknowledged upstream. What bolts do outside declared state they do
again, as at every replay.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

from coordinator.building.topology import Topology
from coordinator.inspection.verify.comparison import Side
from coordinator.run import run
from coordinator.spouts.kinds.kind_of import kind_of
from coordinator.spouts.row_spout import RowSpout
from coordinator.transactional.assembly import has_external_effects
from coordinator.transactional.options import RunOptions
from state.errors import TopologyError
from state.redis_embedded import EmbeddedServer
from state.redis_topology import RedisTopology
from state.write_set import StateKind

SCRATCH_PREFIX = "refold-"
NAME_LENGTH_MAX = 64

Runner = Callable[[Topology, str, RunOptions], object]
"""Runs a topology to the end of its options, with its state on the server of that address."""
ScratchServer = Callable[[], AbstractContextManager[str]]
"""Opens a server that holds nothing, and gives its address."""


def refuse_unrepeatable(topology: Topology) -> None:
    """Refuses topologies whose state a second run cannot, or must not, compute; called before anything is read.

    Raises:
        TopologyError: the message names the spout or the committer, and the reason.
    """
    spout = topology.spout
    name = f"spout {spout.component_id!r} ({type(spout.spec).__name__})"
    reason = ""
    if kind_of(spout.spec).is_opaque:
        reason = f"{name} is opaque: it cuts other batches when it reads again, so the same txid holds other input"
    elif isinstance(spout.spec, RowSpout):
        reason = f"{name} reads DataFrames of the session that runs it: a new one need not return the same rows"
    elif has_external_effects(topology):
        owners = [c.component_id for c in topology.components if getattr(c.spec, "external_effects", False)]
        reason = f"committer {owners[0]!r} has external effects, which would happen again"
    if reason:
        raise TopologyError(
            f"topology {topology.topology_id!r} cannot be refolded: {reason}; verify it without --refold"
        )


def refold(
    topology: Topology, last_txid: int, kinds: Mapping[str, StateKind], run_to: Runner, server: ScratchServer
) -> Side:
    """Computes the state after a transaction, and returns it with the records of that run.

    Args:
        topology: as its factory makes it, of a kind that `refuse_unrepeatable` lets pass.
        last_txid: the last transaction to commit; 0 computes nothing.
        kinds: state name -> kind, of the states to return.
        run_to: runs it.
        server: where the scratch state is kept meanwhile.

    Raises:
        TransactionError: the run failed; see `coordinator.run.run`.
    """
    scratch = replace(topology, topology_id=f"{SCRATCH_PREFIX}{topology.topology_id}"[:NAME_LENGTH_MAX])
    with server() as url:
        if last_txid:
            run_to(scratch, url, RunOptions(last_txid=last_txid, tells_spout=False))
        found = RedisTopology(url, scratch.topology_id)
        try:
            read = found.records()
            records, image = read.records(), read.image(kinds)
        finally:
            found.close()
    return Side(records, image if last_txid else replace(image, committed="0"))


@contextmanager
def scratch_server() -> Iterator[str]:
    """Yields the address of a private server in a temporary folder, which is deleted with it."""
    with (
        tempfile.TemporaryDirectory(prefix="txbatch-refold-") as folder,
        EmbeddedServer(Path(folder) / "data") as server,
    ):
        yield server.url


def on_spark(master: str, conf: Mapping[str, str], factory_module: str) -> Runner:
    """Returns a runner that starts Spark for each run.

    Args:
        master: Spark master on this machine: the scratch server listens on a Unix socket.
        conf: Spark settings.
        factory_module: shipped to the executors.

    Raises:
        TopologyError: the master is on other machines.
    """
    if not master.startswith("local") or master.startswith("local-cluster"):
        raise TopologyError(
            f"--refold runs on this machine, since its scratch server is private, but --master is {master!r}; give "
            "local[*]"
        )
    return lambda topology, url, options: run(
        topology, redis_url=url, master=master, conf=conf, options=options, factory_module=factory_module
    )
