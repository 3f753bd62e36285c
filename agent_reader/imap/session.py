"""A signed-in connection that can only look: mailboxes, UIDs, flags and octets.

One thread uses it (`interrupt` apart). Each answer NO or BAD is `Refused` and the connection lives; anything else that
goes wrong finishes it: `ImapFailure`.
"""

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Self

from imapclient import imap_utf7
from imapclient.exceptions import IMAPClientError

from agent_reader.errors import Refused
from agent_reader.imap import answers
from agent_reader.imap.answers import Record
from agent_reader.imap.values import Examined, FetchedMessage, ListedMailbox, MessageState, ThreadHeader
from agent_reader.imap.verbs import CLIENT_NAME, READER_TABLE, THREAD_FIELDS
from shared.identity import MAX_MESSAGE_OCTETS
from shared.imap_guard import GuardRefusal
from shared.imap_login import READ_SECONDS, GuardedClient, ImapFailure, ImapLogin, connect, protocol_failure

# Dovecot refuses an argument over 64 KiB and the guard a line over 60 KiB; a set of UIDs stays well below.
_MOST_SET_OCTETS: Final = 40_000
# imaplib ends the connection at a line over 1,000,000 octets; this many UIDs of ten digits fill 550,000.
_MOST_UIDS_A_LINE: Final = 50_000
# A large message comes in pieces, so that one read never holds more than this and a lost line costs little.
_PIECE_OCTETS: Final = 1024 * 1024
# Of a message too large to be read whole, only the header is kept; a header is never this large honestly.
_MOST_HEADER_OCTETS: Final = 1024 * 1024


