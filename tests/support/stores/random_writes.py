"""Random write sets over every kind of state."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from state.commits.write_set import WriteSet
from state.values.state_kind import KEEP_ALL, MAX_INTEGER, VALUE_FIELD, KeptEnd, Retention, StateKind, ValueType
from tests.support.stores.builders import writes

INTEGERS = [0, 1, -1, 127, 128, -129, 10**8, 10**15, MAX_INTEGER, -MAX_INTEGER]
EXPIRIES = [Retention(expires_ms=4_102_444_800_000), Retention(expires_ms=1_000_000_000_000)]
"""One in the year 2100, one in the past."""
FLOATS = [0.0, -0.0, 0.1, 0.2, -0.3, 1e-320, 1e16, 1e22, 123456.789, 1.7e308]


def random_write_set(random: Random) -> WriteSet:
    def some(values):
        return {field: random.choice(values) for field in random.sample("abcd", random.randint(0, 3))}

    def split(kind, value_type, puts, increments):
        """Puts, increments and deletes of disjoint fields."""
        rest = {field: delta for field, delta in increments.items() if field not in puts}
        deletes = {field: True for field in random.sample("abcd", 2) if field not in puts and field not in rest}
        return writes(kind, value_type, puts=puts, increments=rest, deletes=deletes)

    deltas = [[random.choice(FLOATS) for _ in range(random.randint(1, 3))] for _ in range(4)]
    states = {
        "h_int": split(StateKind.HASH, ValueType.INT, some(INTEGERS), some(INTEGERS)),
        "h_float": split(StateKind.HASH, ValueType.FLOAT, some(FLOATS), some(deltas)),
        "h_str": split(StateKind.HASH, ValueType.STR, some(["", "ä", "x y"]), {}),
        "s": split(StateKind.SET, ValueType.STR, some([True]), {}),
        "z": split(StateKind.SORTED_SET, ValueType.FLOAT, some(FLOATS), some(deltas)),
        "v": writes(StateKind.VALUE, ValueType.INT, increments={VALUE_FIELD: random.choice(INTEGERS)}),
        "w": writes(StateKind.VALUE, ValueType.FLOAT, increments={VALUE_FIELD: random.choice(deltas)}),
        "l": writes(
            StateKind.LIST,
            ValueType.INT,
            deletes={VALUE_FIELD: True} if random.random() < 0.3 else {},
            appends=random.choices(INTEGERS, k=random.randint(0, 3)),
        ),
    }
    states["e"] = writes(
        StateKind.STREAM,
        ValueType.INT,
        appends=[
            [random.randint(1, 60), number, "n", random.choice(INTEGERS)] for number in range(random.randint(0, 3))
        ],
        retention=random.choice((KEEP_ALL, Retention(KeptEnd.LAST, random.randint(1, 3)))),
    )
    ranked = {side: Retention(side, random.randint(1, 3)) for side in (KeptEnd.HIGHEST, KeptEnd.LOWEST)}
    states |= {
        "top": writes(StateKind.SORTED_SET, ValueType.FLOAT, puts=some(FLOATS), retention=ranked[KeptEnd.HIGHEST]),
        "low": writes(StateKind.SORTED_SET, ValueType.FLOAT, puts=some(FLOATS), retention=ranked[KeptEnd.LOWEST]),
        "recent": writes(
            StateKind.LIST,
            ValueType.STR,
            deletes={VALUE_FIELD: True} if random.random() < 0.2 else {},
            appends=random.choices("abc", k=random.randint(0, 4)),
            retention=Retention(KeptEnd.LAST, random.randint(1, 4)),
        ),
        "h:part": replace(
            split(StateKind.HASH, ValueType.INT, some(INTEGERS), some(INTEGERS)), retention=random.choice(EXPIRIES)
        ),
        "z:part": writes(
            StateKind.SORTED_SET,
            ValueType.FLOAT,
            puts=some(FLOATS),
            retention=Retention(KeptEnd.HIGHEST, 2, random.choice(EXPIRIES).expires_ms),
        ),
    }
    return WriteSet({name: states[name] for name in random.sample(sorted(states), random.randint(0, 4))})
