"""Plain topologies on Spark: their waves as stages and jobs."""
