"""From octets to the one id that both houses compute alike.

An Email's id is its content's digest, so it survives moves and restarts, and the executor can prove, believing
nobody, that the message it holds is the one the agent named.
"""

import hashlib
import re
from typing import Final

# A digest needs every octet. 64 MiB holds what mail servers accept today (25 to 50 MB) with its base64 expansion.
MAX_MESSAGE_OCTETS: Final = 64 * 1024 * 1024

# 32 base32 characters are 160 bits of SHA-256: no second preimage is in reach, and an id stays short in a context.
# They encode 20 octets without a remainder.
_ID_OCTETS: Final = 20

# base32hex by two characters: a reading of mail makes four ids a message, and base64's own takes as long
# as the digest.
_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuv"
_PAIRS: Final = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_SHIFTS: Final = range(8 * _ID_OCTETS - 10, -1, -10)

_EMAIL_ID: Final = re.compile(r"M[0-9a-v]{32}", re.ASCII)
_UNSTABLE_ID: Final = re.compile(r"E[0-9a-v]{32}", re.ASCII)
_UNPROVABLE_ID: Final = re.compile(r"X[0-9a-v]{32}", re.ASCII)


def message_digest(octets: bytes) -> bytes:
    """Return the SHA-256 (32 octets) of a message as the server gives it by BODY.PEEK[]."""
    return hashlib.sha256(octets).digest()


def email_id(digest: bytes) -> str:
    """Return the Email id of a message digest: `M` and 32 characters of lower-case base32hex."""
    return "M" + _shortened(digest)


def blob_id(digest: bytes) -> str:
    """Return the blob id of a content digest: `B` and 32 characters of lower-case base32hex."""
    return "B" + _shortened(digest)


def unprovable_email_id(mailbox_id: str, uidvalidity: int, uid: int) -> str:
    """Return the `X...` id of a message that only its place tells from others; it is read about, never proposed."""
    return "X" + _shortened(hashlib.sha256(f"{mailbox_id}\0{uidvalidity}\0{uid}".encode()).digest())


def unstable_email_id(digest: bytes) -> str:
    """Return the `E...` id of a canonical header's digest; it can be read and never proposed."""
    return "E" + _shortened(digest)


def is_email_id(text: str) -> bool:
    """Whether this is the form of an Email id that can be proposed."""
    return _EMAIL_ID.fullmatch(text) is not None


def is_unstable_email_id(text: str) -> bool:
    """Whether this is the form of an `E...` id."""
    return _UNSTABLE_ID.fullmatch(text) is not None


def is_unprovable_email_id(text: str) -> bool:
    """Whether this is the form of an `X...` id."""
    return _UNPROVABLE_ID.fullmatch(text) is not None


def _shortened(digest: bytes) -> str:
    number = int.from_bytes(digest[:_ID_OCTETS])
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])
