"""What names a message: the digest of its octets, or, where a server never gives the same octets twice, of its header.

A name by the header is good for reading. It proves nothing of the body, so the executor refuses it.
"""

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from shared.identity import blob_id, email_id, message_digest, unprovable_email_id, unstable_email_id
from shared.message.fields import Budget, by_name, read_header_block
from shared.message.limits import MAX_HEADER_OCTETS

# What a server itself must know of a message to answer with its ENVELOPE (RFC 9051 §7.5.2), and the trace that nobody
# may change (RFC 5321 §4.4). Its topmost line is the receiving server's, with a number of its own for each delivery: no
# sender can make a message that has the name of another.
_ENVELOPE: Final = "date subject from sender reply-to to cc bcc in-reply-to message-id"
_CANONICAL_FIELDS: Final = (*_ENVELOPE.split(), "received")

# Without either, two messages may well be alike in all the others.
_TELLING: Final = frozenset({"message-id", "received"})

# RFC 5322 §2.2.3: where a field is folded is the writer's choice, and servers that write anew choose otherwise.
_BLANKS: Final = re.compile(rb"[ \t\r\n]+")


class Identity(StrEnum):
    """`OCTETS`: the same octets are the same Email. `HEADERS`: the same canonical fields are."""

    OCTETS = "octets"
    HEADERS = "headers"


@dataclass(frozen=True, slots=True)
class Names:
    """The ids of a message: its Email's and its own blob's."""

    email_id: str
    blob_id: str


def names_of(
    identity: Identity, octets: bytes | None, header: bytes, mailbox_handle: str, uidvalidity: int, uid: int
) -> Names:
    """Return the names of a message. `octets` is None for one too large to be fetched; then only `header` is there.

    What nothing tells from others is named by its place: `X...`.
    """
    if identity is Identity.HEADERS:
        digest = canonical_digest(header if octets is None else octets)
        if digest is not None:
            return _unproven(unstable_email_id(digest))
    elif octets is not None:
        digest = message_digest(octets)
        return Names(email_id(digest), blob_id(digest))
    return _unproven(unprovable_email_id(mailbox_handle, uidvalidity, uid))


def canonical_digest(octets: bytes) -> bytes | None:
    """Return the SHA-256 (32 octets) of the canonical fields of a message or its beginning, unfolded, otherwise raw.

    None where it has neither a Message-ID nor a Received field: such a message could be taken for another.
    """
    # Bounded here, so that it comes to the same whether the whole message is given or its beginning.
    end = min(len(octets), MAX_HEADER_OCTETS)
    fields = by_name(read_header_block(octets, 0, end, (), Budget()).fields)
    if _TELLING.isdisjoint(fields):
        return None
    sha256 = hashlib.sha256()
    for name in _CANONICAL_FIELDS:
        for each in fields.get(name, ()):
            # No value has a line break now, so no two sets of fields come to the same octets.
            sha256.update(name.encode() + b":" + _BLANKS.sub(b" ", each.value).strip(b" ") + b"\r\n")
    return sha256.digest()


def _unproven(identity: str) -> Names:
    # What is downloaded by it is what the server gives then; the property may not be missing (RFC 8621 §4.1.1).
    return Names(identity, "B" + identity)
