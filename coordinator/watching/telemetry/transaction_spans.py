"""Makes an OpenTelemetry span for each transaction, with its attempts as children.

The spans go to the SDK that the process has configured; nothing here exports them.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coordinator.watching.run_observer import (
    AttemptsFailed,
    AttemptsIssued,
    GroupCommitted,
    Observation,
    RunBegan,
    RunEnded,
    WaveEnded,
    WaveStarted,
)
from state.attempt import Attempts, TransactionAttempt
from state.errors import TopologyError

MISSING = "traces need opentelemetry, which is not installed; run: pip install 'txbatch[otel]'"


@dataclass(slots=True)
class _Transaction:
    """The open spans of one transaction.

    Attributes:
        current: its active attempt; None without one.
        attempt: the span of the active attempt.
    """

    span: Any
    current: TransactionAttempt | None = None
    attempt: Any = None


class TransactionSpans:
    """Observes a transactional run and makes spans.

    A span "transaction" lasts from the first attempt to the commit, and has a span "attempt" for each one. Attributes
    begin with ``txbatch.``: ``topology``, ``txid``, ``attempt``, ``wave``, and for a failed attempt ``cause`` and
    ``reason``. Events of an attempt are ``processing`` and ``processed``. A transaction that never commits ends with
    the run, with an error status.

    From Python::

        run(topology, observers=[TransactionSpans()])

    Args:
        tracer: makes the spans; None takes one from the process's provider.
        clock_ns: nanoseconds since the epoch.

    Raises:
        TopologyError: opentelemetry is not installed.
    """

    def __init__(self, tracer: Any = None, *, clock_ns: Callable[[], int] = time.time_ns) -> None:
        try:
            self._trace = importlib.import_module("opentelemetry.trace")
        except ModuleNotFoundError as error:
            raise TopologyError(MISSING) from error
        self._tracer = self._trace.get_tracer("txbatch") if tracer is None else tracer
        self._clock_ns = clock_ns
        self._topology_id = ""
        self._open: dict[int, _Transaction] = {}

    def __call__(self, observation: Observation) -> None:
        """Takes in an observation; see `coordinator.watching.run_observer`."""
        match observation:
            case RunBegan(topology_id):
                self._topology_id = topology_id
            case AttemptsIssued(attempts):
                for attempt in attempts:
                    self._issued(attempt)
            case WaveStarted(wave_id, attempts):
                self._in_wave(attempts, "processing", wave_id)
            case WaveEnded(attempts=attempts, crash=None):
                self._in_wave(attempts, "processed", None)
            case AttemptsFailed():
                self._failed(observation)
            case GroupCommitted(attempts):
                self._committed(attempts)
            case RunEnded(error):
                self._ended(error)
            case _:
                pass

    def _issued(self, attempt: TransactionAttempt) -> None:
        now = self._clock_ns()
        found = self._open.get(attempt.txid)
        if found is None:
            about = {"txbatch.topology": self._topology_id, "txbatch.txid": attempt.txid}
            # a separate root: a transaction does not belong to a span that happens to be open around the run
            span = self._tracer.start_span("transaction", self._nothing(), attributes=about, start_time=now)
            found = self._open[attempt.txid] = _Transaction(span)
        found.current = attempt
        parent = self._trace.set_span_in_context(found.span, self._nothing())
        about = {"txbatch.attempt": str(attempt), "txbatch.txid": attempt.txid}
        found.attempt = self._tracer.start_span("attempt", parent, attributes=about, start_time=now)

    def _in_wave(self, attempts: Attempts, event: str, wave_id: int | None) -> None:
        now = self._clock_ns()
        for attempt in attempts:
            found = self._active(attempt)
            if found is None:
                continue  # dropped meanwhile
            if wave_id is not None:
                found.attempt.set_attribute("txbatch.wave", wave_id)
            found.attempt.add_event(event, timestamp=now)

    def _failed(self, failed: AttemptsFailed) -> None:
        now = self._clock_ns()
        for place, attempt in enumerate(failed.attempts):
            found = self._active(attempt)
            if found is None:
                continue
            cause = failed.cause if place == 0 else "lower_failed"
            reason = failed.reason if place == 0 else f"txid {failed.attempts[0].txid} failed"
            found.attempt.set_attributes({"txbatch.cause": cause, "txbatch.reason": reason})
            found.attempt.set_status(self._error(reason))
            found.attempt.end(end_time=now)
            found.current = found.attempt = None

    def _committed(self, attempts: Attempts) -> None:
        now = self._clock_ns()
        for attempt in attempts:
            found = self._open.pop(attempt.txid, None)
            if found is not None:
                if found.attempt is not None:
                    found.attempt.end(end_time=now)
                found.span.end(end_time=now)

    def _ended(self, error: BaseException | None) -> None:
        now = self._clock_ns()
        reason = "the run ended before it was committed" if error is None else f"the run ended: {type(error).__name__}"
        for found in self._open.values():
            for span in (found.attempt, found.span):
                if span is not None:
                    span.set_status(self._error(reason))
                    span.end(end_time=now)
        self._open.clear()

    def _active(self, attempt: TransactionAttempt) -> _Transaction | None:
        found = self._open.get(attempt.txid)
        return found if found is not None and found.current == attempt else None

    def _error(self, reason: str) -> Any:
        return self._trace.Status(self._trace.StatusCode.ERROR, reason)

    def _nothing(self) -> Any:
        return importlib.import_module("opentelemetry.context").Context()
