"""Every frame of a run, disturbed in every way, one at a time: the state stays exact and nothing is left over."""

from __future__ import annotations

from random import Random

import pytest

from coordinated_bolt.transport.frames import Frame, FrameKind
from tests.support.scenarios.playing import FAULTS, RandomFrameFaults, play
from tests.support.scenarios.small import SMALL, small

COMPONENTS = {1: "spout", 2: "spout", 3: "b0", 4: "b0", 5: "b1", 6: "b1", 7: "b2", 8: "acker"}


class OneFault(RandomFrameFaults):
    """Disturbs the frame that is sent as the n-th."""

    def __init__(self, fault: str, number: int) -> None:
        super().__init__(Random(0), 0)
        self.fault, self.number = fault, number
        self.hit: Frame | None = None

    def __call__(self, frame: Frame) -> list[Frame]:
        self.number -= 1
        if self.number == -1:
            self.hit = frame
            return self._disturbed(self.fault, frame)
        return super().__call__(frame)


def played(fault: OneFault) -> int:
    """Plays the small topology with a fault; returns how many attempts failed."""
    failed: list[int] = []
    play(SMALL, watch=lambda run: failed.append(run.statistics.failed_attempts), fault=fault)
    return failed[0]


@pytest.mark.often("drop")
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_of_any_frame_is_found_or_changes_nothing(kind):
    hops = set()
    number, harmless = 0, set()
    while True:
        fault = OneFault(kind, number)
        failed_attempts = played(fault)
        if fault.hit is None:
            break
        hop = (COMPONENTS[fault.hit.sender], COMPONENTS[fault.hit.target], fault.hit.kind.name)
        hops.add(hop)
        if not failed_attempts:
            harmless.add(hop)
        number += 1
    assert hops == {
        ("spout", "b0", "REGULAR"),
        ("spout", "b0", "COORD"),
        ("spout", "acker", "ACK"),
        ("b0", "b1", "REGULAR"),
        ("b0", "b1", "COORD"),
        ("b0", "acker", "ACK"),
        ("b1", "b2", "REGULAR"),
        ("b1", "b2", "COORD"),
    }
    if kind in ("drop", "alter"):
        assert harmless == set()
    if kind == "double":
        assert {hop[2] for hop in harmless} == {"COORD"}, "the same report again says nothing new"


class Misfiling(RandomFrameFaults):
    """Files the last frame of txid 2 from a committer to the other under an attempt of another wave, txid 3."""

    def __init__(self) -> None:
        super().__init__(Random(0), 0)
        self.third: Frame | None = None
        self.hit: Frame | None = None

    def __call__(self, frame: Frame) -> list[Frame]:
        if frame.attempt.txid == 3:
            self.third = frame
        is_between = (frame.sender, frame.attempt.txid, frame.kind) == (6, 2, FrameKind.COORD)
        if self.hit is None and self.third is not None and is_between:
            self.hit = frame
            return [frame._replace(attempt=self.third.attempt)]
        return [frame]


@pytest.mark.nightly
def test_a_message_that_a_fault_has_filed_under_a_wave_goes_with_the_wave():
    """The wave is void once txid 2 has failed, and the message may still be under way."""
    hits = 0
    for seed in range(40):
        fault = Misfiling()
        play(small(seed=seed, window=3, group=1), fault=fault)
        hits += fault.hit is not None
    assert hits > 10
