"""Who asks, as the doors hand it on: the agent, its token, and what the token grants."""

from dataclasses import dataclass, field
from datetime import datetime

from agent_reader.scope import ORDINARY, Scope


@dataclass(slots=True)
class Meter:
    """Octets of the answer to one request that were charged to the token's budget already."""

    charged: int = 0


@dataclass(frozen=True, slots=True)
class Agent:
    """Who asks, in one request: the agent's name, and the id of the token that it showed (no secret).

    `budget` is in octets of answers an hour, None for no limit; `peer` says where the request came from, for the read
    log: `127.0.0.1`, `uid 1000`, or nothing where nobody can tell.
    """

    name: str
    token_id: str
    scope: Scope = ORDINARY
    budget: int | None = None
    peer: str = ""
    meter: Meter = field(default_factory=Meter, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class KnownToken:
    """A token as a list shows it; times are aware UTC, `budget` octets an hour."""

    id: str
    agent: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    scope: Scope
    budget: int | None
    note: str
    used_at: datetime | None
    used_from: str
