"""Starts the Spark of a run: before the run owns its topology, only when a wave needs it, or never (driver)."""

from __future__ import annotations

import logging
from contextlib import ExitStack, closing
from dataclasses import dataclass

from coordinator.run_request import RunRequest
from coordinator.sources.data_frame_batches import DataFrameBatches
from coordinator.spouts.row_spout import RowSpout
from coordinator.topology.building.planned_tasks import said
from coordinator.topology.building.topology import Topology
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import Engine, LateEngine
from coordinator.transactional.options import EngineName, RunOptions
from state.keys import parse_metadata_field
from state.printable import counted
from state.records.run_pulse import Standing
from state.redis_admin.topology_reader import TopologyReader
from state.redis_client.presence import connected_runs
from state.redis_owner.store import RedisStore

_LOG = logging.getLogger("txbatch.spark")


@dataclass(frozen=True, slots=True)
class SparkStart:
    """Starts Spark for one run, unless a session was given, and the engine on it.

    Attributes:
        plan: the plan, with a partition for each task.
        url: the server from which committers read state.
    """

    topology: Topology
    plan: Plan
    request: RunRequest
    options: RunOptions
    url: str
    nonce: str

    def may_be_needless(self, store: RedisStore) -> bool:
        """Returns whether all cut transactions are committed, so that perhaps no wave is needed.

        It is False while another run may be working, since a run that cannot start Spark must not take the topology
        from it. Spouts that read by Spark need Spark even to look at their input.
        """
        if self.is_local or self.request.spark is not None or isinstance(self.topology.spout.spec, RowSpout):
            return False
        found = store.look()
        if found is not None and any(parse_metadata_field(field)[1] > found.committed_txid for field in found.metadata):
            return False
        seen = TopologyReader(store.connection).overview(store.keys.topology_id)
        if found is None or seen is None:
            return not connected_runs(store.connection, store.keys)
        return not seen.connected and seen.standing in (Standing.ENDED, Standing.SILENT)

    def later(self, resources: ExitStack) -> LateEngine:
        """Returns an engine that starts when it is first needed; not for spouts that read by Spark."""
        from coordinator.engines.spark.session import OUR_SETTINGS, is_fair

        settings = {**({} if self.is_connect else OUR_SETTINGS), **(self.request.conf or {})}
        overlaps = is_fair(settings.get)
        return LateEngine(lambda: self.now(resources)[1], overlaps=overlaps, queues=overlaps and not self.is_connect)

    @property
    def is_local(self) -> bool:
        """Whether the run does without Spark."""
        return self.request.engine == EngineName.LOCAL

    def master(self) -> str:
        """Returns the Spark master for display, or, in words, that there is none."""
        if self.is_local:
            return "none (engine local)"
        from coordinator.engines.spark.session import master_of

        return self.request.master if self.request.spark is None else master_of(self.request.spark)

    @property
    def is_connect(self) -> bool:
        """Whether the run uses Spark Connect."""
        from coordinator.engines.spark.session import is_connect

        return is_connect(self.request.spark, self.request.master)

    def now(self, resources: ExitStack) -> tuple[Topology, Engine]:
        """Returns the topology as the driver runs it, and its engine; `resources` closes all that was started."""
        if self.is_local:
            return self.topology, self._process_engine(resources)
        if self.is_connect:
            return self.topology, self._connect_engine(resources)
        from coordinator.engines.spark.session import slots_of, spark_lease
        from coordinator.engines.spark.shipping import ship_topology
        from coordinator.engines.spark.spark_engine import SparkEngine

        topology, request, tell = self.topology, self.request, self.request.report_step
        is_given = request.spark is not None
        tell("using the given Spark session" if is_given else f"starting Spark with master {request.master}")
        lease = resources.enter_context(
            spark_lease(topology.topology_id, request.spark, request.master, request.conf or {})
        )
        plan = self.plan.in_slots(self.options.slots or lease.watch.call(lambda: slots_of(lease.context)))
        self._tell_preparing(plan)
        code = lease.watch.call(lambda: ship_topology(lease.context, topology, request.factory_module))
        intake = request.intake
        if intake is None and isinstance(topology.spout.spec, DataFrameBatches):
            from coordinator.engines.spark.intake.frame_reader import bound_to_spark

            topology, intake = bound_to_spark(topology, lease, request.spark)
        engine = SparkEngine(
            lease,
            plan,
            self.url,
            self.nonce,
            topology.message_timeout_s,
            executors_timeout_s=self.options.executors_timeout_s,
            code=code,
            intake=intake,
        )
        return topology, resources.enter_context(closing(engine))

    def _tell_preparing(self, plan: Plan) -> None:
        _LOG.info("topology %r runs in stages: %s", plan.topology_id, " | ".join(plan.outline()))
        tasks, stages = counted(len(plan.wirings), "task"), counted(len(plan.outline()), "stage")
        self.request.report_step(f"preparing {tasks} in {stages}{said(self.topology)}")

    def _process_engine(self, resources: ExitStack) -> Engine:
        from coordinator.engines.waves.process_engine import ProcessEngine

        tasks = counted(len(self.plan.wirings), "task")
        self.request.report_step(f"running {tasks} in this process, without Spark{said(self.topology)}")
        engine = ProcessEngine(self.plan, self.url, self.nonce, self.topology.message_timeout_s)
        return resources.enter_context(closing(engine))

    def _connect_engine(self, resources: ExitStack) -> Engine:
        from coordinator.engines.connect.connect_engine import ConnectEngine
        from coordinator.engines.connect.connect_session import (
            check_fits,
            connect_lease,
            ship_artifacts,
            slots_of_session,
        )

        topology, request, tell = self.topology, self.request, self.request.report_step
        check_fits(topology, self.plan)
        where = "the given session" if request.spark is not None else request.master
        tell(f"opening a Spark Connect session with the server of {where}")
        session = resources.enter_context(connect_lease(request.spark, request.master, request.conf or {}))
        plan = self.plan.in_slots(self.options.slots or slots_of_session(session))
        self._tell_preparing(plan)
        ship_artifacts(session, topology, request.factory_module)
        engine = ConnectEngine(session, plan, self.url, self.nonce, topology.message_timeout_s)
        return resources.enter_context(closing(engine))
