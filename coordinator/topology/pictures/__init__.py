"""Pictures of topologies: one model, and its rendering as text, Mermaid and HTML. Pure.

`picture_maker` makes the model from a topology or its description; facts of a plan are added elsewhere.
"""
