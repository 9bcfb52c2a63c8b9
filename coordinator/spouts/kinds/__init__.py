"""How the framework handles each kind of spout: one strategy a kind, chosen by `kind_of` and nowhere else.

What users subclass is one folder up; it knows nothing of this one.
"""
