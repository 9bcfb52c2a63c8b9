"""Tuples that a stream refuses are dead letters, which can be published again and enter nothing twice."""

from __future__ import annotations

import pytest

from coordinator import FixedBatchesSpout, LocalCluster, stream
from state import HashState, UserCodeError, ValueState
from tests.support.topologies.short_forms import finished, kept, rows

ORDERS = [[["ann", 5], ["bob", 0], ["cid", -1]], [["ann", -2], ["bob", 3]]]


def orders():
    return rows("who cents", *ORDERS)


def letters(run):
    return [
        (letter.component_id, letter.source_component, letter.values, letter.reason) for letter in run.dead_letters()
    ]


def test_refused_tuples_are_letters_with_their_reason_and_the_others_pass():
    good = orders().dead_letter_if(lambda cents: cents <= 0, lambda cents: f"an order of {cents} cents", of="cents")
    topology = good.sum_by("who", "cents", into=HashState("cents")).topology("orders")
    run = finished(topology)
    assert run.state("cents") == {"ann": 5, "bob": 3}
    assert letters(run) == [
        ("dead_letter_if", "input", ("bob", 0), "an order of 0 cents"),
        ("dead_letter_if", "input", ("cid", -1), "an order of -1 cents"),
        ("dead_letter_if", "input", ("ann", -2), "an order of -2 cents"),
    ]
    assert [c.component_id for c in topology.components] == ["input", "dead_letter_if", "cents"]


def is_nothing(cents):
    return cents == 0


def test_refusals_that_follow_one_another_are_one_bolt_and_each_tuple_is_refused_once():
    good = (
        orders().dead_letter_if(is_nothing, "nothing", of="cents").dead_letter_if(lambda who, cents: cents < 0, "less")
    )
    topology = (
        good.map(lambda cents: -cents, of="cents").sum_by("who", "cents", into=HashState("cents")).topology("orders")
    )
    run = finished(topology)
    assert [(values, reason) for _, _, values, reason in letters(run)] == [
        (("bob", 0), "nothing"),
        (("cid", -1), "less"),
        (("ann", -2), "less"),
    ]
    assert run.state("cents") == {"ann": -5, "bob": -3}
    assert [c.component_id for c in topology.components] == ["input", "is_nothing", "cents"]


def test_a_tuple_that_other_consumers_have_counted_is_not_counted_by_them_again():
    limit = [0]

    def topology(spout):
        s = stream(spout).map(lambda cents: cents, of="cents")
        s.count_by(None, into=ValueState("all"))
        good = s.dead_letter_if(lambda cents, least=limit[0]: cents <= least, "too little", of="cents")
        return good.sum_by("who", "cents", into=HashState("cents")).topology("orders")

    with LocalCluster() as cluster:
        run = cluster.submit(topology(FixedBatchesSpout(ORDERS, ["who", "cents"])))
        run.run_until_idle()
        limit[0] = -10
        again = cluster.submit(topology(FixedBatchesSpout(ORDERS, ["who", "cents"])), republish_letters="all")
        again.run_until_idle()
        assert again.dead_letters() == []
        assert (again.state("all"), again.state("cents")) == (5, {"ann": 3, "bob": 3, "cid": -1})


def test_a_refusal_may_follow_a_state_that_rows_pass():
    balances = HashState("balances")
    s = rows("who cents", [["ann", 5]], [["ann", -9], ["ann", -2]])
    s.sum_by("who", "cents", into=balances)
    spent = s.enrich(balances, by="who", to="had", as_of="transaction").filter(lambda cents: cents < 0, of="cents")
    afforded = spent.dead_letter_if(lambda cents, had: had < -cents, "too much", of=["cents", "had"])
    topology = afforded.count_by("who", into=HashState("afforded")).topology("spending")
    assert kept(topology, "afforded") == {"ann": 1}
    assert [values for _, _, values, _ in letters(finished(topology))] == [("ann", -9, 5)]


def test_a_reason_that_is_no_sentence_fails_the_attempt():
    bad = orders().dead_letter_if(lambda cents: cents < 0, lambda cents: cents, of="cents")
    with pytest.raises(UserCodeError, match="dead_letter got the reason -1; give a string"):
        finished(bad.sum_by("who", "cents", into=HashState("cents")).topology("orders"))
