"""Topologies as users build them, how their tasks are arranged, and how they are drawn."""
