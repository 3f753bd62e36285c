from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from shared.message.html import html_to_text
from shared.message.segments import Segment, SegmentedText, html_segments, new_text, segments

# Pieces from which hypothesis builds mail that nearly looks like mail.
LINES = st.sampled_from(
    [
        "",
        " ",
        "Yes, on Monday.",
        "> old",
        ">> older",
        ">",
        "| bar",
        "AB> initials",
        "On Tue, Mar 12, 2024 at 9:41 AM Bob <bob@example.com> wrote:",
        "On Tue, Mar 12, 2024 at 9:41 AM Bob",
        "<bob@example.com> wrote:",
        "wrote:",
        "From: Bob <bob@example.com>",
        "Sent: Monday, 3 June 2024",
        "To: Ann",
        "Subject: Day",
        "-----Original Message-----",
        "---------- Forwarded message ---------",
        "> Begin forwarded message:",
        "________________________________",
        "-- ",
        "--",
        "Ann Moor",
        "Kind regards,",
        "T: +44 20 7946 0123",
        "Sent from my iPhone",
        ">>> prompt",
        ">From here",
        "\r",
        "\u3000",
        "x" * 500,
    ]
)
MAIL = st.lists(LINES, max_size=30).map("\n".join)
HTML = st.lists(
    st.sampled_from(
        [
            "<div>",
            "</div>",
            "<blockquote>",
            '<blockquote type="cite">',
            '<blockquote style="border:none">',
            "</blockquote>",
            '<div class="gmail_quote">',
            '<div class="gmail_attr">',
            '<div id="divRplyFwdMsg">',
            '<div class="gmail_signature">',
            '<div style="display:none">',
            '<table class="yahoo_quoted"><tr><td>',
            "</td></tr></table>",
            '<pre class="moz-signature">-- \nAnn',
            "<br>",
            "<hr>",
            "text",
            "On Tue, 12 Mar 2024 9:41 Bob &lt;b@example.com&gt; wrote:",
            "---------- Forwarded message ---------",
            "<p>",
        ]
    ),
    max_size=30,
).map("".join)


def assert_covers(text: str, found: tuple[Segment, ...]) -> None:
    assert text == "".join(text[part.start : part.end] for part in found)
    assert [part.start for part in found] == [0, *(part.end for part in found[:-1])][: len(found)]
    assert all(part.start < part.end for part in found)
    assert all(one.kind is not other.kind for one, other in pairwise(found))
    assert all(part.start == 0 or text[part.start - 1] == "\n" for part in found)


@given(st.text())
def test_the_segments_of_any_string_cover_it(text: str) -> None:
    assert_covers(text, segments(text))


@given(MAIL)
def test_the_segments_of_what_looks_like_mail_cover_it(text: str) -> None:
    assert_covers(text, segments(text))


@given(HTML)
def test_the_segments_of_html_cover_the_text_that_its_reader_makes(html: str) -> None:
    found = html_segments(html)
    assert html_to_text(html).text == found.text
    assert_covers(found.text, found.segments)


@given(MAIL)
def test_new_text_consists_of_lines_of_the_text_in_their_order(text: str) -> None:
    lines = iter(text.split("\n"))
    assert all(
        any(line.rstrip() == wanted.rstrip() for line in lines)
        for wanted in new_text(text).split("\n")
        if wanted.strip()
    )


@given(MAIL)
def test_what_is_left_out_and_what_is_new_add_up(text: str) -> None:
    parts = SegmentedText(text, segments(text))
    assert len(text) == sum(parts.left_out(kind) for kind in {part.kind for part in parts.segments})


@given(MAIL)
def test_new_text_of_new_text_only_ever_loses_lines_and_settles(text: str) -> None:
    once = new_text(text)
    for _ in range(len(once.split("\n"))):
        again = new_text(once)
        if again == once:
            return
        assert len(again) < len(once)
        once = again
    assert new_text(once) == once


def test_new_text_is_not_always_a_fixed_point() -> None:
    once = new_text("Hello,\n> first\nFrom: Bob\n> second\nSent: Monday\nTo: Ann\nSubject: Day\n")
    assert once == "Hello,\n\nFrom: Bob\n\nSent: Monday\nTo: Ann\nSubject: Day"
    assert new_text(once) == "Hello,"
