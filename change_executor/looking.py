"""Looking at mailboxes and messages, and changing nothing: EXAMINE, STATUS, UID FETCH with BODY.PEEK.

A message is known by the SHA-256 of its octets alone: never by its Message-ID or another text that its sender chose.
"""

import hashlib
import imaplib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from imapclient.exceptions import IMAPClientAbortError, IMAPClientError, ProtocolError

from change_executor.connections import Connections
from change_executor.errors import MailboxRefused
from change_executor.imap_verbs import LOOK_TABLE
from shared.identity import MAX_MESSAGE_OCTETS
from shared.imap_login import GuardedClient, ImapFailure, ImapLogin, protocol_failure

# Fetching 80 MiB whole took a process to 102 MiB; by pieces of 1 MiB to 24, with the same digest.
PIECE_OCTETS: Final = 1024 * 1024

# What a person is shown is made of the first 8 MiB; the digest covers every octet.
SPOOL_OCTETS: Final = 8 * 1024 * 1024

# \Recent belongs to a session, not to a message (RFC 3501 §2.3.2).
_RECENT: Final = "\\recent"

# What a server's answer can do to the library: numbers that no date reaches, parentheses without end.
_OF_AN_ANSWER: Final = (
    IMAPClientError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)

# RFC 9051 §9 (number): what UIDs and UIDVALIDITYs are below; the UID after the last one may be this.
_NUMBERS_END: Final = 2**32

# RFC 8474 §4.2 and §7: an objectid in parentheses. What is anything else is no identity.
_MAILBOX_ID: Final = re.compile(rb"\(([A-Za-z0-9_-]{1,255})\)")


@dataclass(frozen=True, slots=True)
class OpenedMailbox:
    """What SELECT or EXAMINE said; `uidnext` and RFC 8474's `mailbox_id` are None where the server did not say."""

    uidvalidity: int
    uidnext: int | None
    read_only: bool
    mailbox_id: str | None = None


@dataclass(frozen=True, slots=True)
class MailboxStatus:
    """STATUS of a mailbox."""

    uidvalidity: int
    uidnext: int
    messages: int


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """One message as it lies in a mailbox.

    `sha256` in lower-case hexadecimal over all `size` octets, `internaldate` as RFC 3339 with its offset, `flags` in
    lower case without the session's own (Recent), `spool` the first octets where they were asked for.
    """

    uid: int
    sha256: str
    size: int
    internaldate: str
    flags: frozenset[str]
    spool: bytes


