"""What people operate txbatch with: the command, the dashboard, doctor and verify, export and import, `init`."""
