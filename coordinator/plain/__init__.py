"""Plain topologies: Storm's spouts and bolts with an ack tree, at least once, without transactions and without state.

Transactional code imports nothing from here. These modules are builder, plan and driver; `tasks/` runs spouts, bolts
and ackers, `spark/` runs waves as jobs, and `kafka/` is the Kafka spout. LocalCluster runs plain topologies, too.
"""
