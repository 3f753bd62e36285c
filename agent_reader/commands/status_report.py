"""What `agent-reader status` says: gathered from the index once, for programs (JSON) and for people alike."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, Self

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from agent_reader.commands.showing import moment, shown
from agent_reader.errors import IndexDamaged
from agent_reader.store.progress import MailboxProgress, Progress
from agent_reader.store.status import Failure, MirrorStatus

_BAR_CHARACTERS: Final = 30
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_MEGABYTE: Final = 1_000_000


class _Said(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class FailureReport(_Said):
    """Since when something does not work, why, and what to do."""

    at: datetime
    code: str
    detail: str
    fix: str

    @classmethod
    def of(cls, failure: Failure | None) -> Self | None:
        """Return the report of a failure, if there is one."""
        if failure is None:
            return None
        return cls(at=failure.at, code=failure.code, detail=failure.detail, fix=failure.fix)


class SetAsideReport(_Said):
    """One message that could not be had."""

    mailbox: str
    uid: int
    code: str
    cause: str
    fix: str


class MailboxReport(_Said):
    """One mailbox: messages here and, as the server counts, there; null before it was looked at."""

    id: str
    name: str
    messages: int
    expected: int | None
    set_aside: int
    looked_at: datetime | None
    failure: FailureReport | None

    @classmethod
    def of(cls, mailbox: MailboxProgress) -> Self:
        """Return the report of one mailbox."""
        return cls(
            id=mailbox.id,
            name=mailbox.name,
            messages=mailbox.messages,
            expected=mailbox.expected,
            set_aside=mailbox.set_aside,
            looked_at=mailbox.looked_at,
            failure=FailureReport.of(mailbox.failure),
        )


class AccountReport(_Said):
    """One account. `emails` counts each message once, `messages` and `expected` count copies, as the server does.

    `expected` is null while a mailbox was not looked at, `seconds_left` while nobody can tell; `daily_octets` is the
    limit of a day, null without one.
    """

    account: str
    is_fresh: bool
    is_first_sync: bool
    last_sync_at: datetime | None
    emails: int
    messages: int
    expected: int | None
    messages_a_second: float
    octets_today: int
    daily_octets: int | None
    seconds_left: int | None
    failure: FailureReport | None
    mailboxes: tuple[MailboxReport, ...]
    set_aside: tuple[SetAsideReport, ...]

    @property
    def share(self) -> float:
        """How much of it is here, 0 to 1, as far as the server was asked."""
        known = sum(mailbox.expected or 0 for mailbox in self.mailboxes)
        return min(1.0, self.messages / known) if known else float(not self.is_first_sync)


class StatusReport(_Said):
    """All accounts of the configuration."""

    accounts: tuple[AccountReport, ...]

    @property
    def is_going_on(self) -> bool:
        """Whether a first sync has not come to its end."""
        return any(account.is_first_sync for account in self.accounts)


def account_report(
    account_id: str, status: MirrorStatus, progress: Progress, *, is_fresh: bool, daily_octets: int | None
) -> AccountReport:
    """Return the report of one account."""
    left = progress.time_left(daily_octets)
    return AccountReport(
        account=account_id,
        is_fresh=is_fresh,
        is_first_sync=progress.is_first_sync,
        last_sync_at=status.settled_at,
        emails=status.messages,
        messages=progress.messages,
        expected=progress.expected,
        messages_a_second=round(progress.rate, 1),
        octets_today=progress.octets_today,
        daily_octets=daily_octets,
        seconds_left=None if left is None else round(left.total_seconds()),
        failure=FailureReport.of(status.failure),
        mailboxes=tuple(map(MailboxReport.of, progress.mailboxes)),
        set_aside=tuple(
            SetAsideReport(mailbox=name, uid=aside.uid, code=aside.code, cause=aside.cause, fix=aside.fix)
            for name, aside in status.set_aside
        ),
    )


def never_synced(account_id: str) -> AccountReport:
    """Return the report of an account that has no index yet."""
    return AccountReport(
        account=account_id,
        is_fresh=False,
        is_first_sync=True,
        last_sync_at=None,
        emails=0,
        messages=0,
        expected=None,
        messages_a_second=0.0,
        octets_today=0,
        daily_octets=None,
        seconds_left=None,
        failure=None,
        mailboxes=(),
        set_aside=(),
    )


def damaged(account_id: str, now: datetime) -> AccountReport:
    """Return the report of an account whose index cannot be read."""
    failure = FailureReport(at=now, code=IndexDamaged.code, detail=IndexDamaged.detail, fix=IndexDamaged.fix)
    return never_synced(account_id).model_copy(update={"failure": failure})


def lines(account: AccountReport, now: datetime) -> Iterator[str]:
    """Yield what a person reads of one account."""
    if not account.mailboxes and account.failure is None:
        yield f"{account.account}: never synced"
        return
    fresh = "fresh" if account.is_fresh else "stale"
    last = moment(account.last_sync_at) if account.last_sync_at else "never"
    yield f"{account.account}: {fresh}, {account.emails} messages, last whole sync {last}"
    if account.mailboxes and (account.is_first_sync or account.seconds_left):
        yield f"  {bar(account)}"
    if account.failure is not None:
        yield from _failure_lines(account.failure)
    for mailbox in account.mailboxes:
        expected = "?" if mailbox.expected is None else mailbox.expected
        yield f"  {shown(mailbox.name)}: {mailbox.messages} of {expected}, {_looked(mailbox.looked_at, now)}"
        if mailbox.failure is not None:
            yield from (f"  {line}" for line in _failure_lines(mailbox.failure))
    for aside in account.set_aside:
        yield f"  set aside: UID {aside.uid} in {shown(aside.mailbox)}: {aside.code}: {aside.cause} {aside.fix}"


def bar(account: AccountReport) -> str:
    """Return how far a sync has come, as a line: a bar, the counts, the rate and the time that is left."""
    filled = int(account.share * _BAR_CHARACTERS)
    drawn = "#" * filled + "-" * (_BAR_CHARACTERS - filled)
    expected = "?" if account.expected is None else str(account.expected)
    parts = [f"[{drawn}] {account.share:.0%}, {account.messages} of {expected}"]
    if account.messages_a_second:
        parts.append(f"{account.messages_a_second:g} a second")
    parts.append("time left unknown" if account.seconds_left is None else f"{duration(account.seconds_left)} left")
    if account.daily_octets is not None:
        used, limit = account.octets_today / _MEGABYTE, account.daily_octets / _MEGABYTE
        parts.append(f"{used:,.0f} of {limit:,.0f} MB of the day's limit used")
    return ", ".join(parts)


def duration(seconds: int) -> str:
    """Return a time as people say it, in the one or two units that matter."""
    if seconds < _MINUTE:
        return f"{seconds} s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min"
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR} h {seconds % _HOUR // _MINUTE} min"
    return f"{seconds // _DAY} days {seconds % _DAY // _HOUR} h"


def _failure_lines(failure: FailureReport) -> Iterator[str]:
    yield f"  since {moment(failure.at)}: {failure.code}: {shown(failure.detail)}"
    yield f"  {failure.fix}"


def _looked(looked_at: datetime | None, now: datetime) -> str:
    if looked_at is None:
        return "not looked at to its end yet"
    return f"looked at {duration(max(0, round((now - looked_at).total_seconds())))} ago"
