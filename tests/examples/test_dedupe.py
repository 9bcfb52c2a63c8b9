"""A payment counts once, in whichever transaction it is delivered again."""

from __future__ import annotations

from coordinator.trying.bolt_trial import run_bolt
from examples.dedupe import AddOnce


def test_a_payment_is_known_in_its_own_transaction_and_in_every_later_one():
    first, other = ["p1", "ann", 100], ["p2", "ann", 5]
    trial = run_bolt(AddOnce(), [first, first], [other, first], [first], fields=["id", "customer", "cents"])
    assert trial.states["cents"] == {"ann": 105}
    assert trial.states["deliveries"] == {"first": 2, "repeated": 3}
