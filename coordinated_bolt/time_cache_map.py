"""A `RotatingMap` that a clock rotates, for several threads.

The clock is a parameter and nothing waits in here: the owner calls `tick` now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic

from coordinated_bolt.rotating_map import DEFAULT_BUCKET_COUNT, Key, RotatingMap, Value


class TimeCacheMap(Generic[Key, Value]):
    """A map whose entries expire between `expiration_s` and ``expiration_s * n / (n - 1)`` after they were put.

    A late tick makes expiry late, never early: `put` too moves the map to the present, so that an entry
    does not age by rotations that were due before it came. Each entry that is put ends in one way only:
    replaced, removed, or called back. Made where it is used, for its lock does not pickle.

    Args:
        expiration_s: how long an entry lives at least, in seconds.
        clock: the present in seconds, as `time.monotonic`; one that goes back stops expiry until it has
            caught up. Called with the lock held.
        bucket_count: the n above, at least 2.
        on_expire: called by `tick` for every entry that expired, without the lock, so it may use the map.
            What it raises ends the tick: the rest of the expired entries are gone uncalled.

    Raises:
        ValueError: fewer than 2 buckets, or an expiration that is no time above 0.

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
            raise ValueError(f"expiration {expiration_s!r} is not a number of seconds above 0")
        self._map = RotatingMap[Key, Value](bucket_count)
        self._interval_s = expiration_s / (bucket_count - 1)
        self._clock = clock
        self._started_at_s = clock()
        self._rotation_count = 0
        self._on_expire = on_expire
        self._expired: list[tuple[Key, Value]] = []
        self._lock = Lock()

    def put(self, key: Key, value: Value) -> None:
        """Sets a key's value and starts its time anew."""
        with self._lock:
            self._rotate_to_present()
            self._map.put(key, value)

    def get(self, key: Key, default: Value | None = None) -> Value | None:
        """The key's value; its time goes on."""
        with self._lock:
            return self._map.get(key, default)

    def remove(self, key: Key) -> bool:
        """Removes a key; whether it was there. If so, it is not called back."""
        with self._lock:
            return self._map.remove(key)

    def pop(self, key: Key, default: Value | None = None) -> Value | None:
        """Removes a key and returns its value. If it was there, it is not called back."""
        with self._lock:
            return self._map.pop(key, default)

    def tick(self) -> list[tuple[Key, Value]]:
        """Rotates as often as is due, calls back for what expired since the last tick, and returns it.

        Called by any thread, as often as it likes; expiry is as late as ticks are.
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
        # after as many rotations as there are buckets, all that was there is gone
        for _ in range(min(due - self._rotation_count, self._map.bucket_count)):
            self._expired.extend(self._map.rotate().items())
        self._rotation_count = max(due, self._rotation_count)
