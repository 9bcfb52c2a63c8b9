"""A basic bolt made from one function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

from coordinated_bolt.components.basic_bolts import BasicOutputCollector, IBasicBolt
from coordinated_bolt.components.component import MadeOfFunctions
from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinated_bolt.streams.records import is_record_class, record_fields
from coordinated_bolt.streams.tuples import Tuple, cut
from state.errors import TopologyError

RowFunction = Callable[[Any], Iterable[Any]]
"""Maps a tuple, or a record if so annotated, to output rows, returned as a list or yielded."""


def bolt(*, output_fields: str | Sequence[str] | type[Any]) -> Callable[[RowFunction], FunctionBolt]:
    """Turns a function into a basic bolt (driver, when its module is imported).

        @bolt(output_fields="word")
        def split(tup):
            yield from tup["line"].split()

        builder.set_bolt("split", split).shuffle_grouping("lines")

    The function is called for every tuple, where the task runs. Each row that it gives is a value if `output_fields` is
    one name, or a sequence of values. If its parameter is annotated with a NamedTuple or a dataclass, it gets an object
    of that class.

    Raises:
        TopologyError: the decorator is used without `output_fields`, or on an object that is not callable.
    """
    fields: Any = (output_fields,) if isinstance(output_fields, str) else output_fields
    if is_record_class(fields):
        fields = record_fields(fields)

    def made(function: RowFunction) -> FunctionBolt:
        if not callable(function):
            raise TopologyError(
                f"@bolt(...) was applied to {cut(function)}; put it directly above a function that takes a tuple"
            )
        return FunctionBolt(function, tuple(fields), is_single=isinstance(output_fields, str))

    return made


class FunctionBolt(MadeOfFunctions, IBasicBolt):
    """The basic bolt that `bolt` makes; it has no state, and a test can call it like the function.

    Attributes:
        function: the user's function.
    """

    def __init__(self, function: RowFunction, fields: Sequence[str], *, is_single: bool) -> None:
        self.function, self._fields, self._is_single = function, fields, is_single
        self.__doc__, self.__module__, self.__name__ = function.__doc__, function.__module__, function.__name__
        self.user_modules = {function.__module__}
        code = getattr(function, "__code__", None)
        self.made_at = f"{code.co_filename}:{code.co_firstlineno}" if code else ""

    def __call__(self, tup: Any) -> Iterable[Any]:
        return self.function(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(self._fields)

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        given = self.function(tup)
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            name = getattr(self.function, "__qualname__", "the function")
            raise TypeError(f"{name} returned {cut(given, 60)} for {tup!r:.100}; return a list, or yield each row")
        for row in given:
            collector.emit([row] if self._is_single else row)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickles by name, like a class: in its module the bolt has replaced the function."""
        name = self.function.__qualname__
        try:
            found: Any = reduce(getattr, name.split("."), sys.modules.get(self.__module__))
        except AttributeError:
            found = None
        return name if found is self and self.__module__ != "__main__" else super().__reduce_ex__(protocol)
