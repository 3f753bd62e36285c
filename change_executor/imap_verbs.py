"""What the executor may say to a mail server: closed tables. What is not listed never leaves.

Nothing here appends, creates, deletes or renames. The one verb that changes a mailbox is UID MOVE, of one message, into
a mailbox that the configuration names; only where a queue allows it for a server without MOVE, UID COPY into such a
mailbox, the one flag Deleted, and UID EXPUNGE (RFC 4315), each of one message. Never EXPUNGE or CLOSE.
"""

import re
from collections.abc import Iterable
from types import MappingProxyType
from typing import Final

from imapclient import imap_utf7

from shared.imap_guard import ATOM, MAILBOX, NUMBER, QUOTED, VerbTable

# RFC 9051 §7.5.2: what may be fetched of one message; every body item peeks, so that \Seen stays as it was.
_FETCH_ITEM: Final = rb"(?:UID|FLAGS|INTERNALDATE|RFC822\.SIZE|BODY\.PEEK\[\](?:<[0-9]{1,10}\.[1-9][0-9]{0,9}>)?)"
_STATUS_ITEM: Final = rb"(?:UIDVALIDITY|UIDNEXT|MESSAGES)"


def _listed(item: bytes) -> bytes:
    return rb"\(" + item + rb"(?: " + item + rb")*\)"


_LOOK: Final = {
    b"CAPABILITY": b"",
    b"STARTTLS": b"",
    b"AUTHENTICATE": rb"(?:PLAIN|XOAUTH2|OAUTHBEARER)",
    b"LOGIN": rb"(?:" + QUOTED + rb"|" + ATOM + rb") " + QUOTED,
    b"LIST": rb'"" ' + MAILBOX,
    b"STATUS": MAILBOX + rb" " + _listed(_STATUS_ITEM),
    b"EXAMINE": MAILBOX,
    b"UNSELECT": b"",
    # One message at a time, by UID.
    b"UID FETCH": NUMBER + rb" " + _listed(_FETCH_ITEM),
    # Only what lies in a mailbox from a UID on: never a text, a header or anything that a sender chose.
    b"UID SEARCH": rb"UID " + NUMBER + rb":\*",
    # RFC 4314 §3.5, asked where ACL is offered; the answer is a hint, since some servers lie.
    b"MYRIGHTS": MAILBOX,
    b"NOOP": b"",
    b"LOGOUT": b"",
}


def _table(name: str, arguments: dict[bytes, bytes]) -> VerbTable:
    return VerbTable(name, MappingProxyType({verb: re.compile(pattern) for verb, pattern in arguments.items()}))


LOOK_TABLE: Final = _table("executor looks", _LOOK)
MOVE_TABLE: Final = _table("executor moves", _LOOK | {b"SELECT": MAILBOX, b"UID MOVE": NUMBER + rb" " + MAILBOX})


def move_table_for(mailboxes: Iterable[str], *, copying: bool = False) -> VerbTable:
    """Return `MOVE_TABLE` with SELECT and UID MOVE narrowed to these mailboxes, by their exact names.

    `copying` adds what moves one message on a server without MOVE.
    """
    names = rb"(?:" + rb"|".join(sorted(re.escape(wire_name(mailbox)) for mailbox in mailboxes)) + rb")"
    narrowed = _LOOK | {b"SELECT": names, b"UID MOVE": NUMBER + rb" " + names}
    if copying:
        narrowed |= {
            b"UID COPY": NUMBER + rb" " + names,
            b"UID STORE": NUMBER + rb" \+FLAGS\.SILENT \(\\Deleted\)",
            b"UID EXPUNGE": NUMBER,
        }
    return _table("executor moves", narrowed)


def wire_name(mailbox: str) -> bytes:
    """Return a mailbox name as it travels: modified UTF-7, quoted (RFC 3501 §5.1.3)."""
    encoded: bytes = imap_utf7.encode(mailbox)
    return b'"' + encoded.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
