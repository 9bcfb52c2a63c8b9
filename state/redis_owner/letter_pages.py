"""The dead letters of a topology on its server: read page by page, and deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from state.commits.dead_letters import DEAD_LETTERS_STATE, DeadLetter, letter_of
from state.errors import StateRefusedError
from state.keys import Keys
from state.redis_client.connection import RedisConnection, text_of

PAGE_LETTERS = 200


@dataclass(frozen=True, slots=True)
class LetterPage:
    """Some dead letters in order of transaction and number, all from one moment.

    `generation` is the topology's, empty if nothing is stored.
    """

    committed_txid: int
    generation: str
    stored_count: int
    letters: tuple[DeadLetter, ...]
    is_last: bool


class RedisDeadLetters:
    """Reads and deletes the dead letters of one topology; needs no ownership, and may be used during a run.

    Every call raises StateRefusedError if the server refuses it or a stored letter is unreadable, and
    StateUnreachableError without an answer in time; every call may be repeated.
    """

    def __init__(self, connection: RedisConnection, keys: Keys) -> None:
        self._connection = connection
        self._keys = keys

    def page(
        self, *, after: tuple[int, int] | None = None, until_txid: int | None = None, limit: int = PAGE_LETTERS
    ) -> LetterPage:
        """Returns letters in order, with one call.

        Args:
            after: txid and number of the last letter already seen; None begins with the first.
            until_txid: leaves out later transactions.
            limit: most letters to return, at least 1.
        """
        first, seen = ("-inf", 0) if after is None else (str(after[0]), after[1] + 1)
        last = "+inf" if until_txid is None else str(until_txid)
        ask = limit + seen  # letters of the transaction of `after`, up to `after`, are sent again
        reply = self._connection.function("letters", "2", *self._names(), first, last, str(ask), read_only=True)
        committed, generation = map(text_of, reply[:2])
        found = [letter_of(int(reply[at + 1]), bytes(reply[at])) for at in range(4, len(reply), 2)]
        letters = [letter for letter in found if after is None or (letter.txid, letter.number) > after]
        is_last = int(reply[3]) <= len(found) and len(letters) <= limit
        return LetterPage(int(committed or 0), generation, int(reply[2]), tuple(letters[:limit]), is_last)

    def all(self, *, until_txid: int | None = None) -> Iterator[DeadLetter]:
        """Yields every letter of the transactions committed at the time of the call, page by page."""
        page = self.page(until_txid=until_txid)
        until = page.committed_txid if until_txid is None else until_txid
        yield from (letter for letter in page.letters if letter.txid <= until)
        while not page.is_last:  # bounded: no letter is added up to `until`
            last = page.letters[-1]
            page = self.page(after=(last.txid, last.number), until_txid=until)
            yield from page.letters

    def drop(self, *, until_txid: int, generation: str) -> int:
        """Deletes the letters of all transactions up to `until_txid`, which must be committed; returns how many.

        `generation` is that of the page that showed them, so that a topology started since is left alone.
        """
        return self._dropped(generation, until_txid)

    def drop_these(self, letters: Sequence[DeadLetter], *, generation: str) -> int:
        """Deletes these letters, at least one; returns how many of them were still there. See `drop`."""
        members = [letter.member for letter in letters]
        return self._dropped(generation, max(letter.txid for letter in letters), *members)

    def _dropped(self, generation: str, until_txid: int, *members: bytes) -> int:
        reply = self._connection.function("drop_letters", "2", *self._names(), generation, str(until_txid), *members)
        status, detail = map(text_of, reply)
        if status != "OK":
            raise StateRefusedError(
                f"dead letters of topology {self._keys.topology_id!r} were not dropped: {detail}; look at them again "
                f"with `txbatch dead-letters list {self._keys.topology_id}`"
            )
        return int(detail)

    def _names(self) -> tuple[str, str]:
        return self._keys.control, self._keys.state(DEAD_LETTERS_STATE)
