"""``txbatch verify``: whether what a server holds of a topology is whole, and with a refold whether it is right.

Checks of records, keys, values and images are pure; `verifier` reads, `refold` computes again.
"""
