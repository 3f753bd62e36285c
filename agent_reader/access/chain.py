r"""The hash chain of the read log: each row holds the digest of itself and the one before.

digest = SHA-256 over the previous row's digest (32 octets; zeros before the first) and the ASCII of the JSON array
[key, at, agent, token_id, method, account, email_ids, parts, octets, peer, bodies], written without spaces, other
characters than ASCII as \\uXXXX, members of `parts` sorted by name; `at` in microseconds since 1970. Keys go up by one.

Rows past their time are deleted from the old end; what the chain was there is kept as the anchor, and the rest can
still be verified from it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw
import msgspec

NO_DIGEST: Final = bytes(32)

_ALL: Final = (
    "SELECT key, at, agent, token_id, method, account, email_ids, parts, octets, peer, bodies, digest FROM reads "
    "ORDER BY key"
)
# What comes of values that were put there by another hand, and have not even the shape of ours.
_NOT_OURS: Final = (ValueError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the read log as the chain sees it; `at` in microseconds since 1970."""

    key: int
    at: int
    agent: str
    token_id: str
    method: str
    account: str
    email_ids: Sequence[str]
    parts: Mapping[str, Sequence[str]]
    octets: int
    peer: str
    bodies: int

    def digest(self, previous: bytes) -> bytes:
        """Return the digest of this row after another."""
        content = [
            self.key,
            self.at,
            self.agent,
            self.token_id,
            self.method,
            self.account,
            list(self.email_ids),
            {name: list(parts) for name, parts in self.parts.items()},
            self.octets,
            self.peer,
            self.bodies,
        ]
        return hashlib.sha256(previous + _canonical(content)).digest()


def _canonical(content: list[Any]) -> bytes:
    encoded = msgspec.json.encode(content, order="sorted")
    # Ten times faster, and the same octets but for what it leaves as it is: DEL, and all that is not ASCII.
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    return json.dumps(content, separators=(",", ":"), sort_keys=True).encode()


@dataclass(frozen=True, slots=True)
class Link:
    """A place in the chain: a row's key (0 before the first) and its digest."""

    key: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Verified:
    """What a look at the whole chain found; `wrong` is empty where it is whole, else one sentence."""

    rows: int
    anchor: Link
    head: Link
    wrong: str


def head(connection: apsw.Connection) -> Link:
    """Return the last link; inside the transaction that appends, so that two writers never fork the chain."""
    row = connection.execute("SELECT key, digest FROM reads ORDER BY key DESC LIMIT 1").fetchone()
    return anchor(connection) if row is None else Link(int(row[0]), bytes(row[1]))


def anchor(connection: apsw.Connection) -> Link:
    """Return the last link that was pruned, or the one before the first."""
    row = connection.execute("SELECT key, digest FROM anchor").fetchone()
    return Link(0, NO_DIGEST) if row is None else Link(int(row[0]), bytes(row[1]))


def verify(connection: apsw.Connection, expected: Link | None) -> Verified:
    """Walk the chain from its anchor; `expected` is a head that somebody wrote down earlier."""
    try:
        start = anchor(connection)
    except _NOT_OURS:
        none = Link(0, NO_DIGEST)
        return Verified(0, none, none, "the anchor is not what was written")
    wrong, rows, last = "", 0, start
    met = expected is None or expected == start or expected.key < start.key
    for key, *columns, digest in connection.execute(_ALL):
        rows += 1
        if key != last.key + 1:
            wrong = f"between row {last.key} and row {key} rows are missing"
        elif not _is_as_written(key, columns, last.digest, digest):
            wrong = f"row {key} is not what was written"
        if wrong:
            break
        last = Link(key, digest)
        met = met or last == expected
    if not wrong:
        made = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'reads'").get
        if int(made or 0) > last.key:
            wrong = f"rows after row {last.key} are missing"
        elif not met:
            wrong = "the head that was written down is not in this chain"
    return Verified(rows, start, last, wrong)


def _is_as_written(key: int, columns: Sequence[Any], previous: bytes, digest: object) -> bool:
    at, agent, token_id, method, account, email_ids, parts, octets, peer, bodies = columns
    try:
        ids, of_ids = json.loads(email_ids), json.loads(parts)
        return (
            Row(key, at, agent, token_id, method, account, ids, of_ids, octets, peer, bodies).digest(previous) == digest
        )
    except _NOT_OURS:
        return False
