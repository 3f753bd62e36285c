"""What a mail server shows, as values: a listed mailbox, a message's state, a fetched message."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ListedMailbox:
    """A mailbox as LIST shows it: decoded name, hierarchy delimiter, attributes (`\\Noselect`, `\\Sent`, ...)."""

    name: str
    delimiter: str | None
    attributes: frozenset[str]
    subscribed: bool


@dataclass(frozen=True, slots=True)
class MessageState:
    """The flags (as the server spells them, `\\Recent` left out) and MODSEQ of one message."""

    flags: frozenset[str]
    modseq: int | None


@dataclass(frozen=True, slots=True)
class FetchedMessage:
    """One message as fetched. `octets` is None above `shared.identity.MAX_MESSAGE_OCTETS`; then only `header` is there."""

    uid: int
    state: MessageState
    internaldate: datetime
    size: int
    octets: bytes | None
    header: bytes
