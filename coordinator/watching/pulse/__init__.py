"""What a run tells its server of itself while it runs: an observer, its pure books, and the edge that writes them.

Nothing here decides anything, and a run without it does exactly the same.
"""
