"""One round over an account: lists the mailboxes, catches up with each, takes in what is missing, newest first.

Interrupted anywhere it goes on where it was: each batch is in the mirror whole before the next is asked for.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from structlog.typing import FilteringBoundLogger

from agent_reader.errors import Refused, Throttled
from agent_reader.imap.session import ReadOnlySession
from agent_reader.imap.values import ListedMailbox, canonical_name
from agent_reader.sync.ahead import Ahead
from agent_reader.sync.first_look import first_look
from agent_reader.sync.intake import Intake
from agent_reader.sync.look import Counts, Look, Memory
from agent_reader.sync.mirror import KnownMailbox, Mirror
from agent_reader.sync.order import choose
from agent_reader.sync.sameness import Sameness
from agent_reader.sync.terms import Terms
from shared.imap_login import ImapFailure

# The login may not open it, or it is not there any more: waiting changes nothing (RFC 5530 §3).
_DEFINITE: Final = frozenset({"NOPERM", "NONEXISTENT"})
# For fewer missing messages, learning which are the same as others costs more than it spares.
_WORTH_LEARNING: Final = 100
_LEARNED_AT_A_TIME: Final = 2_000
# It cannot be deleted, nor renamed away, while it is open.
_HOME: Final = "INBOX"
_REFUSED_FIX: Final = "It is tried again by itself; if it stays, look at the rights of this login on this mailbox."


class Ending(Enum):
    """Why no more was taken in: all is in, the terms wanted a new round, or the day's octets are spent."""

    ALL_IN = auto()
    OVER = auto()
    SPENT = auto()


@dataclass(frozen=True, slots=True)
class Round:
    """How a round went: `whole` when every mailbox was looked at; `missing` are configured names that are not there."""

    whole: bool
    taken_in: int
    changed: int
    vanished: int
    set_aside: int
    missing: tuple[str, ...]
    ending: Ending = Ending.ALL_IN


class _Outcome(Enum):
    CAUGHT_UP = auto()
    PENDING = auto()
    NOT_OURS = auto()


