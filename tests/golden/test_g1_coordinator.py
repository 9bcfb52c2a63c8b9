"""Golden case G1: the coordinator step by step, one commit in flight, and its grouped form."""

from __future__ import annotations

from itertools import count

from coordinator.transactions import EmitBatch, Phase, StartCommit, StoreMetadata, TransactionCoordinator
from state import TransactionAttempt


class ValueSpout:
    """Ready while it has a value, which is the metadata of whatever is cut."""

    def __init__(self) -> None:
        self.value: int | None = None

    def is_ready(self):
        return self.value is not None

    def initialize_transaction(self, txid, previous):
        return self.value


def make(commit_group_max):
    return TransactionCoordinator(
        currtx=1,
        metadata={},
        max_spout_pending=4,
        commit_group_max=commit_group_max,
        new_attempt_id=count(1).__next__,
    )


def att(txid, attempt_id):
    return TransactionAttempt(txid, attempt_id)


def batch(txid, attempt_id, metadata):
    return EmitBatch(att(txid, attempt_id), metadata)


def commit(*attempts):
    return StartCommit(tuple(att(*one) for one in attempts))


def test_g1_one_commit_in_flight():
    spout, machine = ValueSpout(), make(commit_group_max=1)

    def following():
        return machine.sync(spout)

    # 1
    spout.value = 10
    assert following() == [
        StoreMetadata({1: 10, 2: 10, 3: 10, 4: 10}),
        batch(1, 1, 10),
        batch(2, 2, 10),
        batch(3, 3, 10),
        batch(4, 4, 10),
    ]
    # 2
    assert following() == []
    # 3
    assert machine.fail(att(2, 2), Phase.PROCESSING) == [att(2, 2), att(3, 3), att(4, 4)]
    assert following() == [batch(2, 5, 10), batch(3, 6, 10), batch(4, 7, 10)]
    # 4
    assert machine.ack(att(2, 5), Phase.PROCESSING)
    assert following() == []
    # 5
    assert machine.ack(att(1, 1), Phase.PROCESSING)
    assert following() == [commit((1, 1))]
    # 6
    spout.value = 12
    assert machine.ack(att(1, 1), Phase.COMMIT)
    assert following() == [commit((2, 5)), StoreMetadata({5: 12}), batch(5, 8, 12)]
    # 7
    spout.value = None
    assert machine.ack(att(2, 5), Phase.COMMIT)
    assert following() == []
    # 8
    assert machine.fail(att(3, 6), Phase.PROCESSING) == [att(3, 6), att(4, 7), att(5, 8)]
    assert following() == [batch(3, 9, 10), batch(4, 10, 10), batch(5, 11, 12)]
    # 9
    spout.value = 12
    assert following() == [StoreMetadata({6: 12}), batch(6, 12, 12)]
    # 10
    assert machine.ack(att(3, 9), Phase.PROCESSING)
    assert following() == [commit((3, 9))]
    # 11
    assert machine.ack(att(4, 10), Phase.PROCESSING)
    assert following() == []
    # 12
    assert machine.fail(att(3, 9), Phase.COMMIT) == [att(3, 9), att(4, 10), att(5, 11), att(6, 12)]
    assert following() == [batch(3, 13, 10), batch(4, 14, 10), batch(5, 15, 12), batch(6, 16, 12)]
    # 13
    assert machine.ack(att(3, 13), Phase.PROCESSING)
    assert following() == [commit((3, 13))]
    # 14
    assert machine.ack(att(4, 14), Phase.PROCESSING)
    assert following() == []
    # 15
    assert machine.ack(att(3, 13), Phase.COMMIT)
    assert following() == [commit((4, 14)), StoreMetadata({7: 12}), batch(7, 17, 12)]


def test_g1_with_groups_of_four():
    spout, machine = ValueSpout(), make(commit_group_max=4)

    def following():
        return machine.sync(spout)

    # 1
    spout.value = 10
    assert following() == [
        StoreMetadata({1: 10, 2: 10, 3: 10, 4: 10}),
        batch(1, 1, 10),
        batch(2, 2, 10),
        batch(3, 3, 10),
        batch(4, 4, 10),
    ]
    # 2
    assert following() == []
    # 3
    assert machine.fail(att(2, 2), Phase.PROCESSING) == [att(2, 2), att(3, 3), att(4, 4)]
    assert following() == [batch(2, 5, 10), batch(3, 6, 10), batch(4, 7, 10)]
    # 4: txid 1 has to come first
    assert machine.ack(att(2, 5), Phase.PROCESSING)
    assert following() == []
    # 5: both go together
    assert machine.ack(att(1, 1), Phase.PROCESSING)
    assert following() == [commit((1, 1), (2, 5))]
    # 6: the group ends as a whole, so two txids enter the window
    spout.value = 12
    assert machine.ack(att(1, 1), Phase.COMMIT)
    assert machine.ack(att(2, 5), Phase.COMMIT)
    assert following() == [StoreMetadata({5: 12, 6: 12}), batch(5, 8, 12), batch(6, 9, 12)]
    # 7
    spout.value = None
    assert following() == []
    # 8
    assert machine.fail(att(3, 6), Phase.PROCESSING) == [att(3, 6), att(4, 7), att(5, 8), att(6, 9)]
    assert following() == [batch(3, 10, 10), batch(4, 11, 10), batch(5, 12, 12), batch(6, 13, 12)]
    # 9: the window is full already
    spout.value = 12
    assert following() == []
    # 10: a group does not wait for more
    assert machine.ack(att(3, 10), Phase.PROCESSING)
    assert following() == [commit((3, 10))]
    # 11: one group in flight
    assert machine.ack(att(4, 11), Phase.PROCESSING)
    assert machine.ack(att(5, 12), Phase.PROCESSING)
    assert following() == []
    # 12: what failed in the commit phase takes all later ones with it
    assert machine.fail(att(3, 10), Phase.COMMIT) == [att(3, 10), att(4, 11), att(5, 12), att(6, 13)]
    assert following() == [batch(3, 14, 10), batch(4, 15, 10), batch(5, 16, 12), batch(6, 17, 12)]
    # 13: processed in any order, committed in theirs
    assert machine.ack(att(5, 16), Phase.PROCESSING)
    assert machine.ack(att(4, 15), Phase.PROCESSING)
    assert machine.ack(att(3, 14), Phase.PROCESSING)
    assert following() == [commit((3, 14), (4, 15), (5, 16))]
    # 14: the middle of the group fails; its head goes on to be published
    assert machine.ack(att(6, 17), Phase.PROCESSING)
    assert machine.fail(att(4, 15), Phase.COMMIT) == [att(4, 15), att(5, 16), att(6, 17)]
    machine.publish((att(3, 14),))
    assert following() == [batch(4, 18, 10), batch(5, 19, 12), batch(6, 20, 12)]
    # 15
    assert machine.ack(att(3, 14), Phase.COMMIT)
    assert following() == [StoreMetadata({7: 12}), batch(7, 21, 12)]
