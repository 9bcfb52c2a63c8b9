"""How a run starts: finds what earlier runs left, checks the spout and the input against it, becomes the owner.

Everything that can refuse a start is here. Once the run has begun, `machine` decides.
"""
