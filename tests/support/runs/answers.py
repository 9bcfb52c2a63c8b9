"""What a scripted run answers: faults at a transaction, once or always, and what is stored at the end."""

from __future__ import annotations

from dataclasses import replace

from coordinated_bolt.completeness.failure import FailureKind
from tests.support.machine.links import linked
from tests.support.runs.scripted import failed
from tests.support.topologies.components import LinesCoordinator

USER, LATER, SOURCE = FailureKind.USER, FailureKind.FAILED, FailureKind.SOURCE


def everything(count):
    return {"counts": {f"tx{txid}": 1 for txid in range(1, count + 1)}}


def once(script, otherwise):
    """The first call is answered by `script`, all others as usual."""
    scripts = [script]

    def answer(*asked):
        return scripts.pop()(*asked) if scripts else otherwise(*asked)

    return answer


def with_metadata(run, **failures):
    """Emitters cut the partition's metadata again in every attempt, each from the one below it."""

    def answer(wave_id, attempts):
        event = run.engine.processed(wave_id, attempts, **failures)
        for outcome in event.outcomes:
            outcome.metadata["partition.0"] = [outcome.attempt.txid, outcome.attempt.attempt_id]
        return replace(event, outcomes=linked(event.outcomes, run.engine.stored[-1]))

    return answer


def failing_at(run, txid, times=1, kind=LATER, text="no"):
    """The processing phase of a txid fails so often."""
    return _failing(run.engine.processed, txid, times, failed(kind, text))


def committing_fails_at(run, txid, times=1, kind=LATER, text="no"):
    """The commit phase of a txid fails so often."""
    return _failing(run.engine.executed, txid, times, failed(kind, text))


def _failing(answered, txid, times, failure):
    left = [failure] * times

    def answer(wave_id, attempts, *composed):
        is_meant = left and txid in [attempt.txid for attempt in attempts]
        return answered(wave_id, attempts, *composed, **({f"at_{txid}": left.pop()} if is_meant else {}))

    return answer


class Endless(LinesCoordinator):
    def __init__(self):
        super().__init__(10**9)

    def is_exhausted(self):
        return False
