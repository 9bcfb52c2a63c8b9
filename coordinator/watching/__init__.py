"""What is observed of a run, and made of it: figures, pulse, logs, metrics, traces, reports. Decides nothing."""
