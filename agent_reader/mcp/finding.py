"""The tools that find: list_mailboxes and search_mail."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from agent_reader.mcp.call import Call
from agent_reader.mcp.lines import LINE_PARTS, SNIPPET_PARTS, email_line, roles_of
from agent_reader.mcp.refusals import question_refused, stale_cursor, unknown_mailbox
from agent_reader.mcp.views import Part
from agent_reader.query import QueryRefused, QueryResult, email_query, mailbox_get, parse_email_query
from agent_reader.store.snapshot import StoredEmail
from agent_reader.tool_answers.cuts import one_line
from agent_reader.tool_answers.sheet import cost
from shared.message import JSON

MAX_SEARCH_LIMIT: Final = 50
DEFAULT_SEARCH_LIMIT: Final = 20

_MAX_MAILBOX_NAME_CHARACTERS: Final = 200
_MAX_MAILBOXES: Final = 100_000

# What stands around a hit: enough for a number and what it counts, a third of it before the hit.
_BEFORE_HIT: Final = 3
_SNIPPET_CHARACTERS: Final = 120
# Where the hit is in what a message quotes or in its signature, this much of a snippet tells what it says itself.
_OWN_CHARACTERS: Final = 60
_WORD: Final = re.compile(r"[^\s\"']+")
_QUOTE_MARKS: Final = re.compile(r"^(?:> ?)+", re.MULTILINE)


def list_mailboxes(call: Call) -> None:
    """Write a line for each mailbox: id, role, counts, name."""
    start = call.arguments.number("cursor", 0, _MAX_MAILBOXES) or 0
    mailboxes = call.snapshot.mailboxes()
    found = {str(each["id"]): each for each in mailbox_get(call.snapshot).list}
    roles = roles_of(call.snapshot)
    lines: list[str] = []
    for mailbox in mailboxes[start:]:
        counts = found[mailbox.id]
        name = one_line(mailbox.name, _MAX_MAILBOX_NAME_CHARACTERS)
        role = f" {roles[mailbox.id]}" if mailbox.id in roles else ""
        line = f"{mailbox.id}{role} {counts['totalEmails']}/{counts['unreadEmails']} | {name}"
        if cost("\n".join([*lines, line])) > call.sheet.room - 100:
            break
        lines.append(line)
    from_number = f", from number {start + 1}" if start else ""
    call.sheet.ours(f"{len(lines)} of {len(mailboxes)} mailboxes{from_number}: id, role, messages/unread | name.")
    if lines:
        call.sheet.fenced("\n".join(lines))
    hidden = call.snapshot.hidden()
    if hidden.outside or hidden.withheld:
        call.sheet.ours(
            f"Not shown to this token: {hidden.outside} messages outside what it was made for, "
            f"{hidden.withheld} that sign somebody in."
        )
    if start + len(lines) < len(mailboxes):
        call.sheet.closing(f"More: list_mailboxes(cursor={start + len(lines)})")


def search_mail(call: Call) -> None:
    """Write a line for each message found, newest first."""
    arguments = call.arguments
    limit = arguments.number("limit", 1, MAX_SEARCH_LIMIT) or DEFAULT_SEARCH_LIMIT
    cursor = arguments.text("cursor")
    asked: dict[str, JSON] = {
        "filter": {"operator": "AND", "conditions": list(_conditions(call))},
        "limit": limit,
        "calculateTotal": True,
    }
    if arguments.choice("order", ("newest", "oldest"), "newest") == "oldest":
        asked["sort"] = [{"property": "receivedAt", "isAscending": True}]
    if cursor is not None:
        asked |= {"anchor": cursor, "anchorOffset": 1}
    found = _asked(call, asked)
    emails = call.snapshot.emails(found.ids)
    roles = roles_of(call.snapshot)
    words = [*_WORD.findall(arguments.text("text") or ""), *_WORD.findall(arguments.text("body") or "")]
    lines: list[str] = []
    for email in emails.values():
        line = email_line(email, roles, _snippet(call, email, words) if words else None)
        if cost("\n".join([*lines, line])) > call.sheet.room - 150:
            break
        lines.append(line)
    shown = list(emails)[: len(lines)]
    call.shows(shown, *(SNIPPET_PARTS if words else LINE_PARTS))
    many = "an unknown number of" if found.total is None else str(found.total)
    from_number = f", from number {found.position + 1}" if found.position else ""
    call.sheet.ours(f"{len(lines)} of {many} messages{from_number}.")
    if lines:
        call.sheet.fenced("\n".join(lines))
        if found.total is None or found.position + len(lines) < found.total:
            call.sheet.closing(f'More: the same call with cursor="{shown[-1]}". Fewer: narrow the search.')
    else:
        call.sheet.closing("Nothing found. Fewer or other words find more; whole words are matched, in any order.")


def _asked(call: Call, asked: dict[str, JSON]) -> QueryResult:
    try:
        return email_query(call.snapshot, parse_email_query(asked), max_limit=MAX_SEARCH_LIMIT, is_over=call.is_over)
    except QueryRefused as refused:
        raise (stale_cursor() if "anchor" in refused.arguments else question_refused(refused)) from None


def _conditions(call: Call) -> Iterator[JSON]:
    arguments = call.arguments
    for name in ("text", "from", "to", "subject", "body"):
        value = arguments.text(name)
        if value is not None:
            yield {name: value}
    mailbox = arguments.text("mailbox")
    if mailbox is not None:
        yield {"inMailbox": _mailbox_id(call, mailbox)}
    for name in ("after", "before"):
        moment = arguments.moment(name)
        if moment is not None:
            yield {name: _utc_date(moment)}
    attached = arguments.flag("has_attachment")
    if attached is not None:
        yield {"hasAttachment": attached}
    for name, yes, no in (("unread", "notKeyword", "hasKeyword"), ("flagged", "hasKeyword", "notKeyword")):
        wanted = arguments.flag(name)
        if wanted is not None:
            yield {yes if wanted else no: "$seen" if name == "unread" else "$flagged"}


def _mailbox_id(call: Call, spelled: str) -> str:
    mailboxes = call.snapshot.mailboxes()
    roles = roles_of(call.snapshot)
    for mailbox in mailboxes:
        if spelled in {mailbox.id, mailbox.name}:
            return mailbox.id
    for mailbox in mailboxes:
        if spelled.lower() in {mailbox.name.lower(), roles.get(mailbox.id)}:
            return mailbox.id
    raise unknown_mailbox()


def _utc_date(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}Z"


def _snippet(call: Call, email: StoredEmail, words: list[str]) -> str | None:
    """What stands around the first word found in the message's own text, else its beginning and what stands around the
    word in the rest of it; None where none is found, and the preview serves.
    """
    own, whole = (
        _QUOTE_MARKS.sub("", call.views.view(call.agent.token_id, call.snapshot, email, part).text)
        for part in (Part.NEW, Part.WHOLE)
    )
    found = _around(own, words, _SNIPPET_CHARACTERS)
    if found is not None:
        return found
    found = _around(whole, words, _SNIPPET_CHARACTERS - _OWN_CHARACTERS)
    if found is None or not own:
        return found
    return f"{one_line(own, _OWN_CHARACTERS).removesuffix('…')} … {found.removeprefix('…')}"


def _around(text: str, words: list[str], most: int) -> str | None:
    text = " ".join(text.split())
    lowered = text.lower()
    if len(lowered) != len(text):
        # A letter whose lower case is two: places do not hold.
        lowered = text
    hits = [place for place in (lowered.find(word.lower()) for word in words) if place >= 0]
    if not hits:
        return None
    hit = min(hits)
    start = max(0, hit - most // _BEFORE_HIT)
    if start:
        # At a word's beginning, where one is near.
        start = text.find(" ", start, hit) + 1 or start
    return ("…" if start else "") + one_line(text[start : start + 2 * most], most)
