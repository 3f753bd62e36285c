"""The tool that tells what is new: whats_new, with a cursor for each agent that outlives every restart.

The first look is a baseline: it shows the mail of the last day and remembers where it stood. Later looks show what the
index took in since then, in that order, also what was received while the reader was down. Mail from before the
baseline is never news, so the first sync of an old mailbox brings none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from agent_reader.mcp.call import Call
from agent_reader.mcp.cursors import Cursor
from agent_reader.mcp.lines import COUNTED_AT_A_GLANCE, HEADER_PARTS, LINE_PARTS, ListWriter, roles_of
from agent_reader.query import email_query, parse_email_query
from agent_reader.store.change_log import CannotCalculateChanges
from agent_reader.store.changes import DataType
from agent_reader.store.snapshot import StoredEmail
from shared.message import JSON

MAX_NEWS_LIMIT: Final = 40
DEFAULT_NEWS_LIMIT: Final = 20

_BASELINE: Final = timedelta(days=1)
# Where the place of the last look is lost: what is older was read, or is no news any more.
_TOLD_AGAIN: Final = timedelta(days=7)
# A message may be taken in some time after it was received.
_OVERLAP: Final = timedelta(hours=1)

# In one call; a first sync writes many thousands, none of them news.
_MAX_CHANGES: Final = 5_000

_OWN_OR_UNWANTED: Final = frozenset({"sent", "drafts", "junk", "trash"})


class Look(StrEnum):
    """Which look it is: the first of an agent, one that goes on, or one whose place was lost."""

    FIRST = "first"
    NEXT = "next"
    AGAIN = "again"


@dataclass(slots=True)
class News:
    """What is new up to a state; `more`: changes after it were not looked at.

    `total`: how many there are, where these are only the newest of them; received since `floor`.
    """

    look: Look
    floor: datetime
    state: str
    more: bool
    emails: list[StoredEmail]
    passed_over: int = 0
    total: int | None = None

    def take(self, emails: Iterable[StoredEmail], roles: Mapping[str, str]) -> None:
        """Take in what is news among these: received since the floor, and not by the owner's own hand."""
        for email in emails:
            if email.received_at < self.floor:
                continue
            if all(roles.get(mailbox_id) in _OWN_OR_UNWANTED for mailbox_id in email.mailbox_ids):
                self.passed_over += 1
            else:
                self.emails.append(email)


_SAID: Final = {
    Look.FIRST: "Last 24 hours",
    Look.NEXT: "New",
    Look.AGAIN: "The index was made anew, this token sees other mail, or the last look was long ago; mail of the last "
    "week is told again",
}


def whats_new(call: Call) -> None:
    """Write a line for each new message, oldest first; with `peek` the next call tells them again.

    A line has the beginning of the text with `previews` alone: who wrote and what about is what most calls are for.
    """
    peek = call.arguments.flag("peek") or False
    limit = call.arguments.number("limit", 1, MAX_NEWS_LIMIT) or DEFAULT_NEWS_LIMIT
    news = gather(call, limit, call.arguments.text("cursor"))
    previews = call.arguments.flag("previews") or False
    brief = call.arguments.flag("brief") or False
    call.sheet.ours(_said(news))
    writer = ListWriter(call, takes_unread_for_granted=True, brief=brief)
    for email in news.emails:
        written = writer.write(email, None if previews else "")
        assert written, "as many lines as there are at most have room"
    count = len(news.emails)
    call.shows((email.id for email in news.emails), *(LINE_PARTS if previews else HEADER_PARTS))
    if not peek:
        call.moves_to(Cursor(news.state, news.floor, call.now))
    if news.total is not None:
        since = f"{news.floor:%Y-%m-%dT%H:%M:%S}Z"
        call.sheet.closing(f'These are the newest {count} of {news.total}; the others: search_mail(after="{since}")')
    if news.more:
        call.sheet.closing(f'More: whats_new(peek=true, cursor="{news.state}")' if peek else "More: whats_new() again.")


def _said(news: News) -> str:
    passed = f"; {news.passed_over} in Sent, Drafts, Junk or Trash passed over" if news.passed_over else ""
    count = len(news.emails)
    if 0 < count <= COUNTED_AT_A_GLANCE:
        return f"{_SAID[news.look]}{passed}:"
    return f"{_SAID[news.look]}: {count or 'no'} messages{passed}."


def gather(call: Call, limit: int, after: str | None = None) -> News:
    """Return up to `limit` new messages, oldest first, since the agent's place or since a state `after` it."""
    kept = call.cursors.read(call.agent.name, call.snapshot.account_id)
    if kept is None:
        return _received_since(call, Look.FIRST, call.now - _BASELINE, limit)
    try:
        return _since(call, after or kept.state, kept.floor, limit)
    except CannotCalculateChanges:
        floor = max(kept.floor, call.now - _TOLD_AGAIN) - _OVERLAP
        return _received_since(call, Look.AGAIN, floor, limit)


def _since(call: Call, state: str, floor: datetime, limit: int) -> News:
    """What came since a state. A page is never larger than what is still wanted, so each ends at a state of its own."""
    news = News(Look.NEXT, floor, state, more=True, emails=[])
    roles = roles_of(call.snapshot)
    looked = 0
    while news.more and len(news.emails) < limit and looked < _MAX_CHANGES:
        page = call.snapshot.changes(DataType.EMAIL, news.state, limit - len(news.emails))
        news.take(call.snapshot.emails(page.created).values(), roles)
        news.state, news.more = page.new_state, page.has_more
        looked += len(page.created) + len(page.updated) + len(page.destroyed)
    return news


def _received_since(call: Call, look: Look, floor: datetime, limit: int) -> News:
    """The newest that were received since a time; told once, whatever is left of them is found by search_mail."""
    asked: dict[str, JSON] = {
        "filter": {"after": f"{floor:%Y-%m-%dT%H:%M:%S}Z"},
        "limit": limit,
        "calculateTotal": True,
    }
    found = email_query(call.snapshot, parse_email_query(asked), max_limit=limit, is_over=call.patience.is_over)
    news = News(look, floor, call.snapshot.state, more=False, emails=[])
    news.take(call.snapshot.emails(reversed(found.ids)).values(), roles_of(call.snapshot))
    if found.total is not None and found.total > len(found.ids):
        news.total = found.total
    return news
