"""The classes that users subclass or get: components, bolts, spouts, hooks, callbacks, collectors, the context.

Interfaces, and base classes that only store their arguments. Nothing here sends, counts or acks.
"""
