"""The engine on Spark: everything that imports pyspark."""

from coordinator.spark.engine import SparkEngine
from coordinator.spark.session import accept_context, close_context, open_context
from coordinator.spark.shipping import pickle_spec, ship_code, user_modules
from coordinator.spark.stage import FrameFault

__all__ = [
    "FrameFault",
    "SparkEngine",
    "accept_context",
    "close_context",
    "open_context",
    "pickle_spec",
    "ship_code",
    "user_modules",
]
