"""What an agent can do: make a proposal, look at its own, withdraw one. Each is one transaction of the journal."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Connection, Integer, and_, bindparam, func, or_, select, true, type_coerce

from change_executor import policy
from change_executor.config import ExecutorSettings, Queue
from change_executor.errors import NoSuchProposal
from change_executor.intake import problems
from change_executor.intake.doorway import Listing, cursor_of
from change_executor.intake.proposer_tokens import Proposer, closed_since
from change_executor.intake.views import view, view_of
from change_executor.journal import idempotency, schema
from change_executor.journal.idempotency import Key
from change_executor.journal.journal import Journal, NewProposal, Proposal, Writing, read_proposal
from change_executor.journal.statement import Statement
from change_executor.lifecycle import OPEN, Event, TransitionRefused
from change_executor.policy import Asker, Made, ProposingRuling
from shared.proposal import PROPOSAL_ID, ProposalRequest, ProposalView, State

RandomOctets = Callable[[int], bytes]

# 20 characters of five bits each are 100 bits; each is cut from an octet of its own.
_ID_CHARACTERS: Final = 20
_CHARACTER_OF: Final = bytes(b"0123456789abcdefghijklmnopqrstuv"[octet % 32] for octet in range(256))


@dataclass(frozen=True, slots=True)
class Proposed:
    """A proposal, and whether this request made it."""

    view: ProposalView
    created: bool


@dataclass(frozen=True, slots=True)
class Page:
    """Proposals of one agent, newest first; `cursor` asks for the next page, None at the end."""

    proposals: tuple[ProposalView, ...]
    cursor: str | None


def propose(
    journal: Journal,
    settings: ExecutorSettings,
    proposer: Proposer,
    request: ProposalRequest,
    random_octets: RandomOctets,
    key: Key | None = None,
) -> Proposed:
    """Record a proposal in a transaction of its own, as `propose_in` does. Raises `JournalUnavailable` too."""
    with journal.writing() as writing:
        return propose_in(writing, settings, proposer, request, random_octets, key)


def propose_in(
    writing: Writing,
    settings: ExecutorSettings,
    proposer: Proposer,
    request: ProposalRequest,
    random_octets: RandomOctets,
    key: Key | None = None,
) -> Proposed:
    """Record a proposal, or find the agent's open one for the same message and destination.

    With a `key` that has come before within a day, the proposal that its first request made or found, as it stands now.
    Raises a `Problem`.
    """
    if (fault := closed_since(writing.connection, proposer, writing.now)) is not None:
        raise problems.token_refused(fault)
    if key is not None and (answered := idempotency.find(writing, proposer.agent, key)) is not None:
        made = writing.proposal(answered.proposal)
        # The same octets with a token of another queue ask for something else where they leave the queue out.
        if (answered.request_sha256, made.queue) != (key.request_sha256, request.queue or proposer.queue):
            raise problems.idempotency_key_reused()
        return Proposed(view(writing.connection, made), created=answered.at == made.created_at)
    proposed = _propose(writing, settings, proposer, request, random_octets)
    if key is not None and (proposed.created or idempotency.has_room(writing, proposer.agent, proposed.view.id)):
        idempotency.keep(writing, proposer.agent, key, proposed.view.id)
    return proposed


def _propose(
    writing: Writing,
    settings: ExecutorSettings,
    proposer: Proposer,
    request: ProposalRequest,
    random_octets: RandomOctets,
) -> Proposed:
    queue_id = proposer.queue if request.queue is None else request.queue
    queue = settings.queue(queue_id)
    ruling = _judged(writing, proposer, queue, queue_id, request)
    if queue is None or ruling in _OF_THE_REQUEST:
        raise problems.refused_by_policy(ruling)
    latest = _latest(writing.connection, queue_id, request.email_id)
    if latest is not None and latest.state in OPEN:
        if (latest.agent, latest.to_role) != (proposer.agent, request.to_role):
            raise problems.already_proposed()
        return Proposed(view(writing.connection, latest), created=False)
    if ruling is not ProposingRuling.ALLOWED:
        raise problems.refused_by_policy(ruling)
    texts = {} if request.reason is None else {"reason": request.reason}
    made = writing.create(
        NewProposal(
            id=_new_id(random_octets),
            agent=proposer.agent,
            queue=queue_id,
            email_id=request.email_id,
            from_role=request.from_role,
            to_role=request.to_role,
            expires_at=policy.expires_at(queue, writing.now),
            predecessor=None if latest is None else latest.id,
        ),
        texts,
    )
    own_before = None if latest is None or latest.agent != proposer.agent else latest.id
    return Proposed(view_of(made, texts, own_before), created=True)


_columns = schema.proposals.c
_LATELY: Final = _columns.created_at > bindparam("hour")
_STALE: Final = _columns.state == State.STALE.value
_older = schema.proposals.alias()
_OWN: Final = (_older.c.agent == bindparam("agent")) & (_older.c.queue == bindparam("queue"))
# Those of the last day are counted with what was made in it. Few are pending for longer than that, of all agents
# together; asked for its own ones alone, SQLite would walk all that the agent ever proposed.
_PENDING_FOR_LONGER: Final = (
    select(func.count().filter(_OWN))
    .where(_older.c.state == State.PENDING.value, _older.c.created_at <= bindparam("day"))
    .scalar_subquery()
)


def _asking(counted: ColumnElement[bool], unfound: ColumnElement[bool]) -> Statement:
    """All that the policy judges a proposal by, in one question."""
    return Statement(
        select(
            func.count().label("in_day"),
            func.count().filter(_LATELY).label("in_hour"),
            func.count().filter(unfound).label("unfound_in_day"),
            func.count().filter(unfound & _LATELY).label("unfound_in_hour"),
            (func.count().filter(_columns.state == State.PENDING.value) + _PENDING_FOR_LONGER).label("pending"),
            select(schema.revoked_agents.c.name)
            .where(schema.revoked_agents.c.name == bindparam("agent"))
            .exists()
            .label("revoked"),
            select(schema.switches.c.name).where(schema.switches.c.name == "stop").exists().label("stopped"),
        ).where(_columns.agent == bindparam("agent"), _columns.created_at > bindparam("day"), counted)
    )


# At least as many as count, answered from an index without a look at a row: in all queues, found or not.
_AT_MOST: Final = _asking(true(), _STALE)
# Never there when the executor looked: there is no evidence of it.
_EXACTLY: Final = _asking(_columns.queue == bindparam("queue"), _STALE & _columns.evidence.is_(None))
_still_open = _columns.state.in_([state.value for state in sorted(OPEN)])
# An open one, of which there is at most one, before all that have ended.
_LATEST: Final = Statement(
    select(schema.proposals)
    .where(_columns.queue == bindparam("queue"), _columns.email_id == bindparam("email_id"))
    .order_by(_still_open.desc(), _columns.created_at.desc(), _columns.id.desc())
    .limit(1)
)

# What no waiting would change; told before the agent hears whether the message has an open proposal.
_OF_THE_REQUEST: Final = frozenset(
    {ProposingRuling.UNKNOWN_QUEUE, ProposingRuling.UNKNOWN_ROLE, ProposingRuling.AGENT_REVOKED}
)


def _judged(
    writing: Writing, proposer: Proposer, queue: Queue | None, queue_id: str, request: ProposalRequest
) -> ProposingRuling:
    # More proposals never make the policy kinder, so what it allows by too many it allows.
    for question in (_AT_MOST, _EXACTLY):
        asker, stopped = _asked(writing, proposer, queue_id, question)
        ruling = policy.judge_proposing(
            queue, asker, from_role=request.from_role, to_role=request.to_role, stopped=stopped
        )
        if ruling is ProposingRuling.ALLOWED:
            break
    return ruling


def _asked(writing: Writing, proposer: Proposer, queue_id: str, question: Statement) -> tuple[Asker, bool]:
    """Who proposes, and whether everything is stopped."""
    asked = {"agent": proposer.agent, "queue": queue_id, "day": writing.now - policy.PROPOSALS_DAY}
    row = question.first(writing.connection, asked | {"hour": writing.now - policy.PROPOSALS_WINDOW})
    assert row is not None, "counting answers with a row"
    asker = Asker(
        agent=proposer.agent,
        token_queue=proposer.queue,
        revoked=row["revoked"],
        pending=row["pending"],
        in_last_hour=Made(row["in_hour"], row["unfound_in_hour"]),
        in_last_day=Made(row["in_day"], row["unfound_in_day"]),
    )
    return asker, row["stopped"]


def own_proposal(journal: Journal, proposer: Proposer, proposal_id: str) -> ProposalView:
    """Return one of the agent's own. Raises `unknown_proposal`, alike for none and for another agent's."""
    with journal.reading() as connection:
        return view(connection, _own(connection, proposer, proposal_id))


def own_proposals(journal: Journal, proposer: Proposer, listing: Listing) -> Page:
    """Return a page of the agent's own."""
    table = schema.proposals
    query = select(table.c.id).where(table.c.agent == proposer.agent)
    if listing.state is not None:
        query = query.where(table.c.state == listing.state.value)
    if listing.before is not None:
        # As the integer that it is: a cursor is untrusted, and no datetime reaches as far as its digits.
        created_at, before = type_coerce(table.c.created_at, Integer), listing.before
        query = query.where(or_(created_at < before[0], and_(created_at == before[0], table.c.id < before[1])))
    query = query.order_by(table.c.created_at.desc(), table.c.id.desc()).limit(listing.limit + 1)
    with journal.reading() as connection:
        ids = connection.execute(query).scalars().all()
        rows = [read_proposal(connection, proposal_id) for proposal_id in ids[: listing.limit]]
        views = tuple(view(connection, row) for row in rows)
    if len(ids) <= listing.limit:
        return Page(views, None)
    return Page(views, cursor_of(schema.to_microseconds(rows[-1].created_at), rows[-1].id))


