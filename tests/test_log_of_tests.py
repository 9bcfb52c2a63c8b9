"""What tests read of the log does not depend on what ran before them in the same process."""

from __future__ import annotations

from pyspark.logger import PySparkLogger
from pyspark.logger.logger import JSONFormatter

from tests.conftest import pytest_runtest_logstart


def test_a_logger_that_spark_left_behind_does_not_give_the_log_its_form():
    left_behind = PySparkLogger.getLogger("a query that Spark refused")
    left_behind.propagate = False
    pytest_runtest_logstart()
    assert left_behind.propagate  # so pytest does not add its handler, to which this logger would give a JSON form


def test_the_form_of_the_log_is_the_one_of_pytest(caplog):
    assert not isinstance(caplog.handler.formatter, JSONFormatter)
