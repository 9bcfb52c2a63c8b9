"""What a run has to know of the cluster it runs on: executors, what they lack, jobs that wait for them, the master."""
