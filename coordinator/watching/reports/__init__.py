"""What a run has done, as people look at it: tables, plots, and the figures over time that these need.

It is given figures and knows no run: those who drive one hand theirs in.
"""
