"""The versions of the mirror's tables; run by `agent_reader.store.database` when a file is opened, never by hand."""

from typing import Final

from shared.revisions import Revision, Stays

# The version that this code reads and writes; a test holds it to the last file of `versions`.
HEAD: Final = "0010"


def _made_anew(why: str) -> Stays:
    return Stays(
        "made_anew",
        why,
        "Stop the reader and remove mail-*.db with its -wal and -shm: the older release makes the index anew from the "
        "mail server, and nothing is lost but time.",
    )


_FIRST: Final = _made_anew("Revision 0001 is the first.")
_STATES: Final = _made_anew("A release of revision 0001 gives states again that a power cut took back.")
_SCOPES: Final = _made_anew("A release of revision 0002 knows no scopes, and would show every token all mail.")
_HEADERS: Final = _made_anew("A release of revision 0003 threads without the headers that are read first.")
_KEPT: Final = _made_anew("A release of revision 0004 takes every Email for one that was kept whole.")
_WORDS: Final = _made_anew("A release of revision 0005 keeps the words of an Email in another form.")

# Of each version: since when checkouts have it, and what it brought; a test holds them to the files.
REVISIONS: Final = (
    Revision("0001", "0.1.0, checkouts since 2026-11-29 22:40", "the first tables", _FIRST),
    Revision("0002", "0.1.0, checkouts since 2026-11-30 01:19", "states after a power cut", _STATES),
    Revision("0003", "0.1.0, checkouts since 2026-11-30 01:25", "scopes", _SCOPES),
    Revision("0004", "0.1.0, checkouts since 2026-11-30 01:30", "first headers", _HEADERS),
    Revision("0005", "0.1.0, checkouts since 2026-11-30 01:34", "coverage and retention", _KEPT),
    # Those before 02:51 keep words in another form.
    Revision("0006", "0.1.0, checkouts since 2026-11-30 02:51", "an index by what is kept", _WORDS),
    Revision("0007", "0.1.0, checkouts since 2026-11-30 05:20", "places in the search table"),
    Revision("0008", "0.1.0, checkouts since 2026-11-30 09:18", "the newest first in the search table"),
    Revision("0009", "0.1.0, checkouts since 2026-11-30 09:33", "an index of Threads by place"),
    Revision("0010", "0.1.0, checkouts since 2026-11-30 16:00", "the Threads of places, packed"),
)
