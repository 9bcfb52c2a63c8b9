"""What a run is asked for: one value, passed on by everything that begins a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordinator.run_observer import Observer
from coordinator.server_choice import ServerChoice, choose_server
from coordinator.transactional.options import RunOptions
from coordinator.transactional.run_summary import RunStatistics
from coordinator.transactional.start.letter_choice import LetterChoice, LettersGiven
from coordinator.transactional.start.replay_choice import ReplayChoice
from state.errors import TopologyError

if TYPE_CHECKING:
    from coordinator.spark.intake.intake import Intake

RETRY_BACKOFF_S = 0.2
"""The pause before the third attempt at a txid, unless the options set another one."""
OnStep = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What `run`, `start` and `exactly_once` were asked for; nothing of it is checked before the run starts.

    Attributes:
        intake: what feeds stage 0, unless the spout's tasks read by themselves. The others are arguments of `run`.
    """

    redis_url: str | None = None
    data_dir: str | Path | None = None
    allow_plaintext: bool = False
    spark: Any = None
    master: str = "local[*]"
    conf: Mapping[str, str] | None = None
    options: RunOptions | None = None
    on_step: OnStep | None = None
    on_progress: Callable[[RunStatistics], None] | None = None
    factory_module: str | None = None
    replay: Sequence[int] | str | None = None
    replay_letters: LettersGiven | None = None
    observers: Sequence[Observer] = ()
    intake: Intake | None = None

    def server(self) -> ServerChoice:
        """Returns the server that holds the state.

        Raises:
            TopologyError: two servers were named, or none that can be used.
        """
        return choose_server(self.redis_url, self.data_dir, allow_plaintext=self.allow_plaintext)

    def bounds(self) -> RunOptions:
        """Returns the limits of the run."""
        return (self.options or RunOptions()).or_backoff(RETRY_BACKOFF_S)

    def choice(self) -> ReplayChoice | LetterChoice | None:
        """Returns what the run replays; None if it reads the input.

        Raises:
            TopologyError: the arguments exclude each other, or name nothing that can be replayed.
        """
        if self.replay_letters is None:
            return ReplayChoice.of(self.replay)
        if self.replay is not None:
            raise TopologyError("arguments replay and replay_letters exclude each other; run one after the other")
        return LetterChoice.of(self.replay_letters)

    def tell_step(self, phrase: str) -> None:
        """Tells what is about to be started."""
        if self.on_step is not None:
            self.on_step(phrase)
