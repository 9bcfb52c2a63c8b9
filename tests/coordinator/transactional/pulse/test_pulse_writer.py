"""What leaves the driver, and when: a sender that is told what to answer, and rarely a thread."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from coordinator.transactional.pulse.pulse_writer import STORIES_PER_CALL, STORIES_WAITING, PulseWriter
from coordinator.transactional.pulse.run_pulse_side import RunPulseSide
from coordinator.transactional.pulse.story_book import ClosedStory
from coordinator.transactional.run_summary import RunStatistics
from state.errors import FencedError, StateUnreachableError
from state.records.run_pulse import RunFigures, RunState, pulse_of

Story = tuple[int, str]
TEXT = "a story"


class Sent:
    """Takes what is sent; `faults` are raised first, one for each call."""

    def __init__(self, *faults: Exception, owns: bool = True) -> None:
        self.faults, self.owns = list(faults), owns
        self.calls: list[tuple[dict[str, str], list[Story]]] = []
        self.fields: dict[str, str] = {}

    def send(self, fields: Mapping[str, str], stories: list[Story], *, kept: int) -> bool:
        self.calls.append((dict(fields), list(stories)))
        if self.faults:
            raise self.faults.pop(0)
        self.fields |= fields
        return self.owns


def writer(sent: Sent) -> PulseWriter:
    return PulseWriter(sent, "who", wall_clock=lambda: 1207.5, kept=10)


class Told(ClosedStory):
    """A story that is told already."""

    def to_json(self) -> str:
        return TEXT


def stories(*txids: int) -> list[ClosedStory]:
    return [Told(txid, None, None, 0) for txid in txids]  # type: ignore[arg-type] # only its text is asked for


def away() -> StateUnreachableError:
    return StateUnreachableError("server redis://h did not answer")


def test_the_first_pulse_says_who_runs_and_later_ones_only_what_is_new() -> None:
    sent = Sent()
    pulse = writer(sent)
    pulse.tell("figures 1", "sample 1", stories(1))
    pulse.send_once()
    pulse.send_once()
    assert sent.calls == [
        ({"run": "who", "now": "figures 1", "sample.7": "sample 1", "seen": "1207.500"}, [(1, TEXT)]),
        ({"seen": "1207.500"}, []),
    ]


def test_a_pulse_that_fails_is_logged_once_and_sent_with_the_next_one(caplog: pytest.LogCaptureFixture) -> None:
    sent = Sent(away(), away())
    pulse = writer(sent)
    with caplog.at_level(logging.WARNING, "txbatch"):
        pulse.tell("figures 1", "sample 1", stories(1, 2))
        pulse.send_once()
        pulse.tell("figures 2", "sample 2", stories(3))
        pulse.send_once()
        pulse.send_once()
    assert [record.getMessage() for record in caplog.records] == [
        "the run's pulse cannot be written, which changes nothing else: server redis://h did not answer"
    ]
    assert sent.fields["now"] == "figures 2"
    assert sent.fields["run"] == "who"
    assert [stories for _, stories in sent.calls] == [
        [(1, TEXT), (2, TEXT)],
        [(1, TEXT), (2, TEXT), (3, TEXT)],
        [(1, TEXT), (2, TEXT), (3, TEXT)],
    ]


def test_a_run_that_was_fenced_out_says_nothing_more() -> None:
    sent = Sent(owns=False)
    pulse = writer(sent)
    pulse.send_once()
    pulse.tell("figures", "sample", [])
    pulse.send_once()
    assert len(sent.calls) == 1


def test_stories_travel_in_portions_and_those_that_wait_too_long_are_forgotten() -> None:
    sent = Sent(away())
    pulse = writer(sent)
    pulse.tell("figures", "sample", stories(*range(STORIES_WAITING)))
    pulse.send_once()
    pulse.tell("figures", "sample", stories(*range(STORIES_WAITING, STORIES_WAITING + 5)))
    pulse.send_once()
    assert [txid for txid, _ in sent.calls[1][1]] == list(range(5, 5 + STORIES_PER_CALL))


def test_closing_sends_what_is_left() -> None:
    sent = Sent()
    pulse = writer(sent)
    pulse.start()
    pulse.tell("last figures", "sample", stories(*range(STORIES_PER_CALL + 1)))
    pulse.close()
    assert sent.fields["now"] == "last figures"
    assert sum(len(stories) for _, stories in sent.calls) == STORIES_PER_CALL + 1


class TestTheObserver:
    def side(self, sent: Sent) -> tuple[RunPulseSide, PulseWriter]:
        pulse = writer(sent)
        pulse.start()
        return RunPulseSide(pulse, clock=lambda: 7.0, epoch_s=1200.0), pulse

    def told(self, sent: Sent) -> RunFigures:
        pulse = pulse_of(sent.fields)
        assert pulse is not None
        return pulse.now

    @pytest.mark.parametrize(
        ("error", "is_interrupted", "state"),
        [
            (None, False, RunState.DONE),
            (None, True, RunState.STOPPED),
            (KeyboardInterrupt(), False, RunState.STOPPED),
            (FencedError("wc"), False, RunState.FAILED),
        ],
        ids=["done", "drained before the end", "Ctrl-C", "an error"],
    )
    def test_how_a_run_ended(self, error: BaseException | None, is_interrupted: bool, state: RunState) -> None:
        sent = Sent()
        side, _ = self.side(sent)
        if error is not None:
            side.failed(error)
        side.look(RunStatistics(is_interrupted=is_interrupted, last_txid=4), {}, is_waiting=False)
        side.close()
        assert (self.told(sent).state, self.told(sent).last_txid) == (state, 4)

    def test_a_fault_of_its_own_ends_the_pulse_and_not_the_run(self, caplog: pytest.LogCaptureFixture) -> None:
        side, _ = self.side(Sent())
        side.heard("not an event")  # type: ignore[arg-type]
        with caplog.at_level(logging.ERROR, "txbatch"):
            side.look(None, {}, is_waiting=False)  # type: ignore[arg-type]
            side.look(None, {}, is_waiting=False)  # type: ignore[arg-type]
        assert [record.getMessage() for record in caplog.records] == [
            "the run's pulse has a fault, and is told no further; the run continues"
        ]
        side.close()
