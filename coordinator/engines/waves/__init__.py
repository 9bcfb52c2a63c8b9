"""Waves as every engine for batches runs them, and the engine that needs nothing but this process.

What a task does with a batch is defined elsewhere, in `coordinated_bolt`, `committers` and
`coordinator/transactional/emitter_task.py`; here it becomes stages, and stages become jobs. Nothing here needs Spark:
each engine moves rows from stage to stage in its own way (`WaveStages`).
"""
