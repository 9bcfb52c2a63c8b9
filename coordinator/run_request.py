"""What a transactional run is asked for: one value, made by each entrance and carried whole to where it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coordinator.server_choice import ServerChoice
from coordinator.spouts.row_spout import RowSpout
from coordinator.topology.building.topology import Topology
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.options import EXECUTORS_TIMEOUT_S, EngineName, RunOptions
from coordinator.transactional.start.republish_choice import LetterChoice, LettersGiven, RepublishChoice
from coordinator.watching.run_observer import Observer
from coordinator.watching.statistics.run_statistics import RunStatistics
from state.errors import TopologyError

if TYPE_CHECKING:
    from coordinator.engines.spark.shuffled_stages import Intake

OnStart = Callable[[Coordinator], None]
OnStep = Callable[[str], None]
LOCAL_MASTER = "local[*]"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What `run`, `start`, `exactly_once` and the command line ask of a run.

    Attributes:
        server: holds the state.
        intake: what feeds stage 0, unless the spout's tasks read by themselves. The others are arguments of `run`.
    """

    server: ServerChoice
    spark: Any = None
    master: str = LOCAL_MASTER
    conf: Mapping[str, str] | None = None
    options: RunOptions = field(default_factory=RunOptions)
    on_start: OnStart | None = None
    on_step: OnStep | None = None
    on_progress: Callable[[RunStatistics], None] | None = None
    factory_module: str | None = None
    replay: Sequence[int] | str | None = None
    replay_letters: LettersGiven | None = None
    observers: Sequence[Observer] = ()
    intake: Intake | None = None
    engine: str = EngineName.SPARK

    def choice(self) -> RepublishChoice | LetterChoice | None:
        """Returns what the run publishes again; None if it reads the input.

        Raises:
            TopologyError: the arguments exclude each other, or name nothing that can be published again.
        """
        if self.replay_letters is None:
            return RepublishChoice.of(self.replay)
        if self.replay is not None:
            raise TopologyError("arguments replay and replay_letters exclude each other; run one after the other")
        return LetterChoice.of(self.replay_letters)

    def check_engine(self, topology: Topology) -> None:
        """Checks that the engine can run what is asked for.

        Raises:
            TopologyError: there is no such engine, or the local one is given what is for Spark.
        """
        if self.engine not in set(EngineName):
            raise TopologyError(f"engine is {self.engine!r}; give one of {', '.join(EngineName)}")
        if self.engine != EngineName.LOCAL:
            return
        for_spark = {
            "spark": self.spark is not None,
            "master": self.master != LOCAL_MASTER,
            "conf": bool(self.conf),
            "slots": self.options.slots is not None,
            "executors_timeout": self.options.executors_timeout_s != EXECUTORS_TIMEOUT_S,
        }
        if given := [name for name, is_given in for_spark.items() if is_given]:
            raise TopologyError(
                f"engine local uses no Spark, but {given[0]} was given, which is for Spark; leave out one of the two"
            )
        spout = topology.spout
        if isinstance(spout.spec, RowSpout):
            raise TopologyError(
                f"engine local uses no Spark, but spout {spout.component_id!r} is read by Spark, as every "
                f"{type(spout.spec).__name__} is; leave the engine out"
            )

    def tell_step(self, phrase: str) -> None:
        """Tells what is about to be started."""
        if self.on_step is not None:
            self.on_step(phrase)
