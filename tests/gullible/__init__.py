"""The gullible agent: it does whatever a mail tells it, and nothing comes of it that a person has not decided."""
