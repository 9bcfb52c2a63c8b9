"""The nemesis's verifier sees each kind of damage, and complains of nothing else."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.chaos.nemesis import verifier
from tests.support.chaos.nemesis.verifier import Receipts, Verifier, View
from tests.support.scenarios.transfers import PARTITIONS, chained, transfer, weight

ROWS = 5


def view_of(rows: Iterable[tuple[int, int]], committed: int = 3) -> View:
    """What is stored after these rows, in this order."""
    balances: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    weights: Counter[str] = Counter()
    order: Counter[str] = Counter()
    for partition, row in rows:
        debit, credit, amount = transfer(partition, row)
        balances[f"{debit}/0"] -= amount
        balances[f"{credit}/1"] += amount
        name = f"p{partition}"
        seen[name] += 1
        weights[name] += weight(partition, row)
        order[name] = chained(order[name], weight(partition, row))
    return View(committed, committed, {"balances": balances, "seen": seen, "weights": weights, "order": order})


ALL = [(partition, row) for partition in range(PARTITIONS) for row in range(ROWS)]
WHOLE = view_of(ALL)
SHORT = view_of([place for place in ALL if place != (1, ROWS - 1)])


def kinds(view: View, *, has_order: bool = True) -> set[str]:
    return {complaint.kind for complaint in Verifier().complaints(view, has_order=has_order)}


def test_the_verifier_imports_nothing_of_what_it_checks():
    tree = ast.parse(Path(verifier.__file__).read_text(encoding="utf-8"))
    froms = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    ours = {name for name in froms | names if name and name.partition(".")[0] not in sys.stdlib_module_names}
    assert ours == {"tests.support.scenarios.transfers"}


def test_whole_transactions_are_right():
    assert kinds(WHOLE) == set()
    assert kinds(SHORT) == set()
    assert Verifier.complaints_at_end(WHOLE, ROWS) == []


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        pytest.param([place for place in ALL if place != (1, 2)], "lost or doubled", id="a row is lost"),
        pytest.param([*ALL, (1, 2)], "lost or doubled", id="a row is doubled"),
        pytest.param([place for place in ALL if place != (1, 2)] + [(1, 3)], "lost or doubled", id="one for another"),
        pytest.param([(0, 1), (0, 0), *ALL[2:]], "out of order", id="two rows change places"),
    ],
)
def test_rows_that_are_not_the_first_ones_in_order_are_found(rows, kind):
    assert kinds(view_of(rows)) == {kind}


def test_order_does_not_count_where_no_checksum_of_it_is_kept():
    assert kinds(view_of([(0, 1), (0, 0), *ALL[2:]]), has_order=False) == set()


def test_data_that_another_transaction_wrote_than_the_position_says_is_torn():
    assert kinds(replace(WHOLE, last=4)) == {"torn"}


def test_half_a_transfer_is_torn():
    balances = dict(WHOLE.hashes["balances"])
    balances["a0/0"] = balances.get("a0/0", 0) - 7
    assert kinds(replace(WHOLE, hashes={**WHOLE.hashes, "balances": balances})) == {"torn", "lost or doubled"}


def test_a_run_that_is_done_too_early_is_found():
    (complaint,) = Verifier.complaints_at_end(SHORT, ROWS)
    assert complaint.kind == "lost or doubled"
    assert "[5, 4, 5]" in complaint.sentence


def test_receipts_neither_have_gaps_nor_change():
    receipts = Receipts()
    assert receipts.complaints(2, {1: b"a", 2: b"b"}) == []
    assert receipts.complaints(3, {1: b"a", 2: b"b", 3: b"c"}) == []
    (gap,) = receipts.complaints(4, {1: b"a", 2: b"b", 4: b"d"})
    assert "[3]" in gap.sentence
    (changed,) = receipts.complaints(2, {1: b"a", 2: b"z"})
    assert "[2]" in changed.sentence


def test_receipts_may_change_once_the_server_has_lost_writes():
    receipts = Receipts()
    receipts.complaints(2, {1: b"a", 2: b"b"})
    receipts.forget()
    assert receipts.complaints(2, {1: b"a", 2: b"z"}) == []
