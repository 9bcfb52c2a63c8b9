"""Every payment counts once, however often, how late and to whichever transaction it is delivered again."""

from __future__ import annotations

import pytest

from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.transactional.options import RunOptions
from coordinator.trying.bolt_trial import run_bolt
from examples.dedupe import AddOnce, make_data, topology
from tests.support.examples.answers import dedupe

PAYMENTS = 400


@pytest.mark.parametrize(("lines", "window", "group"), [(7, 1, 1), (50, 8, 3), (1000, 2, 64)])
def test_totals_are_those_of_the_different_payments(tmp_path, lines, window, group):
    make_data(tmp_path, PAYMENTS, seed=lines)
    answer = dedupe(tmp_path)
    with LocalCluster(seed=lines) as cluster:
        options = RunOptions(max_spout_pending=window, commit_group_max=group)
        run = cluster.submit(topology(f"{tmp_path}/*.jsonl", lines), options=options)
        run.run_until_idle()
        assert run.is_done
        assert {name: run.state(name) for name in answer} == answer
    assert answer["deliveries"]["first"] == PAYMENTS
    assert answer["deliveries"]["repeated"] > PAYMENTS / 10


def test_a_payment_is_known_in_its_own_transaction_and_in_every_later_one():
    first, other = ["p1", "ann", 100], ["p2", "ann", 5]
    trial = run_bolt(AddOnce(), [first, first], [other, first], [first], fields=["id", "customer", "cents"])
    assert trial.states["cents"] == {"ann": 105}
    assert trial.states["deliveries"] == {"first": 2, "repeated": 3}
