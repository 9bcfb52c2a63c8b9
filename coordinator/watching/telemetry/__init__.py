"""Turns the observations of a run into logs, metrics, health and traces; decides nothing.

Everything here is an `Observer`, or reads data that one has collected. Only this folder imports prometheus_client and
opentelemetry, each where it is first needed.
"""
