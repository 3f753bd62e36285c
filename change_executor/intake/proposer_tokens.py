"""The tokens that let an agent propose to one queue: made and revoked by the operator, stored as digests."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Connection, bindparam, insert, select, update

from change_executor.agents import admit_again
from change_executor.journal import schema
from change_executor.journal.journal import Journal
from change_executor.journal.statement import Statement
from shared.proposal import AGENT_PATTERN
from shared.tokens import Token, TokenKind, new_token

_AGENT: Final = re.compile(AGENT_PATTERN, re.ASCII)

# The operator is at the machine, so that the log says no more than this.
_OPERATOR: Final = "operator"

# Ten years: past that a mandatory expiry is none.
MAX_LIFETIME_DAYS: Final = 3650


class TokenRefused(Exception):  # noqa: N818 - a refusal is what it is
    """A token that cannot be made or revoked as asked: `code`, what is wrong and what to do next."""

    def __init__(self, code: str, detail: str, fix: str) -> None:
        super().__init__(f"{detail} {fix}")
        self.code, self.detail, self.fix = code, detail, fix


class TokenFault(StrEnum):
    """Why a well-formed token opens nothing."""

    UNKNOWN = "token_unknown"
    EXPIRED = "token_expired"
    REVOKED = "token_revoked"


@dataclass(frozen=True, slots=True)
class Proposer:
    """Who a token speaks for, and the one queue that it opens; `token` is its id, None for who needs none."""

    agent: str
    queue: str
    token: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A row of `tokens` without its digest; times aware UTC."""

    id: str
    agent: str
    queue: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None


def create_token(
    journal: Journal,
    *,
    agent: str,
    queue: str,
    days: int,
    random_octets: Callable[[int], bytes],
    actor: str = _OPERATOR,
) -> Token:
    """Make a token of an agent for a queue, good for `days`; its text is shown once and never stored.

    `actor`: `operator` at the machine, or `person:NAME`.

    Raises `TokenRefused`, `JournalUnavailable`.
    """
    if _AGENT.fullmatch(agent) is None:
        raise TokenRefused(
            "malformed_agent", "That is not a name for an agent.", "Use 1 to 40 of a-z, 0-9 and dash; no capitals."
        )
    if not 1 <= days <= MAX_LIFETIME_DAYS:
        raise TokenRefused("lifetime", "A token ends by itself.", f"Give 1 to {MAX_LIFETIME_DAYS} days.")
    token = new_token(TokenKind.PROPOSER, random_octets)
    with journal.writing() as writing:
        expires_at = writing.now + timedelta(days=days)
        writing.connection.execute(
            insert(schema.tokens).values(
                id=token.id,
                agent=agent,
                queue=queue,
                digest=token.digest().hex(),
                created_at=writing.now,
                expires_at=expires_at,
            )
        )
        details = {"agent": agent, "queue": queue, "expires_at": schema.to_microseconds(expires_at)}
        writing.append("token:create", token.id, actor, details)
        admit_again(writing, agent, actor)
    return token


def revoke_token(journal: Journal, token_id: str, actor: str = _OPERATOR) -> TokenRow:
    """Revoke a token at once. Raises `TokenRefused` for an unknown or revoked one, `JournalUnavailable`."""
    with journal.writing() as writing:
        row = _row(writing.connection, token_id)
        if row is None:
            raise TokenRefused("unknown_token", "No token has this id.", "See: change-executor token list")
        if row.revoked_at is not None:
            raise TokenRefused("already_revoked", "This token is revoked already.", "Nothing is left to do.")
        writing.connection.execute(
            update(schema.tokens).where(schema.tokens.c.id == token_id).values(revoked_at=writing.now)
        )
        writing.append("token:revoke", token_id, actor, {"agent": row.agent, "queue": row.queue})
    return row


def list_tokens(journal: Journal) -> tuple[TokenRow, ...]:
    """Return every token that was made, oldest first."""
    with journal.reading() as connection:
        rows = connection.execute(select(*_SHOWN).order_by(schema.tokens.c.created_at, schema.tokens.c.id))
        return tuple(TokenRow(*row) for row in rows)


def opened_by(connection: Connection, token: Token, now: datetime) -> Proposer | TokenFault:
    """Return who a proposer token speaks for, or why it opens nothing; why is told to its holder alone."""
    row = _BY_ID.first(connection, {"wanted": token.id})
    if row is None or not token.matches(bytes.fromhex(row["digest"])):
        return TokenFault.UNKNOWN
    return _fault(row, now) or Proposer(row["agent"], row["queue"], token.id)


def closed_since(connection: Connection, proposer: Proposer, now: datetime) -> TokenFault | None:
    """Return why the token that let a proposer in opens nothing any more, or None: a body may take its time."""
    row = None if proposer.token is None else _ENDS.first(connection, {"wanted": proposer.token})
    return None if row is None else _fault(row, now)


def _fault(row: Mapping[str, Any], now: datetime) -> TokenFault | None:
    if row["revoked_at"] is not None:
        return TokenFault.REVOKED
    return TokenFault.EXPIRED if now >= row["expires_at"] else None


_columns = schema.tokens.c
_WANTED: Final = _columns.id == bindparam("wanted")
_ENDS: Final = Statement(select(_columns.revoked_at, _columns.expires_at).where(_WANTED))
_BY_ID: Final = Statement(
    select(_columns.agent, _columns.queue, _columns.digest, _columns.revoked_at, _columns.expires_at).where(_WANTED)
)
_SHOWN: Final = tuple(column for column in schema.tokens.columns if column.name != "digest")


def _row(connection: Connection, token_id: str) -> TokenRow | None:
    found = connection.execute(select(*_SHOWN).where(schema.tokens.c.id == token_id)).first()
    return None if found is None else TokenRow(*found)
