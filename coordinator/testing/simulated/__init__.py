"""Runs topologies in virtual time, on one thread, while tasks, frames, driver and server fail by plan.

What runs is real: driver, machine, tasks, committers and the function library. Spark's scheduler and shuffle, the clock
and the connection are not. Nothing here knows what a topology does; workloads and their invariants belong to tests.
"""
