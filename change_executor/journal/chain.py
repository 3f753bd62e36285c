"""The hash chain: each event holds the hash of the one before, so that no row can change, go or swap unseen.

hash = SHA-256 (lower-case hex) over the RFC 8785 canonical JSON of
{"actor", "at", "details", "kind", "previous", "seq", "subject"}, where `at` is UTC microseconds since 1970,
`details` the object itself, and `previous` the hash of event seq-1 (64 zeros for the first).
"""

import hashlib
from typing import Any, Final

import rfc8785

FIRST_PREVIOUS: Final = "0" * 64


def event_hash(
    *, seq: int, at: int, kind: str, subject: str, actor: str, details: dict[str, Any], previous: str
) -> str:
    """Return the hash of one event; `at` in UTC microseconds since 1970."""
    content: dict[str, Any] = {
        "actor": actor,
        "at": at,
        "details": details,
        "kind": kind,
        "previous": previous,
        "seq": seq,
        "subject": subject,
    }
    return hashlib.sha256(rfc8785.dumps(content)).hexdigest()
