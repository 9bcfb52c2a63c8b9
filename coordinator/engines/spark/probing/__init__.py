"""Tries Spark out for ``txbatch doctor``: starts a context and runs one small job. No run uses this room."""
