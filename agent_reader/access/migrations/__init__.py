"""The versions of the access file's tables; run by `agent_reader.access.database` when it is opened, never by hand."""

from typing import Final

from shared.revisions import Revision, Stays

# The version that this code reads and writes; a test holds it to the last file of `versions`.
HEAD: Final = "0002"

_FIRST: Final = Stays("nothing_before", "Revision 0001 is the first.", "Move access.db away, and keep it.")
_SCOPED: Final = Stays(
    "tokens_would_open_more",
    "A release of revision 0001 knows no scopes: every token would open all mail, with sign-in codes. And its read "
    "log is no chain: which parts were read, and by whom, would be lost.",
    "Stop the reader and move access.db with its -wal and -shm away, and keep them: the older release makes another, "
    "for which tokens are made anew. Or restore a copy made before the upgrade.",
)

# Of each version: since when checkouts have it, and what it brought; a test holds them to the files.
REVISIONS: Final = (
    Revision("0001", "0.1.0, checkouts since 2026-11-29 22:43", "tokens and the read log", _FIRST),
    Revision("0002", "0.1.0, checkouts since 2026-11-30 01:31", "scopes and budgets; the read log as a chain", _SCOPED),
)
