"""The tools that read: read_mail, read_thread and read_attachment."""

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from agent_reader.mcp.call import Call
from agent_reader.mcp.lines import email_marks, received, roles_of
from agent_reader.mcp.refusals import (
    octets_unavailable,
    past_the_end,
    stale_cursor,
    unknown_attachment,
    unknown_email,
    unknown_thread,
)
from agent_reader.mcp.short_ids import short, whole, whole_ids
from agent_reader.mcp.views import Part, View
from agent_reader.query import BlobUnavailable, find_blob
from agent_reader.scope import Depth
from agent_reader.store.document import StoredPart
from agent_reader.store.snapshot import StoredEmail
from agent_reader.tool_answers.cuts import one_line, shown_text
from agent_reader.tool_answers.refusals import bad_argument
from agent_reader.tool_answers.sheet import MAX_RESULT_CHARACTERS, Window, cost
from shared.message import AttachmentOutcome, AttachmentText, attachment_text, body_lists, parse
from shared.message import Part as MessagePart

MAX_IDS: Final = 20
_MAX_OFFSET: Final = 10**9

# Our lines about a message, and the one that says how to go on.
_OWN_LINES: Final = 700
# With less room than this a message is rather left for the next call.
_LEAST_ROOM: Final = 1_000
# Below this a text that comes twice is a thank-you, and who says it counts.
_REPEATED_FROM: Final = 80

_THREAD_CURSOR: Final = re.compile(r"([A-Za-z0-9_-]{1,255})\.(\d{1,10})", re.ASCII)


def read_mail(call: Call) -> None:
    """Write one message or several, each under its share of the room. Raises `ToolRefused`, as the others here do."""
    ids = whole_ids(call.snapshot, call.arguments.ids("ids", MAX_IDS))
    parts = parts_for(call.agent.scope.depth)
    part = Part(call.arguments.choice("part", parts, parts[0]))
    offset = call.arguments.number("offset", 0, _MAX_OFFSET) or 0
    if offset and len(ids) > 1:
        raise bad_argument("offset", "left out where several ids are given")
    found = call.snapshot.emails(ids)
    if not found:
        raise unknown_email(len(ids))
    roles = roles_of(call.snapshot)
    # One text at a time, and none while the next one waits for room: twenty of the largest would not fit into memory.
    # Most are kept from a moment ago.
    only = call.view(next(iter(found.values())), part) if len(found) == 1 else None
    if only is not None and offset and offset >= len(only.text):
        raise past_the_end(len(only.text))
    needs = [_need(only or call.view(email, part)) for email in found.values()]
    if len(found) < len(ids):
        call.sheet.ours(f"{len(ids) - len(found)} of the ids lead to no message that this token shows.")
    shown = 0
    for email, need, room in zip(found.values(), needs, _shares(needs, call.sheet.room), strict=True):
        left = min(room, call.sheet.room)
        if left < min(_LEAST_ROOM, need):
            break
        _write_message(call, email, only or call.view(email, part), part, offset, left, roles)
        shown += 1
    if shown < len(found):
        call.sheet.closing(f"No room for the last {len(found) - shown} of the messages: call read_mail with their ids.")


def parts_for(depth: Depth) -> tuple[Part, ...]:
    """Return what a token may read of a message; the first is what it gets unasked."""
    return (Part.HEADER,) if depth is Depth.HEADERS else tuple(Part)


def _need(view: View) -> int:
    # More than there is room for, however much more.
    return _OWN_LINES + cost(f"{view.header}\n\n{view.text[:MAX_RESULT_CHARACTERS]}")


