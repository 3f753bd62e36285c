"""One move to make, there or back: read from the journal and the configuration, and held to both."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection

from change_executor.config import ExecutorSettings, Queue
from change_executor.journal import evidence, moves
from change_executor.journal.journal import Proposal
from change_executor.journal.moves import MoveKind
from change_executor.outcomes import Outcome


@dataclass(frozen=True, slots=True)
class Errand:
    """The message at (`source`, `source_uidvalidity`, `source_uid`) with this digest, into `target`.

    `copies_left` is how many identical copies stay in incoming after the move, as the evidence counted them.
    """

    proposal: Proposal
    kind: MoveKind
    queue: Queue
    source: str
    source_uidvalidity: int
    source_uid: int
    target: str
    octets_sha256: str
    copies_left: int

    def mailboxes(self) -> frozenset[str]:
        """Return every mailbox of the queue: the only names that the session can say."""
        return mailboxes_of(self.queue)

    @property
    def may_copy(self) -> bool:
        """Whether the queue allows a move by copy where the server has no MOVE."""
        return may_copy(self.queue)

    def others(self) -> Iterator[str]:
        """Yield the queue's destinations that this message has no business in."""
        yield from sorted(self.mailboxes() - {self.source, self.target, self.queue.incoming})


def mailboxes_of(queue: Queue) -> frozenset[str]:
    """Return the names of incoming and of every destination."""
    return frozenset({queue.incoming, *(destination.mailbox for destination in queue.to.values())})


def may_copy(queue: Queue) -> bool:
    """Whether a queue allows a move by copy where the server has no MOVE."""
    return queue.without_move == "copy"


def to_move(connection: Connection, queue: Queue, proposal: Proposal) -> Errand | None:
    """Return the errand of an approved proposal, or None where its role or evidence is not there any more."""
    destination = queue.to.get(proposal.to_role)
    if destination is None or proposal.evidence is None:
        return None
    seen = evidence.read(connection, proposal.evidence).evidence
    return Errand(
        proposal=proposal,
        kind=MoveKind.MOVE,
        queue=queue,
        source=queue.incoming,
        source_uidvalidity=seen.uidvalidity,
        source_uid=seen.uid,
        target=destination.mailbox,
        octets_sha256=seen.octets_sha256,
        copies_left=seen.copies - 1,
    )


def to_undo(connection: Connection, settings: ExecutorSettings, proposal: Proposal) -> Errand | Outcome:
    """Return the errand that takes an applied proposal back, or why there is none."""
    queue = settings.queue(proposal.queue)
    if queue is None or not queue.undo:
        return Outcome.UNDO_NOT_PERMITTED
    move = moves.last_moved(connection, proposal.id)
    if move is None or move.new_uid is None:
        return Outcome.UNDO_PLACE_UNKNOWN
    there = move.intent
    if there.credential != queue.credential or not {there.source_mailbox, there.target_mailbox} <= mailboxes_of(queue):
        return Outcome.POLICY_CHANGED
    return Errand(
        proposal=proposal,
        kind=MoveKind.UNDO,
        queue=queue,
        source=there.target_mailbox,
        source_uidvalidity=there.target_uidvalidity,
        source_uid=move.new_uid,
        target=there.source_mailbox,
        octets_sha256=there.octets_sha256,
        copies_left=proposal.copies_left or 0,
    )
