"""What the operator asks about an installation, in a process of its own: never part of the daemon."""
