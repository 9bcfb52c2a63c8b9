"""Watches what a cluster gives a run: how many of the executors it asked for, and whether the master lives.

Spark reports neither except in its log. An application outlives a standalone master: its executors keep running, though
none is replaced. A restarted master knows the application only if ``spark.deploy.recoveryMode`` is set, so that it was
written down; otherwise it makes the workers end the executors, and the application would wait for new ones for ever.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coordinator.engines.spark.session import STANDALONE, refusals_of
from state.errors import EngineError
from state.troubles import Trouble

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger("txbatch.spark")
LOOK_S = 5.0
"""How often a standalone master is looked for, and how long it has to answer."""
UNKNOWN_LOOKS = 2
"""How often in a row a master may answer that it does not know the application, before it is given up."""


@dataclass(frozen=True, slots=True)
class MasterAnswer:
    """The answer of a standalone master.

    Attributes:
        knows_us: whether the application is among its active ones.
        offer: what its workers still have to offer, in words.
    """

    knows_us: bool
    offer: str


class ClusterWatch:
    """Watches the cluster of one run, on a thread of its own if there is a master to look for (driver).

    Args:
        context: the Spark context.
        tell: called with the error once the application cannot get executors any more, on the watch's thread.
        look_s: seconds between two looks.

    Attributes:
        story: what is wrong with the master, in one line; "" while it answers.
    """

    def __init__(self, context: SparkContext, tell: Callable[[EngineError], None], *, look_s: float = LOOK_S) -> None:
        self._context, self._tell, self._look_s = context, tell, look_s
        self._master = context.master or ""
        self.story = ""
        self._offer = ""
        self._unknown_looks = 0
        self._is_asked = threading.Event()
        self._closed = threading.Event()
        if STANDALONE.fullmatch(self._master) is not None:
            threading.Thread(target=self._look, name="txbatch-master", daemon=True).start()

    def supply(self) -> str:
        """Returns in words how many executors there are of those asked for; called while a job waits (Java watch)."""
        self._is_asked.set()
        registered = self._context._jsc.sc().getExecutorMemoryStatus().size() - 1  # noqa: SLF001 - the driver is one
        parts = [f"{registered} registered, asked for {_asked(lambda key: self._context.getConf().get(key, None))}"]
        parts += [part for part in (self._offer, self.story) if part]
        return "; ".join(parts)

    def close(self) -> None:
        """Ends the watch when it looks next."""
        self._closed.set()

    def _look(self) -> None:
        while not self._closed.wait(self._look_s):
            refusals = refusals_of(self._master, self._look_s)
            if all(refusals):
                self._note_away("; ".join(map(str, refusals)))
            elif self.story or self._is_asked.is_set():
                addresses = self._master.removeprefix("spark://").split(",")
                self._ask([address for address, refusal in zip(addresses, refusals, strict=True) if refusal is None])

    def _note_away(self, why: str) -> None:
        self._offer, self._unknown_looks = "", 0
        if not self.story:
            self.story = f"Spark master {self._master!r} is gone ({why}): executors keep running, but none is replaced"
            _LOG.warning("%s; waiting for it to come back", self.story)

    def _ask(self, addresses: Sequence[str]) -> None:
        """Asks the master, which has come back, or for whose executors a job waits."""
        try:
            answer = self._answer(addresses)
        except Exception as error:  # noqa: BLE001 - whatever Java raises
            _LOG.debug("the master cannot be asked: %s", error)
            self.story = ""  # it listens, and that is all there is to know
            return
        if answer is None:
            return
        self._offer = answer.offer
        self._is_asked.clear()
        if answer.knows_us:
            if self.story:
                _LOG.warning("Spark master %r is back, and knows the application", self._master)
            self.story, self._unknown_looks = "", 0
            return
        self._unknown_looks += 1
        if self._unknown_looks == UNKNOWN_LOOKS and not self._closed.is_set():
            self._tell(
                EngineError(
                    f"Spark master {self._master!r} does not know application {self._context.applicationId} any more, "
                    "as after a restart without spark.deploy.recoveryMode, and takes its executors away; nothing that "
                    "was committed is lost; run again"
                ).about(Trouble.SPARK_MASTER)
            )

    def _answer(self, addresses: Sequence[str]) -> MasterAnswer | None:
        """Asks the masters for what their web page shows; returns None if none is active yet.

        Raises:
            Py4JError: the masters cannot be asked.
        """
        jvm: Any = self._context._jvm  # noqa: SLF001 - there is no public question
        answered = getattr(jvm.scala.reflect, "ClassTag$").__getattr__("MODULE$").Any()
        question = _java_object(jvm, "org.apache.spark.deploy.DeployMessages$RequestMasterState$")
        seconds = jvm.java.util.concurrent.TimeUnit.SECONDS
        limit = jvm.org.apache.spark.rpc.RpcTimeout(
            jvm.scala.concurrent.duration.FiniteDuration(int(self._look_s) or 1, seconds), "txbatch"
        )
        environment = self._context._jsc.sc().schedulerBackend().rpcEnv()  # noqa: SLF001 - SparkEnv cannot be asked
        for address in addresses:
            host, _, port = address.rpartition(":")
            master = environment.setupEndpointRef(jvm.org.apache.spark.rpc.RpcAddress(host, int(port)), "Master")
            state = master.askSync(question, limit, answered)
            if str(state.status().toString()) == "ALIVE":
                return MasterAnswer(
                    any(each.id() == self._context.applicationId for each in state.activeApps()),
                    _offered([(each.memoryFree(), each.coresFree()) for each in state.workers() if each.isAlive()]),
                )
        return None


def _java_object(jvm: Any, name: str) -> Any:
    """Returns a Scala object, which has no name that py4j could spell."""
    java_class = jvm.java.lang.Class.forName(name)
    return java_class.getField("MODULE$").get(None)


def _asked(setting: Callable[[str], str | None]) -> str:
    """Returns, in words, how many executors were asked for, and how large each is."""
    memory = (setting("spark.executor.memory") or "1g").strip().lower()
    number, unit = memory.rstrip("bgmkti"), memory.lstrip("0123456789").rstrip("b").rstrip("i")
    size = f"{number} { {'k': 'KiB', 'm': 'MiB', 'g': 'GiB', 't': 'TiB'}.get(unit, unit) }"
    if (setting("spark.dynamicAllocation.enabled") or "false").lower() == "true":
        return f"as many of {size} as jobs need"
    instances, cores = setting("spark.executor.instances"), setting("spark.executor.cores")
    total = setting("spark.cores.max")
    if instances is None and total is not None and cores is not None:
        instances = str(int(total) // int(cores))
    return f"{instances or 'as many as fit'} of {size}" + (f" and {cores} cores" if cores is not None else "")


def _offered(workers: list[tuple[int, int]]) -> str:
    """Returns, in words, what the workers still have to offer, given the free MiB and cores of each."""
    if not workers:
        return "no worker is registered with the master"
    mebibytes, cores = max(workers)
    size = f"{mebibytes / 1024:g} GiB" if mebibytes >= 1024 else f"{mebibytes} MiB"
    return f"workers offer {size} and {cores} cores at most"
