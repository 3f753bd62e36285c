"""What a person is shown of a message, made from its octets: cleaned texts, what is attached, and what to beware of.

Runs in the confined child alone.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from change_executor.evidence.reading import (
    MAX_LINE_CHARACTERS,
    MAX_LISTED,
    MAX_TEXT_CHARACTERS,
    Attachment,
    Readable,
    Reading,
    TextSource,
)
from change_executor.evidence.reading import Warning as Caution
from shared.fence import clean, clean_line
from shared.message import (
    BodyLists,
    HeaderForm,
    Message,
    ReadableText,
    body_lists,
    body_value,
    parse,
    readable_text,
)

# A person should know that a message was written by a machine, or to a list (RFC 3834 §5, RFC 2369).
_BULK: Final = frozenset({"bulk", "list", "junk", "auto_reply"})

# RFC 5322 §3.6: what may stand once; a second one lets two programs show two different messages.
_ONCE: Final = ("From", "Sender", "Reply-To", "To", "Subject", "Date")

_ENCRYPTED: Final = frozenset({"multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"})

# Words by which a text speaks to a program rather than to a person, and of this tool. English only, and a hint only:
# a text that avoids them all is no safer.
_TO_A_MACHINE: Final = re.compile(
    r"\b(?:assistants?|ai|a\.i\.|agents?|bots?|chatbots?|llms?|language models?|copilot)\b", re.IGNORECASE
)
_ORDERS: Final = re.compile(
    r"\b(?:move|moves|moving|file|files|put|transfer|propose|approve|archive|escalate|ignore|disregard|forward|delete"
    r"|mark|must|you are)\b",
    re.IGNORECASE,
)
_OF_THIS_TOOL: Final = re.compile(
    r"propose_move|/v1/proposals|mailwarrant|(?:ignore|disregard) (?:all |any )?(?:previous|prior|earlier|above)"
    r"|system prompt",
    re.IGNORECASE,
)
_MOVING: Final = re.compile(r"\b(?:move|moves|moved|moving|file|put|transfer|send|sort)\b", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"[.!?\n]+")


def read_message(octets: bytes, *, cut: bool, names: Sequence[str]) -> Reading:
    """Return the reading of a message.

    `cut` says that the message goes on after these octets; `names` are the queue's roles and mailboxes, which a text
    that wants to be moved would say.
    """
    message = parse(octets)
    lists = body_lists(message)
    readable = readable_text(message)
    page = _Page()
    text = page.text(readable.text)
    hidden = page.text("\n".join(f"[{each.trick.value}] {each.text}" for each in readable.hidden))
    subject = page.line(_text_of(message, "Subject"))
    sender = page.addresses(message, "From")
    recipients = [*page.addresses(message, "To"), *page.addresses(message, "Cc")][:MAX_LISTED]
    attachments = [
        Attachment(name=page.line(part.name or ""), type=page.line(part.type), size=part.size)
        for part in lists.attachments[:MAX_LISTED]
    ]
    date = page.line(_text_of(message, "Date"))
    said = f"{subject}\n{text}\n{hidden}"
    warnings = [
        *_about_text(lists, readable, cut=cut, said=said, names=names),
        *_about_senders(message),
        *_about_form(message),
    ]
    if page.removed:
        warnings.append(Caution(code="invisible_characters", detail=str(page.removed)))
    return Reading(
        readable=Readable.READABLE,
        subject=subject,
        sender=sender,
        recipients=recipients,
        date=date,
        text=text,
        text_source=TextSource(readable.source.value),
        text_cut=cut or len(readable.text) > MAX_TEXT_CHARACTERS,
        hidden_text=hidden,
        attachments=attachments,
        attachments_left_out=max(0, len(lists.attachments) - MAX_LISTED),
        warnings=warnings,
    )


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


def _about_text(
    lists: BodyLists, readable: ReadableText, *, cut: bool, said: str, names: Sequence[str]
) -> Iterable[Caution]:
    if asks_to_be_moved(said, names):
        yield Caution(code="agent_instructions")
    if readable.hidden:
        yield Caution(code="hidden_text", detail=", ".join(sorted({each.trick.value for each in readable.hidden})))
    if readable.source.value == TextSource.HTML:
        has_plain = any(part.type == "text/plain" for part in lists.text_body)
        yield Caution(code="text_from_html" if has_plain else "html_only")
    if cut:
        yield Caution(code="octets_cut")
    if len(readable.text) > MAX_TEXT_CHARACTERS:
        yield Caution(code="text_cut")
    shown = (*lists.text_body, *lists.html_body)
    if any(part.type.startswith("text/") and body_value(part).is_encoding_problem for part in shown):
        yield Caution(code="encoding_problem")


def _about_form(message: Message) -> Iterable[Caution]:
    if _is_automatic(message):
        yield Caution(code="automatic_mail")
    if any(part.type in _ENCRYPTED for part in message.root.walk()):
        yield Caution(code="encrypted")
    if message.defects:
        codes = sorted({defect.code.value for defect in message.defects})
        yield Caution(code="malformed", detail=", ".join(codes)[:MAX_LINE_CHARACTERS])


def _about_senders(message: Message) -> Iterable[Caution]:
    sender = {address.lower() for _, address in _addresses(message, "From")}
    if len(sender) > 1:
        yield Caution(code="several_senders")
    if {address.lower() for _, address in _addresses(message, "Reply-To")} - sender:
        yield Caution(code="reply_to_differs")
    if {address.lower() for _, address in _addresses(message, "Sender")} - sender:
        yield Caution(code="sender_differs")
    several = [name for name in _ONCE if len(_instances(message, name)) > 1]
    if several:
        yield Caution(code="duplicate_header", detail=", ".join(several))


def _is_automatic(message: Message) -> bool:
    submitted = _text_of(message, "Auto-Submitted").strip().lower()
    precedence = _text_of(message, "Precedence").strip().lower()
    return (
        (submitted != "" and not submitted.startswith("no"))
        or precedence in _BULK
        or bool(_instances(message, "List-Id") or _instances(message, "List-Unsubscribe"))
    )


def asks_to_be_moved(text: str, names: Sequence[str]) -> bool:
    """Whether a text seems to give orders to a program: it speaks to one, names this tool, or names where to go.

    A hint for a person, found by English words; what it does not find is not therefore harmless.
    """
    if _OF_THIS_TOOL.search(text):
        return True
    places = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in names if name) or r"(?!)", re.IGNORECASE)
    return any(
        (_TO_A_MACHINE.search(sentence) and _ORDERS.search(sentence))
        or (_MOVING.search(sentence) and places.search(sentence))
        for sentence in _SENTENCE.split(text)
    )


def _text_of(message: Message, name: str) -> str:
    value = message.header(name, HeaderForm.TEXT)
    return value if isinstance(value, str) else ""


def _instances(message: Message, name: str) -> Sequence[object]:
    values = message.header(name, HeaderForm.RAW, all_instances=True)
    return values if isinstance(values, list) else []


def _addresses(message: Message, name: str) -> list[tuple[str, str]]:
    values = message.header(name, HeaderForm.ADDRESSES)
    listed = values if isinstance(values, list) else []
    return [(str(each.get("name") or ""), str(each.get("email") or "")) for each in listed if isinstance(each, dict)]
