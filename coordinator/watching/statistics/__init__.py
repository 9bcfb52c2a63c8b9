"""The figures of runs, of both kinds of topologies."""
