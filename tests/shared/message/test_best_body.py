"""Which alternative is the text, and why: the plain one unless it is a stub that the HTML says more than."""

from __future__ import annotations

import pytest

from shared.message import BodyChoice, Link, TextSource, parse, readable_text
from tests.shared.message.mail import entity, multipart

SENTENCE = "The crates of the spring order are loaded on Tuesday at nine at the north gate. "
LONG = "".join(
    f"Line {number} names crate c{number} with its weight w{number} and its place p{number}. " for number in range(40)
)
HTML = f"<h1>Loading</h1><p>{SENTENCE}</p>"


def both(plain: str, html: str) -> bytes:
    return multipart(
        "alternative",
        entity("text/plain; charset=utf-8", plain),
        entity("text/html; charset=utf-8", html),
    )


@pytest.mark.parametrize(
    ("plain", "html", "choice"),
    [
        ("", HTML, BodyChoice.PLAIN_IS_EMPTY),
        (" \r\n\r\n\t", HTML, BodyChoice.PLAIN_IS_EMPTY),
        ("\u200b\u00ad\ufeff", HTML, BodyChoice.PLAIN_IS_EMPTY),
        ("-- \r\n****", HTML, BodyChoice.PLAIN_IS_EMPTY),
        ("https://news.example.org/v/123?u=abc", HTML, BodyChoice.PLAIN_IS_LINKS),
        ("<https://a.example/1>\r\n<mailto:stop@a.example>", HTML, BodyChoice.PLAIN_IS_LINKS),
        ("View this email in your browser", HTML, BodyChoice.PLAIN_OFFERS_BROWSER),
        ("Bekijk deze mail in uw webbrowser: https://a.example/", HTML, BodyChoice.PLAIN_OFFERS_BROWSER),
        ("Your mail program cannot show this message.", HTML, BodyChoice.PLAIN_IS_SHORT),
        (LONG[:700], f"<p>{LONG}</p>", BodyChoice.PLAIN_IS_SHORT),
    ],
)
def test_a_stub_gives_way_to_the_html_and_the_kind_of_stub_is_said(plain: str, html: str, choice: BodyChoice) -> None:
    reading = readable_text(parse(both(plain, html)))
    assert (choice, TextSource.HTML) == (reading.choice, reading.source)
    assert "stub" in reading.reason
    assert (SENTENCE.strip() in reading.text) or ("c39" in reading.text)


@pytest.mark.parametrize(
    ("plain", "html"),
    [
        (SENTENCE, HTML),
        # Short, and all that there is.
        ("Yes.", "<p>Yes.</p>"),
        ("View it in your browser.", "<p>View it in your browser.</p>"),
        # Neither says a thing.
        ("", "<p> </p>"),
        ("https://a.example/1", '<a href="https://a.example/1">https://a.example/1</a>'),
        # Menus and legal lines around the same text.
        (LONG, f"<p>Home Shop Contact</p><p>{LONG}</p><p>You get this because you bought.</p>"),
        # A long plain text is meant, even where the HTML says other things of the same length.
        (LONG, "<p>" + LONG.replace("crate", "box").replace("c", "d") + "</p>"),
        # Long only by its style sheet.
        (LONG, f"<style>{'p { color: #333 } ' * 1000}</style><p>{LONG}</p>"),
    ],
)
def test_a_plain_text_that_was_meant_is_taken(plain: str, html: str) -> None:
    reading = readable_text(parse(both(plain, html)))
    assert (BodyChoice.PLAIN_SAYS_IT, TextSource.PLAIN) == (reading.choice, reading.source)


def test_html_that_says_more_only_where_nobody_sees_it_says_no_more() -> None:
    reading = readable_text(parse(both("Yes.", f'<p>Yes.</p><div style="display:none">{LONG}</div>')))
    assert (BodyChoice.PLAIN_SAYS_IT, "Yes.") == (reading.choice, reading.text)


@pytest.mark.parametrize(
    ("octets", "choice"),
    [
        (entity("text/plain", "hello"), BodyChoice.PLAIN_ONLY),
        (entity("text/html", "<p>hello"), BodyChoice.HTML_ONLY),
        (entity("application/pdf", "%PDF"), BodyChoice.NO_TEXT),
        (multipart("mixed", entity("text/plain", "one"), entity("text/html", "<p>two")), BodyChoice.ALL_IN_ORDER),
    ],
)
def test_where_there_is_no_alternative_that_is_said(octets: bytes, choice: BodyChoice) -> None:
    assert choice is readable_text(parse(octets)).choice


def test_the_links_that_can_be_seen_come_with_the_text() -> None:
    html = (
        '<a href="https://a.example/x"><b>Our</b> shop</a> <a href="https://b.example/">https://b.example</a>'
        '<p style="display:none"><a href="https://c.example/">c</a></p><a href="#top">up</a>'
    )
    reading = readable_text(parse(entity("text/html", html)))
    assert (Link("Our shop", "https://a.example/x"), Link("https://b.example", "https://b.example/")) == reading.links
