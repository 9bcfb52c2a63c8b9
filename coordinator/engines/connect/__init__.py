"""The engine on Spark Connect: waves as queries over two columns, for sessions that allow neither RDDs nor py4j.

Executors run the stages of `coordinator/engines/waves/stage.py`; here they become queries.
"""
