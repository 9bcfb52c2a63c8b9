"""Access to a topology without owning it: look, export, import, move to other slots, drop."""
