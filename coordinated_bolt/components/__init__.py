"""What users subclass and are given: components, bolts, spouts, hooks, callbacks, collector interfaces, the context.

Interfaces, and base classes that only store what they are given. Nothing here sends, counts or acks.
"""
