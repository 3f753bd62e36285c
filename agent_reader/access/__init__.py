"""Who may read, and what was read: reader tokens, and the read log that is committed before an answer leaves."""
