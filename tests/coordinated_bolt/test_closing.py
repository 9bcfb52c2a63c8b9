"""Everything is closed, and the first failure is the one that is told."""

from __future__ import annotations

from coordinated_bolt.closing import close_all
from coordinated_bolt.completeness.failure import Failure, FailureKind


def test_all_are_called_in_order_and_the_first_failure_is_returned_after_that():
    called = []

    def closing(name, *, fails):
        def close():
            called.append(name)
            return Failure(FailureKind.USER, name, 0, "story") if fails else None

        return close

    closings = [closing(name, fails=name in "bc") for name in "abcd"]
    first = close_all(closings)
    assert first is not None
    assert first.component_id == "b"
    assert called == ["a", "b", "c", "d"]
    assert close_all(closings[:1]) is None
    assert called == ["a", "b", "c", "d", "a"]
