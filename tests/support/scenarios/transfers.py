"""The input: an endless list of transfers in each of three partitions, given by a formula.

Jobs and their verifiers share this module and nothing else, so each of them can say what a row is, and neither can see
what the other makes of it.
"""

from __future__ import annotations

from zlib import crc32

PARTITIONS, ACCOUNTS = 3, 5


def transfer(partition: int, row: int) -> tuple[str, str, int]:
    """Row `row` of a partition: debit, credit, amount."""
    mixed = crc32(b"%d %d" % (partition, row))
    debit = mixed % ACCOUNTS
    credit = (debit + 1 + mixed // ACCOUNTS % (ACCOUNTS - 1)) % ACCOUNTS
    return f"a{debit}", f"a{credit}", 1 + mixed % 97


def weight(partition: int, row: int) -> int:
    """A number by which a row is told from any other; sums of it tell which rows are in."""
    return crc32(b"weight %d %d" % (partition, row))


def chained(before: int, row_weight: int) -> int:
    """A checksum over rows in their order: rows that change places change it."""
    return crc32(b"%d %d" % (before, row_weight))