class ReadOnlySession:
    """One connection to one account."""

    def __init__(self, client: GuardedClient, where: str) -> None:
        self._client = client
        self._imap = client._imap  # noqa: SLF001 - imapclient has no way to send what it cannot parse
        self._where = where
        # imaplib takes READ-ONLY for an accident otherwise.
        self._imap.is_readonly = True
        self._wire_names: dict[str, str] = {}
        self._condstore = False

    @classmethod
    def open(cls, login: ImapLogin, read_seconds: float = READ_SECONDS) -> Self:
        """Connect and sign in. Raises `ImapFailure`, and `ConfigurationError` for a secret that cannot be read."""
        where = f"{login.user} at {login.host}:{login.port}"
        client = connect(login, READER_TABLE, read_seconds)
        session = cls(client, where)
        session._introduce()
        return session

    def close(self) -> None:
        """Drop the connection; never raises."""
        self._client.close_connection()

    def log_out(self) -> None:
        """Say LOGOUT and drop the connection; never raises."""
        with contextlib.suppress(Refused, ImapFailure):
            self._ask("LOGOUT")
        self.close()

    def interrupt(self) -> None:
        """End whatever the session's own thread waits for, from another thread; its call raises `ImapFailure`."""
        self._client.break_off()

    def list_mailboxes(self) -> list[ListedMailbox]:
        """List every mailbox of every namespace. Raises `Refused`, `ImapFailure`."""
        lines = {line.name: line for line in self._list("*")}
        for prefix in self._namespace_prefixes():
            # RFC 2342: some servers show other namespaces only to those who ask for each.
            with contextlib.suppress(Refused):
                lines = {line.name: line for line in self._list(prefix + "*")} | lines
        subscribed = self._subscribed(lines)
        self._wire_names = {name: line.wire for name, line in lines.items()}
        return [
            ListedMailbox(line.name, line.delimiter, line.attributes, line.name in subscribed)
            for line in lines.values()
        ]

    def examine(self, name: str) -> Examined:
        """Open a mailbox by EXAMINE (RFC 9051 §6.3.3). Raises `Refused`, `ImapFailure`."""
        # RFC 9051 §6.3.2: a refused EXAMINE leaves no mailbox open.
        self._imap.state = "AUTH"
        self._ask("EXAMINE", self._quoted(name))
        self._imap.state = "SELECTED"
        seen: Mapping[str, list[Record]] = dict(self._imap.untagged_responses)
        uidvalidity = answers.leading_number(seen.get("UIDVALIDITY", ()))
        if uidvalidity is None or "READ-WRITE" in seen:
            raise Refused("EXAMINE", "BAD", "the server gave no UIDVALIDITY, or opened the mailbox for writing")
        uidnext = answers.leading_number(seen.get("UIDNEXT", ()))
        mailbox_id = seen.get("MAILBOXID", [b""])[-1]
        return Examined(
            uidvalidity,
            uidnext if uidnext is not None else self._uidnext(name),
            answers.leading_number(seen.get("EXISTS", ())) or 0,
            answers.leading_number(seen.get("HIGHESTMODSEQ", ())) if self._condstore else None,
            mailbox_id.strip(b"()").decode("ascii", "replace")
            if isinstance(mailbox_id, bytes) and mailbox_id
            else None,
        )

    def unselect(self) -> None:
        """Leave the mailbox where the server can (RFC 3691); CLOSE is not in the table."""
        if self._client.has_capability("UNSELECT") and self._imap.state == "SELECTED":
            self._ask("UNSELECT")
            self._imap.state = "AUTH"

    def uids(self, examined: Examined) -> list[int]:
        """Return every UID of the open mailbox, ascending. A server may leave some out: see `states_of`."""
        if examined.exists == 0:
            return []
        if self._client.has_capability("ESEARCH"):
            self._ask("UID SEARCH", "RETURN (ALL)", "ALL")
            found = answers.esearch_uids(self._untagged("ESEARCH"))
            return sorted(set(found if found is not None else answers.search_uids(self._untagged("SEARCH"))))
        if examined.exists <= _MOST_UIDS_A_LINE:
            self._ask("UID SEARCH", "ALL")
            return sorted(set(answers.search_uids(self._untagged("SEARCH"))))
        windows = (
            self._uids_between(low, low + _MOST_UIDS_A_LINE - 1)
            for low in range(1, examined.uidnext, _MOST_UIDS_A_LINE)
        )
        return sorted({uid for window in windows for uid in window})

    def all_states(self, examined: Examined) -> dict[int, MessageState]:
        """Return flags of every message of the open mailbox by UID.

        Raises `Refused` where fewer answer than EXAMINE counted and none was expunged meanwhile.
        """
        found = self._states("1:*", "") if examined.exists else {}
        if len(found) < examined.exists and not {"EXPUNGE", "VANISHED"} & self._imap.untagged_responses.keys():
            raise Refused("UID FETCH", "OK", f"{len(found)} messages answered of {examined.exists}")
        return found

    def changed_since(self, modseq: int) -> dict[int, MessageState]:
        """Return flags of the messages that changed after this MODSEQ (RFC 7162 §3.1.4)."""
        return self._states("1:*", f"(CHANGEDSINCE {modseq})")

    def states_of(self, uids: Collection[int]) -> dict[int, MessageState]:
        """Return flags of these messages; those that are gone do not answer."""
        wanted, found = set(uids), dict[int, MessageState]()
        for uid_set in answers.uid_sets(wanted, _MOST_SET_OCTETS):
            found |= self._states(uid_set, "")
        return {uid: state for uid, state in found.items() if uid in wanted}

    def sizes(self, uids: Sequence[int]) -> dict[int, int]:
        """Return the size in octets that the server states for these messages."""
        found: dict[int, int] = {}
        for uid_set in answers.uid_sets(uids, _MOST_SET_OCTETS):
            for uid, items in self._fetch(uid_set, "(RFC822.SIZE)").items():
                size = items.get(b"RFC822.SIZE")
                if isinstance(size, int):
                    found[uid] = size
        return {uid: found[uid] for uid in uids if uid in found}

    def fetch_messages(self, uids: Sequence[int]) -> dict[int, FetchedMessage]:
        """Fetch whole messages in one command; what the server does not give whole is left out."""
        wanted, messages = set(uids), dict[int, FetchedMessage]()
        for uid_set in answers.uid_sets(uids, _MOST_SET_OCTETS):
            for uid, items in self._fetch(uid_set, f"({self._about()} BODY.PEEK[])").items():
                octets = items.get(b"BODY[]")
                if uid in wanted and isinstance(octets, bytes) and (message := _message(uid, items, octets)):
                    messages[uid] = message
        return messages

    def pieces(self, uid: int) -> Iterator[bytes]:
        """Yield the octets of one message of the open mailbox, at most 1 MiB at a time; nothing where it is gone.

        RFC 9051 §6.4.5 partial. Raises `Refused`, `ImapFailure`.
        """
        offset = 0
        while piece := self._piece(uid, "", offset):
            yield piece
            if len(piece) < _PIECE_OCTETS:
                return
            offset += len(piece)

    def fetch_large(self, uid: int) -> FetchedMessage | None:
        """Fetch one message in pieces; past `MAX_MESSAGE_OCTETS`, whatever size was stated, its header only."""
        octets = self._in_pieces(uid, "", MAX_MESSAGE_OCTETS)
        if octets is not None and len(octets) > MAX_MESSAGE_OCTETS:
            return self.fetch_header(uid)
        items = self._fetch(str(uid), f"({self._about()})").get(uid)
        return _message(uid, items, octets) if items is not None and octets is not None else None

    def fetch_header(self, uid: int) -> FetchedMessage | None:
        """Fetch the header of one message; for those too large to be read whole."""
        header = self._in_pieces(uid, "HEADER", _MOST_HEADER_OCTETS)
        items = self._fetch(str(uid), f"({self._about()})").get(uid)
        if items is None or header is None:
            return None
        return _message(uid, items, None, header[:_MOST_HEADER_OCTETS])

    def thread_headers(self, uids: Sequence[int]) -> list[ThreadHeader]:
        """Fetch what threads these messages of the open mailbox; one that the server gives no date of is left out."""
        found: list[ThreadHeader] = []
        for uid_set in answers.uid_sets(uids, _MOST_SET_OCTETS):
            for uid, items in self._fetch(uid_set, f"(INTERNALDATE {THREAD_FIELDS})").items():
                internaldate = answers.internaldate_of(items)
                # RFC 9051 §7.5.2: the server writes the fields' names anew, some in another way.
                header = next((value for item, value in items.items() if item.startswith(b"BODY[HEADER.FIELDS")), None)
                if internaldate is not None:
                    found.append(ThreadHeader(uid, internaldate, header if isinstance(header, bytes) else b""))
        return found

    def _introduce(self) -> None:
        self._client.normalise_times = False
        if self._client.has_capability("ID"):
            with contextlib.suppress(Refused):
                self._ask("ID", f'("name" "{CLIENT_NAME}")')
        if self._client.has_capability("ENABLE") and self._client.has_capability("CONDSTORE"):
            with contextlib.suppress(Refused):
                self._ask("ENABLE", "CONDSTORE")
                # Believed only if the server says so: some list it and then do not enable it.
                said = [record for record in self._untagged("ENABLED") if isinstance(record, bytes)]
                self._condstore = any(b"CONDSTORE" in line.upper().split() for line in said)

    def _list(self, pattern: str) -> list[answers.ListLine]:
        extended = self._client.has_capability("LIST-EXTENDED")
        special = " SPECIAL-USE" if self._client.has_capability("SPECIAL-USE") else ""
        returned = (f"RETURN (SUBSCRIBED{special})",) if extended else ()
        self._ask("LIST", '""', _quoted(imap_utf7.encode(pattern)), *returned)
        return list(answers.list_lines(self._untagged("LIST")))

    def _namespace_prefixes(self) -> list[str]:
        if not self._client.has_capability("NAMESPACE"):
            return []
        try:
            self._ask("NAMESPACE")
        except Refused:
            return []
        return answers.namespace_prefixes(self._untagged("NAMESPACE"))

    def _subscribed(self, lines: Mapping[str, answers.ListLine]) -> set[str]:
        if self._client.has_capability("LIST-EXTENDED"):
            return {name for name, line in lines.items() if "\\Subscribed" in line.attributes}
        try:
            self._ask("LSUB", '""', '"*"')
        except Refused:
            return set()
        return {line.name for line in answers.list_lines(self._untagged("LSUB"))}

    def _uidnext(self, name: str) -> int:
        # Courier's EXAMINE does not say; RFC 9051 §6.3.11 lets STATUS be asked.
        self._ask("STATUS", self._quoted(name), "(UIDNEXT)")
        records = self._untagged("STATUS")
        uidnext = answers.status_number(records, b"UIDNEXT")
        if uidnext is None:
            raise Refused("STATUS", "BAD", "the server gives no UIDNEXT")
        return uidnext

    def _uids_between(self, low: int, high: int) -> list[int]:
        self._ask("UID SEARCH", "UID", f"{low}:{high}")
        return answers.search_uids(self._untagged("SEARCH"))

    def _states(self, uid_set: str, changed_since: str) -> dict[int, MessageState]:
        items = "(FLAGS MODSEQ)" if self._condstore else "(FLAGS)"
        self._ask("UID FETCH", uid_set, items, *((changed_since,) if changed_since else ()))
        with self._reading():
            return answers.states(self._untagged("FETCH"))

    def _fetch(self, uid_set: str, items: str) -> dict[int, dict[bytes, Any]]:
        self._ask("UID FETCH", uid_set, items)
        with self._reading():
            return answers.fetched(self._untagged("FETCH"))

    def _about(self) -> str:
        return "FLAGS INTERNALDATE RFC822.SIZE" + (" MODSEQ" if self._condstore else "")

    def _in_pieces(self, uid: int, section: str, most: int) -> bytes | None:
        """Everything, or the first octets past `most`, or None where the server does not answer with it."""
        octets = bytearray()
        while len(octets) <= most:
            piece = self._piece(uid, section, len(octets))
            if piece is None:
                return bytes(octets) if octets else None
            octets += piece
            if len(piece) < _PIECE_OCTETS:
                break
        return bytes(octets)

    def _piece(self, uid: int, section: str, offset: int) -> bytes | None:
        items = self._fetch(str(uid), f"(BODY.PEEK[{section}]<{offset}.{_PIECE_OCTETS}>)").get(uid, {})
        piece = items.get(f"BODY[{section}]<{offset}>".encode())
        # RFC 9051 §6.4.5: past the end the string is empty; some servers say NIL.
        return piece if isinstance(piece, bytes) else None

    def _quoted(self, name: str) -> str:
        wire = self._wire_names.get(name)
        return _quoted(wire.encode("ascii") if wire is not None else imap_utf7.encode(name))

    def _untagged(self, name: str) -> list[Record]:
        records: list[Record] = self._imap.untagged_responses.pop(name, [])
        return records

    def _ask(self, verb: str, *arguments: str) -> None:
        """Say one command; what came untagged lies in `_untagged`."""
        with self._reading():
            # What came before this command, unasked, belongs to no question; a full look finds it again.
            self._imap.untagged_responses.clear()
            tag = self._imap._command(*verb.split(" "), *arguments)  # noqa: SLF001 - see __init__
            status, data = self._imap._get_tagged_response(tag)  # noqa: SLF001 - see __init__
            self._imap._check_bye()  # noqa: SLF001 - see __init__
        if status != "OK":
            raise Refused(verb, status, _text(data))

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (IMAPClientError, OSError, ValueError, IndexError, TypeError, OverflowError, MemoryError) as error:
            # The library was somewhere inside an answer: nothing that follows on this connection can be trusted.
            self.close()
            raise protocol_failure(self._where, error) from None
        except GuardRefusal:
            self.close()
            raise


def _message(
    uid: int, items: Mapping[bytes, Any], octets: bytes | None, header: bytes | None = None
) -> FetchedMessage | None:
    internaldate = answers.internaldate_of(items)
    if internaldate is None or b"FLAGS" not in items:
        return None
    stated = items.get(b"RFC822.SIZE")
    if octets is None:
        size = stated if isinstance(stated, int) else 0
        return FetchedMessage(uid, answers.state_of(items), internaldate, size, None, header or b"")
    # RFC822.SIZE is an estimate on some servers; the octets are not.
    return FetchedMessage(uid, answers.state_of(items), internaldate, len(octets), octets, _header_of(octets))


def _header_of(octets: bytes) -> bytes:
    ends = [at + len(mark) for mark in (b"\r\n\r\n", b"\n\n") if (at := octets.find(mark)) >= 0]
    return octets[: min(ends)] if ends else octets


def _quoted(wire: bytes) -> str:
    return '"' + wire.decode("ascii").replace("\\", "\\\\").replace('"', '\\"') + '"'


def _text(data: Sequence[bytes | None]) -> str:
    return b" ".join(part for part in data if isinstance(part, bytes)).decode("ascii", "replace")
