"""The hash chain: each event holds the hash of the one before, so that no row can change, go or swap unseen.

hash = SHA-256 (lower-case hex) over the RFC 8785 canonical JSON of
{"actor", "at", "details", "kind", "previous", "seq", "subject"}, where `at` is UTC microseconds since 1970,
`details` the object itself, and `previous` the hash of event seq-1 (64 zeros for the first).
"""

import hashlib
import json
from typing import Any, Final

FIRST_PREVIOUS: Final = "0" * 64

# What the events hold (objects with ASCII names, lists, strings, integers below 2^53, true, false, null) json writes as
# RFC 8785 has it, in a twentieth of the time; a test compares the two, and `audit verify` reads with RFC 8785.
_encode: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def canonical(value: Any) -> str:  # noqa: ANN401 - any JSON value that an event holds
    """Return the canonical JSON text of what an event holds."""
    return _encode(value)


def event_hash(
    *, seq: int, at: int, kind: str, subject: str, actor: str, details: dict[str, Any], previous: str
) -> str:
    """Return the hash of one event; `at` in UTC microseconds since 1970."""
    return event_hash_of(
        seq=seq, at=at, kind=kind, subject=subject, actor=actor, details=canonical(details), previous=previous
    )


def event_hash_of(*, seq: int, at: int, kind: str, subject: str, actor: str, details: str, previous: str) -> str:
    """Return the hash of one event whose `details` are canonical JSON already."""
    content = (
        f'{{"actor":{_encode(actor)},"at":{at},"details":{details},"kind":{_encode(kind)},'
        f'"previous":{_encode(previous)},"seq":{seq},"subject":{_encode(subject)}}}'
    )
    return hashlib.sha256(content.encode()).hexdigest()


def event_details(text: str) -> dict[str, Any]:
    """Return the details of an event row as an object."""
    details = json.loads(text)
    assert isinstance(details, dict), "events hold objects"
    return details
