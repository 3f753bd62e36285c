"""The views: segments of a plain text, of HTML, and of a message."""

from collections.abc import Mapping

from shared.message.bodies import body_lists, body_value
from shared.message.model import Message
from shared.message.reading import ReadableText, TextSource
from shared.message.segments.lines import ElementMark, line_kinds
from shared.message.segments.model import Segment, SegmentedText
from shared.message.text import readable_text


def segments(text: str) -> tuple[Segment, ...]:
    """Return the segments of a plain text; concatenated they are the text. LF or CR LF line ends; any string.

    "" has no segments. Neighbours differ in kind.
    """
    return _segments(text, {})


def new_text(text: str) -> str:
    """Return what is new in a plain text, without quotes and signature."""
    return SegmentedText(text, segments(text)).new_text()


def html_segments(html: str) -> SegmentedText:
    """Return the text of HTML as `html_to_text` makes it, and its segments by elements and by the lines' marks."""
    from shared.message.segments.elements import marked_text  # noqa: PLC0415 - loads selectolax only when asked

    marked = marked_text(html)
    return SegmentedText(marked.text, _segments(marked.text, marked.marks))


def segmented_text(message: Message, reading: ReadableText | None = None) -> SegmentedText:
    """Return the one text of a message (`readable_text`) and its segments, by elements if it is one HTML part.

    `reading` is that text where it was read already: it is not read, and not held, twice.
    """
    readable = readable_text(message) if reading is None else reading
    if readable.source is TextSource.HTML:
        parts = [part for part in body_lists(message).html_body if part.type == "text/html"]
        if len(parts) == 1:
            by_elements = html_segments(body_value(parts[0]).value)
            if by_elements.text == readable.text:
                return by_elements
    return SegmentedText(readable.text, segments(readable.text))


def _segments(text: str, marks: Mapping[int, ElementMark]) -> tuple[Segment, ...]:
    lines = text.split("\n")
    found: list[Segment] = []
    position = start = 0
    kinds = line_kinds(lines, marks)
    for at, line in enumerate(lines):
        position += len(line) + 1
        is_last = at + 1 == len(lines)
        if is_last or kinds[at + 1] is not kinds[at]:
            end = len(text) if is_last else position
            if end > start:
                found.append(Segment(kinds[at], start, end))
            start = end
    return tuple(found)
