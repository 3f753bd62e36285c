"""One round over an account: lists the mailboxes, looks at each, and settles when none was left out.

Interrupted anywhere it goes on where it was: each batch is in the mirror whole before the next is asked for.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from structlog.typing import FilteringBoundLogger

from agent_reader.errors import Refused
from agent_reader.imap.session import ReadOnlySession
from agent_reader.imap.values import ListedMailbox
from agent_reader.sync.first_look import first_look
from agent_reader.sync.look import Counts, Look, Memory
from agent_reader.sync.mirror import KnownMailbox, Mirror
from shared.imap_login import ImapFailure

# The login may not open it, or it is not there any more: waiting changes nothing (RFC 5530 §3).
_DEFINITE: Final = frozenset({"NOPERM", "NONEXISTENT"})


@dataclass(frozen=True, slots=True)
class Round:
    """How a round went: `whole` when every mailbox was looked at; `missing` are configured names that are not there."""

    whole: bool
    taken_in: int
    changed: int
    vanished: int
    set_aside: int
    missing: tuple[str, ...]


class _Outcome(Enum):
    DONE = auto()
    PENDING = auto()
    NOT_OURS = auto()


class Sync:
    """Keeps one account's mirror equal to the server, round by round; one thread uses it.

    `allowed` are the mailbox names to read, None means all. `restart_all`: this login was never seen with this mirror,
    so UIDs that are known may mean other messages.
    """

    def __init__(
        self, mirror: Mirror, allowed: Collection[str] | None, log: FilteringBoundLogger, *, restart_all: bool = False
    ) -> None:
        self._mirror, self._log = mirror, log
        self._allowed = None if allowed is None else frozenset(_canonical(name) for name in allowed)
        self._memories = {mailbox.id: Memory(trusted=not restart_all) for mailbox in mirror.mailboxes()}

    def listing(self, session: ReadOnlySession) -> list[ListedMailbox]:
        """Return the mailboxes to read. Raises `Refused`, `ImapFailure`."""
        listed = session.list_mailboxes()
        if not listed:
            # INBOX is always there (RFC 9051 §5.1): an empty list is a fault, and must not empty the mirror.
            raise ImapFailure(
                "protocol",
                "The server listed no mailbox at all.",
                "It is tried again by itself; if it stays, look at the rights of this login.",
                retryable=True,
            )
        return [mailbox for mailbox in listed if self._allowed is None or mailbox.name in self._allowed]

    def missing(self, listing: Iterable[ListedMailbox]) -> list[str]:
        """Return the configured mailbox names that are not listed."""
        return sorted((self._allowed or frozenset()) - {mailbox.name for mailbox in listing})

    def round(self, session: ReadOnlySession) -> Round:
        """Look at every mailbox once, and settle when none was left out.

        Raises `ImapFailure` when the connection ends or the server wants to be left alone, `Refused` when mailboxes
        cannot be listed.
        """
        counts = Counts()
        listing = self.listing(session)
        self._mirror.put_mailboxes(listing)
        mailboxes = [mailbox for mailbox in self._mirror.mailboxes() if mailbox.selectable]
        if not self._mirror.is_threaded():
            first_look(session, self._mirror, mailboxes, self._refused_first)
        outcomes = [self._look(session, mailbox, counts) for mailbox in mailboxes]
        session.unselect()
        whole = _Outcome.PENDING not in outcomes
        if whole:
            self._mirror.settle()
        else:
            self._mirror.release_overdue()
        missing = tuple(self.missing(listing))
        return Round(whole, counts.taken_in, counts.changed, counts.vanished, counts.set_aside, missing)

    def _look(self, session: ReadOnlySession, mailbox: KnownMailbox, counts: Counts) -> _Outcome:
        memory = self._memories.setdefault(mailbox.id, Memory())
        try:
            examined = session.examine(mailbox.name)
        except Refused as refusal:
            self._report(mailbox, memory, refusal)
            # What was never seen holds back nothing.
            is_ours = mailbox.uidvalidity is not None and refusal.code not in _DEFINITE
            return _Outcome.PENDING if is_ours else _Outcome.NOT_OURS
        self._mirror.expect(mailbox.id, examined.exists)
        try:
            complete = Look(session, self._mirror, mailbox, examined, memory, counts).perform()
        except Refused as refusal:
            self._report(mailbox, memory, refusal)
            return _Outcome.PENDING
        if complete:
            memory.said = None
        return _Outcome.DONE if complete else _Outcome.PENDING

    def _refused_first(self, mailbox: KnownMailbox, refusal: Refused) -> None:
        self._report(mailbox, self._memories.setdefault(mailbox.id, Memory()), refusal)

    def _report(self, mailbox: KnownMailbox, memory: Memory, refusal: Refused) -> None:
        if refusal.is_throttling:
            raise ImapFailure(
                "throttled",
                f"The server wants to be left alone for a while ({refusal}).",
                "Nothing needs to be done; it is tried again later, less and less often.",
                retryable=True,
            )
        # Said once, not each round.
        if memory.said != str(refusal):
            memory.said = str(refusal)
            self._mirror.mailbox_failed(
                mailbox.id,
                refusal.code.lower() or "refused",
                f"The server answered {refusal}.",
                "If it stays, look at the rights of this login on that mailbox; the other mailboxes are read.",
            )
            self._log.warning("mailbox:refused", mailbox=mailbox.name, verb=refusal.verb, answer=refusal.text)


def _canonical(name: str) -> str:
    # RFC 9051 §5.1: INBOX is one name in any case.
    return "INBOX" if name.upper() == "INBOX" else name
