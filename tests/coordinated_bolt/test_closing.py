"""Everything is closed, and the first error is the one that is told."""

from __future__ import annotations

import pytest

from coordinated_bolt.closing import close_all
from state.errors import UserCodeError


def test_all_are_called_in_order_and_the_first_error_is_raised_after_that():
    called = []

    def closing(name, *, raises):
        def close():
            called.append(name)
            if raises:
                raise UserCodeError(name, 0, "", "", "story")

        return close

    closings = [closing(name, raises=name in "bc") for name in "abcd"]
    with pytest.raises(UserCodeError, match="'b'"):
        close_all(closings)
    assert called == ["a", "b", "c", "d"]
    close_all(closings[:1])
    assert called == ["a", "b", "c", "d", "a"]
