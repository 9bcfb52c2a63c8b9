"""A job whose driver is killed at drawn moments and started again, until one run comes to the end: right or wrong."""

from __future__ import annotations

import random
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import redis

from state.keys import Keys
from state.redis_server.embedded import EmbeddedServer
from tests.support.chaos.jobs import FORBIDDEN_WORDS, Kill, Site, await_true, kill_at_random_moments

LEFTOVER_TIMEOUT_S = 30.0


class Case(ABC):
    """One job in a folder of its own, and the independent answer.

    Args:
        folder: for input, data and output.
        size: of the input, in the units of `size_of`.
        seed: of whatever is drawn.
        timeout_s: the longest wait for anything.

    Attributes:
        size_of: what `size` counts.
        default_size: a size that takes some minutes.
        site: where the job runs; `__init__` writes the input and sets it.
        total: transactions of the whole input.
        facts: what was seen on the way, for people.
    """

    size_of: ClassVar[str]
    default_size: ClassVar[int]
    site: Site
    total: int

    def __init__(self, folder: Path, size: int, seed: int, timeout_s: float) -> None:
        self.folder, self.size, self.timeout_s = folder, size, timeout_s
        self.draw, self._draw_kills = random.Random(seed), random.Random(seed)
        self.facts: dict[str, Any] = {}

    def site_of(
        self, topology_id: str, target: str, parameters: Mapping[str, Any], *options: str, command: str = "run"
    ) -> Site:
        """Returns a site in the folder whose jobs run a topology by a command of ``txbatch``."""
        given = [part for name, value in parameters.items() for part in ("-p", f"{name}={value}")]
        arguments = [target, *given, *(options or ("--max-pending", "16"))]
        return Site(self.folder, topology_id, arguments, self.timeout_s, command=tuple(command.split()))

    def meanwhile(self) -> AbstractContextManager[object]:
        """Returns what goes on beside the jobs: somebody looks on, or strikes too."""
        return nullcontext()

    def under_fire(self, kills: int) -> list[Kill]:
        """Starts jobs and kills their drivers."""
        return kill_at_random_moments(self.site, kills=kills, total=self.total, draw=self._draw_kills)

    def finish(self) -> dict[str, Any]:
        """Runs one more job to its end; returns its JSON."""
        return self.site.finish()

    @abstractmethod
    def wrong(self, client: redis.Redis) -> Iterator[str]:
        """Yields what is wrong in the end; `client` is one of the jobs' server."""

    def state(self, client: redis.Redis, name: str) -> Counter[str]:
        """Returns what is stored in a hash of numbers."""
        return counts_of(client.hgetall(Keys(self.site.topology_id).state(name)))


@dataclass(frozen=True)
class Outcome:
    """What came of a case.

    Attributes:
        kills: every kill of a driver.
        said: the last run's JSON.
        wrong: everything that was wrong, on the way or in the end.
    """

    kills: list[Kill]
    said: dict[str, Any]
    wrong: list[str]


def play(case: Case, kills: int) -> Outcome:
    """Plays a case to its end; a job that fails by itself is an AssertionError."""
    try:
        with case.meanwhile():
            done = case.under_fire(kills)
            said = case.finish()
        with EmbeddedServer(case.site.data_dir), case.site.client() as client:
            wrong = [*case.wrong(client)]
        await_true(lambda: not case.site.leftovers(), LEFTOVER_TIMEOUT_S)
        wrong += [f"process {pid} is left" for pid in case.site.leftovers()]
        complaints = (job.complaint() for job in case.site.jobs)
        wrong += [complaint for complaint in complaints if any(word in complaint for word in FORBIDDEN_WORDS)]
        return Outcome(done, said, wrong)
    finally:
        case.site.close()


@contextmanager
def again_and_again(act: Callable[[], float]) -> Iterator[None]:
    """Calls a function on a thread of its own while the block lasts; it returns the seconds until its next call."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(act()):
            pass

    thread = threading.Thread(target=work, name="meanwhile", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def counts_of(fields: Any) -> Counter[str]:
    """Returns a hash as a counter, from the client's answer to HGETALL."""
    pairs = fields.items() if isinstance(fields, dict) else zip(fields[::2], fields[1::2], strict=True)
    return Counter({field.decode(): int(value) for field, value in pairs})


def differences(found: Counter[str], truth: Counter[str]) -> Iterator[str]:
    """Yields the counts that are not the true ones, ten at most."""
    names = sorted(name for name in found | truth if found[name] != truth[name])
    for name in names[:10]:
        yield f"{name!r} is {found[name]}, and should be {truth[name]}; one of {len(names)}"
