"""What users subclass and are handed: components, bolts, spouts, hooks, callbacks, collectors' interfaces, the context.

Interfaces and the base classes that only keep what they are given. Nothing here sends, counts or acks.
"""
