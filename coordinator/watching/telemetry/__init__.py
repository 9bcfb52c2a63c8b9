"""Turns the observations of a run into logs, metrics, health and traces; decides nothing.

Everything here is an `Observer`, or reads what one has collected. The only room that imports prometheus_client and
opentelemetry, each where it is first needed.
"""
