"""What the ledger of the benchmarks has to hold, by a plain loop over its transfers."""

from __future__ import annotations

from benchmarks.transfers import OPENING_BALANCE, transfer


def balances_of_a_plain_loop(transfers: int, accounts: int, seed: int) -> tuple[dict[str, int], int]:
    """Account -> balance after all transfers, and how many were refused."""
    balances, refused = [OPENING_BALANCE] * accounts, 0
    for number in range(transfers):
        source, target, amount = transfer(number, accounts, seed)
        if balances[source] < amount:
            refused += 1
        else:
            balances[source] -= amount
            balances[target] += amount
    return {str(account): money for account, money in enumerate(balances)}, refused
