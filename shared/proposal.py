"""The contract of the one thing an agent can ask for: *move message X from incoming to a named destination*.

The intake speaks it, agents and the stdio relay speak it, and nothing else crosses from an agent to the executor.
"""

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from shared.identity import is_email_id

# A reason is one or two sentences for a person who decides forty times a day.
MAX_REASON_CHARACTERS: Final = 500

# The longest well-formed body is under 3 KiB even with every character of the reason escaped; 8 KiB is generous.
MAX_BODY_OCTETS: Final = 8 * 1024

ROLE_PATTERN: Final = r"^[a-z][a-z0-9_-]{0,39}$"
QUEUE_PATTERN: Final = r"^[a-z0-9][a-z0-9_-]{0,39}$"
AGENT_PATTERN: Final = r"^[a-z0-9-]{1,40}$"
PROPOSAL_ID: Final = re.compile(r"P[0-9a-v]{20}", re.ASCII)


class State(StrEnum):
    """Where a proposal stands; `change_executor.lifecycle` holds the transitions."""

    PENDING = "pending"
    APPROVED = "approved"
    APPLYING = "applying"
    DOUBTFUL = "doubtful"
    APPLIED = "applied"
    UNDOING = "undoing"
    UNDO_DOUBTFUL = "undo_doubtful"
    UNDONE = "undone"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"
    STALE = "stale"
    FAILED = "failed"


def _email_id(text: str) -> str:
    if not is_email_id(text):
        raise ValueError("not an Email id that can be proposed: `M` and 32 characters of 0-9 a-v")
    return text


def _printable(text: str) -> str:
    if any(ord(character) < 0x20 and character not in "\n\t" for character in text):  # noqa: PLR2004 - C0 controls
        raise ValueError("control characters are not allowed")
    return text


EmailId = Annotated[str, AfterValidator(_email_id)]
Role = Annotated[str, StringConstraints(pattern=ROLE_PATTERN)]
QueueId = Annotated[str, StringConstraints(pattern=QUEUE_PATTERN)]


class _Paper(BaseModel):
    """What is written on the paper is closed, frozen, and never repeated in an error."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, hide_input_in_errors=True, populate_by_name=True
    )


class ProposalRequest(_Paper):
    """The body of `POST /v1/proposals`."""

    email_id: EmailId = Field(alias="emailId")
    from_role: Role = Field(alias="from")
    to_role: Role = Field(alias="to")
    reason: Annotated[str, Field(max_length=MAX_REASON_CHARACTERS), AfterValidator(_printable)] | None = None
    queue: QueueId | None = None


class Waiting(_Paper):
    """Why an open proposal does not advance."""

    code: str
    since: datetime


class Decision(_Paper):
    """What a person decided; who the person was stays in the journal."""

    by: Literal["person"]
    at: datetime
    reason: str | None


class Outcome(_Paper):
    """How a proposal ended, or why its last step did not succeed."""

    code: str
    at: datetime
    copies_left: int | None = Field(alias="copiesLeft")


class ProposalView(_Paper):
    """A proposal as its agent sees it; times are UTC."""

    id: str
    state: State
    queue: str
    email_id: str = Field(alias="emailId")
    from_role: str = Field(alias="from")
    to_role: str = Field(alias="to")
    reason: str | None
    created_at: datetime = Field(alias="createdAt")
    expires_at: datetime = Field(alias="expiresAt")
    predecessor: str | None
    waiting: Waiting | None
    decision: Decision | None
    outcome: Outcome | None
