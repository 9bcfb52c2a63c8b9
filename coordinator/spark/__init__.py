"""The engine on Spark: everything that imports pyspark."""
