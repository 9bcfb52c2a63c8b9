"""Runs topologies in virtual time, on one thread, while tasks, frames, driver and server fail by plan.

Driver, machine, tasks, committers and the function library are real. Spark's scheduler and shuffle, the clock and the
connection are simulated. Nothing here knows what a topology does; workloads and their invariants belong to tests.
"""
