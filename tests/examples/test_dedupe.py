"""Every payment counts once, however often, how late and to whichever transaction it is delivered again."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from coordinator.local.bolt_trial import run_bolt
from coordinator.local.cluster import LocalCluster
from coordinator.transactional.options import RunOptions
from examples.dedupe import AddOnce, make_data, topology

PAYMENTS = 400


@pytest.mark.parametrize(("lines", "window", "group"), [(7, 1, 1), (50, 8, 3), (1000, 2, 64)])
def test_totals_are_those_of_the_different_payments(tmp_path, lines, window, group):
    make_data(tmp_path, PAYMENTS, seed=lines)
    delivered = [json.loads(line) for path in tmp_path.iterdir() for line in path.read_text().splitlines()]
    different = {payment["id"]: payment for payment in delivered}
    cents: Counter[str] = Counter()
    for payment in different.values():
        cents[payment["customer"]] += payment["cents"]

    with LocalCluster(seed=lines) as cluster:
        options = RunOptions(max_spout_pending=window, commit_group_max=group)
        run = cluster.submit(topology(f"{tmp_path}/*.jsonl", lines), options=options)
        run.run_until_idle()
        assert run.is_done
        assert run.state("cents") == cents
        assert run.state("deliveries") == {"first": PAYMENTS, "repeated": len(delivered) - PAYMENTS}
    assert len(delivered) > PAYMENTS * 1.1


def test_a_payment_is_known_in_its_own_transaction_and_in_every_later_one():
    first, other = ["p1", "ann", 100], ["p2", "ann", 5]
    trial = run_bolt(AddOnce(), [first, first], [other, first], [first], fields=["id", "customer", "cents"])
    assert trial.states["cents"] == {"ann": 105}
    assert trial.states["deliveries"] == {"first": 2, "repeated": 3}
