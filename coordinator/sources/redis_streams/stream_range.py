"""The range of one stream that a transaction reads, as metadata: ids, and a digest of the content."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Any

from coordinator.spouts.answers import not_of_this_spout
from state.codec import digest64


@dataclass(frozen=True, slots=True)
class StreamRange:
    """The entries that one transaction takes from one stream.

    Attributes:
        key: key of the stream.
        first_id: id of the first entry; empty if there is none.
        last_id: the position after the range: the id of its last entry, or, if the end of the stream was reached, of
            the last entry ever added, which may have been removed.
        count: number of entries.
        digest: digest of the entries' ids, fields and values.
        added: how many entries were ever added to the stream up to the position.
        txid: the transaction; once it is committed, everything up to the position is durable. 0 for the start of a
            stream that was never read.
        seen_id: id of the last entry ever added, when the range was cut. With `seen_added`, it distinguishes this
            stream from one that is created again under its key.
        seen_added: how many entries were ever added by then.
    """

    key: str
    first_id: str
    last_id: str
    count: int
    digest: int
    added: int
    txid: int
    seen_id: str
    seen_added: int

    @classmethod
    def from_plain(cls, plain: Any, topology_id: str) -> StreamRange:
        """Restores a range from `to_plain`.

        Raises:
            SourceError: the data is the metadata of another kind of spout.
        """
        match plain:
            case [str(), str(), str(), int(), int(), int(), int(), str(), int()]:
                return cls(*plain)
        raise not_of_this_spout(repr(plain), "a range of a Redis Stream", topology_id)

    def to_plain(self) -> list[Any]:
        """Returns the range as plain data, to be stored."""
        return list(astuple(self))


def words_of(metadata: Any) -> list[str]:
    """Returns in words which entries of one stream a transaction read.

    Raises:
        SourceError: the metadata is not that of a stream.
    """
    found = StreamRange.from_plain(metadata, "")
    if not found.count:
        return [f"nothing of stream {found.key!r}, which was read up to {found.last_id}"]
    return [f"stream {found.key!r}: {found.count:,} entries, {found.first_id} to {found.last_id}"]


def digest_of_entries(entries: Iterable[tuple[str, list[bytes]]]) -> int:
    """Returns the digest of some entries, in order."""
    digest = 0
    for entry_id, flat in entries:
        digest = digest64(b"%016x" % digest, entry_id.encode(), *flat)
    return digest
