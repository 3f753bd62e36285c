"""An attachment as text, on request and bounded; what cannot be read yet is said by a code, never guessed.

The text is the sender's: it leaves through `shared.fence` like the body.
"""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from shared.message.bodies import body_value
from shared.message.content_lines import calendar_text, card_text
from shared.message.model import Part
from shared.message.reading import HiddenText
from shared.message.text import plain_text

# A long report; an agent that needs more asks for the octets.
MAX_ATTACHMENT_CHARACTERS: Final = 200_000

# What is looked at for that: markup takes many times the room of its text.
_MAX_READ_OCTETS: Final = 4 * 1024 * 1024


class AttachmentOutcome(StrEnum):
    """What became of the wish to read an attachment."""

    TEXT = "text"
    MESSAGE = "message"
    NOT_READABLE_YET = "notReadableYet"
    NOT_TEXT = "notText"
    NOT_DECODABLE = "notDecodable"


class AttachmentForm(StrEnum):
    """How an attachment that is text was read."""

    PLAIN = "plain"
    HTML = "html"
    TABLE = "table"
    CALENDAR = "calendar"
    CARD = "card"


@dataclass(frozen=True, slots=True)
class AttachmentText:
    """An attachment's text, or by `outcome` why there is none; name, type and size (octets) come in any case.

    `hidden`: text of HTML that a person would not see. `is_truncated`: the attachment goes on.
    """

    name: str | None
    type: str
    size: int
    outcome: AttachmentOutcome
    form: AttachmentForm | None = None
    text: str = ""
    hidden: tuple[HiddenText, ...] = ()
    is_truncated: bool = False
    is_encoding_problem: bool = False

    @property
    def reason(self) -> str:
        """The outcome in a sentence of ours."""
        return _REASONS[self.outcome]


_REASONS: Final = {
    AttachmentOutcome.TEXT: "The attachment was read as text.",
    AttachmentOutcome.MESSAGE: "The attachment is a message of its own; it is read as one.",
    AttachmentOutcome.NOT_READABLE_YET: "PDF and office files are not read yet; only name, type and size are known.",
    AttachmentOutcome.NOT_TEXT: "The attachment is no text; only name, type and size are known.",
    AttachmentOutcome.NOT_DECODABLE: "The attachment says that it is text, and could not be decoded as text.",
}

# What programs call text that RFC 2046 §4.1 would call text/*; any other text/* is plain.
_FORMS: Final = {
    "text/html": AttachmentForm.HTML,
    "application/xhtml+xml": AttachmentForm.HTML,
    "text/csv": AttachmentForm.TABLE,
    "application/csv": AttachmentForm.TABLE,
    "text/comma-separated-values": AttachmentForm.TABLE,
    "text/tab-separated-values": AttachmentForm.TABLE,
    "text/calendar": AttachmentForm.CALENDAR,
    "application/ics": AttachmentForm.CALENDAR,
    "text/vcard": AttachmentForm.CARD,
    "text/x-vcard": AttachmentForm.CARD,
    "text/directory": AttachmentForm.CARD,
    "application/json": AttachmentForm.PLAIN,
    "application/xml": AttachmentForm.PLAIN,
}
# RFC 6839 §3.1, RFC 7303 §4.2: text for programs that people read too, invoices above all.
_PLAIN_SUFFIXES: Final = ("+json", "+xml")

# Senders that do not know a file call it application/octet-stream; then its name's end counts.
_UNKNOWN_TYPES: Final = frozenset({"application/octet-stream", "application/x-unknown", "application/unknown"})
_FORMS_BY_ENDING: Final = {
    "txt": AttachmentForm.PLAIN,
    "text": AttachmentForm.PLAIN,
    "md": AttachmentForm.PLAIN,
    "log": AttachmentForm.PLAIN,
    "json": AttachmentForm.PLAIN,
    "xml": AttachmentForm.PLAIN,
    "htm": AttachmentForm.HTML,
    "html": AttachmentForm.HTML,
    "csv": AttachmentForm.TABLE,
    "tsv": AttachmentForm.TABLE,
    "ics": AttachmentForm.CALENDAR,
    "vcf": AttachmentForm.CARD,
}

