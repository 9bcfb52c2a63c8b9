"""How the framework handles each kind of spout: one strategy for each kind, chosen by `kind_of` alone.

What users subclass is one folder up and does not import this one.
"""
