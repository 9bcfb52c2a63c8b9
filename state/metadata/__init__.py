"""What a source remembers of each txid, and how it is checked at the next start. Pure."""
