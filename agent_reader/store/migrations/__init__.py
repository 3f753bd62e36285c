"""The versions of the mirror's tables; run by `agent_reader.store.database` when a file is opened, never by hand."""

from typing import Final

from shared.revisions import Revision

# The version that this code reads and writes; a test holds it to the last file of `versions`.
HEAD: Final = "0009"

# Of each version: since when checkouts have it, and what it brought; a test holds them to the files.
REVISIONS: Final = (
    Revision("0001", "0.1.0, checkouts since 2026-11-29 22:40", "the first tables"),
    Revision("0002", "0.1.0, checkouts since 2026-11-30 01:19", "states after a power cut"),
    Revision("0003", "0.1.0, checkouts since 2026-11-30 01:25", "scopes"),
    Revision("0004", "0.1.0, checkouts since 2026-11-30 01:30", "first headers"),
    Revision("0005", "0.1.0, checkouts since 2026-11-30 01:34", "coverage and retention"),
    # Those before 02:51 keep words in another form.
    Revision("0006", "0.1.0, checkouts since 2026-11-30 02:51", "an index by what is kept"),
    Revision("0007", "0.1.0, checkouts since 2026-11-30 05:20", "places in the search table"),
    Revision("0008", "0.1.0, checkouts since 2026-11-30 09:18", "the newest first in the search table"),
    Revision("0009", "0.1.0, checkouts since 2026-11-30 09:33", "an index of Threads by place"),
)
