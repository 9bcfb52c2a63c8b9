"""The engine on classic Spark, and the Java process, cluster and session that it needs.

The jobs of waves, which are in `coordinator/engines/waves/`, become RDDs here.
"""
