"""When something goes may be given in several ways, and what is none of them is refused by name."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from state.values.expiry import expiry_ms
from state.values.state_kind import MAX_INTEGER
from tests.support.values import Number

FAR_S = 4_102_444_800


@pytest.mark.parametrize("given", [FAR_S, Number(FAR_S), date(2100, 1, 1), datetime(2100, 1, 1, tzinfo=UTC)])
def test_the_same_time_may_be_given_in_several_ways(given: Any) -> None:
    assert expiry_ms(given, "given") == FAR_S * 1000


@pytest.mark.parametrize("given", [True, 1.5, "2100-01-01", None])
def test_what_is_no_time_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="it is; give a date, a datetime with a time zone, or whole seconds since 1970"):
        expiry_ms(given, "it is")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (datetime(2100, 1, 1), "without a time zone"),  # noqa: DTZ001 - the mistake
        (FAR_S * 1000, "if these are milliseconds, give seconds"),
        (0, "before 1970 or too far"),
        (-1, "before 1970 or too far"),
        (MAX_INTEGER, "after the year 5000; if these are milliseconds, give seconds"),
    ],
)
def test_what_is_too_far_is_refused(given: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        expiry_ms(given, "it is")
