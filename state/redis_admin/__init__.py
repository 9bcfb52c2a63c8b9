"""What is done to a topology without owning it: looked at, exported, imported, moved to other slots, dropped."""
