"""An executor whose lives are short: the real journal, worker and mover on a real server, a person, an agent.

A life ends by an exception that passes everything without a word, as a SIGKILL does: its connections are dropped, its
transaction is not committed. The next life opens the same journal.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

import structlog
from sqlalchemy import select

from change_executor import audit
from change_executor.apply import Apply
from change_executor.errors import AnotherIsOpen, JournalUnavailable
from change_executor.evidence.gather import Gather
from change_executor.examine import examine_queues
from change_executor.intake.proposer_tokens import Proposer
from change_executor.intake.proposing import propose
from change_executor.journal import schema
from change_executor.journal.group import GroupCommit
from change_executor.journal.journal import Journal, read_proposal
from change_executor.looking import Looker
from change_executor.mover import Mover
from change_executor.reconcile import Reconcile
from change_executor.review.case import read_case
from change_executor.review.decisions import Desk, LookedAt
from change_executor.review.people import add_person
from change_executor.review.sessions import How, begin_session, find_session
from change_executor.worker import Worker
from shared.identity import email_id
from shared.link import Copy, Located, OpenedState, WasOpened
from shared.proposal import ProposalRequest, State
from tests.change_executor.breaking.points import Died, Points, WatchedConnections, watch_journal
from tests.change_executor.journal.clock import MovableClock, steady_by
from tests.change_executor.journal.empty import empty_journal
from tests.change_executor.moving.workshop import QUIET_SECONDS, settings_for
from tests.servers.desk import reading

if TYPE_CHECKING:
    import imaplib
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from change_executor.config import ExecutorSettings
    from change_executor.journal.journal import Proposal
    from tests.servers.snapshot import Snapshot

# What a log would write could meet the limits that are set here for the journal.
SILENT = structlog.wrap_logger(
    structlog.ReturnLogger(), wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL)
)
PERSON = "ann"
AGENT = "mailbot"
DOUBTS = (State.DOUBTFUL, State.UNDO_DOUBTFUL)
# What looking cannot settle.
FOR_A_PERSON = ("settle", "moved_twice", "mailbox_changed")
ROLES = {"processed": "Processed", "escalate": "Escalate"}


class MailServer(Protocol):
    """What the rig needs of a server of the tests."""

    port: int
    passwords: dict[str, str]

    def deliver(self, mailbox: str, octets: bytes, flags: Iterable[str] = ()) -> int: ...
    def snapshot(self) -> Snapshot: ...
    def connect(self, login: str = "owner") -> imaplib.IMAP4: ...
    def await_no_session(self, login: str) -> None: ...
    def kill_session(self, login: str) -> list[int]: ...
    def commands(self, login: str) -> list[bytes]: ...


class TrueReader:
    """What an honest reader would say: where the rig put each message."""

    def __init__(self) -> None:
        self.places: dict[str, list[tuple[int, int]]] = {}

    def locate(self, account: str, email_id: str) -> Located:  # noqa: ARG002 - as the link
        copies = [Copy(uidvalidity=validity, uid=uid) for validity, uid in self.places.get(email_id, [])]
        return Located(copies=copies, fresh=True)

    def opened(self, agent: str, account: str, email_id: str) -> WasOpened:  # noqa: ARG002 - as the link
        return WasOpened(state=OpenedState.NOT_OPENED, at=None)


class Rig:
    """`port` is where the executor reaches the server: the server's own, or a proxy's."""

    def __init__(
        self, server: MailServer, folder: Path, *, port: int | None = None, session_seconds: float = 600.0, **queue: Any
    ) -> None:
        self.server = server
        self.clock = MovableClock()
        self.points = Points()
        self.reader = TrueReader()
        # Wakes server processes that were put to sleep.
        self.asleep: Callable[[], None] | None = None
        self.heal: Callable[[], None] = lambda: None
        self._session_seconds = session_seconds
        names: Callable[[str, str], str] = getattr(server, "named", lambda _login, mailbox: mailbox)
        own = {
            "incoming": names("executor", "Incoming"),
            "to": {role: {"mailbox": names("executor", mailbox)} for role, mailbox in ROLES.items()},
            # So that no cap of a day of people ends an hour of the tests.
            "max_pending_per_agent": 10_000,
            "max_proposals_per_hour": 10_000,
            "max_proposals_per_day": 100_000,
            "max_moves_per_hour": 10_000,
            "max_moves_per_day": 100_000,
        }
        self.settings: ExecutorSettings = settings_for(
            folder, port or server.port, server.passwords["executor"], queue=own | queue
        )
        empty_journal(self.settings.journal.url, self.clock).close()
        self.journal: Journal
        self.worker: Worker
        self._live()
        add_person(self.journal, PERSON)
        examine_queues(self.settings, self.mover.session, self.journal)

    # Life and death.

    def _live(self, before: Journal | None = None) -> None:
        journal = Journal(self.settings.journal.url, self.clock, steady_by(self.clock))
        if before is not None:
            # Statements are compiled once for all lives; connections and all else of the last one are gone.
            journal._writer, journal._readers = before._writer, before._readers
            journal._group = GroupCommit(journal._writer, journal._file.check)
        watch_journal(journal, self.points, first=before is None)
        connections = WatchedConnections(self.points, self._session_seconds)
        self.mover, look = Mover(connections), Looker(connections).session
        self.journal = journal
        self.worker = Worker(
            journal,
            self.settings,
            apply=Apply(journal, self.settings, self.mover),
            reconcile=Reconcile(journal, self.settings, look, open_move=self.mover.session),
            gather=Gather(journal, self.settings, look, self.reader, lambda *_, **__: reading()),
            connections=connections,
            log=SILENT,
        )

    def restart(self) -> None:
        """The last life is over, however it ended; a new one begins."""
        self.journal.close()
        self._live(self.journal)

    @contextmanager
    def dying(self) -> Iterator[None]:
        """A death in the block ends the life, and the next one begins."""
        try:
            yield
        except Died:
            self.restart()

    def close(self) -> None:
        """The chain is whole and says of every row what the row says."""
        with self.journal.reading() as connection:
            findings = audit.verify(connection).findings
        self.journal.close()
        assert findings == ()

    # The agent, the person, the worker.

    def propose(self, octets: bytes, to: str = "processed") -> str:
        request = ProposalRequest(emailId=email_id(hashlib.sha256(octets).digest()), **{"from": "incoming", "to": to})
        proposer = Proposer(AGENT, self.settings.queues[0].id)
        return propose(self.journal, self.settings, proposer, request, secrets.token_bytes).view.id

    def desk(self) -> Desk:
        """A person at the desk, with a session of this minute."""
        self.points.paused, before = True, self.points.paused
        with self.journal.writing() as writing:
            secret = begin_session(writing, PERSON, How.PASSWORD, secrets.token_bytes)
        session = find_session(self.journal, secret)
        self.points.paused = before
        assert session is not None
        return Desk(self.journal, self.settings, session)

    def looked_at(self, proposal_id: str) -> LookedAt:
        with self.journal.reading() as connection:
            case = read_case(connection, self.settings, proposal_id)
        return LookedAt(proposal_id, case.proposal.version, case.shown)

    def proposal(self, proposal_id: str) -> Proposal:
        with self.journal.reading() as connection:
            return read_proposal(connection, proposal_id)

    def work(self) -> None:
        """Let the worker do what is due; half an hour later, so that no pause of its own is left."""
        self.clock.advance(minutes=6)
        with suppress(JournalUnavailable):
            while self.worker.pass_once() == 0.0:
                pass

    def conclude_doubt(self, proposal_id: str) -> None:
        """What passes by itself: orphaned commands wake up and end, and so does the quiet time."""
        if self.asleep:
            # Its command may still run: whatever looking shows, nothing is repeated.
            self.work()
            proposal = self.proposal(proposal_id)
            assert (True, "quiet_time") == (proposal.state in DOUBTS, proposal.waiting_code)
            self.asleep()
            self.asleep = None
        self.server.await_no_session("executor")
        self.clock.advance(seconds=QUIET_SECONDS + 1)

    # A whole life of a proposal, resumed from wherever the journal says that it is.

    def carry(self, octets: bytes, to: str, steps: int = 14) -> Proposal:
        """Propose, look, approve and move, whatever breaks on the way, until it is moved or has ended."""
        # An earlier life may have proposed it and lost the answer.
        proposal_id = self.known(octets)
        for _ in range(steps):
            with self.dying(), suppress(JournalUnavailable, AnotherIsOpen):
                self.heal()
                if proposal_id is None:
                    proposal_id = self.propose(octets, to)
                if (ended := self._step(proposal_id)) is not None:
                    return ended
        raise AssertionError(f"not at its end after {steps} steps: {self.proposal(proposal_id or '')}")

    def known(self, octets: bytes) -> str | None:
        """The proposal about this message, None before one is made."""
        columns = schema.proposals.c
        wanted = select(columns.id).where(columns.email_id == email_id(hashlib.sha256(octets).digest()))
        with self.journal.reading() as connection:
            found: str | None = connection.execute(wanted).scalar_one_or_none()
        return found

    def take_back(self, proposal_id: str, steps: int = 10) -> Proposal:
        """Ask for a move to be taken back, again where that did not happen, until it is."""
        for _ in range(steps):
            with self.dying(), suppress(JournalUnavailable):
                self.heal()
                if self.proposal(proposal_id).state is State.APPLIED:
                    self.desk().undo(self.looked_at(proposal_id))
                ended = self._step(proposal_id)
                if ended is not None and ended.state is not State.APPLIED:
                    return ended
        raise AssertionError(f"not taken back after {steps} steps: {self.proposal(proposal_id)}")

    def _step(self, proposal_id: str) -> Proposal | None:
        self.heal()
        proposal = self.proposal(proposal_id)
        match proposal.state:
            case State.DOUBTFUL | State.UNDO_DOUBTFUL if proposal.waiting_code in FOR_A_PERSON:
                return proposal
            case State.PENDING if proposal.evidence is not None:
                self.desk().approve(self.looked_at(proposal_id))
            case State.DOUBTFUL | State.UNDO_DOUBTFUL:
                self.conclude_doubt(proposal_id)
                self.work()
            case State.PENDING | State.APPROVED | State.APPLYING | State.UNDOING:
                self.work()
            case _:
                return proposal
        return None
