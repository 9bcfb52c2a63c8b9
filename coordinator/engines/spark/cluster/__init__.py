"""What a run has to know about its cluster: the executors, what they lack, the jobs that wait for them, the master."""
