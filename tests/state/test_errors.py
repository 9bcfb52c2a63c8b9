"""Every error crosses processes unchanged."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

from state import errors
from state.codec import CodecError
from state.commits.state_writes import OrderMattersError
from state.redis_owner.arguments import CommitTooLargeError

ARGUMENTS: dict[type, Any] = {
    errors.StaleReadError: ("{wc}:counts", 4, 5),
    errors.UserCodeError: {
        "component_id": "store",
        "task_index": 1,
        "attempt": "7:00000000000003e8",
        "tuple_text": "('a', 1)",
        "traceback_text": "Traceback\nValueError: x",
        "method": "is_ready",
    },
    errors.ReplayLimitError: (7, 5, "a reason"),
    errors.NotRepublishableError: (7, "a reason"),
    errors.QuarantineFullError: ("wc", 7, 10, "a reason"),
    errors.WaveCrashError: (5, "a reason"),
    errors.TransactionTooLargeError: (7, 600_000, 500_000),
    errors.FencedError: ("wc",),
    errors.NotDurableError: ("replica", 120, 80, 60.0),
}
CLASSES = [
    *(value for _, value in inspect.getmembers(errors, inspect.isclass) if value.__module__ == "state.errors"),
    CodecError,
    CommitTooLargeError,
    OrderMattersError,
]


@pytest.mark.parametrize("error_class", CLASSES, ids=lambda error_class: error_class.__name__)
def test_error_pickles_with_its_message_and_attributes(error_class):
    arguments = ARGUMENTS.get(error_class, ("what happened",))
    error = error_class(**arguments) if isinstance(arguments, dict) else error_class(*arguments)
    restored = pickle.loads(pickle.dumps(error))
    assert type(restored) is error_class
    assert str(restored) == str(error)
    assert vars(restored) == vars(error)
    assert isinstance(error, (errors.TransactionError, errors.Interruption))
