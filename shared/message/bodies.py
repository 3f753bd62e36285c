"""Which parts are the body and which are attached, and a body part's text (RFC 8621 §4.1.4)."""

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from shared.message.charset import Decoded, codec_of, decode
from shared.message.model import Message, Part

_META_CHARSET: Final = re.compile(rb"charset\s{0,9}=\s{0,9}[\"']?([A-Za-z0-9_:.-]{1,64})", re.IGNORECASE)

# Preview, text and body values all ask for a text; a larger one is decoded each time.
_KEPT_CHARACTERS: Final = 256 * 1024

# Where HTML says its charset, it says it in the first kilobyte (WHATWG HTML §13.2.3.2).
_META_WITHIN: Final = 1024


@dataclass(frozen=True, slots=True)
class BodyLists:
    """RFC 8621 §4.1.4 textBody, htmlBody and attachments."""

    text_body: tuple[Part, ...]
    html_body: tuple[Part, ...]
    attachments: tuple[Part, ...]

    @property
    def has_attachment(self) -> bool:
        """Whether there is an attachment that its sender did not mean to be shown inline."""
        return any(part.disposition != "inline" for part in self.attachments)


@dataclass(frozen=True, slots=True)
class BodyValue:
    """RFC 8621 §4.1.4 EmailBodyValue: text with LF line ends, without NUL and without surrogates."""

    value: str
    is_encoding_problem: bool
    is_truncated: bool


@dataclass(slots=True)
class _Lists:
    text: list[Part] = field(default_factory=list)
    html: list[Part] = field(default_factory=list)
    attachments: list[Part] = field(default_factory=list)


def body_lists(message: Message) -> BodyLists:
    """Return the lists that the algorithm of RFC 8621 §4.1.4 makes of the message."""
    lists = _Lists()
    _sort_parts((message.root,), _Place("mixed"), lists)
    return BodyLists(tuple(lists.text), tuple(lists.html), tuple(lists.attachments))


@dataclass(slots=True)
class _Place:
    """Where the RFC's parseStructure is: the multipart around, and which of the two lists still take parts."""

    multipart: str
    in_alternative: bool = False
    to_text: bool = True
    to_html: bool = True


def _sort_parts(parts: tuple[Part, ...], place: _Place, lists: _Lists) -> None:
    """The RFC's parseStructure; it recurses once a level of multiparts, of which the parser allows 100."""
    text_before, html_before = len(lists.text), len(lists.html)
    for index, part in enumerate(parts):
        if part.is_multipart:
            kind = part.type.partition("/")[2]
            in_alternative = place.in_alternative or kind == "alternative"
            _sort_parts(part.subparts, _Place(kind, in_alternative, place.to_text, place.to_html), lists)
        elif not _is_inline(part, index, place.multipart):
            lists.attachments.append(part)
        elif place.multipart == "alternative":
            _choose_alternative(part, place, lists)
        else:
            _add_to_body(part, place, lists)
    if place.multipart == "alternative" and place.to_text and place.to_html:
        if len(lists.text) == text_before:
            lists.text += lists.html[html_before:]
        elif len(lists.html) == html_before:
            lists.html += lists.text[text_before:]


def _choose_alternative(part: Part, place: _Place, lists: _Lists) -> None:
    if part.type == "text/plain" and place.to_text:
        lists.text.append(part)
    elif part.type == "text/html" and place.to_html:
        lists.html.append(part)
    else:
        lists.attachments.append(part)


def _add_to_body(part: Part, place: _Place, lists: _Lists) -> None:
    if place.in_alternative:
        place.to_html = place.to_html and part.type != "text/plain"
        place.to_text = place.to_text and part.type != "text/html"
    if place.to_text:
        lists.text.append(part)
    if place.to_html:
        lists.html.append(part)
    if not (place.to_text and place.to_html) and is_inline_media(part.type):
        lists.attachments.append(part)


def is_inline_media(part_type: str) -> bool:
    """Whether a mail program shows the type within the text."""
    return part_type.startswith(("image/", "audio/", "video/"))


