"""Golden case G1: the coordinator step by step, one commit in flight, and its grouped form."""

from __future__ import annotations

import pytest

from coordinator.transactional.machine.run_events import BatchCut, Cut, NothingToCut, NotifySpout, Publish, StartCommit
from tests.support.machine.by_hand import ByHand, att, store, wave

pytestmark = pytest.mark.case(id="G1")


class ValueSpout:
    """Ready while it has a value, which is the metadata of whatever is cut."""

    def __init__(self) -> None:
        self.value: int | None = None

    def __call__(self, cut: Cut) -> BatchCut | NothingToCut:
        return NothingToCut(cut.txid, 0.0) if self.value is None else BatchCut(cut.txid, self.value, 0.0)


def make(commit_group_max):
    spout = ValueSpout()
    return spout, ByHand(spout, max_spout_pending=4, commit_group_max=commit_group_max)


def commit(*attempts):
    return StartCommit(1, tuple(att(*one) for one in attempts), composed=True)


def in_order(commit_group_max):
    """The steps up to the fifth, which are the same for groups of any size: txids 1 and 2 are processed."""
    spout, machine = make(commit_group_max)
    following = machine.turn
    # 1
    spout.value = 10
    assert following() == [
        store(t1=10, t2=10, t3=10, t4=10),
        wave(1, (1, 1, 10), (2, 2, 10), (3, 3, 10), (4, 4, 10)),
    ]
    # 2
    assert following() == []
    # 3
    assert machine.fail(att(2, 2)) == []
    assert following() == [wave(1, (2, 5, 10), (3, 6, 10), (4, 7, 10))]
    # 4: txid 1 has to come first
    assert machine.ack(att(2, 5)) == []
    assert following() == []
    # 5
    assert machine.ack(att(1, 1)) == []
    return spout, machine


def test_transactions_commit_one_at_a_time():
    spout, machine = in_order(commit_group_max=1)
    following = machine.turn
    assert following() == [commit((1, 1))]
    # 6
    spout.value = 12
    machine.commit()
    assert following() == [commit((2, 5)), store(t5=12), wave(1, (5, 8, 12))]
    # 7
    spout.value = None
    machine.commit()
    assert following() == []
    # 8
    assert machine.fail(att(3, 6)) == []
    assert following() == [wave(1, (3, 9, 10), (4, 10, 10), (5, 11, 12))]
    # 9
    spout.value = 12
    assert following() == [store(t6=12), wave(1, (6, 12, 12))]
    # 10
    assert machine.ack(att(3, 9)) == []
    assert following() == [commit((3, 9))]
    # 11
    assert machine.ack(att(4, 10)) == []
    assert following() == []
    # 12
    assert machine.executed(failing=att(3, 9)) == []
    assert following() == [wave(1, (3, 13, 10), (4, 14, 10), (5, 15, 12), (6, 16, 12))]
    # 13
    assert machine.ack(att(3, 13)) == []
    assert following() == [commit((3, 13))]
    # 14
    assert machine.ack(att(4, 14)) == []
    assert following() == []
    # 15
    machine.commit()
    assert following() == [commit((4, 14)), store(t7=12), wave(1, (7, 17, 12))]


def test_transactions_commit_in_groups_of_up_to_four():
    spout, machine = in_order(commit_group_max=4)
    following = machine.turn
    # 5: both go together
    assert following() == [commit((1, 1), (2, 5))]
    # 6: the group ends as a whole, so two txids enter the window
    spout.value = 12
    machine.commit()
    assert following() == [store(t5=12, t6=12), wave(1, (5, 8, 12), (6, 9, 12))]
    # 7
    spout.value = None
    assert following() == []
    # 8
    assert machine.fail(att(3, 6)) == []
    assert following() == [wave(1, (3, 10, 10), (4, 11, 10), (5, 12, 12), (6, 13, 12))]
    # 9: the window is full already
    spout.value = 12
    assert following() == []
    # 10: a group does not wait for more
    assert machine.ack(att(3, 10)) == []
    assert following() == [commit((3, 10))]
    # 11: one group in flight
    assert machine.ack(att(4, 11)) == []
    assert machine.ack(att(5, 12)) == []
    assert following() == []
    # 12: what failed in the commit phase takes all later ones with it
    assert machine.executed(failing=att(3, 10)) == []
    assert following() == [wave(1, (3, 14, 10), (4, 15, 10), (5, 16, 12), (6, 17, 12))]
    # 13: processed in any order, committed in theirs
    assert machine.ack(att(5, 16)) == []
    assert machine.ack(att(4, 15)) == []
    assert machine.ack(att(3, 14)) == []
    assert following() == [commit((3, 14), (4, 15), (5, 16))]
    # 14: the middle of the group fails; its head is published all the same
    assert machine.ack(att(6, 17)) == []
    (publish,) = machine.executed(failing=att(4, 15))
    assert isinstance(publish, Publish)
    assert publish.attempts == (att(3, 14),)
    # 15
    assert machine.published() == [NotifySpout((att(3, 14),))]
    assert following() == [store(t7=12), wave(1, (4, 18, 10), (5, 19, 12), (6, 20, 12), (7, 21, 12))]
