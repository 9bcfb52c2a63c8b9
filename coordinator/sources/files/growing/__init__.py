"""Folders that grow while they are read: which file is complete, in which order they join, what becomes of them."""
