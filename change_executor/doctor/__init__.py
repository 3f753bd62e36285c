"""What the operator asks about an installation, in a process of its own: it looks, and changes nothing."""
