"""The versions of the access file's tables; run by `agent_reader.access.database` when it is opened, never by hand."""

from typing import Final

from shared.revisions import Revision

# The version that this code reads and writes; a test holds it to the last file of `versions`.
HEAD: Final = "0002"

# Of each version: since when checkouts have it, and what it brought; a test holds them to the files.
REVISIONS: Final = (
    Revision("0001", "0.1.0, checkouts since 2026-11-29 22:43", "tokens and the read log"),
    Revision(
        "0002", "0.1.0, checkouts since 2026-11-30 01:31", "scopes and budgets of tokens; the read log as a chain"
    ),
)
