"""What tests read of the log does not depend on what ran before them in the same process."""

from __future__ import annotations

import logging

from pyspark.logger import PySparkLogger


def test_a_logger_of_pyspark_leaves_a_handler_its_form():
    form, handler = logging.Formatter("%(message)s"), logging.Handler()
    handler.setFormatter(form)
    logger = PySparkLogger.getLogger("a query that Spark refused")
    logger.addHandler(handler)
    logger.removeHandler(handler)
    assert handler.formatter is form
