"""What a mail server shows, as values: a listed mailbox, an examined one, a message's state, a fetched message."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from agent_reader.imap.uid_ranges import UidRanges


def canonical_name(name: str) -> str:
    """Return a mailbox's decoded name as it is compared: INBOX is one name in any case (RFC 9051 §5.1)."""
    return "INBOX" if name.upper() == "INBOX" else name


@dataclass(frozen=True, slots=True)
class MailboxStatus:
    """How a mailbox stands, as STATUS tells without opening it (RFC 9051 §6.3.11, RFC 7162 §3.1.7)."""

    uidvalidity: int
    uidnext: int
    messages: int
    highestmodseq: int


@dataclass(frozen=True, slots=True)
class ListedMailbox:
    r"""A mailbox as LIST shows it: decoded name, hierarchy delimiter, attributes (`\Noselect`, `\Sent`, ...).

    `status` is there where it was asked for and the server tells all of it (RFC 5819); it is no part of what the
    mailbox is.
    """

    name: str
    delimiter: str | None
    attributes: frozenset[str]
    subscribed: bool
    status: MailboxStatus | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Examined:
    """A mailbox as EXAMINE showed it; `highestmodseq` is None without CONDSTORE, `mailbox_id` is RFC 8474's."""

    uidvalidity: int
    uidnext: int
    exists: int
    highestmodseq: int | None
    mailbox_id: str | None

    @property
    def status(self) -> MailboxStatus | None:
        """The same as STATUS tells it; None without CONDSTORE, where it says too little."""
        if self.highestmodseq is None:
            return None
        return MailboxStatus(self.uidvalidity, self.uidnext, self.exists, self.highestmodseq)


@dataclass(frozen=True, slots=True)
class MessageState:
    r"""The flags (as the server spells them, `\Recent` left out) and MODSEQ of one message."""

    flags: frozenset[str]
    modseq: int | None


@dataclass(frozen=True, slots=True)
class ThreadHeader:
    """What threads one message: its Message-ID, In-Reply-To, References and Subject, as octets of a header."""

    uid: int
    internaldate: datetime
    header: bytes


@dataclass(frozen=True, slots=True)
class Resync:
    """What a server with QRESYNC says has happened: states of new and changed messages, and UIDs that are gone."""

    changed: Mapping[int, MessageState]
    vanished: UidRanges


@dataclass(frozen=True, slots=True)
class Stated:
    """What a server states of a message before it is fetched.

    `same_as`: messages with the same value have the same octets (Gmail's X-GM-MSGID, RFC 8474's EMAILID), or None.
    """

    size: int | None
    internaldate: datetime | None
    same_as: str | None


@dataclass(frozen=True, slots=True)
class Heard:
    """What a server said unasked: `selected` about the open mailbox, `mailboxes` by name.

    `anything`: something that cannot be told apart, so everything may be different.
    """

    selected: bool = False
    mailboxes: frozenset[str] = frozenset()
    anything: bool = False

    def __bool__(self) -> bool:
        return self.selected or self.anything or bool(self.mailboxes)


@dataclass(frozen=True, slots=True)
class FetchedMessage:
    """One message as fetched.

    `octets` is None above `shared.identity.MAX_MESSAGE_OCTETS`; then only `header` is there.
    """

    uid: int
    state: MessageState
    internaldate: datetime
    size: int
    octets: bytes | None
    header: bytes


@dataclass(frozen=True, slots=True)
class Place:
    """Where one copy of a message lies: the mailbox's decoded name, its UIDVALIDITY, and the message's UID."""

    mailbox: str
    uidvalidity: int
    uid: int
