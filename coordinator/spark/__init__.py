"""The engine on Spark: everything that imports pyspark."""

from coordinator.spark.engine import SparkEngine
from coordinator.spark.frame_flow import FrameFault
from coordinator.spark.gateway import end_java
from coordinator.spark.plain_engine import SparkPlainEngine
from coordinator.spark.session import SparkLease, accept_context, close_context, open_context, spark_lease
from coordinator.spark.shipping import pickle_spec, ship_code, ship_topology, user_modules

__all__ = [
    "FrameFault",
    "SparkEngine",
    "SparkLease",
    "SparkPlainEngine",
    "accept_context",
    "close_context",
    "end_java",
    "open_context",
    "pickle_spec",
    "ship_code",
    "ship_topology",
    "spark_lease",
    "user_modules",
]
