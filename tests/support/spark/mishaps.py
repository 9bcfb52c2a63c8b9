"""Bolts and committers on Spark to which something happens: always, or only the first time if they have a marker."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from state.errors import FailedException
from tests.support.spark.bolts import Pass, Store, once

HANG_S = 600.0


def fail() -> NoReturn:
    raise FailedException("not now")


def break_down() -> NoReturn:
    raise ValueError("cannot work with it")


def kill_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hang() -> None:
    time.sleep(HANG_S)


def hang_in_c() -> None:
    """As code in C does that lets no signal through."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    time.sleep(HANG_S)


def end_process() -> NoReturn:
    sys.exit("I have had enough")


def interrupt() -> NoReturn:
    raise KeyboardInterrupt("not a person")


class Mishap:
    """Mixed into a component.

    Args:
        happens: what does; a function of a module, as it is shipped.
        at: the number, or the txid for what happens at the end of its transaction.
        marker: a file that is made when it happens, once among all processes; None lets it happen again and again.
    """

    def __init__(self, happens: Callable[[], object], at: int, marker: Path | None = None) -> None:
        self.happens, self.at, self.marker = happens, at, marker and str(marker)

    def passes(self, point: int) -> None:
        """Called at every number or end of a transaction."""
        if point == self.at and (self.marker is None or once(self.marker)):
            self.happens()


class AtNumber(Mishap, Pass):
    """Passes numbers on."""

    def execute(self, tup: Any) -> None:
        self.passes(tup["number"])
        super().execute(tup)


class AtEnd(Mishap, Pass):
    """Passes numbers on; it happens at the end of a transaction."""

    def finish_batch(self) -> None:
        self.passes(self.attempt.txid)


class InStore(Mishap, Store):
    """Counts numbers; it happens at the end of a transaction."""

    def finish_batch(self) -> None:
        super().finish_batch()
        self.passes(self.attempt.txid)


class AtValue(Mishap, BaseBasicBolt):
    """Passes values on in a plain topology."""

    output_fields = ("value",)

    def execute(self, tup: Any, collector: Any) -> None:
        self.passes(tup["value"])
        collector.emit(tup.values)
