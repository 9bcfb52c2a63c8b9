"""What each answer of the store means for the run."""

from __future__ import annotations

import pytest

from coordinator.transactional.machine.run_events import Publish, Published, Refused
from coordinator.transactional.publisher import Publisher
from state.attempt import TransactionAttempt
from state.commits.commit import COMMIT_OPERATIONS_LIMIT, Commit, CommitReply, CommitStatus
from state.commits.state_writes import StateWrites
from state.commits.write_set import WriteSet
from state.errors import FencedError, ProtocolError, StateRefusedError, StateUnreachableError, TransactionTooLargeError
from state.metadata import MetadataChanges
from state.values.state_kind import StateKind, ValueType
from tests.support.stores.memory_store import MemoryStore

GROUP = (TransactionAttempt(1, 10), TransactionAttempt(2, 20))
NOTHING = WriteSet()


def publisher(store):
    return Publisher(store, "job", clock=lambda: 5.0)


def publish(*replies, attempts=GROUP, write_set=NOTHING, forget=()):
    """The store, and the answer to a commit that it replies to like this."""
    store = MemoryStore()
    store.metadata = dict.fromkeys(forget)
    store.replies = list(replies)
    return store, publisher(store).publish(Publish(attempts, write_set, MetadataChanges(forgets=forget)))


def refusal(*replies, **sent):
    _, refused = publish(*replies, **sent)
    assert isinstance(refused, Refused)
    return refused.error


def test_a_commit_carries_attempts_changes_and_what_to_store_and_to_forget():
    sent: list[Commit] = []

    class Store(MemoryStore):
        def commit(self, commit):
            sent.append(commit)
            return super().commit(commit)

    write_set = WriteSet({"s": StateWrites(StateKind.SET, ValueType.STR, puts={"a": True})})
    store = Store()
    store.metadata = {"coordinator:0": None}
    metadata = MetadataChanges({"partition.0:2": [0, 2]}, ("coordinator:0",))
    assert isinstance(publisher(store).publish(Publish(GROUP, write_set, metadata)), Published)
    assert sent == [Commit(GROUP, write_set, {"partition.0:2": [0, 2]}, ("coordinator:0",))]
    assert store.states == {"s": {"a": True}}
    assert store.metadata == {"partition.0:2": [0, 2]}


def test_a_commit_that_was_published_before_is_as_good_as_published():
    store, answer = publish(CommitReply(CommitStatus.ALREADY))
    assert store.committed == [[1, 2]]
    assert isinstance(answer, Published)
    assert answer.now_s == 5.0


def test_metadata_is_handed_on():
    store = MemoryStore()
    publisher(store).store_metadata({"coordinator:1": 5})
    assert store.calls == [("metadata", {"coordinator:1": 5})]


@pytest.mark.parametrize(
    ("reply", "attempts", "said"),
    [
        (
            CommitReply(CommitStatus.TYPE, "key {job}:s is a list"),
            GROUP,
            "transaction 1:000000000000000a to 2:0000000000000014 was refused: key {job}:s is a list",
        ),
        (
            CommitReply(CommitStatus.LIMIT, "field 'a' would be 2^60"),
            GROUP[:1],
            "transaction 1:000000000000000a was refused: field 'a' would be 2^60",
        ),
    ],
    ids=["wrong type", "limit"],
)
def test_a_wrong_type_or_a_limit_refuses_the_group_and_names_what_was_found(reply, attempts, said):
    error = refusal(reply, attempts=attempts)
    assert isinstance(error, StateRefusedError)
    assert str(error) == said


def test_too_many_operations_are_named_with_their_number():
    appends = [0] * (COMMIT_OPERATIONS_LIMIT + 1)
    write_set = WriteSet({"s": StateWrites(StateKind.LIST, ValueType.INT, appends=appends)})
    error = refusal(CommitReply(CommitStatus.LIMIT, "too many"), attempts=GROUP[:1], write_set=write_set)
    assert isinstance(error, TransactionTooLargeError)
    assert (error.txid, error.operation_count) == (1, 500_001)


@pytest.mark.parametrize(
    ("reply", "error", "said"),
    [
        (CommitReply(CommitStatus.FENCED), FencedError, "topology 'job' was taken over by a newer coordinator"),
        (CommitReply(CommitStatus.ORDER, "the detail"), ProtocolError, "the detail"),
        (CommitReply(CommitStatus.CONFLICT, "the detail"), StateRefusedError, "the detail"),
        (CommitReply(CommitStatus.REGRESSED, "the detail"), StateRefusedError, "the detail"),
        (CommitReply(CommitStatus.VERSION, "the detail"), StateRefusedError, "the detail"),
        (StateUnreachableError("no answer"), StateUnreachableError, "no answer"),
    ],
)
def test_every_other_answer_or_none_stops_the_run(reply, error, said):
    with pytest.raises(error, match=said):
        publish(reply)


def test_every_status_is_answered():
    for status in CommitStatus:
        try:
            _, answer = publish(CommitReply(status, "the detail"))
        except (FencedError, ProtocolError, StateRefusedError):
            continue
        assert isinstance(answer, Published) == (status in (CommitStatus.OK, CommitStatus.ALREADY))
