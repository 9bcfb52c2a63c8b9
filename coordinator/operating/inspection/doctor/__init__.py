"""``txbatch doctor``: whether server, Spark, machine and code are fit for a run, before there is one.

`examination` measures and hands what it has measured to the checks, which are pure. It changes nothing on the server
and nothing in a data directory; on Spark it runs one small job.
"""
