"""The contract of the private socket: what the executor may ask the reader, and nothing more.

Every answer is a hint. The executor believes none of it: it looks for itself with its own login. No mailbox name
crosses, since the same mailbox has different names for different logins.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from shared.proposal import AGENT_PATTERN, EmailId

MAX_ANSWER_OCTETS: Final = 256 * 1024
# Past this the reader counts as down and the proposal waits, visibly.
ANSWER_SECONDS: Final = 2.0
MAX_COPIES: Final = 1_000
MAX_READS: Final = 500

AgentName = Annotated[str, StringConstraints(pattern=AGENT_PATTERN)]


class _Paper(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, hide_input_in_errors=True, populate_by_name=True
    )


class Locate(_Paper):
    """`POST /locate`: where is this message? `account` is the reader's account id."""

    account: str
    email_id: EmailId = Field(alias="emailId")


class Copy(_Paper):
    """One place where the reader saw the message."""

    uidvalidity: Annotated[int, Field(ge=1, lt=2**32)]
    uid: Annotated[int, Field(ge=1, lt=2**32)]


class Located(_Paper):
    """The copies known, and whether every synced mailbox was looked at lately (`fresh`)."""

    copies: Annotated[list[Copy], Field(max_length=MAX_COPIES)]
    fresh: bool


class Opened(_Paper):
    """`POST /opened`: did this agent read the body of this message?"""

    agent: AgentName
    account: str
    email_id: EmailId = Field(alias="emailId")


class OpenedState(StrEnum):
    """`UNKNOWN`: the read log does not reach back far enough to tell."""

    OPENED = "opened"
    NOT_OPENED = "not_opened"
    UNKNOWN = "unknown"


class WasOpened(_Paper):
    """The answer to `POST /opened`; `at` is the latest time."""

    state: OpenedState
    at: datetime | None


class Reads(_Paper):
    """`POST /reads`: what did this agent read since then? Pages by `cursor`."""

    agent: AgentName
    since: datetime | None = None
    cursor: int | None = None


class Read(_Paper):
    """One line of the read log: a method call and the messages that its answer showed."""

    at: datetime
    method: str
    account: str | None
    email_ids: list[str] = Field(alias="emailIds")


class ReadsPage(_Paper):
    """Oldest first; `cursor` is None at the end."""

    reads: list[Read]
    cursor: int | None


class Agents(_Paper):
    """`GET /agents`: names that hold a reader token."""

    agents: list[AgentName]


class AccountStatus(_Paper):
    """How fresh and whole the index of one account is."""

    account: str
    fresh: bool
    messages: int
    last_sync_at: datetime | None = Field(alias="lastSyncAt")
    error: str | None


class Status(_Paper):
    """`GET /status`."""

    accounts: list[AccountStatus]
