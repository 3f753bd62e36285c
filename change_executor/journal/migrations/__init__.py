"""The versions of the journal's tables; run by `change_executor.journal.open` in one transaction, never by hand."""

from typing import Final

from shared.revisions import Revision, Stays

# The version that this code reads and writes; a test holds it to the last file of `versions`.
HEAD: Final = "0005"

_FIRST: Final = Stays("nothing_before", "Revision 0001 is the first.", "Move the journal away, and keep it.")
_UNCOVERED: Final = Stays(
    "chain_would_end",
    "A release of revision 0001 states no digests: what it changes and forgets could not be verified any more. It "
    "would take proposals of agents that were revoked, and knows nothing of moves by copy.",
    "Restore a copy made before the upgrade from that revision, or stay at 0002.",
)

# Of each version: since when checkouts have it, and what it brought; a test holds them to the files.
REVISIONS: Final = (
    Revision("0001", "0.1.0, checkouts since 2026-11-29 22:30", "the first tables", _FIRST),
    Revision(
        "0002", "0.1.0, checkouts since 2026-11-30 01:29", "a chain over rows and texts; moves by copy", _UNCOVERED
    ),
    Revision("0003", "0.1.0, checkouts since 2026-11-30 02:39", "roles and passkeys"),
    Revision("0004", "0.1.0, checkouts since 2026-11-30 05:29", "indexes for pages of a long journal"),
    Revision("0005", "0.1.0, checkouts since 2026-11-30 09:38", "indexes for moves of a long journal"),
)
