"""What a person is shown of a message, made from its octets: cleaned texts, what is attached, and what to beware of.

Runs in the confined child alone.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

from change_executor.evidence.alternatives import alternatives_differ
from change_executor.evidence.asking import asks_to_be_moved
from change_executor.evidence.doubtful_hosts import about_hosts, named_for_a_person
from change_executor.evidence.hidden_words import about_hidden, hidden_elsewhere, shown_apart
from change_executor.evidence.reading import (
    MAX_LINE_CHARACTERS,
    MAX_LISTED,
    MAX_TEXT_CHARACTERS,
    MAX_THREAD_MARKS,
    Attachment,
    Authentication,
    Readable,
    Reading,
    TextSource,
    Verdict,
)
from change_executor.evidence.reading import Warning as Caution
from shared.fence import clean, clean_line, spelled_by_tags
from shared.message import (
    AttachmentOutcome,
    BodyLists,
    Fact,
    HeaderForm,
    Message,
    ReadableText,
    attachment_text,
    authentication,
    body_lists,
    body_value,
    flags,
    hosts_of_links,
    parse,
    readable_text,
)

# The page's code for each fact and concern that the shared reading knows.
FACT_CODES: Final = {
    Fact.AUTOMATIC_MAIL: "automatic_mail",
    Fact.LIST_MAIL: "list_mail",
    Fact.DELIVERY_REPORT: "delivery_report",
    Fact.DISPOSITION_REPORT: "disposition_report",
    Fact.CALENDAR_INVITATION: "calendar_invitation",
    Fact.CALENDAR_REPLY: "calendar_reply",
    Fact.CALENDAR_CANCELLATION: "calendar_cancellation",
    Fact.CALENDAR_ENTRY: "calendar_entry",
    Fact.ENCRYPTED: "encrypted",
    Fact.SIGNED_NOT_VERIFIED: "signed_not_verified",
    Fact.REPLY_TO_DIFFERS: "reply_to_differs",
    Fact.SENDER_DIFFERS: "sender_differs",
    Fact.SEVERAL_SENDERS: "several_senders",
    Fact.NAME_SHOWS_ANOTHER_ADDRESS: "name_shows_another_address",
    Fact.REPEATED_FIELD: "duplicate_header",
}

# An order stands near the beginning, where it is read; the rest of a long list holds none.
_MAX_CHARACTERS_ELSEWHERE: Final = MAX_TEXT_CHARACTERS


def read_message(
    octets: bytes,
    *,
    cut: bool,
    names: Sequence[str],
    authserv_id: str | None = None,
    known_hosts: Sequence[str] = (),
) -> Reading:
    """Return the reading of a message.

    `cut` says that the message goes on after these octets; `names` are the queue's roles and mailboxes, which a text
    that wants to be moved would say; `authserv_id` is whose Authentication-Results are believed, None for nobody's;
    `known_hosts` are hosts of senders whose mail was moved before, which a look-alike would imitate.
    """
    message = parse(octets)
    lists = body_lists(message)
    readable = readable_text(message)
    page = _Page()
    text = page.text(readable.text)
    smuggled = spelled_by_tags(f"{_text_of(message, 'Subject')}\n{readable.text}")
    elsewhere = hidden_elsewhere(lists, readable)
    apart = shown_apart([*readable.hidden, *elsewhere])
    hidden = page.text("\n".join([*apart, *([f"[spelled in invisible characters] {smuggled}"] if smuggled else [])]))
    subject = page.line(_text_of(message, "Subject"))
    sender = page.addresses(message, "From")
    recipients = [*page.addresses(message, "To"), *page.addresses(message, "Cc")][:MAX_LISTED]
    attachments = _attachments(lists, page)
    date = page.line(_text_of(message, "Date"))
    said = "\n\n".join([subject, text, hidden, *sender, *(each.name for each in attachments), *_elsewhere(lists)])
    verified = _verified(message, authserv_id, page)
    warnings = [
        *([Caution(code="agent_instructions")] if asks_to_be_moved(said, names) else []),
        *about_hidden(readable.hidden, elsewhere),
        *about_hosts(message, readable, known_hosts),
        *_about_text(lists, readable, cut=cut),
        *_about_facts(message, page),
        *_about_form(message),
        *_about_authentication(verified),
        *_about_invisible(page, smuggled),
    ]
    return Reading(
        readable=Readable.READABLE,
        subject=subject,
        sender=sender,
        recipients=recipients,
        date=date,
        authentication=verified,
        text=text,
        text_source=TextSource(readable.source.value),
        text_cut=cut or len(readable.text) > MAX_TEXT_CHARACTERS,
        hidden_text=hidden,
        attachments=attachments,
        attachments_left_out=max(0, len(lists.attachments) - MAX_LISTED),
        warnings=warnings,
        hosts=[page.line(named_for_a_person(host)) for host in hosts_of_links(readable)[:MAX_LISTED]],
        has_html=any(part.type == "text/html" for part in lists.html_body),
        thread=thread_marks(message),
    )


def _elsewhere(lists: BodyLists) -> Iterable[str]:
    """What an agent may read of a message beside the text on the page: the other alternative, and attachments."""
    left = _MAX_CHARACTERS_ELSEWHERE
    # The same part may stand in two of the lists.
    parts = {part.part_id: part for part in (*lists.text_body, *lists.html_body, *lists.attachments)}
    for part in parts.values():
        if left <= 0:
            return
        found = attachment_text(part, left)
        if found.outcome is AttachmentOutcome.TEXT:
            for text in (found.text, *(each.text for each in found.hidden)):
                yield clean(text).text
                left -= len(text)


class _Page:
    """Cleans whatever goes on the page, and counts what it took out."""

    def __init__(self) -> None:
        self.removed = 0

    def text(self, untrusted: str) -> str:
        cleaned = clean(untrusted)
        self.removed += cleaned.removed
        return cleaned.text[:MAX_TEXT_CHARACTERS]

    def line(self, untrusted: str) -> str:
        cleaned = clean_line(untrusted)
        self.removed += cleaned.removed
        return cleaned.text[:MAX_LINE_CHARACTERS]

    def addresses(self, message: Message, name: str) -> list[str]:
        shown = [f"{who} <{address}>" if who else address for who, address in _addresses(message, name)]
        return [self.line(each) for each in shown[:MAX_LISTED]]


def _attachments(lists: BodyLists, page: _Page) -> list[Attachment]:
    return [
        Attachment(name=page.line(part.name or ""), type=page.line(part.type), size=part.size)
        for part in lists.attachments[:MAX_LISTED]
    ]


def _about_text(lists: BodyLists, readable: ReadableText, *, cut: bool) -> Iterable[Caution]:
    if readable.source.value == TextSource.HTML:
        has_plain = any(part.type == "text/plain" for part in lists.text_body)
        yield Caution(code="text_from_html" if has_plain else "html_only")
    if alternatives_differ(lists):
        yield Caution(code="alternatives_differ")
    if cut:
        yield Caution(code="octets_cut")
    if len(readable.text) > MAX_TEXT_CHARACTERS:
        yield Caution(code="text_cut")
    shown = (*lists.text_body, *lists.html_body)
    if any(part.type.startswith("text/") and body_value(part).is_encoding_problem for part in shown):
        yield Caution(code="encoding_problem")


def _about_form(message: Message) -> Iterable[Caution]:
    if message.defects:
        codes = sorted({defect.code.value for defect in message.defects})
        yield Caution(code="malformed", detail=", ".join(codes)[:MAX_LINE_CHARACTERS])


def _about_invisible(page: _Page, smuggled: str) -> Iterable[Caution]:
    # The last: what was taken out is counted as the page is made.
    if smuggled:
        yield Caution(code="invisible_words")
    if page.removed:
        yield Caution(code="invisible_characters", detail=str(page.removed))


def _about_facts(message: Message, page: _Page) -> Iterable[Caution]:
    places: dict[Fact, list[str]] = {}
    for flag in flags(message):
        places.setdefault(flag.fact, []).append(flag.where)
    for fact, where in places.items():
        detail = ""
        if fact in {Fact.AUTOMATIC_MAIL, Fact.LIST_MAIL, Fact.REPEATED_FIELD}:
            detail = ", ".join(where)
        elif fact in {Fact.REPLY_TO_DIFFERS, Fact.SENDER_DIFFERS}:
            detail = ", ".join(page.addresses(message, where[0]))[:MAX_LINE_CHARACTERS]
        yield Caution(code=FACT_CODES[fact], detail=detail)


def _about_authentication(verified: Authentication | None) -> Iterable[Caution]:
    if verified is not None and verified.verdict is Verdict.FAILED:
        yield Caution(code="authentication_failed", detail=verified.results)


def _verified(message: Message, authserv_id: str | None, page: _Page) -> Authentication | None:
    if authserv_id is None:
        return None
    found = authentication(message, authserv_id)
    results = ", ".join(f"{each.method}={each.result}" for each in found.results)
    return Authentication(
        verdict=Verdict(found.verdict.value),
        source=page.line(found.source or authserv_id),
        results=page.line(results),
    )


def thread_marks(message: Message) -> list[str]:
    """Return digests of the Message-IDs of a message and of those that it answers, its own first, the nearest next."""
    ids: list[str] = []
    for name in ("Message-ID", "In-Reply-To", "References"):
        values = message.header(name, HeaderForm.MESSAGE_IDS)
        # References names the oldest first.
        ids += [str(value) for value in reversed(values)] if isinstance(values, list) else []
    digests = (hashlib.sha256(each.encode("utf-8", "surrogatepass")).hexdigest()[:16] for each in ids)
    return list(dict.fromkeys(digests))[:MAX_THREAD_MARKS]


def _text_of(message: Message, name: str) -> str:
    value = message.header(name, HeaderForm.TEXT)
    return value if isinstance(value, str) else ""


def _addresses(message: Message, name: str) -> list[tuple[str, str]]:
    values = message.header(name, HeaderForm.ADDRESSES)
    listed = values if isinstance(values, list) else []
    return [(str(each.get("name") or ""), str(each.get("email") or "")) for each in listed if isinstance(each, dict)]
