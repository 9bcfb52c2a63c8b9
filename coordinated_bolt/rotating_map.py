"""Maps that forget in steps: each rotation drops what was not put since some rotations ago.

Expiry then costs nothing per entry: no times are kept and nothing is searched. It is coarse on purpose;
whoever rotates, and how often, decides what an age is worth. Pure: no clock, no lock, no thread.

Source: backtype.storm.utils.RotatingMap; JStorm's RotatingMap; for anchors, Heron's RotatingMap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

DEFAULT_BUCKET_COUNT = 3
"""With three buckets an entry outlives its time by half of it at most."""


class RotatingMap(Generic[Key, Value]):
    """A map in n buckets; an entry survives n-1 rotations after it was put and is dropped by the n-th.

    Everything but `len` and `rotate` looks from the newest bucket to the oldest, n steps at most. A key is
    in one bucket only.

    Args:
        bucket_count: number of buckets, at least 2.
        on_expire: called by `rotate` for every entry it drops. It may use the map. What it raises ends the
            rotation: the rest of the dropped entries are gone uncalled.

    Raises:
        ValueError: fewer than 2 buckets.

    Source: backtype.storm.utils.RotatingMap. Differs from Storm: `remove` tells whether the key was there,
    `pop` gives its value. Differs from JStorm: a value of None is a value.
    """

    def __init__(
        self, bucket_count: int = DEFAULT_BUCKET_COUNT, on_expire: Callable[[Key, Value], None] | None = None
    ) -> None:
        if bucket_count < 2:
            raise ValueError(f"a rotating map of {bucket_count} buckets would forget at once; give it at least 2")
        self._buckets: deque[dict[Key, Value]] = deque({} for _ in range(bucket_count))
        self._on_expire = on_expire

    @property
    def bucket_count(self) -> int:
        """Number of buckets."""
        return len(self._buckets)

    def put(self, key: Key, value: Value) -> None:
        """Sets a key's value and starts its time anew."""
        self.remove(key)
        self._buckets[0][key] = value

    def get(self, key: Key, default: Value | None = None) -> Value | None:
        """The key's value; its time goes on."""
        bucket = self._bucket_of(key)
        return default if bucket is None else bucket[key]

    def remove(self, key: Key) -> bool:
        """Removes a key; whether it was there. Nothing is called back."""
        bucket = self._bucket_of(key)
        if bucket is None:
            return False
        del bucket[key]
        return True

    def pop(self, key: Key, default: Value | None = None) -> Value | None:
        """Removes a key and returns its value. Nothing is called back."""
        bucket = self._bucket_of(key)
        return default if bucket is None else bucket.pop(key)

    def rotate(self) -> dict[Key, Value]:
        """Drops the oldest bucket, calls back for each of its entries, and returns it."""
        dropped = self._buckets.pop()
        self._buckets.appendleft({})
        if self._on_expire is not None:
            for key, value in dropped.items():
                self._on_expire(key, value)
        return dropped

    def __contains__(self, key: Key) -> bool:
        return self._bucket_of(key) is not None

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    def _bucket_of(self, key: Key) -> dict[Key, Value] | None:
        for bucket in self._buckets:
            if key in bucket:
                return bucket
        return None


class XorRotatingMap(RotatingMap[Key, int]):
    """Trees of anchored tuples by root: a key completes when its value reaches zero.

    Whoever puts a root puts the xor of its first edges, and removes it once it is complete.

    Source: Heron's RotatingMap (simulator and stream manager). Differs from Heron: putting a key again
    replaces its older value instead of hiding it until the newer one is removed.
    """

    def anchor(self, key: Key, edges: int) -> bool:
        """Xors edges into a key's value; its time goes on.

        Returns:
            Whether the value is zero now. A key that is not there, or no longer, never completes.
        """
        bucket = self._bucket_of(key)
        if bucket is None:
            return False
        bucket[key] ^= edges
        return bucket[key] == 0
