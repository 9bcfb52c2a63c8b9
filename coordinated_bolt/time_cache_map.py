"""A thread-safe `RotatingMap` that rotates by a clock.

The clock is a parameter and nothing here waits: the owner of the map calls `tick` now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic

from coordinated_bolt.rotating_map import DEFAULT_BUCKET_COUNT, Key, RotatingMap, Value


class TimeCacheMap(Generic[Key, Value]):
    """A map whose entries expire between `expiration_s` and ``expiration_s * n / (n - 1)`` after they were put.

    A late tick makes expiry late, never early: `put` also moves the map to the present, so that rotations which
    were due before an entry was put do not age it. Each entry ends in exactly one way: replaced, removed, or
    expired with a callback. Create the map where it is used, because its lock does not pickle.

    Args:
        expiration_s: minimum lifetime of an entry, in seconds.
        clock: returns the time in seconds, like `time.monotonic`; if it goes back, nothing expires until it has caught
            up. Called with the lock held.
        bucket_count: the n above, at least 2.
        on_expire: called by `tick` for every expired entry, without the lock, so it may use the map.
            If it raises, the remaining expired entries are lost without a call.

    Raises:
        ValueError: fewer than 2 buckets, or an expiration that is not a positive number of seconds.

    Source: backtype.storm.utils.TimeCacheMap. Differs from Storm: no thread of its own, an injected clock.
    """

    def __init__(
        self,
        expiration_s: float,
        clock: Callable[[], float],
        *,
        bucket_count: int = DEFAULT_BUCKET_COUNT,
        on_expire: Callable[[Key, Value], None] | None = None,
    ) -> None:
        if not 0 < expiration_s < float("inf"):
            raise ValueError(f"expiration must be a positive number of seconds, got {expiration_s!r}")
        self._map = RotatingMap[Key, Value](bucket_count)
        self._interval_s = expiration_s / (bucket_count - 1)
        self._clock = clock
        self._started_at_s = clock()
        self._rotation_count = 0
        self._on_expire = on_expire
        self._expired: list[tuple[Key, Value]] = []
        self._lock = Lock()

    def put(self, key: Key, value: Value) -> None:
        """Sets a key's value and restarts its expiration."""
        with self._lock:
            self._rotate_to_present()
            self._map.put(key, value)

    def get(self, key: Key, default: Value | None = None) -> Value | None:
        """Returns the key's value; does not restart its expiration."""
        with self._lock:
            return self._map.get(key, default)

    def remove(self, key: Key) -> bool:
        """Removes a key without a callback; returns whether it was there."""
        with self._lock:
            return self._map.remove(key)

    def pop(self, key: Key, default: Value | None = None) -> Value | None:
        """Removes a key without a callback and returns its value."""
        with self._lock:
            return self._map.pop(key, default)

    def tick(self) -> list[tuple[Key, Value]]:
        """Makes the due rotations, calls `on_expire` for entries expired since the last tick, and returns these.

        May be called by any thread, as often as you like; late ticks make expiry late.
        """
        with self._lock:
            self._rotate_to_present()
            expired, self._expired = self._expired, []
        if self._on_expire is not None:
            for key, value in expired:
                self._on_expire(key, value)
        return expired

    def __contains__(self, key: Key) -> bool:
        with self._lock:
            return key in self._map

    def __len__(self) -> int:
        with self._lock:
            return len(self._map)

    def _rotate_to_present(self) -> None:
        due = int((self._clock() - self._started_at_s) / self._interval_s)
        # after one rotation per bucket, every earlier entry is gone
        for _ in range(min(due - self._rotation_count, self._map.bucket_count)):
            self._expired.extend(self._map.rotate().items())
        self._rotation_count = max(due, self._rotation_count)
