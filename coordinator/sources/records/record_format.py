"""The interface of formats, which make a tuple from the bytes of a record.

A source (files, Kafka, Redis Streams) decides which bytes belong to a batch; a format makes one tuple of each record.
Any format works with any source that has records of bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from state.printable import one_line

NAME_SHOWN = 80


class BadRecordError(ValueError):
    """A record is not in its format; the text says why, without saying where the record is."""


def with_unique_names(pairs: Sequence[tuple[Any, Any]], of: str = "object") -> dict[Any, Any]:
    """Returns name -> value for the pairs of a record, or of an object in it.

    Raises:
        BadRecordError: a name occurs twice, so that one of its values would be lost.
    """
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    names = [name for name, _ in pairs]
    twice = next(name for name in names if names.count(name) > 1)
    shown = twice.decode(errors="backslashreplace") if isinstance(twice, bytes) else twice
    raise BadRecordError(f"it has the field {one_line(repr(shown), NAME_SHOWN)} twice in one {of}")


class RecordFormat(ABC):
    """Makes tuples of records. A spec: made on the driver, pickled, used on executors by one task at a time.

    Users subclass it for a format of their own. A format must be a pure function of the bytes: a replay has to make the
    same tuple again.
    """

    record_class: type[Any] | None = None
    """A NamedTuple or dataclass with the same fields, if functions of the short form are to be given its objects. It is
    not shipped, since executors may not know its module."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "record_class": None}

    @property
    @abstractmethod
    def fields(self) -> tuple[str, ...]:
        """Names of the values of every tuple, in order (driver, when the topology is built)."""

    @property
    def types(self) -> Mapping[str, Any]:
        """Field -> type, perhaps ``| None``, for fields whose values always have it (driver, at the same time)."""
        return {}

    @abstractmethod
    def row(self, data: bytes) -> Sequence[Any]:
        """Makes the values of one tuple (executor, once a record).

        Args:
            data: the record, without its delimiter.

        Raises:
            BadRecordError: the record is not in this format.
        """

    def rows(self, records: Sequence[bytes]) -> list[Sequence[Any] | BadRecordError]:
        """Makes the values of many tuples, each as `row` would; a bad record is replaced by its error.

        Override it if the format can do better with many records at once.
        """
        made: list[Sequence[Any] | BadRecordError] = []
        for data in records:
            try:
                made.append(self.row(data))
            except BadRecordError as error:
                made.append(error)
        return made

    def make_columns(self, records: Sequence[bytes]) -> list[list[Any]] | None:
        """Makes the values of many tuples as one list per field; None if `rows` has to be called instead.

        Override it if the format can make columns without making rows. They must hold what `rows` would return, so
        return None if a record might be bad, or if a subclass has overridden `row` or `rows`.
        """
        return None

    def split_columns(self, content: bytes) -> list[list[Any]] | None:
        """Makes columns from a piece of content whose lines are the records; None if `make_columns` has to be called.

        Override it if the format need not split the content first. The columns must hold what `rows` would return.

        Args:
            content: the lines, separated by line feeds; the first and the last may be empty.
        """
        return None
