"""The whole mailbox as its owner sees it, taken without changing anything: EXAMINE, STATUS and BODY.PEEK."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from imapclient import IMAPClient

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_SYSTEM_FLAG_MARK: Final = "\\"
_UNSELECTABLE: Final = frozenset({b"\\Noselect", b"\\NonExistent"})
_RECENT: Final = "\\Recent"
_ITEMS: Final = ["FLAGS", "INTERNALDATE", "MODSEQ", "BODY.PEEK[]"]
_STATUS: Final = ["MESSAGES", "RECENT", "UIDNEXT", "UIDVALIDITY", "UNSEEN", "HIGHESTMODSEQ"]


@dataclass(frozen=True, slots=True)
class MessageState:
    """One message: `flags` are system flags without \\Recent, `modseq` as in RFC 7162 §3.1."""

    uid: int
    flags: frozenset[str]
    keywords: frozenset[str]
    recent: bool
    internaldate: datetime
    modseq: int
    sha256: str


@dataclass(frozen=True, slots=True)
class MailboxState:
    """One mailbox: `status` as STATUS answers it, by item name; messages by uid."""

    uidvalidity: int
    highestmodseq: int
    recent: int
    status: Mapping[str, int]
    messages: Mapping[int, MessageState]

    def one(self) -> MessageState:
        """The only message there is."""
        (message,) = self.messages.values()
        return message


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every mailbox by name, and the names subscribed to."""

    mailboxes: Mapping[str, MailboxState]
    subscribed: frozenset[str]

    def __getitem__(self, mailbox: str) -> MailboxState:
        return self.mailboxes[mailbox]


def take_snapshot(host: str, port: int, user: str, password: str, pattern: str = "*") -> Snapshot:
    """Read everything through one connection of its own; two in a row are equal.

    `pattern` as in LIST. A server without CONDSTORE has 0 for every MODSEQ and HIGHESTMODSEQ.
    """
    with IMAPClient(host, port, ssl=False, timeout=30) as client:
        client.login(user, password)
        client.normalise_times = False
        names = sorted(name for flags, _, name in client.list_folders("", pattern) if not _UNSELECTABLE & set(flags))
        subscribed = frozenset(name for _, _, name in client.list_sub_folders("", pattern))
        return Snapshot({name: _mailbox(client, name) for name in names}, subscribed)


def _mailbox(client: IMAPClient, name: str) -> MailboxState:
    condstore = client.has_capability("CONDSTORE")
    asked = _STATUS if condstore else [item for item in _STATUS if item != "HIGHESTMODSEQ"]
    status = {item.decode(): int(value) for item, value in client.folder_status(name, asked).items()}
    client.select_folder(name, readonly=True)
    uids = client.search("ALL")
    items = _ITEMS if condstore else [item for item in _ITEMS if item != "MODSEQ"]
    messages = {uid: _message(uid, answer) for uid, answer in client.fetch(uids, items).items()} if uids else {}
    # After EXAMINE, CLOSE expunges nothing (RFC 9051 §6.4.1); some servers have no UNSELECT.
    (client.unselect_folder if client.has_capability("UNSELECT") else client.close_folder)()
    return MailboxState(status["UIDVALIDITY"], status.get("HIGHESTMODSEQ", 0), status["RECENT"], status, messages)


def _message(uid: int, answer: Mapping[bytes, object]) -> MessageState:
    flags, date, octets = (answer[key] for key in (b"FLAGS", b"INTERNALDATE", b"BODY[]"))
    modseq = answer.get(b"MODSEQ", (0,))
    assert isinstance(flags, tuple)
    assert isinstance(modseq, tuple)
    assert isinstance(octets, bytes)
    names = {flag.decode() for flag in flags}
    system = {name for name in names if name.startswith(_SYSTEM_FLAG_MARK)}
    return MessageState(
        uid,
        frozenset(system - {_RECENT}),
        frozenset(names - system),
        _RECENT in names,
        date,  # type: ignore[arg-type]  # imapclient has no types; this is its datetime
        modseq[0],
        hashlib.sha256(octets).hexdigest(),
    )