class Looking:
    """A signed-in connection to look through; one thread uses it. Any exception but `MailboxRefused` ends its use.

    Raises `ImapFailure` where the connection breaks or the server answers what it may not.
    """

    def __init__(self, client: GuardedClient, login_id: str) -> None:
        self._client = client
        self._where = f"the login `{login_id}`"
        client.normalise_times = False

    def examine(self, mailbox: str) -> OpenedMailbox:
        """Open a mailbox read-only, or raise `MailboxRefused`."""
        return self._open(mailbox, readonly=True)

    def status(self, mailbox: str) -> MailboxStatus:
        """Ask about a mailbox without opening it, or raise `MailboxRefused`."""
        # Not MAILBOXID: Cyrus 3.6 answers octets of freed memory here, and the right one to EXAMINE.
        with self._named(mailbox), self._answering():
            answer = self._client.folder_status(mailbox, ["MESSAGES", "UIDNEXT", "UIDVALIDITY"])
            return MailboxStatus(
                uidvalidity=_number(answer[b"UIDVALIDITY"]),
                uidnext=_number(answer[b"UIDNEXT"], at_least=1),
                messages=_number(answer[b"MESSAGES"]),
            )

    def fetch(self, uid: int, *, spool: bool = False) -> SeenMessage | None:
        """Read one message of the open mailbox whole, or return None where it is not there.

        A message over `MAX_MESSAGE_OCTETS` is read no further than that; its digest then belongs to no Email id.
        """
        digest, size, head = hashlib.sha256(), 0, bytearray()
        facts: dict[bytes, Any] = {}
        while size <= MAX_MESSAGE_OCTETS:
            item = f"BODY.PEEK[]<{size}.{PIECE_OCTETS}>"
            items = [item] if size else ["FLAGS", "INTERNALDATE", "RFC822.SIZE", item]
            answer = self._fetch_items(uid, items)
            piece = answer.get(f"BODY[]<{size}>".encode())
            if piece is None and not size:
                return None
            # RFC 9051 §6.4.5: past the end the server sends an empty string; some send NIL.
            piece = b"" if piece is None else piece
            if not isinstance(piece, bytes) or len(piece) > PIECE_OCTETS:
                raise self._broken("a body that was not asked for")
            facts = facts or answer
            digest.update(piece)
            size += len(piece)
            if spool:
                head += piece[: SPOOL_OCTETS - len(head)]
            if len(piece) < PIECE_OCTETS:
                break
        if size < PIECE_OCTETS or self.has(uid):
            return self._seen(uid, digest.hexdigest(), size, facts, bytes(head))
        # It vanished while its pieces were fetched, so the digest is of no message.
        return None

    def has(self, uid: int) -> bool:
        """Whether the open mailbox has this UID now."""
        # The size never comes unasked, as flags do: then by sequence number, which imapclient takes for a UID.
        return b"RFC822.SIZE" in self._fetch_items(uid, ["RFC822.SIZE"])

    def uids_from(self, uid: int) -> list[int]:
        """Return the UIDs of the open mailbox from this one on, ascending."""
        with self._answering():
            found = self._client.search(["UID", f"{uid}:*"])
            # RFC 9051 §9 (seq-range): `n:*` always names the last message, even below n.
            return sorted(int(each) for each in found if int(each) >= uid)

    def first_messages(self, count: int) -> list[tuple[int, int, str]]:
        """Return (UID, RFC822.SIZE, INTERNALDATE) of the first messages of the open mailbox."""
        found: list[tuple[int, int, str]] = []
        for uid in self.uids_from(1)[:count]:
            answer = self._fetch_items(uid, ["RFC822.SIZE", "INTERNALDATE"])
            with self._answering():
                if answer:
                    found.append((uid, int(answer[b"RFC822.SIZE"]), _internaldate(answer)))
        return found

    def special_uses(self) -> dict[str, frozenset[str]]:
        """Return the LIST attributes in lower case by mailbox name, for every mailbox that LIST shows."""
        with self._answering():
            listed = self._client.list_folders()
            return {name: frozenset(_text(flag).lower() for flag in flags) for flags, _, name in listed}

    def rights(self, mailbox: str) -> frozenset[str] | None:
        """Return the RFC 4314 rights that the server claims for this login, or None where it does not say."""
        # Courier (ACL2=UNION) leaves `t` and `e` out of what MYRIGHTS answers, whoever has them.
        if not self.has_capability("ACL") or self.has_capability("ACL2=UNION"):
            return None
        with self._answering():
            wire = self._client._normalise_folder(mailbox)  # noqa: SLF001 - imapclient has no MYRIGHTS
            status, answer = self._client._imap.myrights(wire)  # noqa: SLF001 - as above
            if status != "OK" or not answer or not isinstance(answer[0], bytes):
                return None
            return frozenset(answer[0].decode("ascii", "replace").rsplit(" ", 1)[-1])

    def has_capability(self, name: str) -> bool:
        """Whether the server offers this capability to this login."""
        with self._answering():
            return bool(self._client.has_capability(name))

    def _open(self, mailbox: str, *, readonly: bool) -> OpenedMailbox:
        with self._named(mailbox), self._answering():
            answer = self._select_answer(mailbox, readonly=readonly)
            uidnext = answer.get(b"UIDNEXT")
            return OpenedMailbox(
                uidvalidity=_number(answer[b"UIDVALIDITY"]),
                uidnext=None if uidnext is None else _number(uidnext),
                read_only=b"READ-ONLY" in answer,
                mailbox_id=_mailbox_id(answer),
            )

    def _select_answer(self, mailbox: str, *, readonly: bool) -> dict[bytes, Any]:
        connection = self._client._imap  # noqa: SLF001 - imapclient makes an error of READ-ONLY and loses the answer
        try:
            answer: dict[bytes, Any] = self._client.select_folder(mailbox, readonly=readonly)
        except imaplib.IMAP4.readonly:
            answer = self._client._process_select_response(connection.untagged_responses)  # noqa: SLF001 - as above
            # What is open read-only may still be looked at.
            connection.is_readonly = True
        return answer

    def _fetch_items(self, uid: int, items: list[str]) -> dict[bytes, Any]:
        with self._answering():
            answer: dict[bytes, Any] = self._client.fetch([uid], items).get(uid, {})
            return answer

    def _seen(self, uid: int, sha256: str, size: int, facts: dict[bytes, Any], spool: bytes) -> SeenMessage:
        with self._answering():
            return SeenMessage(uid, sha256, size, _internaldate(facts), _flags(facts), spool)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except (*_OF_AN_ANSWER, OSError) as error:
            # Whatever a server's answer does to the library ends here; which answer it was, its log tells.
            raise protocol_failure(self._where, error) from error

    @contextmanager
    def _named(self, mailbox: str) -> Iterator[None]:
        try:
            yield
        except ImapFailure as failure:
            if _is_refusal(failure.__cause__):
                raise MailboxRefused(mailbox) from failure
            raise

    def _broken(self, what: str) -> ImapFailure:
        return protocol_failure(self._where, IMAPClientError(what))


class Looker:
    """Opens sessions that can look and nothing else."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @contextmanager
    def session(self, login: ImapLogin) -> Iterator[Looking]:
        """Sign in with the table of looking; raises `ImapFailure` or `shared.settings.ConfigurationError`."""
        with self._connections.opened(login, LOOK_TABLE) as client:
            yield Looking(client, login.id)


def _is_refusal(error: BaseException | None) -> bool:
    # NO is an answer; BYE, EOF and nonsense are abort or ProtocolError, which to imaplib are kinds of error too.
    return isinstance(error, IMAPClientError) and not isinstance(error, (IMAPClientAbortError, ProtocolError))


def _number(untrusted: Any, *, at_least: int = 0) -> int:  # noqa: ANN401 - whatever the library made of an answer
    number = int(untrusted)
    if not at_least <= number <= _NUMBERS_END:
        raise ValueError("a number that IMAP does not have")
    return number


def _mailbox_id(answer: dict[bytes, Any]) -> str | None:
    found = _MAILBOX_ID.fullmatch(answer.get(b"MAILBOXID", [b""])[0])
    return None if found is None else found[1].decode("ascii")


def _internaldate(answer: dict[bytes, Any]) -> str:
    date = answer[b"INTERNALDATE"]
    if not isinstance(date, datetime) or date.tzinfo is None:
        raise ValueError("INTERNALDATE is not a date with a zone")
    return date.isoformat()


def _flags(answer: dict[bytes, Any]) -> frozenset[str]:
    return frozenset(_text(flag).lower() for flag in answer[b"FLAGS"]) - {_RECENT}


def _text(untrusted: bytes | str | int) -> str:
    return untrusted.decode("utf-8", "replace") if isinstance(untrusted, bytes) else str(untrusted)
