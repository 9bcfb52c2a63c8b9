"""Opens a Spark Connect session for one run, on the server of the user's session or on the one that is named.

The session has its own artifacts, settings, tags and Python workers: a run leaves no trace in the user's session, and
no worker has imported the code of an earlier run.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from coordinator.engines.spark.crash_story import crash_story
from coordinator.engines.spark.session import check_reachable
from coordinator.engines.spark.shipping import packed_code, topology_modules
from coordinator.spouts.row_spout import RowSpout
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.topology.building.topology import Topology
from coordinator.topology.planning.plan import Plan
from state.codec import digest64
from state.errors import EngineError, TopologyError
from state.troubles import Trouble

_LOG = logging.getLogger("txbatch.spark")
OUR_SETTINGS = {
    # it looks at the size of every shuffle, and could run our plans in another order than they were made in
    "spark.sql.adaptive.enabled": "false",
}
Result = TypeVar("Result")


def check_fits(topology: Topology, plan: Plan) -> None:
    """Refuses a topology that Connect cannot run (driver, once a run).

    Raises:
        TopologyError: the topology reads the rows of DataFrames, or commits its transactions one by one.
    """
    spout = topology.spout
    if isinstance(spout.spec, RowSpout):
        raise TopologyError(
            f"component {spout.component_id!r} is a {type(spout.spec).__name__}, which hands over the rows of a "
            "DataFrame by RDDs, and Spark Connect has none; use a classic session, or a spout that reads by itself"
        )
    outside = [component.component_id for component in topology.components if component.has_external_effects]
    if outside:
        raise TopologyError(
            f"component {outside[0]!r} has external effects, so transactions are committed one by one; on Spark "
            "Connect each commit would process its whole wave again, since no frames are kept: use a classic session"
        )
    if SpoutKind(spout.spec).is_opaque and plan.commit_tasks and not plan.has_flat_commit_phase():
        raise TopologyError(
            f"component {spout.component_id!r} is an opaque spout and cannot run on Spark Connect here: bolts are "
            "downstream of a committer, so each wave is processed twice, and an opaque spout would cut another batch "
            "the second time; use a classic session"
        )


@contextmanager
def connect_lease(spark: Any, master: str, settings: Mapping[str, str]) -> Iterator[Any]:
    """Yields a Connect session for the length of a run (driver, once a run).

    Args:
        spark: a session of the user's, which is left as it is, or None.
        master: address of the server if `spark` is None, as in ``sc://host:15002``.
        settings: settings of the new session.

    Raises:
        TopologyError: settings were given for the user's session, or what Connect needs is not installed.
        EngineError: the server cannot be reached, or does not accept a setting of the user's.
    """
    if spark is not None and settings:
        raise TopologyError("conf is for a session that txbatch starts; set it on the session that you pass as spark=…")
    session = _opened(master) if spark is None else asked(lambda: _sibling(spark))
    try:
        if session is not spark:
            _settle(session, settings)
        yield session
    finally:
        if session is not spark:
            _release(session)


def ship_artifacts(session: Any, topology: Topology, named: str | None) -> None:
    """Sends our packages and the user's modules to the workers of this session (driver, once a run)."""
    packed = packed_code(topology_modules(topology, named))
    with tempfile.TemporaryDirectory(prefix="txbatch-code-") as folder:
        archive = Path(folder, f"txbatch_code_{digest64(packed):016x}.zip")
        archive.write_bytes(packed)
        asked(lambda: session.addArtifacts(str(archive), pyfile=True))


def slots_of_session(session: Any) -> int:
    """Returns how many tasks Spark will run at a time, by its own default; makes it start executors (driver)."""
    places = session.range(1_000_000).selectExpr("spark_partition_id() AS place").selectExpr("max(place) + 1 AS places")
    return int(asked(places.collect)[0]["places"])


def asked(question: Callable[[], Result]) -> Result:
    """Returns the server's answer to a call.

    Raises:
        EngineError: the server does not answer, or refuses.
    """
    try:
        return question()
    except Exception as error:  # gRPC's and Spark's have no common ancestor
        raise EngineError(
            f"the Spark Connect server has not done what a run needs: {crash_story(error).reason}; nothing that was "
            "committed is lost; look at the server and its session, and run again"
        ).about(Trouble.SPARK) from error


def _opened(address: str) -> Any:
    try:
        from pyspark.sql.connect.session import SparkSession
    except ImportError as error:
        raise TopologyError(f"Spark Connect needs more packages: pip install 'txbatch[connect]' ({error})") from error
    check_reachable(address)
    # not by `getOrCreate`, which would return another session of this process
    return asked(SparkSession.builder.remote(address).create)


def _sibling(session: Any) -> Any:
    """Returns another session with the same server: from 4.3 on a new one, from 4.1 on a clone, else the same."""
    for make in ("newSession", "cloneSession"):
        if hasattr(session, make):
            return getattr(session, make)()
    return session


def _settle(session: Any, settings: Mapping[str, str]) -> None:
    from pyspark.sql.connect.client.retries import DefaultPolicy

    # gives up a server that does not answer after about ten seconds; by default it would be ten minutes
    policy = DefaultPolicy(max_retries=5, initial_backoff=100, max_backoff=5000, jitter=100)
    session.client.set_retry_policies([policy])
    for name, value in settings.items():
        asked(partial(session.conf.set, name, value))
    for name, value in OUR_SETTINGS.items():
        if name not in settings:
            try:
                session.conf.set(name, value)
            except Exception as error:  # noqa: BLE001 - platforms allow few settings, and no result depends on ours
                _LOG.debug("%s is left as it is: %s", name, crash_story(error).reason)


def _release(session: Any) -> None:
    """Ends a session that was opened here; not by its `stop`, which would end a server that runs in this process."""
    session.client.set_retry_policies([])
    for end in (session.client.release_session, session.client.close):
        try:
            end()
        except Exception as error:  # noqa: BLE001 - a server that is gone has released it
            _LOG.debug("a Spark Connect session was not released: %s", error)
