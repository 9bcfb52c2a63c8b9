"""What the driver makes of the frames that a wave of a plain topology ends with."""

from __future__ import annotations

import pytest

from coordinated_bolt.transport.edges import DRIVER
from coordinated_bolt.transport.frames import WaveId, seal_frame
from coordinator.plain.plain_engine import PlainWave
from coordinator.plain.spark.plain_stage import wave_drained
from coordinator.plain.tasks.message_packer import MessagePacker

WAVE = WaveId(3, 7)
BEGUN = ({1: 10, 2: 20}, {3: 30})


def reported(sender: int, acks: dict[int, int], wave_id: WaveId = WAVE) -> bytes:
    sent: list[bytes] = []
    packer = MessagePacker(wave_id, sender, lambda frame: sent.append(seal_frame(frame)), acker_tasks=(DRIVER,))
    for root, edges in acks.items():
        packer.ack(root, edges)
    packer.close()
    (frame,) = sent
    return frame


ALL = [reported(5, {1: 10, 2: 21}), reported(6, {2: 1, 3: 30})]


@pytest.mark.parametrize(
    ("frames", "acked"),
    [
        (ALL, {1, 2, 3}),
        (ALL[::-1], {1, 2, 3}),
        ([*ALL, ALL[0]], {1, 2, 3}),
        ([ALL[0], ALL[1][:-1]], {1}),
        ([ALL[0], reported(6, {2: 1, 3: 30}, WaveId(3, 8))], {1}),
        ([], set()),
    ],
    ids=["all", "in another order", "one twice", "one torn", "one of another wave", "none"],
)
def test_a_message_is_acked_if_the_frames_that_count_cancel_its_edges(frames, acked):
    drained = wave_drained([(0, frame) for frame in frames], PlainWave(WAVE, (), BEGUN))
    assert drained.acked == acked
