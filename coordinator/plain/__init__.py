"""Plain topologies: spouts, bolts and acks, at least once, without transactions; their builder, plan and waves."""
