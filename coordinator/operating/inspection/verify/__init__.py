"""``txbatch verify``: checks whether a stored topology is whole and, with a refold, whether it is right.

Checks of records, keys, values and images are pure; `verifier` reads them, `refold` computes states again.
"""