def withdraw(journal: Journal, proposer: Proposer, proposal_id: str) -> ProposalView:
    """Withdraw one of the agent's own; again for a withdrawn one changes nothing. Raises a `Problem`."""
    with journal.writing() as writing:
        before = _own(writing.connection, proposer, proposal_id)
        if before.state is State.WITHDRAWN:
            return view(writing.connection, before)
        try:
            after = writing.advance(proposal_id, Event.WITHDRAW, f"agent:{proposer.agent}")
        except TransitionRefused:
            raise problems.not_withdrawable(before.state) from None
        return view(writing.connection, after)


def _own(connection: Connection, proposer: Proposer, proposal_id: str) -> Proposal:
    if PROPOSAL_ID.fullmatch(proposal_id) is None:
        raise problems.unknown_proposal()
    try:
        found = read_proposal(connection, proposal_id)
    except NoSuchProposal:
        raise problems.unknown_proposal() from None
    if found.agent != proposer.agent:
        raise problems.unknown_proposal()
    return found


def _latest(connection: Connection, queue_id: str, email_id: str) -> Proposal | None:
    found = _LATEST.first(connection, {"queue": queue_id, "email_id": email_id})
    return None if found is None else Proposal.from_row(found)


def _new_id(random_octets: RandomOctets) -> str:
    return "P" + random_octets(_ID_CHARACTERS).translate(_CHARACTER_OF).decode("ascii")
