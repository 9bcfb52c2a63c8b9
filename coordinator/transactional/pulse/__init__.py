"""What a run tells about itself while it runs: pure books of what happens, and the edge that writes them.

Nothing here decides anything, and a run without it does exactly the same.
"""
