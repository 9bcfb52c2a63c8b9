"""The request for a transactional run: one value, which each entrance makes and which is passed on as a whole.

The arguments of the entrances have their types here, once; `run` explains them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from coordinator.server_choice import ServerChoice, choose_server
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
Entrance = TypeVar("Entrance", bound=Callable[..., Any])
LOCAL_MASTER = "local[*]"


class ServerKeywords(TypedDict, total=False):
    """Keyword arguments that name the server of the state."""

    redis_url: str | None
    data_dir: str | Path | None
    allow_plaintext: bool


class QueryKeywords(ServerKeywords, total=False):
    """Keyword arguments of `exactly_once`, which runs on the query's own Spark."""

    options: RunOptions | None
    on_progress: Callable[[RunStatistics], None] | None
    factory_module: str | None


class RunKeywords(QueryKeywords, total=False):
    """Keyword arguments of `run` and `start`."""

    spark: Any
    master: str
    conf: Mapping[str, str] | None
    on_start: OnStart | None
    on_step: OnStep | None
    republish: Sequence[int] | str | None
    republish_letters: LettersGiven | None
    observers: Sequence[Observer]
    engine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A request for a run, made by `run`, `start`, `exactly_once` or the command line.

    Attributes:
        server: the server that holds the state.
        intake: feeds stage 0; None if the spout's tasks read by themselves. The others are arguments of `run`.
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
    republish: Sequence[int] | str | None = None
    republish_letters: LettersGiven | None = None
    observers: Sequence[Observer] = ()
    intake: Intake | None = None
    engine: str = EngineName.SPARK

    @classmethod
    def of(cls, asked: QueryKeywords) -> RunRequest:
        """Returns a request with the arguments of an entrance.

        Raises:
            TopologyError: two servers are named.
            TypeError: an argument is unknown.
        """
        given: dict[str, Any] = {"redis_url": None, "data_dir": None, **asked}
        server = choose_server(**{name: given.pop(name) for name in ServerKeywords.__annotations__ if name in given})
        return cls(server=server, options=given.pop("options", None) or RunOptions(), **given)

    def choice(self) -> RepublishChoice | LetterChoice | None:
        """Returns which batches or dead letters the run publishes again; None if it reads the input.

        Raises:
            TopologyError: the arguments exclude each other, or name nothing that can be published again.
        """
        if self.republish_letters is None:
            return None if self.republish is None else RepublishChoice.of(self.republish)
        if self.republish is not None:
            raise TopologyError("arguments republish and republish_letters exclude each other; run one after the other")
        return LetterChoice.of(self.republish_letters)

    def check_engine(self, topology: Topology) -> None:
        """Checks that the engine exists, and can run what is requested.

        Raises:
            TopologyError: there is no such engine, or the local engine was given an argument for Spark.
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

    def report_step(self, phrase: str) -> None:
        """Calls `on_step` with a phrase that describes the next step of the start."""
        if self.on_step is not None:
            self.on_step(phrase)


def spelled_out(arguments: type[QueryKeywords]) -> Callable[[Entrance], Entrance]:
    """Makes ``help()``, notebooks and the API reference show an entrance's arguments one by one, with defaults."""
    defaults = {entry.name: entry.default for entry in fields(RunRequest)} | {"options": None, "allow_plaintext": False}

    def shown(entrance: Entrance) -> Entrance:
        own = signature(entrance)
        before = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        more = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=hint.__forward_arg__)
            for name, hint in arguments.__annotations__.items()
        ]
        entrance.__signature__ = own.replace(parameters=[*before, *more])  # type: ignore[attr-defined]
        return entrance

    return shown
