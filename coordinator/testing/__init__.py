"""A cluster in one process, and runs in virtual time: for users' tests and our own."""
