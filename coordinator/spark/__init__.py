"""The engine on Spark: everything that imports pyspark."""

from coordinator.spark.engine import SparkEngine
from coordinator.spark.frame_flow import FrameFault
from coordinator.spark.plain_engine import SparkPlainEngine
from coordinator.spark.session import accept_context, close_context, open_context, spark_context
from coordinator.spark.shipping import pickle_spec, ship_code, ship_topology, user_modules

__all__ = [
    "FrameFault",
    "SparkEngine",
    "SparkPlainEngine",
    "accept_context",
    "close_context",
    "open_context",
    "pickle_spec",
    "ship_code",
    "ship_topology",
    "spark_context",
    "user_modules",
]
