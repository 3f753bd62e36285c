"""A signed-in connection: commands said one by one, mailboxes listed and opened by EXAMINE.

One thread uses it (`interrupt` apart). Each answer NO or BAD is `Refused` and the connection lives; anything else that
goes wrong finishes it: `ImapFailure`.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Self

from imapclient import imap_utf7
from imapclient.exceptions import IMAPClientError

from agent_reader.errors import Refused, Throttled
from agent_reader.imap import answers
from agent_reader.imap.answers import Record
from agent_reader.imap.uid_ranges import UidRanges
from agent_reader.imap.values import Examined, ListedMailbox, MailboxStatus, Resync
from shared.imap_guard import GuardRefusal
from shared.imap_login import READ_SECONDS, GuardedClient, ImapFailure, ImapLogin, connect, protocol_failure
from shared.reader_verbs import CLIENT_NAME, LISTED_STATUS, READER_TABLE

# What a server says unasked of the open mailbox that is news. RECENT and FLAGS come with EXISTS, or tell nothing.
NEWS_OF_THE_MAILBOX: Final = frozenset({"EXISTS", "EXPUNGE", "VANISHED", "FETCH"})
# Each in the order of trust: what ENABLED names is on, and the second comes with the first (RFC 7162 §3.2.3).
_ENABLING: Final = ("QRESYNC", "CONDSTORE")


class Connection:
    """One connection to one account."""

    def __init__(self, client: GuardedClient, where: str) -> None:
        self._client = client
        self._imap = client._imap  # noqa: SLF001 - imapclient has no way to send what it cannot parse
        self._where = where
        self._is_finished = False
        self._open_mailbox: str | None = None
        self._wire_names: dict[str, str] = {}
        self._prefixes: list[str] | None = None
        self._condstore = False
        self._qresync = False

    @classmethod
    def open(cls, login: ImapLogin, read_seconds: float = READ_SECONDS) -> Self:
        """Connect and sign in. Raises `ImapFailure`, and `ConfigurationError` for a secret that cannot be read."""
        where = f"{login.user} at {login.host}:{login.port}"
        client = connect(login, READER_TABLE, read_seconds)
        connection = cls(client, where)
        connection._introduce()
        return connection

    def close(self) -> None:
        """Drop the connection; never raises."""
        self._is_finished = True
        self._client.close_connection()

    def log_out(self) -> None:
        """Say LOGOUT and drop the connection; never raises."""
        with contextlib.suppress(Refused, ImapFailure):
            self._ask("LOGOUT")
        self.close()

    def interrupt(self) -> None:
        """End whatever the connection's own thread waits for, from another thread; its call raises `ImapFailure`."""
        self._client.break_off()

    def can(self, capability: str) -> bool:
        """Whether the server lists a capability after login."""
        return bool(self._client.has_capability(capability))

    @property
    def lists_status(self) -> bool:
        """Whether LIST can tell how each mailbox stands (RFC 5819), by mod-sequences that are on."""
        return self._condstore and self.can("LIST-EXTENDED") and self.can("LIST-STATUS")

    @property
    def open_mailbox(self) -> str | None:
        """The name of the mailbox that is open."""
        return self._open_mailbox

    @property
    def octets_received(self) -> int:
        """How many octets the server sent so far."""
        return self._client.octets_received

    def list_mailboxes(self, *, with_status: bool = False) -> list[ListedMailbox]:
        """List every mailbox of every namespace. Raises `Refused`, `ImapFailure`.

        `with_status`: how each stands is asked in the same breath, where the server can.
        """
        returned = self._list_options(with_status=with_status)
        lines, statuses = self._list("*", returned)
        for prefix in self._namespace_prefixes():
            # RFC 2342: some servers show other namespaces only to those who ask for each.
            with contextlib.suppress(Refused):
                of_others, others = self._list(prefix + "*", returned)
                lines, statuses = of_others | lines, others | statuses
        subscribed = self._subscribed(lines)
        self._wire_names = {name: line.wire for name, line in lines.items()}
        return [
            ListedMailbox(line.name, line.delimiter, line.attributes, line.name in subscribed, statuses.get(line.name))
            for line in lines.values()
        ]

    def examine(self, name: str) -> Examined:
        """Open a mailbox by EXAMINE (RFC 9051 §6.3.3). Raises `Refused`, `ImapFailure`."""
        return self._examine(name)

    def examine_since(self, name: str, uidvalidity: int, modseq: int) -> tuple[Examined, Resync | None]:
        """Open a mailbox and learn in the same breath what happened since then (RFC 7162 §3.2.5).

        None where the server cannot, or where it says that the mailbox is not what it was. Raises as `examine`.
        """
        if not self._qresync:
            return self._examine(name), None
        examined = self._examine(name, f"(QRESYNC ({uidvalidity} {modseq}))")
        if examined.uidvalidity != uidvalidity or (examined.highestmodseq or 0) < modseq:
            return examined, None
        with self._reading():
            return examined, Resync(answers.states(self._untagged("FETCH")), self._vanished())

    def refresh(self) -> bool:
        """Let the server see what happened in the open mailbox (NOOP, RFC 9051 §6.1.2); whether it tells of anything.

        STATUS of an open mailbox may be of when it was opened, or last refreshed.
        """
        self._ask("NOOP")
        return not NEWS_OF_THE_MAILBOX.isdisjoint(self._imap.untagged_responses)

    def unselect(self) -> None:
        """Leave the mailbox where the server can (RFC 3691); CLOSE is not in the table."""
        if self._open_mailbox is not None and self.can("UNSELECT"):
            self._ask("UNSELECT")
            self._open_mailbox = None

    def _introduce(self) -> None:
        if self.can("ID"):
            with contextlib.suppress(Refused):
                self._ask("ID", f'("name" "{CLIENT_NAME}")')
        if not self.can("ENABLE"):
            return
        for extension in _ENABLING:
            if self.can(extension) and not self._condstore:
                with contextlib.suppress(Refused):
                    self._ask("ENABLE", extension)
                    # Believed only if the server says so: some list it and then do not enable it.
                    said = [record for record in self._untagged("ENABLED") if isinstance(record, bytes)]
                    enabled = {word for line in said for word in line.upper().split()}
                    self._qresync = self._qresync or b"QRESYNC" in enabled
                    self._condstore = self._qresync or b"CONDSTORE" in enabled

    def _examine(self, name: str, parameter: str = "") -> Examined:
        # RFC 9051 §6.3.2: a refused EXAMINE leaves no mailbox open.
        self._open_mailbox = None
        self._ask("EXAMINE", self._quoted(name), *((parameter,) if parameter else ()))
        self._open_mailbox = name
        seen: Mapping[str, list[Record]] = dict(self._imap.untagged_responses)
        uidvalidity = answers.leading_number(seen.get("UIDVALIDITY", ()))
        if uidvalidity is None or "READ-WRITE" in seen:
            raise Refused("EXAMINE", "BAD", "the server gave no UIDVALIDITY, or opened the mailbox for writing")
        uidnext = answers.leading_number(seen.get("UIDNEXT", ()))
        mailbox_id = seen.get("MAILBOXID", [b""])[-1]
        highestmodseq = answers.leading_number(seen.get("HIGHESTMODSEQ", ())) if self._condstore else None
        return Examined(
            uidvalidity,
            uidnext if uidnext is not None else self._uidnext(name),
            answers.leading_number(seen.get("EXISTS", ())) or 0,
            # RFC 7162 §3.1.2.2: NOMODSEQ; a server that says 0 means the same.
            highestmodseq or None,
            mailbox_id.strip(b"()").decode("ascii", "replace")
            if isinstance(mailbox_id, bytes) and mailbox_id
            else None,
        )

    def _vanished(self) -> UidRanges:
        sets = (record for record in self._untagged("VANISHED") if isinstance(record, bytes))
        return UidRanges.parsed(words[-1] for record in sets if (words := record.split()))

    def _list_options(self, *, with_status: bool) -> tuple[str, ...]:
        if not self.can("LIST-EXTENDED"):
            return ()
        options = ["SUBSCRIBED"]
        if self.can("SPECIAL-USE"):
            options.append("SPECIAL-USE")
        if with_status and self.lists_status:
            options.append(LISTED_STATUS)
        return (f"RETURN ({' '.join(options)})",)

    def _list(
        self, pattern: str, returned: Sequence[str]
    ) -> tuple[dict[str, answers.ListLine], dict[str, MailboxStatus]]:
        self._ask("LIST", '""', _quoted(imap_utf7.encode(pattern)), *returned)
        lines = {line.name: line for line in answers.list_lines(self._untagged("LIST"))}
        return lines, answers.statuses(self._untagged("STATUS"))

    def _namespace_prefixes(self) -> list[str]:
        # RFC 2342 §5: they are of the login; asked once a connection, and not in each round.
        if self._prefixes is None:
            self._prefixes = []
            if self.can("NAMESPACE"):
                with contextlib.suppress(Refused):
                    self._ask("NAMESPACE")
                    self._prefixes = answers.namespace_prefixes(self._untagged("NAMESPACE"))
        return self._prefixes

    def _subscribed(self, lines: Mapping[str, answers.ListLine]) -> set[str]:
        if self.can("LIST-EXTENDED"):
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

    def _quoted(self, name: str) -> str:
        wire = self._wire_names.get(name)
        return _quoted(wire.encode("ascii") if wire is not None else imap_utf7.encode(name))

    def _untagged(self, name: str) -> list[Record]:
        records: list[Record] = self._imap.untagged_responses.pop(name, [])
        return records

    def _ask(self, verb: str, *arguments: str) -> None:
        """Say one command; what came untagged lies in `_untagged`."""
        with self._reading():
            status, data = self._answer(self._say(verb, *arguments))
        if status != "OK":
            raise Refused(verb, status, text_of(data))

    def _say(self, verb: str, *arguments: str) -> bytes:
        if self._is_finished:
            raise ConnectionResetError("the connection is finished")
        # What came before this command, unasked, belongs to no question; a full look finds it again.
        self._imap.untagged_responses.clear()
        tag: bytes = self._imap._new_tag()  # noqa: SLF001 - see __init__
        # Not the library's own sending: it knows no NOTIFY, and takes a mailbox that is read-only for an accident.
        self._imap.send(b" ".join([tag, *(word.encode("ascii") for word in (verb, *arguments))]) + b"\r\n")
        return tag

    def _answer(self, tag: bytes) -> tuple[str, Sequence[bytes | None]]:
        status, data = self._imap._get_tagged_response(tag)  # noqa: SLF001 - see __init__
        if not isinstance(status, str):
            raise IMAPClientError("an answer without a status")
        self._imap._check_bye()  # noqa: SLF001 - see __init__
        return status, data

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (IMAPClientError, OSError, ValueError, IndexError, TypeError, OverflowError, MemoryError) as error:
            # The library was somewhere inside an answer: nothing that follows on this connection can be trusted.
            self.close()
            if Throttled.is_meant_by(str(error)):
                raise Throttled(f"{self._where}: the server ended the connection", str(error)) from None
            raise protocol_failure(self._where, error) from None
        except GuardRefusal:
            self.close()
            raise


def _quoted(wire: bytes) -> str:
    return '"' + wire.decode("ascii").replace("\\", "\\\\").replace('"', '\\"') + '"'


def text_of(data: Sequence[bytes | None]) -> str:
    """Return the words of a tagged answer."""
    return b" ".join(part for part in data if isinstance(part, bytes)).decode("ascii", "replace")
