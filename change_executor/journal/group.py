"""Group commit: threads write one after the other, and whoever finds nobody behind him commits for all before him.

A transaction costs one wait for the disk, however many wrote in it; so sixteen writers wait about as long as one.
Each is answered after the commit that holds what it wrote, or saw. What one of them did wrong is taken back alone.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection, Engine, RootTransaction
from sqlalchemy.exc import DBAPIError

from change_executor.errors import JournalUnavailable
from change_executor.journal.engine import BUSY_MILLISECONDS, driver_of, machine_errors, still_in_transaction

# The first of a group waits for the last. A write takes well under a millisecond, so this is some twenty milliseconds;
# and a command of another process gets its turn in between.
MAX_GROUP: Final = 64


@dataclass(eq=False, slots=True)
class Group:
    """The transaction of those who commit together; `members` have written in it."""

    connection: Connection
    transaction: RootTransaction
    driver: sqlite3.Connection
    members: int = 0
    ended: threading.Event = field(default_factory=threading.Event)
    failure: JournalUnavailable | None = None

    def begin_again(self) -> None:
        """Take back all that was written in it, which must be nobody's but the caller's; others may write between."""
        assert not self.members, "what others wrote is theirs"
        self.transaction.rollback()
        try:
            self.transaction = self.connection.begin()
        except BaseException:
            self.driver.rollback()
            raise


class GroupCommit:
    """One held connection on which the threads of a process take turns; the engine's transactions hold the lock.

    `check` raises `JournalUnavailable` where nothing may be written, before each transaction.
    """

    def __init__(self, engine: Engine, check: Callable[[], None]) -> None:
        self._engine, self._check = engine, check
        self._turn = threading.Lock()
        self._counting = threading.Lock()
        self._queued = 0
        self._connection: Connection | None = None
        self._group: Group | None = None
        self._whose_turn: int | None = None

    @contextmanager
    def turn(self) -> Iterator[Connection]:
        """Wait for one's turn, write in the block, and return once the group is committed.

        What leaves the block is raised after that commit, and what was written in it is taken back. Raises
        `JournalUnavailable` where the group could not be committed; then nobody of it wrote anything.
        """
        with self.turn_of_many() as group, alone(group.driver):
            yield group.connection

    @contextmanager
    def turn_of_many(self) -> Iterator[Group]:
        """Wait for a turn as above, for a block that takes back by itself what its parts did wrong."""
        self._assert_no_turn()
        self._take_turn()
        try:
            group = self._group or self._begin()
        except BaseException:
            self._turn.release()
            raise
        with self.ending(group):
            yield group

    @contextmanager
    def turn_at_once(self) -> Iterator[Group | None]:
        """Take a turn that lasts past the block, until `ending`; None where one would have to wait for it or a lock.

        The block has to take back by itself what its parts did wrong, as above, and lets nothing out of it.
        """
        self._assert_no_turn()
        group = self._taken_at_once()
        if group is not None:
            self._whose_turn = threading.get_ident()
        try:
            yield group
        finally:
            if group is not None:
                self._whose_turn = None

    @contextmanager
    def ending(self, group: Group) -> Iterator[None]:
        """End such a turn with a block that may write in it too, by any thread; returns and raises as a turn does."""
        refused: BaseException | None = None
        self._whose_turn = threading.get_ident()
        try:
            with machine_errors():
                yield
        except BaseException as error:  # noqa: BLE001 - it is raised again below, once the others are served
            refused = error
        finally:
            self._whose_turn = None
        try:
            self._conclude(group, refused)
        finally:
            self._turn.release()
        group.ended.wait()
        if group.failure is not None:
            raise JournalUnavailable(str(group.failure), group.failure.fault) from group.failure
        if refused is not None:
            raise refused

    def close(self) -> None:
        """Close the held connection; no turn may be under way."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _take_turn(self) -> None:
        with self._counting:
            self._queued += 1
        try:
            self._turn.acquire()
        finally:
            with self._counting:
                self._queued -= 1

    def _held(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection

    def _begin(self) -> Group:
        self._check()
        with machine_errors():
            try:
                connection = self._held()
                group = Group(connection, connection.begin(), driver_of(connection))
            except (DBAPIError, JournalUnavailable):
                self._drop()
                raise
        self._group = group
        return group

    def _taken_at_once(self) -> Group | None:
        if not self._turn.acquire(blocking=False):
            return None
        group = self._group or self._begun_at_once()
        if group is None:
            self._turn.release()
        return group

    def _begun_at_once(self) -> Group | None:
        if self._connection is None:
            # Opening one may take long.
            return None
        # After any failure the next one opens another connection, and has patience.
        with suppress(JournalUnavailable), machine_errors():
            driver = driver_of(self._connection)
            driver.execute("PRAGMA busy_timeout=0")
            try:
                return self._begin()
            finally:
                driver.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
        return None

    def _assert_no_turn(self) -> None:
        assert self._whose_turn != threading.get_ident(), "a write transaction inside another would wait for itself"

    def _conclude(self, group: Group, refused: BaseException | None) -> None:
        try:
            still_in_transaction(group.driver)
        except JournalUnavailable as failure:
            # With it went what the others of the group wrote before.
            group.failure = refused if isinstance(refused, JournalUnavailable) else failure
        else:
            group.members += refused is None
            with self._counting:
                goes_on = self._queued > 0 and group.members < MAX_GROUP
            if goes_on:
                return
            self._commit(group)
        self._group = None
        if group.failure is not None:
            if group.connection.get_transaction() is group.transaction:
                with suppress(DBAPIError):
                    group.transaction.rollback()
            self._drop()
        group.ended.set()

    def _commit(self, group: Group) -> None:
        try:
            with machine_errors():
                group.transaction.commit()
        except JournalUnavailable as failure:
            group.failure = failure

    def _drop(self) -> None:
        # After a failure of the machine: the next one begins with a new connection.
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(DBAPIError):
                connection.invalidate()
                connection.close()


@contextmanager
def alone(driver: sqlite3.Connection) -> Iterator[None]:
    """Take back what the block wrote if anything leaves it, and nothing else of the group."""
    driver.execute("SAVEPOINT one")
    try:
        yield
    except BaseException:
        # Where SQLite has ended the whole transaction by itself there is no savepoint any more; `_end_turn` sees that.
        with suppress(sqlite3.Error):
            driver.execute("ROLLBACK TO one")
            driver.execute("RELEASE one")
        raise
    still_in_transaction(driver)
    driver.execute("RELEASE one")
