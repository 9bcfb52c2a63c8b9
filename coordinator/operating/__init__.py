"""The tools that operate txbatch: the command, the dashboard, doctor and verify, export and import, `init`."""