class Sync:
    """Keeps one account's mirror equal to the server, round by round; one thread uses it.

    `allowed` are the mailbox names to read, None means all. `restart_all`: this login was never seen with this mirror,
    so UIDs that are known may mean other messages.
    """

    def __init__(
        self,
        mirror: Mirror,
        allowed: Collection[str] | None,
        log: FilteringBoundLogger,
        *,
        restart_all: bool = False,
        terms: Terms | None = None,
    ) -> None:
        self._mirror, self._log, self._terms = mirror, log, terms or Terms()
        self._allowed = None if allowed is None else frozenset(map(canonical_name, allowed))
        self._memories = {mailbox.id: Memory(trusted=not restart_all) for mailbox in mirror.mailboxes()}
        self._sameness = Sameness()
        self._ahead = Ahead()
        self._open: str | None = None

    def listing(self, session: ReadOnlySession, *, with_status: bool = False) -> list[ListedMailbox]:
        """Return the mailboxes to read. Raises `Refused`, `ImapFailure`."""
        listed = session.list_mailboxes(with_status=with_status)
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

    def round(self, session: ReadOnlySession, told_of: Collection[str] = ()) -> Round:
        """Look at every mailbox once, and settle when none was left out. `told_of`: there is news in these.

        One in which nothing happened is not opened, where the server tells that without. Raises `ImapFailure` when the
        connection ends or the server wants to be left alone, `Refused` when mailboxes cannot be listed.
        """
        counts = Counts()
        self._open = None
        whole = [mailbox for mailbox in self._mirror.mailboxes() if mailbox.whole_at is not None]
        told_of = {*told_of, *self._news_at_home(session, whole)}
        listing = self.listing(session, with_status=bool(whole))
        self._mirror.put_mailboxes(listing)
        mailboxes = [mailbox for mailbox in self._mirror.mailboxes() if mailbox.selectable]
        self._memories = {mailbox.id: self._memories.get(mailbox.id, Memory()) for mailbox in mailboxes}
        ending = Ending.ALL_IN
        try:
            if not self._mirror.is_threaded():
                first_look(session, self._mirror, mailboxes, self._refused_first)
            unchanged = self._unchanged(mailboxes, listing, told_of)
            others = [mailbox for mailbox in mailboxes if mailbox.id not in unchanged]
            if others:
                # Before another is opened: what turns out to be gone there may have been moved here since.
                self._mirror.found_unchanged(unchanged)
            outcomes = {mailbox.id: self._catch_up(session, mailbox, counts) for mailbox in others}
            ending = self._take_in(session, counts)
        finally:
            if ending is not Ending.OVER:
                self._mirror.await_backlog(0)
        if session.open_mailbox != _HOME or not session.lists_status:
            session.unselect()
        is_whole = all(
            outcome is _Outcome.NOT_OURS or (outcome is _Outcome.CAUGHT_UP and self._memories[mailbox_id].is_complete)
            for mailbox_id, outcome in outcomes.items()
        )
        if is_whole:
            self._mirror.settle(() if others else unchanged)
        else:
            self._mirror.release_overdue()
        missing = tuple(self.missing(listing))
        return _told(counts, whole=is_whole, missing=missing, ending=ending)

    def _news_at_home(self, session: ReadOnlySession, whole: Iterable[KnownMailbox]) -> Collection[str]:
        """Have INBOX open and its STATUS current before the others are listed; its name if it has news.

        It stays open from round to round, for Dovecot with a Maildir: once a connection has listed mailboxes, each
        EXAMINE reads all UIDs anew (80 ms of CPU for 100,000), and so does each STATUS of INBOX, which is not among
        those that it keeps, unless it is open.
        """
        if not session.lists_status or all(mailbox.name != _HOME for mailbox in whole):
            return ()
        try:
            if session.open_mailbox == _HOME:
                return (_HOME,) if session.refresh() else ()
            session.examine(_HOME)
        except Refused:  # it is said when it is looked at
            return (_HOME,)
        return ()

    def _unchanged(
        self, mailboxes: Iterable[KnownMailbox], listing: Iterable[ListedMailbox], told_of: Collection[str]
    ) -> Collection[str]:
        """The mailboxes, by id, of which all is in the mirror and in which nothing happened, as STATUS tells."""
        now = self._terms.clock()
        statuses = {listed.name: listed.status for listed in listing if listed.name not in told_of}
        return {
            mailbox.id
            for mailbox in mailboxes
            if self._memories[mailbox.id].is_unchanged(mailbox, statuses.get(mailbox.name), now)
        }

    def look_at(self, session: ReadOnlySession, names: Collection[str]) -> Round:
        """Look at these mailboxes only, and take in what is new in them; nothing is settled. Raises as `round`."""
        counts = Counts()
        self._open = None
        self._catch_up_with(session, names, counts)
        ending = self._take_in(session, counts)
        return _told(counts, whole=False, missing=(), ending=ending)

    def _catch_up_with(self, session: ReadOnlySession, names: Collection[str], counts: Counts) -> None:
        if not names:
            return
        self._ahead.flush()
        for mailbox in self._mirror.mailboxes():
            if mailbox.name in names and mailbox.selectable and mailbox.id in self._memories:
                self._catch_up(session, mailbox, counts)

    def _catch_up(self, session: ReadOnlySession, mailbox: KnownMailbox, counts: Counts) -> _Outcome:
        memory = self._memories[mailbox.id]
        look = Look(session, self._mirror, mailbox, memory, counts, window=self._terms.window)
        self._open = None
        try:
            look.catch_up(self._terms.clock())
        except Refused as refusal:
            self._report(mailbox.id, mailbox.name, memory, refusal)
            memory.caught_up = None
            # What was never seen holds back nothing.
            is_ours = mailbox.uidvalidity is not None and refusal.code not in _DEFINITE
            return _Outcome.PENDING if is_ours or refusal.verb != "EXAMINE" else _Outcome.NOT_OURS
        self._open = mailbox.id
        if memory.is_complete:
            memory.said = None
        return _Outcome.CAUGHT_UP

    def _take_in(self, session: ReadOnlySession, counts: Counts) -> Ending:
        """Take in what is missing, one step after the other, until nothing is or the terms want an end."""
        self._ahead.most = self._mirror.await_backlog(sum(len(memory.backlog) for memory in self._memories.values()))
        try:
            return self._take_steps(session, counts)
        finally:
            # What was fetched is not fetched again, whatever ended it.
            self._ahead.flush()

    def _take_steps(self, session: ReadOnlySession, counts: Counts) -> Ending:
        names = {mailbox.id: mailbox.name for mailbox in self._mirror.mailboxes()}
        intakes: dict[str, Intake] = {}
        refused: set[str] = set()
        self._learn(session, names)
        while (chosen := self._choose(refused)) is not None:
            memory = self._memories[chosen]
            if not self._terms.allows(memory.backlog.age):
                return Ending.SPENT
            intake = intakes.get(chosen) or self._intake(session, chosen, counts)
            intakes[chosen] = intake
            try:
                if self._reopen(session, chosen, names[chosen]):
                    intake.next_step(self._terms.clock())
            except Refused as refusal:
                refused.add(chosen)
                self._report(chosen, names[chosen], memory, refusal)
            self._note_complete(chosen)
            self._catch_up_with(session, self._terms.between(), counts)
            if self._terms.is_over() and self._choose(refused) is not None:
                return Ending.OVER
        return Ending.ALL_IN

    def _intake(self, session: ReadOnlySession, mailbox_id: str, counts: Counts) -> Intake:
        memory = self._memories[mailbox_id]
        return Intake(session, self._mirror, mailbox_id, memory, counts, self._sameness, self._ahead)

    def _note_complete(self, mailbox_id: str) -> None:
        memory = self._memories[mailbox_id]
        if not memory.is_complete:
            return
        self._ahead.flush()
        if memory.caught_up is not None:
            self._mirror.looked(mailbox_id, memory.caught_up.uidnext, memory.caught_up.highestmodseq)
            memory.said = None

    def _choose(self, refused: Collection[str]) -> str | None:
        memories = self._memories.items()
        waiting = {key: memory.backlog for key, memory in memories if memory.caught_up and key not in refused}
        return choose(waiting, self._open)

    def _reopen(self, session: ReadOnlySession, mailbox_id: str, name: str) -> bool:
        """Open the mailbox if it is not; whether its UIDs still mean what they meant."""
        memory = self._memories[mailbox_id]
        if self._open != mailbox_id:
            self._open = None
            examined = session.examine(name)
            if memory.caught_up is None or examined.uidvalidity != memory.caught_up.uidvalidity:
                memory.caught_up = None
                return False
            self._open = mailbox_id
        return True

    def _learn(self, session: ReadOnlySession, names: dict[str, str]) -> None:
        """Learn what the server calls the messages that the mirror holds, once in a process, where that spares much."""
        missing = sum(len(memory.backlog) for memory in self._memories.values())
        if missing < _WORTH_LEARNING or not session.tells_sameness:
            return
        for mailbox_id in self._sameness.unlearned(key for key, memory in self._memories.items() if memory.caught_up):
            held = sorted(self._mirror.states(mailbox_id))
            if held and self._reopen(session, mailbox_id, names[mailbox_id]):
                for begin in range(0, len(held), _LEARNED_AT_A_TIME):
                    stated = session.stated(held[begin : begin + _LEARNED_AT_A_TIME])
                    self._sameness.note(mailbox_id, stated)

    def _refused_first(self, mailbox: KnownMailbox, refusal: Refused) -> None:
        self._report(mailbox.id, mailbox.name, self._memories[mailbox.id], refusal)

    def _report(self, mailbox_id: str, name: str, memory: Memory, refusal: Refused) -> None:
        if refusal.is_throttling:
            raise Throttled(f"the mailbox {name}", str(refusal))
        # Said once, not each round.
        if memory.said != str(refusal):
            memory.said = str(refusal)
            self._mirror.mailbox_failed(mailbox_id, "refused", f"The server refused {refusal}.", _REFUSED_FIX)
            self._log.warning("mailbox:refused", mailbox=name, verb=refusal.verb, answer=refusal.text)


def _told(counts: Counts, *, whole: bool, missing: tuple[str, ...], ending: Ending) -> Round:
    return Round(whole, counts.taken_in, counts.changed, counts.vanished, counts.set_aside, missing, ending)