def _is_inline(part: Part, index: int, multipart: str) -> bool:
    if part.disposition == "attachment":
        return False
    is_media = is_inline_media(part.type)
    if not is_media and part.type not in {"text/plain", "text/html"}:
        return False
    return index == 0 or (multipart != "related" and (is_media or not part.name))


def has_attachment(message: Message) -> bool:
    """Whether there is an attachment that its sender did not mean to be shown inline (RFC 8621 §4.1.4)."""
    return body_lists(message).has_attachment


def body_value(part: Part, max_octets: int = 0) -> BodyValue:
    """Return a part's text, cut to at most `max_octets` octets of UTF-8 unless that is 0.

    Never cut inside a character, nor inside a tag of HTML. RFC 8621 §4.1.4, §4.2.
    """
    decoded = part.once.text
    if decoded is None:
        decoded = _plain_lines(_decoded_text(part))
        if len(decoded.text) <= _KEPT_CHARACTERS:
            part.once.text = decoded
    value = decoded.text
    cut = cut_value(value, max_octets, is_html=part.type == "text/html")
    return BodyValue(cut, decoded.is_encoding_problem or not part.has_known_encoding, len(cut) != len(value))


def cut_value(value: str, max_octets: int, *, is_html: bool) -> str:
    """Return a text cut to at most `max_octets` octets of UTF-8 unless that is 0, as `body_value` cuts."""
    return _cut(value, max_octets, is_html=is_html) if max_octets > 0 else value


def _plain_lines(decoded: Decoded) -> Decoded:
    text = decoded.text
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return Decoded(text.replace("\0", ""), decoded.is_encoding_problem)


def _decoded_text(part: Part) -> Decoded:
    octets = _plain_octets(part.content(), part.charset or "utf-8")
    decoded = decode(octets, part.charset or "utf-8")
    if decoded.is_encoding_problem and part.type == "text/html" and not part.parameters.get("charset"):
        named = _META_CHARSET.search(octets, 0, _META_WITHIN)
        if named is not None:
            return Decoded(decode(octets, named[1].decode("ascii")).text, is_encoding_problem=True)
    return decoded


def _plain_octets(octets: bytes, charset: str) -> bytes:
    """Octets with LF line ends, where each of them is an octet: as text they may take four times as much memory."""
    if b"\r" not in octets or not _has_plain_line_ends(codec_of(charset) or "utf_8"):
        return octets
    return octets.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


@cache
def _has_plain_line_ends(codec: str) -> bool:
    # Not in UTF-16 and UTF-32, nor where letters are those of EBCDIC.
    return "\r\n".encode(codec) == b"\r\n"


def _cut(value: str, max_octets: int, *, is_html: bool) -> str:
    if len(value) * 4 <= max_octets:
        return value
    # Each character takes an octet at least: no more of them than that are looked at.
    octets = value[: max_octets + 1].encode("utf-8")
    if len(octets) <= max_octets:
        return value
    cut = octets[:max_octets].decode("utf-8", "ignore")
    return cut[: _unfinished_tag(cut)] if is_html else cut


def _unfinished_tag(html: str) -> int:
    """Where the tag or comment begins that the text breaks off in, else the text's length. One pass."""
    position = 0
    while (start := html.find("<", position)) >= 0:
        if html.startswith("<!--", start):
            end = html.find("-->", start + 4)
            if end < 0:
                return start
            position = end + 3
        elif not html[start + 1 : start + 2] or html[start + 1] in "/!?" or html[start + 1].isalpha():
            end = _tag_end(html, start + 1)
            if end < 0:
                return start
            position = end
        else:
            position = start + 1
    return len(html)


_TO_TAG_END: Final = re.compile(r"(?:[^>\"']++|\"[^\"]*+\"|'[^']*+')*+>")


def _tag_end(html: str, position: int) -> int:
    found = _TO_TAG_END.match(html, position)
    return found.end() if found else -1
