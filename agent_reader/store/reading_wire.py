"""What passes between the reader and the processes that read for it: frames of msgpack, and no object that can act.

A frame is its length in four octets (network order) and so many octets. A request is one frame with all that is to be
read; each answer is one frame, in the order of the request.
"""

from datetime import datetime
from typing import Final

import msgspec

from agent_reader.identity import Identity
from agent_reader.keep import Keep
from agent_reader.store.reading import Reading

LENGTH_OCTETS: Final = 4


class AskedMessage(msgspec.Struct, array_like=True, frozen=True, tag="message"):
    """A message to be read, as it was fetched; `keep` is what is kept of it, `identity` what names it."""

    mailbox_id: str
    uidvalidity: int
    uid: int
    internaldate: datetime
    size: int
    octets: bytes | None
    header: bytes
    keep: Keep
    identity: Identity = Identity.OCTETS


class AskedHeader(msgspec.Struct, array_like=True, frozen=True, tag="header"):
    """A header of which is asked what threads its message."""

    header: bytes


Asked = AskedMessage | AskedHeader


class Answer(msgspec.Struct, array_like=True, frozen=True):
    """What was read: a message's `reading` or a header's `links`; `error` names what prevented it."""

    reading: Reading | None
    links: tuple[bytes, ...]
    error: str


def frame(payload: bytes) -> bytes:
    """Return a frame."""
    return len(payload).to_bytes(LENGTH_OCTETS) + payload
