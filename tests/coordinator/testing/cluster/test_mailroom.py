"""Messages keep their order on a channel, queues keep their bound, and nothing waits for ever."""

from __future__ import annotations

from collections import Counter
from itertools import count
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.testing.cluster.mailroom import Mailroom
from tests.support.scenarios.playing import in_flight

SPOUT, BOLT, SINK, ACKER = 1, 2, 3, 4


class Letter(NamedTuple):
    sender: int
    target: int
    content: int


def run(mailroom: Mailroom[Letter], *letters: Letter) -> None:
    """Sends letters, and lets everything arrive."""
    for letter in letters:
        mailroom.send(letter)
    for steps in count():
        if not mailroom.step():
            return
        assert steps < 100_000, "it never ends"


def room(seed=0, capacity=1_024) -> Mailroom[Letter]:
    return Mailroom(Random(seed), capacity)


def received_count(mailroom: Mailroom[Letter], task_id: int) -> int:
    """The messages in a task's receive queue."""
    return mailroom._capacity - mailroom._desks[task_id].room


@given(st.integers(0, 2**32), st.integers(1, 5), st.lists(st.tuples(st.integers(1, 3), st.integers(4, 5)), max_size=40))
def test_a_channel_keeps_its_order_and_delivers_each_message_once(seed, capacity, ways):
    mailroom = room(seed, capacity)
    received: list[Letter] = []
    for task in range(1, 6):
        mailroom.attach(task, received.append)
    letters = [Letter(sender, target, number) for number, (sender, target) in enumerate(ways)]
    run(mailroom, *letters)
    assert sorted(received, key=lambda letter: letter.content) == letters
    for way in set(ways):
        contents = [letter.content for letter in received if letter[:2] == way]
        assert contents == sorted(contents)
    assert in_flight(mailroom) == 0


def test_messages_of_one_channel_overtake_each_other_if_order_is_not_kept():
    mailroom = Mailroom[Letter](Random(0), 3, keeps_order=False)
    received: list[Letter] = []
    for task in (SPOUT, BOLT):
        mailroom.attach(task, received.append)
    letters = [Letter(SPOUT, BOLT, number) for number in range(9)]
    run(mailroom, *letters)
    assert received != letters
    assert sorted(received) == letters


def test_one_seed_gives_one_schedule_and_different_seeds_different_ones():
    def schedule(seed):
        mailroom = room(seed)
        received: list[Letter] = []
        mailroom.attach(SINK, received.append)
        run(mailroom, *(Letter(number % 3 + 10, SINK, number) for number in range(30)))
        return received

    assert schedule(1) == schedule(1)
    assert len({tuple(schedule(seed)) for seed in range(10)}) == 10


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(0, 30))
def test_a_receive_queue_never_holds_more_than_its_capacity(seed, capacity, fan_out):
    mailroom = room(seed, capacity)
    received: list[Letter] = []

    def multiply(letter: Letter) -> None:
        for number in range(fan_out):
            mailroom.send(Letter(BOLT, SINK, number))

    mailroom.attach(BOLT, multiply)
    mailroom.attach(SINK, received.append)
    for number in range(5):
        mailroom.send(Letter(SPOUT, BOLT, number))
    while mailroom.step():
        assert received_count(mailroom, SINK) <= capacity
        assert received_count(mailroom, BOLT) <= capacity
    assert len(received) == 5 * fan_out


def test_a_task_whose_output_overflows_is_given_no_input_until_it_has_drained():
    mailroom = room(capacity=1)
    executed: list[Letter] = []
    received: list[Letter] = []

    def double(letter: Letter) -> None:
        assert received_count(mailroom, SINK) + len(received) >= 2 * len(executed) - 1, "the overflow had drained"
        executed.append(letter)
        for _ in range(2):
            mailroom.send(Letter(BOLT, SINK, letter.content))

    mailroom.attach(BOLT, double)
    mailroom.attach(SINK, received.append)
    run(mailroom, *(Letter(SPOUT, BOLT, number) for number in range(10)))
    assert [letter.content for letter in received] == [number for number in range(10) for _ in range(2)]


class Spout:
    """Emits `count` numbers, three at a time; every number is acked back through an acker."""

    def __init__(self, mailroom: Mailroom[Letter], count: int) -> None:
        self.mailroom, self.left, self.acked = mailroom, count, Counter[int]()
        self.asked = 0

    def wake(self) -> bool:
        self.asked += 1
        for _ in range(min(3, self.left)):
            self.left -= 1
            self.mailroom.send(Letter(SPOUT, BOLT, self.left))
        return self.left > 0

    def receive(self, letter: Letter) -> None:
        self.acked[letter.content] += 1


@given(st.integers(0, 2**32), st.integers(1, 3))
def test_emit_and_ack_never_wait_for_each_other(seed, capacity):
    mailroom = room(seed, capacity)
    spout = Spout(mailroom, 30)
    mailroom.attach(SPOUT, spout.receive, wake=spout.wake)

    def copy(letter: Letter) -> None:
        for _ in range(4):
            mailroom.send(Letter(BOLT, ACKER, letter.content))

    mailroom.attach(BOLT, copy)
    mailroom.attach(ACKER, lambda letter: mailroom.send(Letter(ACKER, SPOUT, letter.content)))
    run(mailroom)
    assert spout.acked == dict.fromkeys(range(30), 4)


def test_a_spout_that_had_nothing_is_asked_again_only_when_something_has_changed():
    mailroom = room()
    spout = Spout(mailroom, 0)
    mailroom.attach(SPOUT, spout.receive, wake=spout.wake)
    run(mailroom)
    assert spout.asked == 1
    assert not mailroom.step()
    run(mailroom, Letter(ACKER, SPOUT, 7))
    assert spout.asked == 2
    mailroom.rouse()
    run(mailroom)
    assert spout.asked == 3


@given(st.integers(0, 2**32), st.integers(1, 3))
def test_what_is_discarded_makes_room_for_what_is_not(seed, capacity):
    mailroom = room(seed, capacity)
    received: list[Letter] = []
    mailroom.attach(BOLT, received.append)
    mailroom.attach(SINK, received.append)
    letters = [Letter(BOLT if number % 3 else SPOUT, SINK, number) for number in range(20)]
    for letter in letters:
        mailroom.send(letter)
    mailroom.discard(lambda letter: letter.content % 2 == 0)
    assert in_flight(mailroom) == 10
    assert received_count(mailroom, SINK) == min(capacity, 10)
    run(mailroom, Letter(SPOUT, BOLT, 100))
    assert sorted(letter.content for letter in received) == [*range(1, 20, 2), 100]


def test_a_capacity_below_one_is_refused():
    with pytest.raises(ValueError, match="receive capacity is 0; give an integer of at least 1"):
        room(capacity=0)
