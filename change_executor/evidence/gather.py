"""Evidence for a proposal: ask the reader where the message is, look for oneself, pin one copy, read it in the child.

The reader's answer says only where to look. Nothing is searched for: an id that the reader does not know, or that does
not match the octets where it points, costs no more than those few looks.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from change_executor import checkpoints
from change_executor.checkpoints import Checkpoint
from change_executor.config import ExecutorSettings, Queue
from change_executor.errors import MailboxRefused
from change_executor.evidence.reader_link import ReaderFailure
from change_executor.evidence.reading import READING_VERSION, Reading
from change_executor.journal import evidence
from change_executor.journal.evidence import Evidence
from change_executor.journal.journal import Journal, Proposal, read_proposal
from change_executor.journal.surroundings import keep_thread, known_hosts, sender_digest
from change_executor.lifecycle import Event
from change_executor.looking import OpenedMailbox, SeenMessage
from change_executor.outcomes import Outcome, Waiting
from change_executor.steps import end, wait, waiting_for
from shared.identity import email_id
from shared.imap_login import ImapFailure, ImapLogin
from shared.link import Located, WasOpened
from shared.proposal import State
from shared.settings import ConfigurationError

# A message is rarely delivered more than a few times. The reader names places; it must not make us fetch a mailbox.
MAX_PLACES: Final = 20


class LookSession(Protocol):
    """What evidence needs of a session; `change_executor.looking.Looking` is the one that there is."""

    def examine(self, mailbox: str) -> OpenedMailbox: ...  # noqa: D102 - see looking
    def fetch(self, uid: int, *, spool: bool = False) -> SeenMessage | None: ...  # noqa: D102 - see looking


class Reader(Protocol):
    """What evidence asks the reader; `ReaderLink` is the one that there is."""

    def locate(self, account: str, email_id: str) -> Located: ...  # noqa: D102 - see the link
    def opened(self, agent: str, account: str, email_id: str) -> WasOpened: ...  # noqa: D102 - see the link


OpenLook = Callable[[ImapLogin], AbstractContextManager[LookSession]]


class ReadOctets(Protocol):
    """Makes the reading of a message; `change_executor.evidence.run_child.read_in_child` is the one that there is."""

    def __call__(  # noqa: D102 - see run_child
        self, octets: bytes, *, cut: bool, names: Sequence[str], authserv_id: str | None, known_hosts: Sequence[str]
    ) -> Reading: ...


@dataclass(frozen=True, slots=True)
class _Pinned:
    uidvalidity: int
    message: SeenMessage
    copies: int


class Gather:
    """Makes the evidence of pending proposals, one at a time; used by the one worker."""

    def __init__(
        self,
        journal: Journal,
        settings: ExecutorSettings,
        open_look: OpenLook,
        reader: Reader,
        read_octets: ReadOctets,
        checkpoint: Checkpoint = checkpoints.pass_by,
    ) -> None:
        self._journal = journal
        self._settings = settings
        self._open_look = open_look
        self._reader = reader
        self._read_octets = read_octets
        self._checkpoint = checkpoint

    def gather(self, proposal_id: str) -> None:
        """Make the evidence of a pending proposal that has none, or leave it waiting with its reason, or end it.

        Raises `JournalUnavailable`, and `change_executor.evidence.run_child.Cancelled` while the executor ends.
        """
        with self._journal.reading() as connection:
            proposal = read_proposal(connection, proposal_id)
        if proposal.state is not State.PENDING or proposal.evidence is not None:
            return
        queue = self._settings.queue(proposal.queue)
        if queue is None or proposal.to_role not in queue.to:
            self._leave(proposal, Waiting.QUEUE_NOT_CONFIGURED)
            return
        try:
            located = self._reader.locate(queue.account, proposal.email_id)
            pinned = self._pin(proposal, queue, located)
        except ReaderFailure as failure:
            self._leave(proposal, failure.waiting)
        except MailboxRefused:
            self._leave(proposal, Waiting.MAILBOX_REFUSED)
        except (ImapFailure, ConfigurationError) as failure:
            self._leave(proposal, waiting_for(failure))
        else:
            if pinned is not None:
                self._keep(proposal, queue, pinned, located)
            elif located.fresh:
                self._end(proposal)
            else:
                self._leave(proposal, Waiting.NOT_FOUND_YET)

    def _pin(self, proposal: Proposal, queue: Queue, located: Located) -> _Pinned | None:
        if not located.copies:
            return None
        with self._open_look(self._settings.credential(queue.credential)) as session:
            uidvalidity = session.examine(queue.incoming).uidvalidity
            places = sorted({copy.uid for copy in located.copies if copy.uidvalidity == uidvalidity})
            pinned: SeenMessage | None = None
            copies = 0
            for uid in places[:MAX_PLACES]:
                message = session.fetch(uid, spool=pinned is None)
                if message is not None and email_id(bytes.fromhex(message.sha256)) == proposal.email_id:
                    # The lowest UID is the one that may move; the rest is counted.
                    pinned = pinned or message
                    copies += 1
        return None if pinned is None else _Pinned(uidvalidity, pinned, copies)

    def _keep(self, proposal: Proposal, queue: Queue, pinned: _Pinned, located: Located) -> None:
        message = pinned.message
        names = [*queue.to, *(destination.mailbox for destination in queue.to.values())]
        with self._journal.reading() as connection:
            known = known_hosts(connection)
        reading = self._read_octets(
            message.spool,
            cut=message.size > len(message.spool),
            names=names,
            authserv_id=queue.authserv_id,
            known_hosts=known,
        )
        hints = json.dumps(self._hints(proposal, queue, located), ensure_ascii=False)
        seen = Evidence(
            proposal=proposal.id,
            uidvalidity=pinned.uidvalidity,
            uid=message.uid,
            octets_sha256=message.sha256,
            size=message.size,
            internaldate=message.internaldate,
            copies=pinned.copies,
            reading_version=READING_VERSION,
            reading_sha256=reading.sha256(),
            sender_sha256=_one_sender(reading),
        )
        self._checkpoint(checkpoints.EVIDENCE_READ)
        self._checkpoint(checkpoints.EVIDENCE_BEFORE)
        with self._journal.writing() as writing:
            # Withdrawn, rejected or expired while we looked: then there is nothing to show any more.
            if writing.proposal(proposal.id).version != proposal.version:
                return
            evidence.keep_text(writing, proposal.id, "reading", reading.canonical().decode("utf-8"))
            evidence.keep_text(writing, proposal.id, "hints", hints)
            keep_thread(writing, proposal.id, reading.thread)
            evidence.record(writing, seen, evidence.keep_source(writing, proposal.id, message.spool))
        self._checkpoint(checkpoints.EVIDENCE_COMMITTED)

    def _hints(self, proposal: Proposal, queue: Queue, located: Located) -> dict[str, Any]:
        try:
            opened = self._reader.opened(proposal.agent, queue.account, proposal.email_id)
            said = {"state": opened.state.value, "at": None if opened.at is None else opened.at.isoformat()}
        except ReaderFailure:
            said = {"state": "unknown", "at": None}
        return {"opened": said, "copies": len(located.copies), "fresh": located.fresh}

    def _leave(self, proposal: Proposal, waiting: Waiting) -> None:
        if proposal.waiting_code == waiting:
            return
        with self._journal.writing() as writing:
            if writing.proposal(proposal.id).version == proposal.version:
                wait(writing, proposal, waiting)

    def _end(self, proposal: Proposal) -> None:
        with self._journal.writing() as writing:
            if writing.proposal(proposal.id).version == proposal.version:
                end(writing, proposal, Event.ABSENT, Outcome.MESSAGE_NOT_FOUND)


def _one_sender(reading: Reading) -> str | None:
    # The child writes an address as `name <address>`, or alone; of several senders nobody is the one.
    if len(reading.sender) != 1:
        return None
    address = reading.sender[0].rpartition("<")[2].removesuffix(">")
    return sender_digest(address) if "@" in address else None
