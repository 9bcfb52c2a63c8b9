"""The engine on classic Spark, and what it needs of Spark: its Java process, its cluster and its session.

The jobs of waves, defined in `coordinator/engines/waves/`, become RDDs here.
"""
