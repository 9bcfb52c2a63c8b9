"""Sources: spouts over inputs people have."""
