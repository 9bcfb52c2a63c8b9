"""What a transactional run is asked for: one value, made by each entrance and carried whole to where it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coordinator.server_choice import ServerChoice
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.options import RunOptions
from coordinator.transactional.start.republish_choice import LetterChoice, LettersGiven, RepublishChoice
from coordinator.watching.run_observer import Observer
from coordinator.watching.statistics.run_statistics import RunStatistics
from state.errors import TopologyError

if TYPE_CHECKING:
    from coordinator.engines.spark.shuffled_stages import Intake

OnStart = Callable[[Coordinator], None]
OnStep = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What `run`, `start`, `exactly_once` and the command line ask of a run.

    Attributes:
        server: holds the state.
        intake: what feeds stage 0, unless the spout's tasks read by themselves. The others are arguments of `run`.
    """

    server: ServerChoice
    spark: Any = None
    master: str = "local[*]"
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

    def tell_step(self, phrase: str) -> None:
        """Tells what is about to be started."""
        if self.on_step is not None:
            self.on_step(phrase)
