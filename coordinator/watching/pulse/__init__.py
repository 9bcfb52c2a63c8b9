"""What a run writes about itself to its server: an observer, its pure books, and the edge that writes them.

Nothing here decides anything, and a run without it does exactly the same.
"""
