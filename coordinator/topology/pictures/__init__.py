"""Pictures of topologies: one model, and what it looks like as text, Mermaid and HTML. Pure.

The rooms that know topologies and plans make the model; nothing here does.
"""
