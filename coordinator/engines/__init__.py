"""The engines, which run waves: on Spark, or in this process."""
