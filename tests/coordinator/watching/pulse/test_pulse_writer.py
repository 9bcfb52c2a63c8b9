"""What leaves the driver, and when: a sender that is told what to answer, and rarely a thread."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from coordinator.watching.pulse.pulse_writer import STORIES_PER_CALL, STORIES_WAITING, PulseWriter
from coordinator.watching.pulse.stories import Story
from state.errors import StateUnreachableError

Sending = tuple[int, str]
TEXT = "a story"


class Sent:
    """Takes what is sent; `faults` are raised first, one for each call."""

    def __init__(self, *faults: Exception, owns: bool = True) -> None:
        self.faults, self.owns = list(faults), owns
        self.calls: list[tuple[dict[str, str], list[Sending]]] = []
        self.fields: dict[str, str] = {}

    def send(self, fields: Mapping[str, str], stories: list[Sending], *, kept: int) -> bool:
        self.calls.append((dict(fields), list(stories)))
        if self.faults:
            raise self.faults.pop(0)
        self.fields |= fields
        return self.owns


def writer(sent: Sent) -> PulseWriter:
    return PulseWriter(sent, "who", wall_clock=lambda: 1207.5, kept=10)


class Told(Story):
    """A story of which only the text counts."""

    def to_json(self) -> str:
        return TEXT


def stories(*txids: int) -> list[Story]:
    return [Told(txid, 0.0, 0.0) for txid in txids]


def away() -> StateUnreachableError:
    return StateUnreachableError("server redis://h did not answer")


def test_the_first_pulse_says_who_runs_and_later_ones_only_what_is_new() -> None:
    sent = Sent()
    pulse = writer(sent)
    pulse.take("figures 1", "sample 1", stories(1))
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
        pulse.take("figures 1", "sample 1", stories(1, 2))
        pulse.send_once()
        pulse.take("figures 2", "sample 2", stories(3))
        pulse.send_once()
        pulse.send_once()
    assert [record.getMessage() for record in caplog.records] == [
        "the run's pulse cannot be written, so `txbatch status` shows nothing new until it can; the run continues by "
        "itself: server redis://h did not answer"
    ]
    assert sent.fields["now"] == "figures 2"
    assert sent.fields["run"] == "who"
    found = [stories for _, stories in sent.calls]
    assert found == [[(1, TEXT), (2, TEXT)], [(1, TEXT), (2, TEXT), (3, TEXT)], [(1, TEXT), (2, TEXT), (3, TEXT)]]


def test_a_run_that_was_fenced_out_says_nothing_more() -> None:
    sent = Sent(owns=False)
    pulse = writer(sent)
    pulse.send_once()
    pulse.take("figures", "sample", [])
    pulse.send_once()
    assert len(sent.calls) == 1


def test_stories_travel_in_portions_and_those_that_wait_too_long_are_forgotten() -> None:
    sent = Sent(away())
    pulse = writer(sent)
    pulse.take("figures", "sample", stories(*range(STORIES_WAITING)))
    pulse.send_once()
    pulse.take("figures", "sample", stories(*range(STORIES_WAITING, STORIES_WAITING + 5)))
    pulse.send_once()
    assert [txid for txid, _ in sent.calls[1][1]] == list(range(5, 5 + STORIES_PER_CALL))


def test_closing_sends_what_is_left() -> None:
    sent = Sent()
    pulse = writer(sent)
    pulse.start()
    pulse.take("last figures", "sample", stories(*range(STORIES_PER_CALL + 1)))
    pulse.close()
    assert sent.fields["now"] == "last figures"
    assert sum(len(stories) for _, stories in sent.calls) == STORIES_PER_CALL + 1
