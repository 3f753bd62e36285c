"""The tools that find: list_mailboxes and search_mail."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from agent_reader.mcp.call import Call
from agent_reader.mcp.lines import COUNTED_AT_A_GLANCE, HEADER_PARTS, LINE_PARTS, SNIPPET_PARTS, ListWriter, roles_of
from agent_reader.mcp.refusals import question_refused, stale_cursor, unknown_mailbox
from agent_reader.mcp.short_ids import short, whole
from agent_reader.mcp.snippets import snippet, wanted_words
from agent_reader.query import QueryRefused, QueryResult, email_query, mailbox_get, parse_email_query
from agent_reader.tool_answers.cuts import one_line
from shared.message import JSON

MAX_SEARCH_LIMIT: Final = 50
DEFAULT_SEARCH_LIMIT: Final = 20

_MAX_MAILBOX_NAME_CHARACTERS: Final = 200
_MAX_MAILBOXES: Final = 100_000


def list_mailboxes(call: Call) -> None:
    """Write a line for each mailbox: id, role, counts, name."""
    start = call.arguments.number("cursor", 0, _MAX_MAILBOXES) or 0
    mailboxes = call.snapshot.mailboxes()
    found = {str(each["id"]): each for each in mailbox_get(call.snapshot).list}
    roles = roles_of(call.snapshot)
    shown = 0
    how_many = call.sheet.place()
    for mailbox in mailboxes[start:]:
        counts = found[mailbox.id]
        role = f" {roles[mailbox.id]}" if mailbox.id in roles else ""
        head = f"{mailbox.id}{role} {counts['totalEmails']}/{counts['unreadEmails']}"
        if not call.sheet.listed(head, one_line(mailbox.name, _MAX_MAILBOX_NAME_CHARACTERS)):
            break
        shown += 1
    from_number = f", from number {start + 1}" if start else ""
    how_many(f"{shown} of {len(mailboxes)} mailboxes{from_number}: id, role, messages/unread, name.")
    hidden = call.snapshot.hidden()
    if hidden.outside or hidden.withheld:
        call.sheet.ours(
            f"Not shown to this token: {hidden.outside} messages outside what it was made for, "
            f"{hidden.withheld} that sign somebody in."
        )
    if start + shown < len(mailboxes):
        call.sheet.closing(f"More: list_mailboxes(cursor={start + shown})")


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
        asked |= {"anchor": whole(call.snapshot, cursor), "anchorOffset": 1}
    found = _asked(call, asked)
    emails = call.snapshot.emails(found.ids)
    words = [*wanted_words(arguments.text("text") or ""), *wanted_words(arguments.text("body") or "")]
    how_many = call.sheet.place()
    writer = ListWriter(call, brief=arguments.flag("brief") or False)
    for email in emails.values():
        text = snippet(call, email, words) if words else None
        if not writer.write(email, text or "" if writer.brief else text):
            break
    shown = writer.written
    without_words = HEADER_PARTS if writer.brief else LINE_PARTS
    call.shows(shown, *(SNIPPET_PARTS if words else without_words))
    how_many(_how_many(len(shown), found.total, found.position))
    if not shown:
        call.sheet.closing("Nothing found. Fewer or other words find more; whole words are matched, in any order.")
    elif found.total is None or found.position + len(shown) < found.total:
        last = short(call.snapshot, shown[-1])
        call.sheet.closing(f'More: the same call with cursor="{last}". Fewer: narrow the search.')
    if found.texts_left_out:
        call.sheet.closing("Not every text was searched: some messages are found by their header alone here.")


def _how_many(shown: int, total: int | None, position: int) -> str:
    if shown == total and not position:
        return f"{shown} messages." if shown > COUNTED_AT_A_GLANCE else ""
    many = "an unknown number of" if total is None else str(total)
    from_number = f", from number {position + 1}" if position else ""
    return f"{shown} of {many} messages{from_number}."


def _asked(call: Call, asked: dict[str, JSON]) -> QueryResult:
    try:
        return email_query(
            call.snapshot, parse_email_query(asked), max_limit=MAX_SEARCH_LIMIT, is_over=call.patience.is_over
        )
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
