"""Opaque bearer tokens: `<kind>_<8 base32 id>_<32 base32 secret>_<8 hex CRC-32>`.

The check digits let a typo be told from a forgery and let secret scanners find a leak. Only the SHA-256 of a token is
stored; the id finds the row, so that no secret is ever looked up.
"""

import base64
import hashlib
import hmac
import re
import zlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from shared.time_and_chance import RandomOctets

# 5 octets make 8 base32 characters, 20 octets make 32: an id without a birthday problem below a million tokens, and a
# secret of 160 bits.
_ID_OCTETS: Final = 5
_SECRET_OCTETS: Final = 20

# Mandatory, so that a forgotten token ends by itself.
DEFAULT_LIFETIME_DAYS: Final = 90

_TOKEN: Final = re.compile(r"(mwr|mwp)_([a-z2-7]{8})_([a-z2-7]{32})_([0-9a-f]{8})", re.ASCII)
_BEGINNING: Final = re.compile(r"mw[rp]_([a-z2-7]{8})(?:_|$)", re.ASCII)


class TokenKind(StrEnum):
    """Which house a token opens."""

    READER = "mwr"
    PROPOSER = "mwp"


@dataclass(frozen=True, slots=True)
class Token:
    """A well-formed token; `text` is the secret and stays out of `repr`."""

    kind: TokenKind
    id: str
    text: str = field(repr=False)

    def digest(self) -> bytes:
        """Return what is stored: the SHA-256 of the whole token, 32 octets."""
        return hashlib.sha256(self.text.encode("ascii")).digest()

    def matches(self, stored_digest: bytes) -> bool:
        """Whether this is the token whose digest was stored, in constant time."""
        return hmac.compare_digest(self.digest(), stored_digest)


def new_token(kind: TokenKind, random_octets: RandomOctets) -> Token:
    """Make a token from a source of random octets (`secrets.token_bytes`)."""
    token_id = base64.b32encode(random_octets(_ID_OCTETS)).decode("ascii").lower()
    secret = base64.b32encode(random_octets(_SECRET_OCTETS)).decode("ascii").lower()
    body = f"{kind.value}_{token_id}_{secret}"
    return Token(kind, token_id, f"{body}_{_check_digits(body)}")


def parse_token(untrusted_text: str) -> Token | None:
    """Return the token in the text, or None where it is none or its check digits disagree."""
    match = _TOKEN.fullmatch(untrusted_text)
    if match is None:
        return None
    kind, token_id, _, check = match.groups()
    if not hmac.compare_digest(_check_digits(untrusted_text[:-9]), check):
        return None
    return Token(TokenKind(kind), token_id, untrusted_text)


def id_of_token(untrusted_text: str) -> str:
    """Return the id in what somebody gave for one: a whole token, or its beginning, stands for its id.

    Whoever found a token in a log has that, and no list of ids.
    """
    match = _BEGINNING.match(untrusted_text)
    return untrusted_text if match is None else match[1]


def _check_digits(body: str) -> str:
    return f"{zlib.crc32(body.encode('ascii')):08x}"


def bearer_of(authorization: str | None) -> str | None:
    """Return the secret of an Authorization field: Bearer (RFC 6750), or the password of Basic (RFC 7617).

    Clients that know only Basic send the token as the password, with any user name.
    """
    if authorization is None:
        return None
    scheme, _, rest = authorization.partition(" ")
    rest = rest.strip()
    if scheme.lower() == "bearer":
        return rest or None
    if scheme.lower() != "basic":
        return None
    try:
        user_and_password = base64.b64decode(rest, validate=True).decode("utf-8")
    except ValueError:
        return None
    return user_and_password.partition(":")[2] or None
