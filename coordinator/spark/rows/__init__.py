"""How rows of a DataFrame enter stage 0: on executors, without passing through the driver.

What lives here may import pyspark; specs that users write live in `coordinator/sources/`.
"""
