r"""Every IMAP command that the reader can say: one closed table, judged where bytes leave (`shared.imap_guard`).

The reader keeps it itself; the gate, where there is one, keeps it again under another user.

Nothing here changes a mailbox: it is opened by EXAMINE, a body is read by BODY.PEEK, and SEARCH takes UIDs only, never
words that somebody wrote. A command that is not here has no way out of this process.
"""

import re
from typing import Final

from shared.imap_guard import ATOM, MAILBOX, NUMBER, QUOTED, UID_SET, VerbTable

# RFC 2971: told to servers that want to know; some refuse to open a mailbox without it.
CLIENT_NAME: Final = "mailwarrant"


def _any_of(*words: bytes) -> bytes:
    return b"(?:" + b"|".join(words) + b")"


def _list_of(item: bytes) -> bytes:
    return rb"\(" + item + rb"(?: " + item + rb")*\)"


def _whole(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern, re.DOTALL)


_NOTHING: Final = _whole(b"")
_CREDENTIAL: Final = _any_of(QUOTED, ATOM)
# RFC 7162 §7: a mod-sequence has 63 bits.
_MODSEQ: Final = rb"(?:0|[1-9][0-9]{0,18})"
_OFFSET: Final = rb"(?:0|[1-9][0-9]{0,9})"

# What threads a message (RFC 8621 §3), and no more of its header: a tenth of it.
THREAD_FIELDS: Final = "BODY.PEEK[HEADER.FIELDS (MESSAGE-ID IN-REPLY-TO REFERENCES SUBJECT)]"

# RFC 5819: by these a mailbox in which nothing happened is known without being opened.
LISTED_STATUS: Final = "STATUS (MESSAGES UIDNEXT UIDVALIDITY HIGHESTMODSEQ)"

_STATUS_ITEM: Final = _any_of(b"MESSAGES", b"UIDNEXT", b"UIDVALIDITY", b"UNSEEN", b"HIGHESTMODSEQ")
# BODY[...] without PEEK, RFC822 and RFC822.TEXT set \Seen (RFC 9051 §6.4.5): they are not here.
_FETCH_ITEM: Final = _any_of(
    b"UID",
    b"FLAGS",
    b"INTERNALDATE",
    rb"RFC822\.SIZE",
    b"MODSEQ",
    # What makes one message known in several mailboxes: Gmail's extension, and RFC 8474 §5.1.
    b"X-GM-MSGID",
    b"EMAILID",
    re.escape(THREAD_FIELDS.encode()),
    rb"BODY\.PEEK\[(?:HEADER)?\](?:<" + _OFFSET + rb"\." + NUMBER + rb">)?",
)
_CHANGED_SINCE: Final = rb"(?: \(CHANGEDSINCE " + _MODSEQ + rb"(?: VANISHED)?\))?"

READER_TABLE: Final = VerbTable(
    "reader",
    {
        # Any state.
        b"CAPABILITY": _NOTHING,
        b"NOOP": _NOTHING,
        b"LOGOUT": _NOTHING,
        b"ID": _whole(_any_of(b"NIL", rb'\("name" "' + CLIENT_NAME.encode() + rb'"\)')),
        # Before login.
        b"STARTTLS": _NOTHING,
        b"AUTHENTICATE": _whole(_any_of(b"PLAIN", b"XOAUTH2", b"OAUTHBEARER")),
        b"LOGIN": _whole(_CREDENTIAL + b" " + _CREDENTIAL),
        # After login.
        b"ENABLE": _whole(_any_of(b"CONDSTORE", b"QRESYNC")),
        b"NAMESPACE": _NOTHING,
        b"LIST": _whole(
            b'"" '
            + QUOTED
            + rb"(?: RETURN \(SUBSCRIBED(?: SPECIAL-USE)?(?: "
            + re.escape(LISTED_STATUS.encode())
            + rb")?\))?"
        ),
        b"LSUB": _whole(b'"" ' + QUOTED),
        b"STATUS": _whole(MAILBOX + b" " + _list_of(_STATUS_ITEM)),
        # RFC 5465: what the server tells unasked; nothing of a message but that it is there.
        b"NOTIFY": _whole(rb"SET \(personal \(MessageNew MessageExpunge FlagChange\)\)"),
        b"EXAMINE": _whole(MAILBOX + rb"(?: \((?:CONDSTORE|QRESYNC \(" + NUMBER + b" " + _MODSEQ + rb"\))\))?"),
        # In a mailbox.
        b"UID FETCH": _whole(UID_SET + b" " + _list_of(_FETCH_ITEM) + _CHANGED_SINCE),
        b"UID SEARCH": _whole(rb"(?:RETURN \(ALL\) )?(?:ALL|UID " + UID_SET + b")"),
        b"IDLE": _NOTHING,
        b"UNSELECT": _NOTHING,
    },
)
