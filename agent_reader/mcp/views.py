"""The texts of a message that an agent may page through, each as one string that stays the same.

Who pages through a long text asks for it many times, so the last few are kept, for each token apart.
"""

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from agent_reader.agent_text import Looked, Wanted, described, header_lines, look
from agent_reader.store.snapshot import Snapshot, StoredEmail
from agent_reader.tool_answers.cuts import one_line, shown_text
from shared.fence import clean, invisible_kinds, spelled_by_tags
from shared.message import Belief, Message, SegmentedText, SegmentKind, authentication, flags

# An agent that pages through the largest text there is, and the threads of some more. Memory, not characters: a text
# with an emoji in it takes four octets for each.
_MAX_KEPT_OCTETS: Final = 64 * 1024 * 1024
_MAX_KEPT: Final = 512

# More than a message's header holds.
_ALL: Final = 1_000_000

# A mailing has ten recipients at most that say anything; a subject is a line.
_MAX_ADDRESSES: Final = 10
_MAX_LINE_CHARACTERS: Final = 500
_MAX_ATTACHMENTS: Final = 20

# A name, a firm, a role, a number: what people look up in signatures. Longer ones are disclaimers.
_MAX_CONTACT_CHARACTERS: Final = 160


class Part(StrEnum):
    """What of a message is read."""

    NEW = "new"
    WHOLE = "whole"
    HEADER = "header"
    LINKS = "links"
    HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What of a message is not in a text, in words of ours, and the part that holds it."""

    what: str
    part: Part | None = None

    def __str__(self) -> str:
        return self.what if self.part is None else f"{self.what} (part={self.part})"


@dataclass(frozen=True, slots=True)
class View:
    """A message as it is shown: its header in few lines, one of its texts, and our words about what was left out.

    `contact`: of a new text, the first lines of the signature under it. `total_bytes` of the text.
    """

    header: str
    text: str
    contact: str
    left_out: tuple[LeftOut, ...]
    facts: tuple[str, ...]
    # Of the text in UTF-8; counted once, since a long text is asked for a thousand times.
    total_bytes: int


class Views:
    """The views that were asked for last; any thread may call.

    `authserv_ids`: by account, whose Authentication-Results are believed (RFC 8601).
    """

    def __init__(self, authserv_ids: Mapping[str, str] | None = None) -> None:
        self._authserv_ids = authserv_ids or {}
        self._turn = threading.Lock()
        self._kept: OrderedDict[tuple[str, str, str, Part], View] = OrderedDict()
        self._octets = 0

    def view(
        self, token_id: str, snapshot: Snapshot, email: StoredEmail, part: Part, go_on: Callable[[], None]
    ) -> View:
        """Return a view of an Email that the token shows. `go_on` raises where nobody waits for it any more."""
        key = (token_id, snapshot.account_id, email.id, part)
        go_on()
        with self._turn:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept
        with snapshot.room.place(email.size, go_on):
            # What it is made from is let go before the room is.
            made = _made(look(snapshot.message(email.key), Wanted()), part, self._authserv_ids.get(snapshot.account_id))
        with self._turn:
            if key not in self._kept:
                self._kept[key] = made
                self._octets += sys.getsizeof(made.text)
            while self._kept and (len(self._kept) > _MAX_KEPT or self._octets > _MAX_KEPT_OCTETS):
                self._octets -= sys.getsizeof(self._kept.popitem(last=False)[1].text)
        return made


def _made(looked: Looked, part: Part, authserv_id: str | None) -> View:
    contact = _contact(looked.segmented) if part is Part.NEW else ""
    match part:
        case Part.NEW:
            text = shown_text(looked.segmented.new_text())
        case Part.WHOLE:
            text = shown_text(looked.reading.text)
        case Part.HEADER:
            text = _whole_header(looked)
        case Part.LINKS:
            text = clean("\n".join(_links(looked))).text
        case Part.HIDDEN:
            text = clean("\n\n".join(_hidden(looked))).text
    return View(
        header=_header(looked),
        text=text,
        contact=contact,
        left_out=tuple(_left_out(looked, part, text, len(contact))),
        facts=tuple(_facts(looked, authserv_id)),
        total_bytes=len(text.encode("utf-8", "replace")),
    )


def _header(looked: Looked) -> str:
    lines = [
        one_line(line, _MAX_LINE_CHARACTERS)
        for line in header_lines(looked.message, _MAX_ADDRESSES)
        # When it came stands outside the fence; when its sender says that it was sent is in the whole header.
        if not line.startswith("Date: ")
    ]
    for number, attachment in enumerate(looked.attachments[:_MAX_ATTACHMENTS], 1):
        lines.append(f"Attachment {number}: {one_line(described(attachment), 200)}")
    more = len(looked.attachments) - _MAX_ATTACHMENTS
    if more > 0:
        lines.append(f"and {more} attachments more")
    return "\n".join(line for line in lines if line)


def _whole_header(looked: Looked) -> str:
    lines = [clean(line).text.replace("\n", " ") for line in header_lines(looked.message, _ALL)]
    lines += [
        f"Attachment {number}: {clean(described(attachment)).text}"
        for number, attachment in enumerate(looked.attachments, 1)
    ]
    return "\n".join(lines)


def _links(looked: Looked) -> Iterator[str]:
    for link in looked.reading.links:
        yield f"{' '.join(link.label.split())}: {link.target}"
    yield from _urls(looked.reading.text)


def _urls(text: str) -> Iterator[str]:
    for piece in text.split() if "://" in text else ():
        start = piece.find("http")
        if start >= 0 and "://" in piece[start:]:
            yield piece[start:].rstrip(".,;:!?)>\"'")


def _hidden(looked: Looked) -> Iterator[str]:
    for hidden in looked.reading.hidden:
        yield f"[{hidden.trick.value}] {hidden.text}"
    spelled = spelled_by_tags(looked.reading.text)
    if spelled:
        yield f"[invisible characters] {spelled}"


def _contact(segmented: SegmentedText) -> str:
    """Who signs, and where to reach them: the signature up to its first empty line, on one line, if it is short."""
    for segment in segmented.segments:
        if segment.kind is SegmentKind.SIGNATURE:
            lines = shown_text(segmented.text[segment.start : segment.end]).partition("\n\n")[0].split("\n")
            contact = " / ".join(line.strip() for line in lines if line.strip(" -_*="))
            return contact if len(contact) <= _MAX_CONTACT_CHARACTERS else ""
        if segment.kind is SegmentKind.QUOTED:
            break
    return ""


def _left_out(looked: Looked, part: Part, text: str, contact: int) -> Iterator[LeftOut]:
    """What of the message is not in the text, and the part that holds it."""
    if part is Part.NEW:
        counts = {
            "quoted": looked.segmented.left_out(SegmentKind.QUOTED),
            "of signature": max(0, looked.segmented.left_out(SegmentKind.SIGNATURE) - contact),
        }
        if any(counts.values()):
            yield LeftOut(", ".join(f"{count} {what}" for what, count in counts.items() if count), Part.WHOLE)
    if part in {Part.NEW, Part.WHOLE}:
        if "?…" in text:
            yield LeftOut("ends of links", Part.LINKS)
        if looked.reading.hidden:
            yield LeftOut(f"{len(looked.reading.hidden)} texts hidden from the eye", Part.HIDDEN)
        kinds = invisible_kinds(looked.reading.text)
        if kinds:
            yield LeftOut(
                "invisible characters: " + ", ".join(f"{kind.value} {count}" for kind, count in kinds.items())
            )
        if not _is_kept(looked.message):
            yield LeftOut("the body, which is too large to be kept")


def _facts(looked: Looked, authserv_id: str | None) -> Iterator[str]:
    found = authentication(looked.message, authserv_id)
    if found.belief is not Belief.NOT_CONFIGURED:
        # Whose word it is: the mail server's own name, from the configuration.
        said = found.verdict.value if found.belief is Belief.BELIEVED else found.belief.value
        yield f"authentication {said} (by {authserv_id})"
    for flag in flags(looked.message):
        yield f"{flag.fact.value} ({flag.where})"
    for concern in sorted({finding.concern.value for finding in looked.findings}):
        yield f"link {concern}"


def _is_kept(message: Message) -> bool:
    """Whether the texts are here; of a message above the largest size only the header is."""
    parts = [part for part in message.root.walk() if part.type.startswith("text/") and part.size]
    return not parts or any(part.content() for part in parts)
