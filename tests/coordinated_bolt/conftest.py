"""What tests of tasks share."""

from tests.support.tasks.calls_of_one_test import calls_of_one_test

__all__ = ["calls_of_one_test"]
