"""Values of every kind that may travel, drawn by Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.decimals(allow_nan=False)
)
hashable = st.integers() | st.text() | st.tuples(st.integers(), st.text())
values = st.recursive(
    scalars | st.sets(hashable) | st.frozensets(hashable),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)


class Number:
    """An integer to `operator.index` and equal to nothing but itself, as NumPy's integers may be."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


def mutables(value):
    """Everything in a value that could be changed."""
    found = [value] if isinstance(value, (list, dict, set)) else []
    inner = [*value.keys(), *value.values()] if isinstance(value, dict) else value
    if isinstance(value, (list, dict, tuple)):
        found += [part for item in inner for part in mutables(item)]
    return found


def nested(depth):
    value: tuple[object, ...] = ()
    for _ in range(depth - 1):
        value = (value,)
    return value
