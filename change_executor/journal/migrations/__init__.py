"""The versions of the journal's tables; run by `change_executor.journal.open` in one transaction, never by hand."""

from typing import Final

from shared.revisions import Revision

# The version that this code reads and writes; a test holds it to the last file of `versions`.
HEAD: Final = "0005"

# Of each version: since when checkouts have it, and what it brought; a test holds them to the files.
REVISIONS: Final = (
    Revision("0001", "0.1.0, checkouts since 2026-11-29 22:30", "the first tables"),
    Revision("0002", "0.1.0, checkouts since 2026-11-30 01:29", "a chain that covers rows and texts; moves by copy"),
    Revision("0003", "0.1.0, checkouts since 2026-11-30 02:39", "roles and passkeys"),
    Revision("0004", "0.1.0, checkouts since 2026-11-30 05:29", "indexes for pages of a long journal"),
    Revision("0005", "0.1.0, checkouts since 2026-11-30 09:38", "indexes for moves of a long journal"),
)
