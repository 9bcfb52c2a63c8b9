"""The engine that needs no Spark: the stages of a wave run task by task in the driver's process; for small inputs."""
