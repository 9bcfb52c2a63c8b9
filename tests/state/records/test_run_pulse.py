"""What a run tells of itself, as values: stored and read back, and what a reader concludes."""

from __future__ import annotations

import pytest

from state.records.run_pulse import (
    ComponentFigures,
    LastFailure,
    PulseSample,
    RunFigures,
    RunIdentity,
    RunPulse,
    RunState,
    Spread,
    Standing,
    owners,
    pulse_of,
    standing_of,
    to_json,
)

RUN = RunIdentity(fence="2:ab", host="node1", pid=7, user="ann", started_at=100.0, versions={"python": "3.12.1"})
NOW = RunFigures(
    at=160.0,
    state=RunState.RUNNING,
    window={"waiting": 1, "processing": 2},
    latency_s=Spread(3, 0.1, 0.2, 0.3, 0.4),
    components={"count": ComponentFigures(tuples_in=5, busy_s=0.5)},
    failures={"lower failed": 2},
    last_failure=LastFailure(4, "4:00ff", "worker lost", "an executor is gone", 150.0),
)


def stored(**changes: str) -> dict[str, str]:
    return {"run": to_json(RUN), "now": to_json(NOW), "seen": "161.5", **changes}


def test_what_was_told_is_read_back() -> None:
    pulse = pulse_of(stored(**{"sample.3": to_json(PulseSample(at=160.0, last_txid=9))}))
    assert pulse is not None
    assert (pulse.run, pulse.now, pulse.seen_at) == (RUN, NOW, 161.5)
    assert pulse.samples == (PulseSample(at=160.0, last_txid=9),)


def test_samples_are_in_order_and_those_of_an_older_run_are_left_out() -> None:
    ring = {f"sample.{place}": to_json(PulseSample(at=at)) for place, at in enumerate((1700.0, 1000.0, 1101.0))}
    pulse = pulse_of(stored(**ring))
    assert pulse is not None
    assert [sample.at for sample in pulse.samples] == [1101.0, 1700.0]


@pytest.mark.parametrize(
    "text", ["", "nonsense", "[]", '{"state": "asleep"}', '{"latency_s": 3}', '{"components": []}']
)
def test_figures_that_cannot_be_read_count_as_not_told(text: str) -> None:
    pulse = pulse_of(stored(now=text, seen="?"))
    assert pulse is not None
    assert (pulse.now, pulse.seen_at) == (RunFigures(), 0.0)


def test_what_a_newer_version_tells_is_left_out() -> None:
    pulse = pulse_of(stored(now='{"at": 5.0, "mood": "fine"}', run='{"pid": 3, "shoe_size": 42}'))
    assert pulse is not None
    assert (pulse.now.at, pulse.run.pid) == (5.0, 3)


SEEN_AT = 1000.0
RUNS, IS_DONE, HAS_FAILED, IS_GONE = (
    RunPulse(RUN, RunFigures(state=state), seen_at=SEEN_AT, is_gone=is_gone)
    for state, is_gone in (
        (RunState.RUNNING, False),
        (RunState.DONE, False),
        (RunState.FAILED, False),
        (RunState.RUNNING, True),
    )
)


@pytest.mark.parametrize(
    ("pulse", "seen_s_ago", "connected", "standing"),
    [
        pytest.param(RUNS, 1.0, 0, Standing.RUNNING, id="heard of just now"),
        pytest.param(RUNS, 60.0, 0, Standing.SILENT, id="heard of a minute ago"),
        pytest.param(RUNS, 60.0, 1, Standing.RUNNING, id="quiet but connected"),
        pytest.param(IS_DONE, 60.0, 0, Standing.ENDED, id="said that it is done"),
        pytest.param(HAS_FAILED, 0.0, 1, Standing.ENDED, id="failed, its connection not closed yet"),
        pytest.param(IS_GONE, 0.1, 0, Standing.SILENT, id="its process is gone"),
        pytest.param(IS_GONE, 0.1, 1, Standing.RUNNING, id="its process is gone, but it is connected"),
        pytest.param(None, 0.0, 0, Standing.UNKNOWN, id="nothing is known"),
        pytest.param(None, 0.0, 1, Standing.RUNNING, id="connected and tells nothing"),
    ],
)
def test_what_a_reader_concludes(pulse: RunPulse | None, seen_s_ago: float, connected: int, standing: Standing) -> None:
    assert standing_of(pulse, now=SEEN_AT + seen_s_ago, connected=connected) is standing


def test_the_pulse_of_a_run_that_no_longer_owns_the_topology_is_not_the_owners() -> None:
    pulse = pulse_of(stored())
    assert owners(pulse, RUN.fence) is pulse
    assert owners(pulse, "3:cd") is None
    assert owners(None, "") is None
