"""The pulse, a run's reports about itself on its server: an observer, its pure books, and their writer.

Nothing here decides anything, and a run without it does exactly the same.
"""