def _shares(needs: Sequence[int], room: int) -> list[int]:
    """Share room out: who needs less than an equal share leaves the rest to the others."""
    shares = [0] * len(needs)
    left, waiting = room, len(needs)
    for place in sorted(range(len(needs)), key=needs.__getitem__):
        shares[place] = min(needs[place], left // waiting)
        left, waiting = left - shares[place], waiting - 1
    return shares


def _write_message(
    call: Call, email: StoredEmail, view: View, part: Part, offset: int, room: int, roles: dict[str, str]
) -> None:
    marks = ", ".join(email_marks(email, roles))
    places = " ".join(roles.get(each, each) for each in email.mailbox_ids[:5])
    before = call.sheet.room
    facts = [f"{email.id} in {places}", received(email), marks]
    call.sheet.ours("; ".join(filter(None, facts)))
    if offset == 0 and view.facts:
        call.sheet.ours(f"Facts: {', '.join(view.facts)[:300]}")
    if offset == 0 and view.left_out:
        call.sheet.ours(f"Left out: {'; '.join(map(str, view.left_out))[:300]}")
    header = f"{view.header}\n\n" if offset == 0 and part is not Part.HEADER else ""
    left = room - (before - call.sheet.room) - 150
    if not view.text:
        call.sheet.fenced(view.header)
        call.sheet.ours(_nothing(part))
    else:
        shown = call.sheet.window(view.text, offset, room=left, before=header)
        call.sheet.ours(_extent(shown, view.total_bytes))
        if view.contact and not shown.is_cut and cost(view.contact) < call.sheet.room - _LEAST_ROOM:
            call.sheet.fenced(view.contact)
        if shown.is_cut:
            call.sheet.ours(f'Goes on: read_mail(ids="{email.id}", part="{part}", offset={shown.end})')
    texts = () if part is Part.HEADER else (f"text/{part}",)
    call.shows([email.id], "header", *texts, opened=bool(texts))


def _extent(shown: Window, total_bytes: int) -> str:
    if shown.start == 0 and not shown.is_cut:
        return f"Text: whole, totalBytes {total_bytes}."
    return f"Text: {shown.start}-{shown.end} of {shown.length} characters, totalBytes {total_bytes}."


def _nothing(part: Part) -> str:
    return {
        Part.NEW: "No text of its own (totalBytes 0); part=whole shows what it quotes.",
        Part.WHOLE: "The message has no text (totalBytes 0).",
        Part.HEADER: "The message has no header.",
        Part.LINKS: "The message has no links.",
        Part.HIDDEN: "No text of the message is hidden.",
    }[part]


def read_thread(call: Call) -> None:
    """Write the messages of a thread, oldest first, each text once."""
    email_ids = _thread(call, whole(call.snapshot, call.arguments.id("id", "a thread, or of a message in it")))
    first, offset = _place(email_ids, call.arguments.text("cursor"))
    emails = call.snapshot.emails(email_ids)
    roles = roles_of(call.snapshot)
    email_ids = [each for each in email_ids if each in emails]
    from_number = f", from number {first + 1}" if first else ""
    call.sheet.ours(
        f"{len(email_ids)} messages, oldest first{from_number}; what `-` names is left out: read_mail(part=whole)."
    )
    told: dict[bytes, int] = {}
    for number, email_id in enumerate(email_ids):
        # The cursor's offset is the first message's alone; of those before it nothing but their texts is known.
        start = None if number < first else offset if number == first else 0
        if not _write_in_thread(call, emails[email_id], number, start, told, roles):
            return


def _write_in_thread(
    call: Call, email: StoredEmail, number: int, start: int | None, told: dict[bytes, int], roles: dict[str, str]
) -> bool:
    """Write a message from `start` on, nothing of it for None; False where the answer ends with it."""
    view = call.view(email, Part.NEW)
    digest = hashlib.sha256(view.text.encode("utf-8", "replace")).digest()
    earlier = told.setdefault(digest, number) if len(view.text) >= _REPEATED_FROM else number
    if start is None:
        return True
    if call.sheet.room < _LEAST_ROOM + len(view.header):
        _go_on(call, email.id, start)
        return False
    marks = " ".join([received(email), *email_marks(email, roles)])
    shown_id = short(call.snapshot, email.id)
    call.sheet.ours(f"{number + 1}. {shown_id} {marks}{_thread_left_out(view) if not start else ''}")
    call.shows([email.id], "header", "text/new", opened=True)
    if earlier != number:
        call.sheet.fenced(_thread_header(view))
        call.sheet.ours(f"The same text as number {earlier + 1}.")
        return True
    header = f"{_thread_header(view, with_subject=number == 0)}\n" if not start else ""
    shown = call.sheet.window(view.text, start, before=header, room=call.sheet.room - 200)
    if shown.is_cut:
        call.sheet.ours(_extent(shown, view.total_bytes))
        _go_on(call, email.id, shown.end)
    return not shown.is_cut


def _thread_left_out(view: View) -> str:
    # That quotes and signatures are in part=whole is said once, for all.
    said = [each.what if each.part is Part.WHOLE else str(each) for each in view.left_out]
    return f" - {'; '.join(said)[:300]}" if said else ""


def _thread_header(view: View, *, with_subject: bool = False) -> str:
    """Who writes, and what they attach: the subject is the thread's."""
    wanted = ("From: ", "Attachment ", "Subject: ") if with_subject else ("From: ", "Attachment ")
    return "\n".join(line for line in view.header.split("\n") if line.startswith(wanted))


def _go_on(call: Call, email_id: str, offset: int) -> None:
    call.sheet.closing(f'Goes on: the same call with cursor="{email_id}.{offset}"')


def _thread(call: Call, asked_id: str) -> list[str]:
    email = call.email(asked_id)
    thread_id = asked_id if email is None else email.thread_id
    found = call.snapshot.thread_emails([thread_id]).get(thread_id)
    if not found:
        raise unknown_thread()
    return found


def _place(email_ids: list[str], cursor: str | None) -> tuple[int, int]:
    if cursor is None:
        return 0, 0
    found = _THREAD_CURSOR.fullmatch(cursor)
    if found is None or found[1] not in email_ids:
        raise stale_cursor()
    return email_ids.index(found[1]), int(found[2])


def read_attachment(call: Call) -> None:
    """Write an attachment's text; what is not kept is fetched, as a download would."""
    email_id = whole(call.snapshot, call.arguments.id("id", "a message with attachments"))
    number = call.arguments.number("number", 1, 10_000) or 1
    offset = call.arguments.number("offset", 0, _MAX_OFFSET) or 0
    email = call.email(email_id)
    if email is None:
        raise unknown_email()
    with call.message(email) as message:
        attachments = body_lists(message).attachments
        if number > len(attachments):
            raise unknown_attachment(len(attachments))
        part = attachments[number - 1]
        found = _as_text(call, email, number - 1, part)
    name = f"{one_line(part.name or '(no name)', 200)} ({one_line(part.type, 80)})"
    call.sheet.ours(f"Attachment {number} of {len(attachments)} of {email.id}: {part.size} bytes.")
    call.shows([email.id], f"attachment/{number}", opened=True)
    text = shown_text(found.text)
    if found.outcome is not AttachmentOutcome.TEXT or not text:
        call.sheet.fenced(name)
        call.sheet.ours(found.reason if found.outcome is not AttachmentOutcome.TEXT else "The attachment is empty.")
        return
    if offset >= len(text):
        raise past_the_end(len(text))
    header = f"{name}\n\n" if not offset else ""
    shown = call.sheet.window(text, offset, before=header, room=call.sheet.room - 300)
    total = len(text.encode("utf-8", "replace"))
    more = " The attachment goes on after that; no more of it is read." if found.is_truncated else ""
    call.sheet.ours(_extent(shown, total) + more)
    if found.hidden:
        call.sheet.ours(f"Left out: {len(found.hidden)} texts hidden from the eye.")
    if shown.is_cut:
        call.sheet.closing(f'Goes on: read_attachment(id="{email.id}", number={number}, offset={shown.end})')


def _as_text(call: Call, email: StoredEmail, place: int, part: MessagePart) -> AttachmentText:
    found = attachment_text(part)
    is_missing = isinstance(part, StoredPart) and not part.is_kept and part.size > 0
    if not is_missing or found.outcome not in {AttachmentOutcome.TEXT, AttachmentOutcome.NOT_DECODABLE}:
        return found
    blob = find_blob(call.snapshot, str(email.summary["blobId"]))
    if blob is None or call.blobs is None:
        raise octets_unavailable("gone", retryable=False)
    try:
        # The mail server may take its time: meanwhile others may read.
        with call.snapshot.room.stepped_out(email.size, call.patience.go_on):
            opened = call.blobs.open(call.snapshot.account_id, blob)
    except BlobUnavailable as error:
        raise octets_unavailable(error.reason.value, retryable=error.retryable) from None
    with opened:
        message = parse(opened.whole())
    # The same octets, so the same attachments in the same order.
    return attachment_text(body_lists(message).attachments[place])
