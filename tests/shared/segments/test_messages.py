from __future__ import annotations

from shared.message import parse, readable_text
from shared.message.segments import SegmentKind, html_segments, segmented_text, segments


def octets(*parts: tuple[str, str], subtype: str = "alternative") -> bytes:
    """A message of parts: their media type with its parameters, and their text."""
    if len(parts) == 1:
        return f"Content-Type: {parts[0][0]}\r\n\r\n{parts[0][1]}".encode()
    body = "".join(f"--b\r\nContent-Type: {kind}\r\n\r\n{text}\r\n" for kind, text in parts)
    return f"MIME-Version: 1.0\r\nContent-Type: multipart/{subtype}; boundary=b\r\n\r\n{body}--b--\r\n".encode()


PLAIN = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
GMAIL = (
    '<div>Yes.</div><div class="gmail_quote"><div class="gmail_attr">Unknown words:</div>'
    '<blockquote class="gmail_quote">old</blockquote></div>'
)


def test_the_segments_of_a_message_are_those_of_its_readable_text() -> None:
    message = parse(octets((PLAIN, "Yes.\r\n\r\n> old\r\n")))
    found = segmented_text(message)
    assert readable_text(message).text == found.text
    assert "Yes." == found.new_text()


def test_an_html_message_is_cut_by_its_elements() -> None:
    message = parse(octets((HTML, GMAIL)))
    found = segmented_text(message)
    assert readable_text(message).text == found.text
    assert "Yes." == found.new_text()


def test_the_alternative_that_is_read_is_the_one_that_is_cut() -> None:
    assert (
        "Plain yes, and more of it."
        == segmented_text(
            parse(octets((PLAIN, "Plain yes, and more of it.\r\n> old\r\n"), (HTML, "<p>Plain yes, and more</p>")))
        ).new_text()
    )


def test_a_text_of_several_html_parts_is_cut_by_its_marks() -> None:
    message = parse(octets((HTML, GMAIL), (HTML, "<p>Second</p>"), subtype="mixed"))
    found = segmented_text(message)
    assert readable_text(message).text == found.text
    assert "Second" in found.new_text()


def test_format_flowed_is_undone_before_the_text_is_cut() -> None:
    flowed = "> a quote that \r\n> goes on\r\nAn answer that \r\ngoes on, too\r\n-- \r\nAnn\r\n"
    found = segmented_text(parse(octets((f"{PLAIN}; format=flowed", flowed))))
    assert "An answer that goes on, too" == found.new_text()
    assert [SegmentKind.QUOTED, SegmentKind.NEW, SegmentKind.SIGNATURE] == [part.kind for part in found.segments]


def test_a_message_without_text_has_no_segments() -> None:
    assert () == segmented_text(parse(octets(("image/png", "")))).segments


def test_what_is_left_out_is_counted() -> None:
    found = segmented_text(parse(octets((PLAIN, "Yes.\r\n> old\r\n-- \r\nAnn\r\n"))))
    assert len("> old\n") == found.left_out(SegmentKind.QUOTED)
    assert len("-- \nAnn\n") == found.left_out(SegmentKind.SIGNATURE)


def test_a_thread_of_twenty_is_as_long_as_its_last_message() -> None:
    text = "Message 1"
    for number in range(2, 21):
        quoted = "\r\n".join(f"> {line}" for line in text.split("\r\n"))
        text = f"Message {number}\r\n\r\nOn Mon, Mar {number}, 2024 at 9:00 AM Bob <bob@example.com> wrote:\r\n{quoted}"
    found = segmented_text(parse(octets((PLAIN, text))))
    assert "Message 20" == found.new_text()
    assert "Message 1" in found.text
    assert len(found.text) == len("Message 20\n\n") + found.left_out(SegmentKind.QUOTED)


def kinds_of(html: str) -> list[tuple[SegmentKind, str]]:
    found = html_segments(html)
    return [(part.kind, found.text[part.start : part.end].strip()) for part in found.segments]


def test_a_signature_within_a_quote_is_quoted() -> None:
    signed = '<p>Yes.</p><blockquote>old<div class="gmail_signature">Ann</div>older</blockquote>'
    assert [(SegmentKind.NEW, "Yes."), (SegmentKind.QUOTED, "> old\n> Ann\n> older")] == kinds_of(signed)


def test_a_quote_within_a_signature_is_signature() -> None:
    signed = '<p>Yes.</p><div class="gmail_signature">Ann<blockquote>Carpe diem</blockquote>Acme</div>'
    assert {SegmentKind.NEW, SegmentKind.SIGNATURE} == {kind for kind, _ in kinds_of(signed)}


def test_html_too_complex_to_be_laid_out_is_cut_by_its_marks() -> None:
    found = html_segments("<div>" * 5_000 + "Yes.<br>On 3 May 2024 at 9:41 Bob &lt;b@example.com&gt; wrote:<br>old")
    assert "Yes." == found.new_text()


def test_empty_lines_belong_to_what_stands_above_them_and_the_first_to_what_follows() -> None:
    text = "\n\n> old\n\nYes.\n\n> older\n"
    assert ["\n\n> old\n\n", "Yes.\n\n", "> older\n"] == [text[part.start : part.end] for part in segments(text)]
