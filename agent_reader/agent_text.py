"""A message as the text that an agent gets: our facts about it, and everything of the sender's inside a fence.

Pure. What stands outside the fence is ours: codes, counts and sentences, never a word of the message.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from shared.fence import Fence, invisible_kinds, spelled_by_tags
from shared.message import (
    AttachmentOutcome,
    AttachmentText,
    Authentication,
    HeaderForm,
    LinkFinding,
    Message,
    Part,
    ReadableText,
    SegmentedText,
    SegmentKind,
    attachment_text,
    authentication,
    body_lists,
    defang,
    flags,
    link_findings,
    readable_text,
    segmented_text,
)
from shared.time_and_chance import RandomOctets

_ADDRESS_FIELDS: Final = ("From", "Sender", "Reply-To", "To", "Cc")
_TEXT_FIELDS: Final = ("Date", "Subject")

# More addresses than this say no more; the rest is counted.
_MAX_ADDRESSES: Final = 50


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a message the text holds, and how.

    `whole`: quotes and signature too, else what is new. `attachments`: their texts too. `defanged`: no link can be
    followed. `authserv_id`: whose Authentication-Results are believed.
    """

    whole: bool = False
    attachments: bool = False
    defanged: bool = False
    authserv_id: str | None = None


@dataclass(frozen=True, slots=True)
class _Piece:
    """A text of the sender's and our name for it."""

    label: str
    untrusted: str


@dataclass(frozen=True, slots=True)
class Looked:
    """What is known of a message, found once."""

    message: Message
    reading: ReadableText
    segmented: SegmentedText
    findings: tuple[LinkFinding, ...]
    attachments: tuple[Part, ...]
    read: tuple[AttachmentText, ...]


def look(message: Message, wanted: Wanted) -> Looked:
    """Return what is known of a message. Any message gives a value."""
    reading = readable_text(message)
    attachments = body_lists(message).attachments
    return Looked(
        message,
        reading,
        segmented_text(message, reading),
        link_findings(message, reading),
        attachments,
        tuple(attachment_text(part) for part in attachments) if wanted.attachments else (),
    )


def agent_text(message: Message, wanted: Wanted, random_octets: RandomOctets) -> str:
    """Return facts, then the fenced header, text and list of attachments; LF line ends, none at the end.

    `random_octets`: the source of the fence's mark, such as `secrets.token_bytes`. Any message gives a value.
    """
    looked = look(message, wanted)
    pieces = list(_pieces(looked, wanted))
    counts = invisible_kinds("\n".join(piece.untrusted for piece in pieces))
    removed = ", ".join(f"{kind.value} {count}" for kind, count in counts.items())
    if wanted.defanged:
        pieces = [_Piece(piece.label, defang(piece.untrusted)) for piece in pieces]
    fence = Fence(random_octets, *(piece.untrusted for piece in pieces))
    return "\n".join(
        [
            *_facts(looked, wanted),
            *([f"Removed characters: {removed}"] if removed else []),
            *(fence.around(piece.label, piece.untrusted) for piece in pieces),
        ]
    )


def _facts(looked: Looked, wanted: Wanted) -> Iterator[str]:
    reading = looked.reading
    said = [f"{flag.fact.value} ({flag.where})" for flag in flags(looked.message)]
    yield f"Facts: {', '.join(said) or 'none'}"
    yield _authentication_line(authentication(looked.message, wanted.authserv_id))
    yield f"Text: {reading.choice.value}: {reading.reason}"
    left_out = [looked.segmented.left_out(kind) for kind in (SegmentKind.QUOTED, SegmentKind.SIGNATURE)]
    if any(left_out) and not wanted.whole:
        yield f"Left out: {left_out[0]} characters quoted, {left_out[1]} of a signature."
    if reading.hidden:
        tricks = sorted({hidden.trick.value for hidden in reading.hidden})
        yield f"Hidden text: {len(reading.hidden)} left out ({', '.join(tricks)})"
    concerns = Counter(finding.concern.value for finding in looked.findings)
    if concerns:
        yield f"Links: {', '.join(f'{concern} {count}' for concern, count in sorted(concerns.items()))}"
    if looked.message.defects:
        yield f"Malformed: {', '.join(sorted({defect.code.value for defect in looked.message.defects}))}"
    for number, found in enumerate(looked.read, start=1):
        cut = " (cut)" if found.is_truncated else ""
        hidden = f" Hidden text: {len(found.hidden)} left out." if found.hidden else ""
        yield f"Attachment {number}: {found.outcome.value}{cut}: {found.reason}{hidden}"


def _authentication_line(found: Authentication) -> str:
    by = f" by {found.source}" if found.source else ""
    return f"Authentication: {found.verdict.value}{by} ({found.belief.value}; {found.unbelieved} not believed)"


def _pieces(looked: Looked, wanted: Wanted) -> Iterator[_Piece]:
    yield _Piece("header", "\n".join(header_lines(looked.message)))
    if wanted.whole:
        yield _Piece("text", looked.reading.text)
    else:
        yield _Piece("new text", looked.segmented.new_text())
    smuggled = spelled_by_tags(looked.reading.text)
    if smuggled:
        yield _Piece("words spelled by invisible characters", smuggled)
    if looked.findings:
        yield _Piece("links to beware of", "\n".join(described_finding(finding) for finding in looked.findings))
    if looked.attachments:
        yield _Piece("attachments", "\n".join(described(part) for part in looked.attachments))
    for number, found in enumerate(looked.read, start=1):
        if found.outcome is AttachmentOutcome.TEXT:
            yield _Piece(f"attachment {number}", found.text)


def described_finding(finding: LinkFinding) -> str:
    """Return what is suspicious about a link on a line; the hosts are the sender's words."""
    return f"{finding.concern.value}: {finding.host}" + (f" (shows {finding.shown})" if finding.shown else "")


def described(part: Part) -> str:
    """Return an attachment's name, type and size on a line; the sender's words."""
    return f"{_line(part.name or '(no name)')} ({part.type}, {part.size} octets)"


def header_lines(message: Message, most_addresses: int = _MAX_ADDRESSES) -> Iterator[str]:
    """Yield a line for each header field that tells who, when and what; past `most_addresses` they are counted."""
    for name in _ADDRESS_FIELDS:
        listed = message.header(name, HeaderForm.ADDRESSES)
        if isinstance(listed, list) and listed:
            shown = [_address(each) for each in listed[:most_addresses] if isinstance(each, dict)]
            more = f" and {len(listed) - most_addresses} more" if len(listed) > most_addresses else ""
            yield f"{name}: {_line(', '.join(shown))}{more}"
    for name in _TEXT_FIELDS:
        value = message.header(name, HeaderForm.TEXT)
        if isinstance(value, str):
            yield f"{name}: {_line(value)}"


def _line(untrusted: str) -> str:
    """On one line; what is invisible stays until the fence takes it out, so that it is counted once, with the rest."""
    return " ".join(untrusted.replace("\r", "\n").split("\n"))


def _address(each: dict[str, object]) -> str:
    name, email = each.get("name"), each.get("email")
    return f"{name} <{email}>" if name else str(email)
