"""Several sources as one spout, whatever kind each of them is."""
