"""A map that expires in steps: each rotation drops the entries that were put a fixed number of rotations ago.

Expiry thus costs nothing per entry: no times are kept and nothing is searched. It is deliberately coarse;
the caller decides how much time passes between rotations. Pure: no clock, no lock, no thread. Timeouts of messages and
batches use it, and users may.

Source: backtype.storm.utils.RotatingMap; JStorm's RotatingMap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

DEFAULT_BUCKET_COUNT = 3
"""With three buckets an entry outlives its expiration time by at most half."""


class RotatingMap(Generic[Key, Value]):
    """A map in n buckets; an entry survives n-1 rotations after it was put, and the n-th drops it.

    Every lookup searches from the newest bucket to the oldest, n steps at most. A key is in only one bucket.

    Args:
        bucket_count: number of buckets, at least 2.
        on_expire: called by `rotate` for every entry it drops. It may use the map. If it raises, the remaining
            entries of the dropped bucket are lost without a call.

    Raises:
        ValueError: fewer than 2 buckets.

    Source: backtype.storm.utils.RotatingMap. Differs from Storm: `remove` returns whether the key was there,
    `pop` returns its value. Differs from JStorm: None is an ordinary value.
    """

    def __init__(
        self, bucket_count: int = DEFAULT_BUCKET_COUNT, on_expire: Callable[[Key, Value], None] | None = None
    ) -> None:
        if bucket_count < 2:
            raise ValueError(f"rotating map needs at least 2 buckets, got {bucket_count}")
        self._buckets: deque[dict[Key, Value]] = deque({} for _ in range(bucket_count))
        self._on_expire = on_expire

    @property
    def bucket_count(self) -> int:
        """Number of buckets."""
        return len(self._buckets)

    def put(self, key: Key, value: Value) -> None:
        """Sets a key's value and restarts its expiration."""
        self.remove(key)
        self._buckets[0][key] = value

    def get(self, key: Key, default: Value | None = None) -> Value | None:
        """Returns the key's value; does not restart its expiration."""
        bucket = self._bucket_of(key)
        return default if bucket is None else bucket[key]

    def remove(self, key: Key) -> bool:
        """Removes a key without a callback; returns whether it was there."""
        bucket = self._bucket_of(key)
        if bucket is None:
            return False
        del bucket[key]
        return True

    def pop(self, key: Key, default: Value | None = None) -> Value | None:
        """Removes a key without a callback and returns its value."""
        for bucket in self._buckets:
            if key in bucket:
                return bucket.pop(key)
        return default

    def rotate(self) -> dict[Key, Value]:
        """Drops the oldest bucket, calls `on_expire` for each of its entries, and returns it."""
        dropped = self._buckets.pop()
        self._buckets.appendleft({})
        if self._on_expire is not None:
            for key, value in dropped.items():
                self._on_expire(key, value)
        return dropped

    def __contains__(self, key: Key) -> bool:
        return self._bucket_of(key) is not None

    def __len__(self) -> int:
        count = 0
        for bucket in self._buckets:
            count += len(bucket)
        return count

    def _bucket_of(self, key: Key) -> dict[Key, Value] | None:
        for bucket in self._buckets:
            if key in bucket:
                return bucket
        return None
