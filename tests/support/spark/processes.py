"""Java processes that answer, freeze and end as a test wants it."""

from __future__ import annotations

import threading

from coordinator.engines.spark.java.java_watch import GatewayProcess


class RunningProcess(GatewayProcess):
    """Answers until it is told otherwise.

    Attributes:
        is_running: what a ping answers.
        thaw: a frozen one answers once this is set.
        error: what a ping raises.
        ended: set when it was asked to end.
    """

    def __init__(self) -> None:  # there is no gateway
        self.is_running = True
        self.error: Exception | None = None
        self.thaw = threading.Event()
        self.thaw.set()
        self.ended = threading.Event()

    def ping(self) -> bool:
        self.thaw.wait()
        if self.error is not None:
            raise self.error
        return self.is_running

    def name(self) -> str:
        return "the Java process"

    def how_it_ended(self) -> str:
        return "somebody killed it"

    def end(self) -> None:
        self.ended.set()
        self.thaw.set()
