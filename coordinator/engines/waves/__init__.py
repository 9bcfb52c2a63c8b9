"""Waves, as every engine of batches runs them, and the engine that needs nothing but this process.

What a task does with a batch is decided elsewhere, in `coordinated_bolt`, `committers` and
`coordinator/transactional/emitter_task.py`; here it becomes stages, and stages become jobs. No Spark: how rows get from
stage to stage is an engine's own (`WaveStages`).
"""
