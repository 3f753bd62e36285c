"""The door's book: tokens made, looked up and revoked, and the read log, in one file."""

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import apsw

from agent_reader.access import chain, database, problems, read_log, scope_text
from agent_reader.access.agents import Agent, KnownToken
from agent_reader.access.budgets import Budgets
from agent_reader.access.chain import Link, Verified
from agent_reader.access.read_log import Line, Record, Shown, microseconds, moment_of
from agent_reader.access.together import Together
from agent_reader.errors import AccessUnavailable
from agent_reader.keep import READS_KEPT_DAYS
from agent_reader.scope import ORDINARY, Scope
from shared.handing_in import HandedIn
from shared.link import MAX_READS, Read, WasOpened
from shared.problem import Problem
from shared.proposal import AGENT_PATTERN
from shared.settings import ConfigurationError
from shared.time_and_chance import Clock, RandomOctets
from shared.tokens import DEFAULT_LIFETIME_DAYS, Token, TokenKind, bearer_of, new_token, parse_token

DEFAULT_LIFETIME: Final = timedelta(days=DEFAULT_LIFETIME_DAYS)
# A token that outlives the machine it was made for is one without an expiry.
MAX_LIFETIME: Final = timedelta(days=3_660)
_DEFAULT_KEEP: Final = timedelta(days=READS_KEPT_DAYS)
# A last use goes to disk with the next answer on record; one that stands alone for so long gets a commit of its own.
_LATEST_NOTE: Final = timedelta(minutes=1)

# In one commit: at most so many answers wait for one.
_MOST_RECORDS: Final = 64


