"""Plain topologies: Storm's spouts and bolts with an ack tree, at least once, without transactions and without state.

Nothing that is transactional imports anything here. Builder, plan and driver are these modules; `tasks/` runs spouts,
bolts and ackers, `spark/` makes jobs of waves, and `kafka/` is the Kafka spout. LocalCluster runs them, too.
"""
