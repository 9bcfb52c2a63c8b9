"""`txbatch run` on real input, its driver killed by -9 again and again: one module for each kind of input."""
