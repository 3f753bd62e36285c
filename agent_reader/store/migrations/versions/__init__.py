"""One file for each version, oldest first; what a published one upgrades never changes."""
