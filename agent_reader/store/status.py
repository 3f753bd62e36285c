"""How whole and how fresh a mirror is, for people and for the private socket."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import apsw

from agent_reader.sync.mirror import SetAside

# A round is made four times a minute, as a rule; ten minutes without one are worth a word, also where the settings want
# it so (`sync_seconds`): what an agent is told is how old the index is, not whose doing that is.
_FRESH_WITHIN: Final = timedelta(minutes=10)

STANDING: Final = "SELECT settled_at, failed_at, failure_code, failure_detail, failure_fix FROM account"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the last round ended early."""

    at: datetime
    code: str
    detail: str
    fix: str

    @classmethod
    def of(cls, at: int | None, code: str | None, detail: str | None, fix: str | None) -> "Failure | None":
        """Return what four columns say; `at` is null where nothing failed."""
        moment = moment_of(at)
        return None if moment is None else cls(moment, code or "", detail or "", fix or "")


@dataclass(frozen=True, slots=True)
class Standing:
    """When the last whole round ended (aware UTC), and why the last one ended early if it did.

    One row says it, however large the account: it is asked for with each tool call and each look of a monitor.
    """

    settled_at: datetime | None
    failure: Failure | None

    def is_fresh(self, now: datetime) -> bool:
        """Whether a whole round ended lately and none has failed since; one that is yet to come tells nothing."""
        return self.failure is None and self.settled_at is not None and abs(now - self.settled_at) <= _FRESH_WITHIN


@dataclass(frozen=True, slots=True)
class MirrorStatus(Standing):
    """What is told of a mirror besides, counted for whoever looks at it.

    `set_aside` pairs each message that could not be had with its mailbox's name.
    """

    messages: int
    set_aside: tuple[tuple[str, SetAside], ...]


@dataclass(frozen=True, slots=True)
class Location:
    """Where the mirror saw copies of a message, as (UIDVALIDITY, UID), and whether it is fresh."""

    copies: tuple[tuple[int, int], ...]
    fresh: bool


def moment_of(seconds: int | None) -> datetime | None:
    """Return a column's seconds since 1970 as aware UTC."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def read_standing(connection: apsw.Connection) -> Standing:
    """Return how fresh the mirror is; inside a snapshot it is that snapshot's."""
    row = connection.execute(STANDING).fetchone()
    assert row is not None
    settled_at, *failure = row
    return Standing(moment_of(settled_at), Failure.of(*failure))


def read_status(connection: apsw.Connection) -> MirrorStatus:
    """Return the status; inside a snapshot it is that snapshot's. It counts every Email."""
    standing = read_standing(connection)
    messages = connection.execute("SELECT count(*) FROM emails WHERE visible").get
    aside = connection.execute(
        "SELECT m.name, s.uid, s.code, s.cause, s.fix FROM set_aside s JOIN mailboxes m ON m.key = s.mailbox_key "
        "ORDER BY m.name, s.uid"
    )
    return MirrorStatus(
        settled_at=standing.settled_at,
        failure=standing.failure,
        messages=int(messages),
        set_aside=tuple((str(name), SetAside(uid, cd, cause, mend)) for name, uid, cd, cause, mend in aside),
    )


@dataclass(frozen=True, slots=True)
class MailboxBehind:
    """A Mailbox that cannot be looked at now: when it was last brought up to date, and why it cannot be since."""

    id: str
    looked_at: datetime | None
    failure_code: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the mail the index covers, for whoever asks it.

    `unread_mailbox_ids` are Mailboxes that were not read to their end yet; `set_aside` counts messages that cannot be
    had; `settled_at` is when the last whole round ended, `failure_code` why the one after it did not. `behind` are
    Mailboxes that are older than that.
    """

    unread_mailbox_ids: tuple[str, ...]
    set_aside: int
    settled_at: datetime | None
    failure_code: str | None
    behind: tuple[MailboxBehind, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether every Mailbox was read to its end, once at least."""
        return self.settled_at is not None and not self.unread_mailbox_ids


# Asked with each search: as a rule every Mailbox was read, and nothing more is to be told.
_IS_COMPLETE: Final = (
    "SELECT settled_at IS NOT NULL AND NOT EXISTS "
    "(SELECT 1 FROM mailboxes WHERE standing = 'listed' AND selectable AND looked_tick IS NULL) FROM account"
)


def covers_all(connection: apsw.Connection) -> bool:
    """Return whether the coverage is complete, in one look."""
    return bool(connection.execute(_IS_COMPLETE).get)


# Of a message over the limit that is read (`identity.py`: its id begins with X) nothing but the header is known.
_LEAVES_TEXTS_OUT: Final = (
    "SELECT EXISTS (SELECT 1 FROM emails WHERE kept = 0 AND visible) "
    "OR EXISTS (SELECT 1 FROM emails WHERE id > 'X' AND id < 'Y' AND visible)"
)


def leaves_texts_out(connection: apsw.Connection) -> bool:
    """Return whether the text of some Email that is shown is not kept: words find that one by its header alone."""
    return bool(connection.execute(_LEAVES_TEXTS_OUT).get)


def read_coverage(connection: apsw.Connection) -> Coverage:
    """Return the coverage; inside a snapshot it is that snapshot's."""
    settled_at, failure_code = connection.execute("SELECT settled_at, failure_code FROM account").fetchone() or (
        None,
        None,
    )
    unread = connection.execute(
        "SELECT id FROM mailboxes WHERE standing = 'listed' AND selectable AND looked_tick IS NULL ORDER BY name"
    )
    behind = connection.execute(
        "SELECT id, looked_at, failure_code FROM mailboxes WHERE standing = 'listed' AND failed_at IS NOT NULL "
        "ORDER BY name"
    )
    return Coverage(
        unread_mailbox_ids=tuple(str(mailbox_id) for (mailbox_id,) in unread),
        set_aside=int(connection.execute("SELECT count(*) FROM set_aside").get),
        settled_at=None if settled_at is None else datetime.fromtimestamp(settled_at, UTC),
        failure_code=failure_code,
        behind=tuple(MailboxBehind(str(each), moment_of(at), str(code)) for each, at, code in behind),
    )
