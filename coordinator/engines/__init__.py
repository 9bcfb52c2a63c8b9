"""What runs waves: Spark, or this process."""
