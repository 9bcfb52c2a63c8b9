"""A trace shows each transaction with its attempts, their waves, and why they failed."""

from __future__ import annotations

import sys
from functools import partial
from itertools import count

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from coordinator.watching.run_observer import AttemptsFailed, AttemptsIssued, GroupCommitted, WaveEnded, WaveStarted
from coordinator.watching.telemetry.transaction_spans import TransactionSpans
from state.attempt import TransactionAttempt
from state.errors import TopologyError, UserCodeError
from tests.support.runs.answers import USER, failing_at
from tests.support.runs.scripted import Run


@pytest.fixture
def traced():
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield exporter, provider.get_tracer("test")
    provider.shutdown()


def runs_of(exporter, txid):
    """The span of a transaction, and those of its attempts, in order."""
    spans = [span for span in exporter.get_finished_spans() if span.attributes["txbatch.txid"] == txid]
    (whole,) = [span for span in spans if span.name == "transaction"]
    attempts = [span for span in spans if span.name == "attempt"]
    assert {span.parent.span_id for span in attempts} == {whole.context.span_id}
    assert whole.parent is None
    return whole, sorted(attempts, key=lambda span: span.start_time)


def test_a_transaction_is_a_span_and_so_is_each_of_its_attempts(traced):
    exporter, tracer = traced
    run = Run(3, max_spout_pending=6, observers=[TransactionSpans(tracer, clock_ns=partial(next, count(1)))])
    run.engine.on_wave = failing_at(run, 2, text="the price list is being written")
    run()
    whole, attempts = runs_of(exporter, 2)
    assert whole.attributes["txbatch.topology"] == "test"
    assert [span.status.status_code for span in attempts] == [StatusCode.ERROR, StatusCode.UNSET]
    failed, committed = attempts
    assert failed.attributes["txbatch.cause"] == "asked_for"
    assert "the price list is being written" in failed.attributes["txbatch.reason"]
    assert failed.attributes["txbatch.wave"] == 1
    assert [event.name for event in committed.events] == ["processing", "processed"]
    assert committed.end_time == whole.end_time
    assert runs_of(exporter, 3)[1][0].attributes["txbatch.cause"] == "lower_failed"
    assert len(runs_of(exporter, 1)[1]) == 1


def test_the_late_end_of_a_wave_is_not_noted_on_the_attempt_that_replaced_its_own(traced):
    exporter, tracer = traced
    spans = TransactionSpans(tracer, clock_ns=partial(next, count(1)))
    old, new = TransactionAttempt(1, 1), TransactionAttempt(1, 2)
    for observation in (
        AttemptsIssued((old,)),
        WaveStarted(1, (old,)),
        AttemptsFailed((old,), "processing", "timeout", "too late"),
        AttemptsIssued((new,)),
        WaveEnded(1, (old,), 60.0),
        GroupCommitted((new,), 0.1, 1, 1),
    ):
        spans(observation)
    _, (first, second) = runs_of(exporter, 1)
    assert [event.name for event in first.events] == ["processing"]
    assert second.events == ()


def test_what_never_commits_ends_with_the_run(traced):
    exporter, tracer = traced
    run = Run(3, max_spout_pending=6, observers=[TransactionSpans(tracer, clock_ns=partial(next, count(1)))])
    run.engine.on_wave = failing_at(run, 2, kind=USER)
    with pytest.raises(UserCodeError), run.observers.until_the_end():
        run()
    whole, (attempt,) = runs_of(exporter, 2)
    assert attempt.attributes["txbatch.cause"] == "user_code"
    assert whole.status.description == "the run ended: UserCodeError"
    assert runs_of(exporter, 1)[0].status.status_code is StatusCode.UNSET


def test_without_the_library_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(TopologyError, match=r"pip install 'txbatch\[otel\]'"):
        TransactionSpans()
