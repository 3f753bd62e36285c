"""What is done to a journal that comes from elsewhere, so that nothing moves again unseen.

Put back from a copy, taken back to an older version's tables, or found behind what it told: the stop button is pressed,
what was approved has to be decided again, and what may have been under way is looked for at the mail server.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import select, update

from change_executor.heads import Head
from change_executor.journal import moves, schema
from change_executor.journal.journal import Journal, Proposal, Writing
from change_executor.journal.moves import EXECUTOR, Intent, Move, MoveKind
from change_executor.lifecycle import Event
from change_executor.outcomes import Outcome
from change_executor.switch import press_in
from shared.proposal import State

# Whose act it is, where a command does it.
OPERATOR: Final = "operator"


@dataclass(frozen=True, slots=True)
class HeldBack:
    """How many proposals have to be decided again, and how many are looked for."""

    asked_again: int
    doubtful: int


def hold_back_where_behind(journal: Journal, told: Head) -> bool:
    """Hold a journal back that lacks the event of a head that it told; returns whether it does.

    Somebody put a copy back behind our back: what was rejected or withdrawn since is approved in it. Raises
    `JournalUnavailable`.
    """
    with journal.writing() as writing:
        asked = select(schema.events.c.hash).where(schema.events.c.seq == told.events)
        if writing.connection.execute(asked).scalar_one_or_none() == told.head:
            return False
        hold_back(writing, {"behind": told.events}, EXECUTOR)
        sign_everybody_out(writing)
        return True


def hold_back(writing: Writing, why: Mapping[str, Any], actor: str = OPERATOR) -> HeldBack:
    """Press the stop button, with `why` in its event; make approvals pending, and what may be under way doubtful."""
    if not writing.stopped():
        press_in(writing, actor, why)
    approved = _in_state(writing, State.APPROVED)
    for each in approved:
        _ask_again(writing, each, actor)
    became = [_doubt(writing, each, actor) for each in _in_state(writing, State.APPLYING, State.UNDOING)]
    asked_again = len(approved) + became.count(State.PENDING)
    return HeldBack(asked_again, len(became) - became.count(State.PENDING) - became.count(State.APPLIED))


def sign_everybody_out(writing: Writing) -> None:
    """End every session, and spend every link that is left."""
    # A browser that was signed out since, or a link that was used, would open the page again.
    for table, ended in ((schema.sessions, schema.sessions.c.ended_at), (schema.links, schema.links.c.spent_at)):
        writing.connection.execute(update(table).where(ended.is_(None)).values({ended.name: writing.now}))


def _in_state(writing: Writing, *states: State) -> list[Proposal]:
    rows = writing.connection.execute(
        select(schema.proposals)
        .where(schema.proposals.c.state.in_([state.value for state in states]))
        .order_by(schema.proposals.c.created_at, schema.proposals.c.id)
    ).mappings()
    return [Proposal.from_row(row) for row in rows.all()]


def _ask_again(writing: Writing, proposal: Proposal, actor: str) -> None:
    # The evidence goes too: the message may lie elsewhere by now, so the executor looks anew.
    writing.advance(
        proposal.id,
        Event.RESTORE,
        actor,
        decided_by=None,
        decided_at=None,
        policy_version=None,
        shown=None,
        evidence=None,
        outcome_code=Outcome.RESTORED.value,
        outcome_at=writing.now,
    )


def _doubt(writing: Writing, proposal: Proposal, actor: str) -> State:
    """Make a proposal doubtful whose command may have left since; return what it is now."""
    if moves.under_way(writing.connection, proposal.id) is None:
        move = moves.last_moved(writing.connection, proposal.id)
        if proposal.state is State.APPLYING:
            _ask_again(writing, writing.advance(proposal.id, Event.NOTHING_SENT, actor), actor)
            return State.PENDING
        if move is None:
            # To be moved back from nobody knows where: that cannot have been done since.
            return writing.advance(proposal.id, Event.REFUSED, actor).state
        # Asked for when the copy was made, and perhaps done since: this is where to look.
        moves.begin(writing, _taken_back(move))
    return writing.advance(proposal.id, Event.DOUBT, actor).state


def _taken_back(move: Move) -> Intent:
    intent = move.intent
    assert move.new_uid is not None, "a move whose UID nobody knows is not taken back"
    return Intent(
        proposal=intent.proposal,
        kind=MoveKind.UNDO,
        credential=intent.credential,
        source_mailbox=intent.target_mailbox,
        source_uidvalidity=intent.target_uidvalidity,
        source_uid=move.new_uid,
        target_mailbox=intent.source_mailbox,
        target_uidvalidity=intent.source_uidvalidity,
        # Whatever came back since has a larger UID than the message had before.
        target_uidnext=intent.source_uid + 1,
        octets_sha256=intent.octets_sha256,
        size=intent.size,
        internaldate=intent.internaldate,
        method=intent.method,
    )