_DOCUMENTS: Final = frozenset(
    {"application/pdf", "application/x-pdf", "application/msword", "application/rtf", "text/rtf"}
)
_DOCUMENT_FAMILIES: Final = (
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    "application/vnd.ms-word",
    "application/vnd.openxmlformats-officedocument.",
    "application/vnd.oasis.opendocument.",
)
_DOCUMENT_ENDINGS: Final = frozenset({"pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "odp", "rtf"})


def attachment_text(part: Part, max_characters: int = MAX_ATTACHMENT_CHARACTERS) -> AttachmentText:
    """Return a leaf part as text of at most `max_characters`, or why it cannot be had. Any part gives a value."""
    form = _form_of(part)
    if not isinstance(form, AttachmentForm):
        return AttachmentText(part.name, part.type, part.size, form)
    value = body_value(part, _MAX_READ_OCTETS)
    # A type of text is believed, whatever its octets; a name's ending only if they are text.
    is_guess = part.type in _UNKNOWN_TYPES and (value.is_encoding_problem or b"\0" in part.content())
    if not part.has_known_encoding or is_guess:
        return AttachmentText(part.name, part.type, part.size, AttachmentOutcome.NOT_DECODABLE)
    hidden: tuple[HiddenText, ...] = ()
    if form is AttachmentForm.HTML:
        from shared.message.html import html_to_text  # noqa: PLC0415 - the executor's parent never loads selectolax

        made = html_to_text(value.value)
        text, hidden = made.text, made.hidden
    elif form is AttachmentForm.PLAIN:
        text = plain_text(part)
    else:
        text = _READERS[form](value.value)
    return AttachmentText(
        part.name,
        part.type,
        part.size,
        AttachmentOutcome.TEXT,
        form,
        text[:max_characters],
        hidden,
        is_truncated=value.is_truncated or len(text) > max_characters,
        is_encoding_problem=value.is_encoding_problem,
    )


def _form_of(part: Part) -> AttachmentForm | AttachmentOutcome:
    ending = (part.name or "").rpartition(".")[2].lower() if "." in (part.name or "") else ""
    if part.type in _DOCUMENTS or part.type.startswith(_DOCUMENT_FAMILIES):
        return AttachmentOutcome.NOT_READABLE_YET
    if part.type in _FORMS:
        return _FORMS[part.type]
    if part.is_message:
        return AttachmentOutcome.MESSAGE
    # RFC 3464 §2, RFC 8098 §3: the reports' fields are lines of text.
    if part.type.startswith(("text/", "message/")):
        return AttachmentForm.PLAIN
    if part.type.startswith("application/") and part.type.endswith(_PLAIN_SUFFIXES):
        return AttachmentForm.PLAIN
    if part.type in _UNKNOWN_TYPES and ending in _DOCUMENT_ENDINGS:
        return AttachmentOutcome.NOT_READABLE_YET
    if part.type in _UNKNOWN_TYPES and ending in _FORMS_BY_ENDING:
        return _FORMS_BY_ENDING[ending]
    return AttachmentOutcome.NOT_TEXT


def _table_text(text: str) -> str:
    """RFC 4180 §2: rows as lines, cells with a bar between; what separates the cells, the first line tells."""
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    rows: list[str] = []
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        rows.extend(" | ".join(" ".join(cell.split()) for cell in row) for row in reader)
    except csv.Error:
        # A cell of more than 128 KiB: no table that a person wrote.
        return text
    return "\n".join(rows)


class _ReadText(Protocol):
    def __call__(self, text: str, /) -> str: ...


_READERS: Final[Mapping[AttachmentForm, _ReadText]] = {
    AttachmentForm.TABLE: _table_text,
    AttachmentForm.CALENDAR: calendar_text,
    AttachmentForm.CARD: card_text,
}
