"""How a run of a transactional topology is decided and driven.

The run machine decides, its driver carries out; what touches Spark, sources or the command line lives elsewhere.
"""
