"""One file for each version, oldest first; a published one never changes."""