class Access:
    """Tokens and the read log of one reader; any thread may call.

    Opens `access.db` in a folder, making or migrating it first. Raises `ConfigurationError`; later
    `AccessUnavailable` where the file cannot be used. `keep` is how long a row of the read log is kept.
    """

    def __init__(
        self, folder: Path, clock: Clock, random_octets: RandomOctets, *, keep: timedelta = _DEFAULT_KEEP
    ) -> None:
        path = database.open_file(folder)
        self._clock, self._random_octets, self._keep = clock, random_octets, keep
        self.budgets = Budgets(clock, self._octets_since)
        # Token id to the time and place of its last use, where that is not on disk yet.
        self._uses: dict[str, tuple[int, str]] = {}
        # Apart, so that a look at a token never waits for a commit.
        self._writer, self._reader = database.connect(path), database.connect(path, read_only=True)
        self._writing_turn, self._reading_turn = threading.Lock(), threading.Lock()
        self._records = Together(self.write_all)
        self._handed_in: HandedIn[Record] = HandedIn(self, "read log", _MOST_RECORDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, after the transactions that run or wait."""
        self._handed_in.close()
        if self._uses:
            with contextlib.suppress(AccessUnavailable), self._transaction() as connection:
                self._note_uses(connection)
        with self._writing_turn, self._reading_turn:
            self._writer.close()
            self._reader.close()

    def create_token(
        self,
        agent: str,
        lifetime: timedelta = DEFAULT_LIFETIME,
        *,
        scope: Scope = ORDINARY,
        budget: int | None = None,
        note: str = "",
    ) -> Token:
        """Make a token for an agent; its text is shown once and not kept. Raises `ConfigurationError`.

        `budget` in octets of answers an hour, None for no limit.
        """
        if re.fullmatch(AGENT_PATTERN, agent, re.ASCII) is None:
            raise ConfigurationError(
                "--agent", f"{agent[:60]!r} is no name of an agent.", "Use 1 to 40 of a-z, 0-9 and `-`."
            )
        if not timedelta(seconds=1) <= lifetime <= MAX_LIFETIME:
            raise ConfigurationError(
                "--expires",
                "is no lifetime of a token.",
                f"Use 1 to {MAX_LIFETIME.days} days; {DEFAULT_LIFETIME_DAYS} is usual.",
            )
        token = new_token(TokenKind.READER, self._random_octets)
        now = self._clock()
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO tokens (id, agent, digest, created_at, expires_at, scope, budget, note) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    token.id,
                    agent,
                    token.digest(),
                    microseconds(now),
                    microseconds(now + lifetime),
                    scope_text.pack(scope),
                    budget,
                    note,
                ),
            )
        return token

    def tokens(self) -> list[KnownToken]:
        """Return every token, oldest first; never a secret."""
        with self._look() as connection:
            rows: list[Any] = connection.execute(
                "SELECT id, agent, created_at, expires_at, revoked_at, scope, budget, note, used_at, used_from "
                "FROM tokens ORDER BY created_at, id"
            ).fetchall()
        return [_known_token(row) for row in rows]

    def revoke(self, token_id: str) -> bool:
        """Make a token open nothing from now on; False where there is none of this id that still could."""
        with self._transaction() as connection:
            revoked = connection.execute(
                "UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL RETURNING id",
                (microseconds(self._clock()), token_id),
            ).get
        return revoked is not None

    def authenticate(self, authorization: str | None, peer: str = "") -> Agent | Problem:
        """Return who an Authorization field belongs to, or the 401 problem; `peer` is where it came from.

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
                "SELECT agent, digest, expires_at, revoked_at, scope, budget FROM tokens WHERE id = ?", (token.id,)
            ).fetchone()
        if row is None:
            return problems.unknown_token()
        agent, digest, expires_at, revoked_at, scope, budget = row
        if not token.matches(digest):
            return problems.unknown_token()
        if (problem := self._ended_by(expires_at, revoked_at)) is not None:
            return problem
        self._uses[token.id] = (microseconds(self._clock()), peer)
        return Agent(str(agent), token.id, scope_text.unpack(scope), budget, peer)

    def still_opens(self, token_id: str) -> bool:
        """Whether a token that opened has been neither revoked nor ended since: for what lasts. One indexed look."""
        times = self._times(token_id)
        return times is not None and self._ended_by(*times) is None

    def record(self, agent: Agent, shown: Sequence[Shown], octets: int = 0) -> None:
        """Put on record what an answer shows; once this returns, it is on disk.

        `octets` of the whole answer are charged to the token first. Raises a `Problem` where its budget has no room
        for them or the token has ended meanwhile, and `AccessUnavailable`; either way nothing may leave, and nothing is
        on record.
        """
        if self._is_charged(agent, shown, octets):
            self._records.write(Record(agent, shown))

    async def record_soon(self, agent: Agent, shown: Sequence[Shown], octets: int = 0) -> None:
        """Do as `record` does, without holding up the event loop."""
        if self._is_charged(agent, shown, octets):
            await self._handed_in.write(Record(agent, shown))

    def write_all(self, records: Sequence[Record]) -> list[AccessUnavailable | None]:
        """Put records in the read log; return what each of them failed with, None where it is on disk."""
        failure = self._failure(records)
        if failure is not None and len(records) > 1:
            # One that cannot be written is no reason to refuse the others.
            return [self._failure([record]) for record in records]
        return [failure] * len(records)

    def begin_all(self, records: Sequence[Record]) -> Callable[[], list[AccessUnavailable | None]] | None:
        """Do as `write_all` does, waiting for nobody (`shared.handing_in.Book`)."""
        try:
            with contextlib.ExitStack() as begun:
                self._append(begun.enter_context(self._transaction(waits=False)), records)
                transaction = begun.pop_all()
        except AccessUnavailable:
            # Which may be no more than having to wait.
            return None

        def commit() -> list[AccessUnavailable | None]:
            failure = None
            try:
                transaction.close()
            except AccessUnavailable as error:
                failure = error
            return [failure] * len(records)

        return commit

    def reads(
        self, agent: str, since: datetime | None = None, cursor: int | None = None, limit: int = MAX_READS
    ) -> list[tuple[int, Read]]:
        """Return up to `limit` (cursor, line) of what an agent read, oldest first, after a cursor and since a time."""
        with self._look() as connection:
            return read_log.page(connection, agent, since, cursor, limit)

    def lines(self, *, agent: str | None, since: datetime | None, email_id: str | None, limit: int) -> list[Line]:
        """Return the newest lines of the read log, oldest of them first; what is None does not narrow."""
        with self._look() as connection:
            return read_log.lines(connection, agent, since, email_id, limit)

    def recorded(self) -> int:
        """Return how many lines the read log ever got. Raises `AccessUnavailable`."""
        with self._look() as connection:
            return chain.head(connection).key

    def verify(self, expected: Link | None = None) -> Verified:
        """Walk the whole read log and say whether it is as it was written; `expected` is a head known from before."""
        with self._look() as connection:
            return chain.verify(connection, expected)

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

    def _is_charged(self, agent: Agent, shown: Sequence[Shown], octets: int) -> bool:
        """Charge an answer; whether there is something to put on record. Raises a `Problem`."""
        # An answer may take seconds, and its token may have been revoked since it was asked for.
        times = self._times(agent.token_id)
        if times is not None and (problem := self._ended_by(*times)) is not None:
            raise problem
        if octets:
            self.budgets.charge(agent, octets)
        return bool(shown) or self._has_old_uses()

    def _times(self, token_id: str) -> tuple[int, int | None] | None:
        """When a token expires and when it was revoked."""
        with self._look() as connection:
            row = connection.execute("SELECT expires_at, revoked_at FROM tokens WHERE id = ?", (token_id,)).fetchone()
        return None if row is None else (row[0], row[1])

    def _ended_by(self, expires_at: int, revoked_at: int | None) -> Problem | None:
        if revoked_at is not None:
            return problems.revoked_token()
        return problems.expired_token() if expires_at <= microseconds(self._clock()) else None

    def _octets_since(self, token_id: str, since: datetime) -> int:
        with self._look() as connection:
            return read_log.octets_since(connection, token_id, since)

    def _failure(self, records: Sequence[Record]) -> AccessUnavailable | None:
        try:
            with self._transaction() as connection:
                self._append(connection, records)
        except AccessUnavailable as failure:
            return failure
        return None

    def _append(self, connection: apsw.Connection, records: Sequence[Record]) -> None:
        now = self._clock()
        read_log.append(connection, now, records)
        read_log.prune(connection, now, self._keep)
        self._note_uses(connection)

    def _has_old_uses(self) -> bool:
        oldest = min((at for at, _ in list(self._uses.values())), default=None)
        return oldest is not None and microseconds(self._clock() - _LATEST_NOTE) >= oldest

    def _note_uses(self, connection: apsw.Connection) -> None:
        uses, self._uses = self._uses, {}
        connection.executemany(
            "UPDATE tokens SET used_at = ?, used_from = ? WHERE id = ?",
            [(at, peer, token_id) for token_id, (at, peer) in uses.items()],
        )

    @contextmanager
    def _transaction(self, *, waits: bool = True) -> Iterator[apsw.Connection]:
        """Write in a turn; it may begin in one thread and end in another. Raises `AccessUnavailable`.

        One that does not wait is refused where somebody else writes, in this process or another.
        """
        if not self._writing_turn.acquire(blocking=waits):
            raise AccessUnavailable("another writes")
        try:
            with _unavailable():
                database.begin(self._writer, waits=waits)
                try:
                    yield self._writer
                    self._writer.execute("COMMIT")
                except BaseException:
                    # SQLite may have ended it by itself (a full disk); then there is nothing to take back.
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK")
                    raise
        finally:
            self._writing_turn.release()

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


def _known_token(row: Sequence[Any]) -> KnownToken:
    token_id, agent, created_at, expires_at, revoked_at, scope, budget, note, used_at, used_from = row
    return KnownToken(
        id=token_id,
        agent=agent,
        created_at=moment_of(created_at),
        expires_at=moment_of(expires_at),
        revoked_at=None if revoked_at is None else moment_of(revoked_at),
        scope=scope_text.unpack(scope),
        budget=budget,
        note=note,
        used_at=None if used_at is None else moment_of(used_at),
        used_from=used_from,
    )
