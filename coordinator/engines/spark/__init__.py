"""The engine on classic Spark, and the waves that all engines of batches share.

What a task does with a batch is decided elsewhere, in `coordinated_bolt`, `committers` and
`coordinator/transactional/emitter_task.py`; here it becomes stages, jobs and a session.
"""
