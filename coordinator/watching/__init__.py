"""Observations of a run and their uses: figures, pulse, logs, metrics, traces, reports. Decides nothing."""
