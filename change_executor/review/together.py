"""Deciding several at once: a page that lists each one, and a decision that is still one transaction for each.

There is no approval of all by one key: a person chooses, sees every one of them with its warnings and its text, and
then decides. One that changed meanwhile is refused alone; the others go through.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection
from starlette.requests import Request
from starlette.responses import Response

from change_executor.config import ExecutorSettings
from change_executor.errors import AnotherIsOpen, NoSuchProposal, VersionChanged
from change_executor.journal.journal import Proposal
from change_executor.journal.surroundings import read_surroundings
from change_executor.lifecycle import TransitionRefused
from change_executor.review import wording
from change_executor.review.case import Case, read_case
from change_executor.review.cautions import warnings
from change_executor.review.decisions import DecisionRefused, Desk, LookedAt, SessionEnded, cannot_approve
from change_executor.review.error_page import PageError, Refusal
from change_executor.review.forms import Form, decision_reason, looked_at_together
from change_executor.review.frame import read_frame
from change_executor.review.message_views import has_source
from change_executor.review.room import Room, html
from change_executor.review.searching import Filters
from change_executor.review.sessions import Session
from change_executor.switch import is_frozen
from shared.proposal import PROPOSAL_ID, State

# A proposal is read by a person; past 50 rows people stop reading and start clicking.
MAX_TOGETHER: Final = 50

_CONFLICT: Final = 409


class Decision(StrEnum):
    """What is decided about all that are chosen; nothing, where Enter was pressed on none of the buttons."""

    NOTHING = "nothing"
    APPROVE = "approve"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A case on the page; `obstacle` is the code of what stands against approving it, or None."""

    case: Case
    obstacle: str | None
    notices: list[str]
    has_source: bool

    @property
    def is_clear(self) -> bool:
        """Whether nothing at all is said of it: only such a one is checked from the start."""
        return self.obstacle is None and not self.notices and not (self.case.reading and self.case.reading.warnings)

    @property
    def is_warned(self) -> bool:
        """Whether the message has warnings, so that it lies open."""
        return self.case.reading is not None and bool(warnings(self.case.reading))


@dataclass(frozen=True, slots=True)
class Became:
    """What became of one: `refused` is the code of why it was not decided, None where it was."""

    case: Case
    refused: str | None


async def together_page(room: Room, request: Request, session: Session) -> Response:
    """`GET /together?p=A&p=B...`: each one that is chosen, to be decided on together."""
    ids = [each for each in request.query_params.getlist("p") if PROPOSAL_ID.fullmatch(each)]
    return html(await room.in_thread(_page, room, session, list(dict.fromkeys(ids))))


async def decide_together(room: Room, request: Request, session: Session, form: Form) -> Response:  # noqa: ARG001 - a handler's signature
    """`POST /together`, with a `decision`, a `reason` where it is a rejection, and what was seen of each."""
    try:
        decision = Decision(form.text("decision"))
    except ValueError:
        raise PageError(Refusal.MALFORMED_FORM) from None
    if decision is Decision.NOTHING:
        # The browser stays where it is, with all that was checked and written.
        return Response(status_code=204)
    chosen, reason = looked_at_together(form), decision_reason(form)
    if len(chosen) > MAX_TOGETHER:
        raise PageError(Refusal.MALFORMED_FORM)
    page, all_went = await room.in_thread(_decide_each, room, session, decision, chosen, reason)
    return html(page, 200 if all_went else _CONFLICT)


def _page(room: Room, session: Session, proposal_ids: list[str]) -> str:
    with room.journal.reading() as connection:
        cases = _cases(connection, room.settings, proposal_ids[:MAX_TOGETHER])
        frozen, now = is_frozen(connection, room.settings.stop_file), room.clock()
        chosen = [
            Chosen(
                case,
                cannot_approve(case, now, frozen=frozen),
                wording.notices(read_surroundings(connection, case.proposal)),
                has_source(connection, case.proposal.id),
            )
            for case in cases
            if case.proposal.state is State.PENDING
        ]
        frame = read_frame(connection)
    return room.page(
        "together.html",
        session,
        frame,
        count=len(chosen),
        clear=[each for each in chosen if each.is_clear],
        to_read=[each for each in chosen if not each.is_clear],
        decided_already=[case for case in cases if case.proposal.state is not State.PENDING],
        left_out=max(0, len(proposal_ids) - MAX_TOGETHER),
        most=MAX_TOGETHER,
    )


def _cases(connection: Connection, settings: ExecutorSettings, proposal_ids: list[str]) -> list[Case]:
    found = []
    for proposal_id in proposal_ids:
        try:
            found.append(read_case(connection, settings, proposal_id))
        except NoSuchProposal:
            continue
    return sorted(found, key=lambda case: (case.proposal.created_at, case.proposal.id))


def _decide_each(
    room: Room, session: Session, decision: Decision, chosen: list[LookedAt], reason: str
) -> tuple[str, bool]:
    desk = Desk(room.journal, room.settings, session)
    refusals = {seen.proposal_id: _refusal(desk, decision, seen, reason) for seen in chosen}
    with room.journal.reading() as connection:
        became = [
            Became(case, refusals[case.proposal.id])
            for case in _cases(connection, room.settings, [seen.proposal_id for seen in chosen])
        ]
        frame = read_frame(connection)
    page = room.page(
        "decided.html",
        session,
        frame,
        decided=[each for each in became if each.refused is None],
        refused=[each for each in became if each.refused is not None],
        filters=Filters(),
    )
    return page, not any(refusals.values())


def _refusal(desk: Desk, decision: Decision, seen: LookedAt, reason: str) -> str | None:
    try:
        _decide(desk, decision, seen, reason)
    except VersionChanged:
        return "changed"
    except TransitionRefused:
        return "transition"
    except DecisionRefused as refusal:
        return refusal.code
    except (AnotherIsOpen, NoSuchProposal):
        return "transition"
    except SessionEnded:
        raise PageError(Refusal.SIGNED_OUT) from None
    return None


def _decide(desk: Desk, decision: Decision, seen: LookedAt, reason: str) -> Proposal:
    return desk.approve(seen) if decision is Decision.APPROVE else desk.reject(seen, reason)
