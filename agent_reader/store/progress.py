"""How far each mailbox has come, how fast it goes, and how long the rest takes: for people, and for who asks the index.

Messages are counted as copies, as the server counts them; a view over other mailboxes counts its own again.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import apsw

from agent_reader.store.status import Failure, moment_of
from agent_reader.store.writing import Writing

# Short enough to follow a server that slows down, long enough for batches of 200.
_RATE_MINUTES: Final = 5
# Fewer, just now, say nothing: the first message comes in long before the first batch.
_TELLING_MESSAGES: Final = 20
_TELLING_SECONDS: Final = 60.0
# What is over once a login was let in; a server that breaks off each round says so for longer.
_KEPT_OUT_BY: Final = ("unreachable", "certificate", "no_starttls", "login_refused", "throttled", "configuration")
_DAY_MINUTES: Final = 24 * 60
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class MailboxProgress:
    """One mailbox: `messages` here, `expected` there (None before the first look).

    `set_aside` counts those that cannot be had; `looked_at` is when it was last brought up to date, `failure` why it
    could not be since.
    """

    id: str
    name: str
    messages: int
    expected: int | None
    set_aside: int
    looked_at: datetime | None
    failure: Failure | None

    @property
    def missing(self) -> int:
        """Messages that the server counted and that did not come in yet."""
        return max(0, (self.expected or 0) - self.messages - self.set_aside)


@dataclass(frozen=True, slots=True)
class Progress:
    """One account: `rate` in messages a second over the last minutes, `octets_today` from the server within 24 hours.

    `mean_octets` is the size of a message, as far as known here.
    """

    mailboxes: tuple[MailboxProgress, ...]
    is_first_sync: bool
    rate: float
    octets_today: int
    mean_octets: int | None

    @property
    def messages(self) -> int:
        """Messages that are here."""
        return sum(mailbox.messages + mailbox.set_aside for mailbox in self.mailboxes)

    @property
    def expected(self) -> int | None:
        """Messages that the server has; None while a mailbox was not looked at."""
        counts = [mailbox.expected for mailbox in self.mailboxes]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    @property
    def missing(self) -> int:
        """Messages that did not come in yet, as far as the server counted them."""
        return sum(mailbox.missing for mailbox in self.mailboxes)

    def time_left(self, daily_octets: int | None) -> timedelta | None:
        """How long until all is here, at this rate and under a daily limit of octets; None while that is not known."""
        if self.missing == 0:
            return timedelta(0)
        waits = []
        if self.rate > 0:
            waits.append(timedelta(seconds=self.missing / self.rate))
        if daily_octets is not None and self.mean_octets is not None:
            left_today = max(0, daily_octets - self.octets_today)
            waits.append(_DAY * max(0.0, (self.missing * self.mean_octets - left_today) / daily_octets))
        return max(waits, default=None)


def read_progress(connection: apsw.Connection, now: datetime) -> Progress:
    """Return the progress; inside a snapshot it is that snapshot's."""
    mailboxes = connection.execute(
        "SELECT m.id, m.name, (SELECT count(*) FROM copies c WHERE c.mailbox_key = m.key), m.expected, "
        "(SELECT count(*) FROM set_aside s WHERE s.mailbox_key = m.key), m.looked_at, "
        "m.failed_at, m.failure_code, m.failure_detail, m.failure_fix "
        "FROM mailboxes m WHERE m.standing <> 'gone' AND m.selectable ORDER BY m.name <> 'INBOX', m.name"
    )
    minute = int(now.timestamp()) // 60
    settled_at = connection.execute("SELECT settled_at FROM account").get
    mean = connection.execute("SELECT avg(size) FROM emails").get
    return Progress(
        mailboxes=tuple(
            MailboxProgress(
                id=str(mailbox_id),
                name=str(name),
                messages=int(messages),
                expected=None if expected is None else int(expected),
                set_aside=int(aside),
                looked_at=moment_of(looked_at),
                failure=Failure.of(*failure),
            )
            for mailbox_id, name, messages, expected, aside, looked_at, *failure in mailboxes
        ),
        is_first_sync=settled_at is None,
        rate=_rate(connection, now, minute),
        octets_today=octets_today(connection, now),
        mean_octets=None if mean is None else int(mean),
    )


def octets_today(connection: apsw.Connection, now: datetime) -> int:
    """Return how many octets the server sent within 24 hours."""
    since = int(now.timestamp()) // 60 - _DAY_MINUTES
    return int(connection.execute("SELECT sum(octets) FROM intake WHERE minute > ?", (since,)).get or 0)


def _rate(connection: apsw.Connection, now: datetime, minute: int) -> float:
    first, messages = connection.execute(
        "SELECT min(minute), sum(messages) FROM intake WHERE minute > ? AND messages > 0", (minute - _RATE_MINUTES,)
    ).fetchone() or (None, 0)
    if first is None:
        return 0.0
    seconds = max(1.0, now.timestamp() - 60 * first)
    return messages / seconds if messages >= _TELLING_MESSAGES or seconds >= _TELLING_SECONDS else 0.0


def note_intake(writing: Writing, *, messages: int = 0, octets: int = 0) -> None:
    """Count the messages that came in, and the octets that the server sent; what is older than a day is forgotten."""
    minute = writing.now // 60
    # What a clock that was ahead has dated is of this minute: it would count towards the day until that time comes.
    ahead = writing.connection.execute("SELECT sum(octets) FROM intake WHERE minute > ?", (minute,)).get
    if ahead is not None:
        writing.connection.execute("DELETE FROM intake WHERE minute > ?", (minute,))
        octets += int(ahead)
    writing.connection.execute(
        "INSERT INTO intake (minute, messages, octets) VALUES (?, ?, ?) "
        "ON CONFLICT (minute) DO UPDATE SET messages = messages + excluded.messages, octets = octets + excluded.octets",
        (minute, messages, octets),
    )
    writing.connection.execute("DELETE FROM intake WHERE minute <= ?", (minute - _DAY_MINUTES,))


def expect(writing: Writing, mailbox_key: int, exists: int) -> None:
    """Remember how many messages the server counts in a mailbox."""
    writing.connection.execute(
        "UPDATE mailboxes SET expected = ? WHERE key = ? AND expected IS NOT ?", (exists, mailbox_key, exists)
    )


def let_in(writing: Writing) -> None:
    """While the account never was whole, forget what kept its login out; later the next round does, in seconds."""
    if not writing.connection.execute("SELECT settled_at IS NULL FROM account").get:
        return
    for code in _KEPT_OUT_BY:
        over(writing, code)


def over(writing: Writing, code: str) -> None:
    """Forget a failure of this code, if it is what the status says."""
    writing.connection.execute(
        "UPDATE account SET failed_at = NULL, failure_code = NULL, failure_detail = NULL, failure_fix = NULL "
        "WHERE failure_code = ?",
        (code,),
    )


def mailbox_failed(writing: Writing, mailbox_key: int, code: str, detail: str, fix: str) -> None:
    """Remember why a mailbox cannot be looked at, until the next look; the first moment of it stays."""
    writing.connection.execute(
        "UPDATE mailboxes SET failed_at = coalesce(failed_at, ?), failure_code = ?, failure_detail = ?, "
        "failure_fix = ? WHERE key = ?",
        (writing.now, code, detail, fix, mailbox_key),
    )
