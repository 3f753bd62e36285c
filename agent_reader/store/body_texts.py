"""Where the texts of a body lie in what is kept of a message: they are read alone, without taking apart the rest.

Whoever asks for messages wants their texts, as a rule, and of the rest no more than the summary has. The places stand
after the end of the packed document, where whoever unpacks the whole does not look, older releases among them. A
document that one of those packed has no places, and neither has one whose texts need more than decoding: those are
taken apart as before.
"""

import zlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from shared.message import BodyLists, Part, body_value
from shared.message.charset import codec_of

# What is unpacked for a message stays in memory beside what others read: the few that are longer take a place in the
# reading room, as everything does that is taken apart.
MOST_OCTETS: Final = 256 * 1024

# The end of every document that is packed now. An older one ends in a checksum, and by chance in this once in 2**64.
_MARK: Final = b"\x00texts\x01\n"
_LENGTH_OCTETS: Final = 2
# A message has two texts, as a rule; of one with hundreds it is no loss that it is read as a whole.
_MOST_TEXTS: Final = 32


class BodyText(NamedTuple):
    """A text of a body as RFC 8621 §4.1.4 has it, whole and free of encoding problems; `json` is a string of JSON."""

    part_id: str
    is_html: bool
    json: bytes


class _Place(msgspec.Struct, array_like=True, frozen=True):
    """`start` and `end` in the unpacked document; `has_pairs`: there are CRs, each before an LF.

    `charset` is None where the octets are UTF-8 with nothing in it that JSON escapes but what `_escaped` does.
    """

    part_id: str
    is_html: bool
    start: int
    end: int
    charset: str | None
    has_pairs: bool


class _Places(msgspec.Struct, array_like=True, frozen=True):
    text_body: tuple[_Place, ...]
    html_body: tuple[_Place, ...]


_DECODER: Final = msgspec.msgpack.Decoder(_Places)
_encode: Final = msgspec.json.Encoder().encode


def with_places(packed: bytes, unpacked: bytes, lists: BodyLists) -> bytes:
    """Return a packed document with the places of its body's texts, all of which are kept in it, or with none."""
    try:
        places = _Places(_places(unpacked, lists.text_body), _places(unpacked, lists.html_body))
    except _NotPlain:
        return without_places(packed)
    return _closed(packed, msgspec.msgpack.encode(places))


def without_places(packed: bytes) -> bytes:
    """Return a packed document that says that it has no places: whoever wrote the message has no say in how it ends."""
    return _closed(packed, b"")


def _closed(packed: bytes, places: bytes) -> bytes:
    return b"%b%b%b%b" % (packed, places, len(places).to_bytes(_LENGTH_OCTETS), _MARK)


def read_texts(packed: bytes, *, of_text: bool, of_html: bool) -> list[BodyText] | None:
    """Return the texts of textBody, of htmlBody, or of both, each once; None where the document has no places."""
    if not packed.endswith(_MARK):
        return None
    end = len(packed) - len(_MARK) - _LENGTH_OCTETS
    start = end - int.from_bytes(packed[end : end + _LENGTH_OCTETS])
    try:
        found = _DECODER.decode(packed[start:end])
        places = found.text_body if of_text else ()
        if of_html:
            places += tuple(place for place in found.html_body if place not in places)
        if not places:
            return []
        # No further than to the end of the last: the HTML beside a text stands behind it, and is often ten times as
        # long.
        needed = max([place.end for place in places])
        unpacked = zlib.decompressobj().decompress(packed, max(needed, 1))
        if len(unpacked) < needed:
            return None
        return [BodyText(place.part_id, place.is_html, _json(unpacked, place)) for place in places]
    except (msgspec.MsgspecError, UnicodeError):
        return None


def _json(unpacked: bytes, place: _Place) -> bytes:
    octets = unpacked[place.start : place.end]
    if place.has_pairs:
        # To take one octet out is ten times as fast as to look for two.
        octets = octets.replace(b"\r", b"")
    if place.charset is None:
        return _escaped(octets)
    return _encode(octets.decode(codec_of(place.charset) or "utf_8"))


def _escaped(octets: bytes) -> bytes:
    """A string of JSON, in a third of the time that a detour by characters takes where not all are ASCII's."""
    octets = octets.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n").replace(b"\t", b"\\t")
    return b'"%b"' % octets


class _NotPlain(Exception):  # noqa: N818 - names the finding
    """A text that does not lie there simply to be decoded."""


def _places(unpacked: bytes, parts: Iterable[Part]) -> tuple[_Place, ...]:
    texts = [part for part in parts if part.type.startswith("text/")]
    if len(texts) > _MOST_TEXTS:
        raise _NotPlain
    return tuple(map(_place, [unpacked] * len(texts), texts))


def _place(unpacked: bytes, part: Part) -> _Place:
    content = part.content()
    # Where the same octets stand earlier for something else, they are as good.
    start = unpacked.find(content, 0, MOST_OCTETS)
    if start < 0 or part.part_id is None:
        raise _NotPlain
    value = body_value(part)
    if value.is_encoding_problem:
        raise _NotPlain
    json = _encode(value.value)
    for charset in (None, part.charset or "utf-8"):
        place = _Place(part.part_id, part.type == "text/html", start, start + len(content), charset, b"\r" in content)
        with suppress(UnicodeError):
            if _json(unpacked, place) == json:
                return place
    raise _NotPlain
