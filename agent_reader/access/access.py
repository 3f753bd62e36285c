"""The door's book: tokens made, looked up and revoked, and the read log, in one file."""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import apsw

from agent_reader.access import database, problems, read_log
from agent_reader.access.read_log import Shown, microseconds, moment_of
from agent_reader.errors import AccessUnavailable
from shared.link import MAX_READS, Read, WasOpened
from shared.problem import Problem
from shared.proposal import AGENT_PATTERN
from shared.settings import ConfigurationError
from shared.tokens import DEFAULT_LIFETIME_DAYS, Token, TokenKind, bearer_of, new_token, parse_token

Clock = Callable[[], datetime]
Randomness = Callable[[int], bytes]

DEFAULT_LIFETIME: Final = timedelta(days=DEFAULT_LIFETIME_DAYS)
# A token that outlives the machine it was made for is one without an expiry.
MAX_LIFETIME: Final = timedelta(days=3_660)


@dataclass(frozen=True, slots=True)
class Agent:
    """Who asks: the agent's name, and the id of the token that it showed (no secret)."""

    name: str
    token_id: str


@dataclass(frozen=True, slots=True)
class KnownToken:
    """A token as a list shows it; times are aware UTC."""

    id: str
    agent: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None


class Access:
    """Tokens and the read log of one reader; any thread may call.

    Opens `access.db` in a folder, making or migrating it first. Raises `ConfigurationError`; later
    `AccessUnavailable` where the file cannot be used.
    """

    def __init__(self, folder: Path, clock: Clock, randomness: Randomness) -> None:
        path = database.open_file(folder)
        self._clock, self._randomness = clock, randomness
        # Apart, so that a look at a token never waits for a commit.
        self._writer, self._reader = database.connect(path), database.connect(path, read_only=True)
        self._writing_turn, self._reading_turn = threading.Lock(), threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, after the transaction that runs."""
        with self._writing_turn, self._reading_turn:
            self._writer.close()
            self._reader.close()

    def create_token(self, agent: str, lifetime: timedelta = DEFAULT_LIFETIME) -> Token:
        """Make a token for an agent; its text is shown once and not kept. Raises `ConfigurationError`."""
        if re.fullmatch(AGENT_PATTERN, agent, re.ASCII) is None:
            raise ConfigurationError(
                "--agent", f"{agent[:60]!r} is no name of an agent.", "Use 1 to 40 of a-z, 0-9 and `-`."
            )
        if not timedelta(seconds=1) <= lifetime <= MAX_LIFETIME:
            raise ConfigurationError(
                "--days",
                "is no lifetime of a token.",
                f"Use 1 to {MAX_LIFETIME.days} days; {DEFAULT_LIFETIME_DAYS} is usual.",
            )
        token = new_token(TokenKind.READER, self._randomness)
        now = self._clock()
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO tokens (id, agent, digest, created_at, expires_at) VALUES (?, ?, ?, ?, ?)",
                (token.id, agent, token.digest(), microseconds(now), microseconds(now + lifetime)),
            )
        return token

    def tokens(self) -> list[KnownToken]:
        """Return every token, oldest first; never a secret."""
        with self._look() as connection:
            rows: list[Any] = connection.execute(
                "SELECT id, agent, created_at, expires_at, revoked_at FROM tokens ORDER BY created_at, id"
            ).fetchall()
        return [_known_token(*row) for row in rows]

    def revoke(self, token_id: str) -> bool:
        """Make a token open nothing from now on; False where there is none of this id that still could."""
        with self._transaction() as connection:
            revoked = connection.execute(
                "UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL RETURNING id",
                (microseconds(self._clock()), token_id),
            ).get
        return revoked is not None

    def authenticate(self, authorization: str | None) -> Agent | Problem:
        """Return who an Authorization field belongs to, or the 401 problem.

        Whether a token has expired or was revoked is told only to whoever holds it. Raises `AccessUnavailable`.
        """
        untrusted_secret = bearer_of(authorization)
        if untrusted_secret is None:
            return problems.no_token()
        if untrusted_secret.startswith(f"{TokenKind.PROPOSER}_"):
            return problems.wrong_token_kind()
        token = parse_token(untrusted_secret)
        if token is None:
            return problems.unknown_token()
        with self._look() as connection:
            row = connection.execute(
                "SELECT agent, digest, expires_at, revoked_at FROM tokens WHERE id = ?", (token.id,)
            ).fetchone()
        if row is None:
            return problems.unknown_token()
        agent, digest, expires_at, revoked_at = row
        if not token.matches(digest):
            return problems.unknown_token()
        if revoked_at is not None:
            return problems.revoked_token()
        if expires_at <= microseconds(self._clock()):
            return problems.expired_token()
        return Agent(str(agent), token.id)

    def record(self, agent: Agent, shown: Sequence[Shown]) -> None:
        """Put on record what an answer shows; once this returns, it is on disk. Raises `AccessUnavailable`."""
        if not shown:
            return
        with self._transaction() as connection:
            read_log.append(connection, self._clock(), agent.name, agent.token_id, shown)

    def reads(
        self, agent: str, since: datetime | None = None, cursor: int | None = None, limit: int = MAX_READS
    ) -> list[tuple[int, Read]]:
        """Return up to `limit` (cursor, line) of what an agent read, oldest first, after a cursor and since a time."""
        with self._look() as connection:
            return read_log.page(connection, agent, since, cursor, limit)

    def opened(self, agent: str, account: str, email_id: str) -> WasOpened:
        """Return whether an agent was given the text of an Email's body, and when last."""
        with self._look() as connection:
            return read_log.opened(connection, agent, account, email_id)

    def agents(self) -> list[str]:
        """Return the agents that hold a token which opens now."""
        with self._look() as connection:
            rows = connection.execute(
                "SELECT DISTINCT agent FROM tokens WHERE revoked_at IS NULL AND expires_at > ? ORDER BY agent",
                (microseconds(self._clock()),),
            ).fetchall()
        return [str(agent) for (agent,) in rows]

    @contextmanager
    def _transaction(self) -> Iterator[apsw.Connection]:
        with self._writing_turn, _unavailable():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                # SQLite may have ended it by itself (a full disk); then there is nothing to take back.
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    @contextmanager
    def _look(self) -> Iterator[apsw.Connection]:
        with self._reading_turn, _unavailable():
            yield self._reader


@contextmanager
def _unavailable() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise AccessUnavailable(type(error).__name__) from error


def _known_token(token_id: str, agent: str, created_at: int, expires_at: int, revoked_at: int | None) -> KnownToken:
    return KnownToken(
        id=token_id,
        agent=agent,
        created_at=moment_of(created_at),
        expires_at=moment_of(expires_at),
        revoked_at=None if revoked_at is None else moment_of(revoked_at),
    )
