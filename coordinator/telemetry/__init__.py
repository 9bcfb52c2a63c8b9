"""Makes progress, logs, metrics, health and traces of what is observed of a run; decides nothing about it.

Everything here is an `Observer`, or reads what one has collected. The only room that imports prometheus_client and
opentelemetry, each where it is first needed.
"""
