"""HTML for the sandboxed frame: what a person may look at, and nothing that loads, runs, or can be followed."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import pytest

from change_executor.evidence.cleaning import cleaned_html
from change_executor.evidence.reading_message import read_message
from change_executor.evidence.run_child import clean_html_in_child
from change_executor.journal import evidence
from tests.servers.desk import Clock as DeskClock
from tests.servers.desk import Rows, journal_for, settings_for

if TYPE_CHECKING:
    from pathlib import Path


def mail(html: str, more: str = "") -> bytes:
    return f"From: ada@example.org\r\n{more}Content-Type: text/html; charset=utf-8\r\n\r\n{html}".encode()


TRICKS = [
    "<script>fetch('http://t.test/')</script>",
    "<img src='http://t.test/a.gif'>",
    "<style>@import 'http://t.test/';</style>",
    "<p style=\"background:url('http://t.test/')\">",
    "<table background='http://t.test/'><td>x",
    "<link rel=stylesheet href='http://t.test/'>",
    "<meta http-equiv=refresh content='0;url=http://t.test/'>",
    "<base href='http://t.test/'>",
    "<svg onload=x()><use href='http://t.test/#a'/></svg>",
    "<math><mtext><mglyph><style><img src=http://t.test/>",
    "<form action='http://t.test/'><button formaction='http://t.test/'>Approve",
    "<iframe srcdoc='<script>x()</script>'></iframe>",
    "<video poster='http://t.test/'></video>",
    "<a href='javascript:x()' onclick='x()' ping='http://t.test/'>Approve</a>",
    "<input autofocus onfocus=x()>",
    "<details open ontoggle=x()>more</details>",
    "<noscript><p title='</noscript><img src=http://t.test/ onerror=x()>'>",
    "<object data='http://t.test/'></object><embed src='http://t.test/'>",
]


@pytest.mark.parametrize("trick", TRICKS)
def test_nothing_that_loads_or_runs_is_left(trick: str) -> None:
    html = cleaned_html(mail(trick + "<b>bold</b>"))
    assert html is not None
    kept = set(re.findall(r"<([a-z0-9]+)", html))
    assert kept <= {"b", "div", "p", "span", "table", "tbody", "tr", "td", "u"}
    assert not re.search(r"<[^>]*\s(?!start=)[a-z-]+=", html), html


def test_a_cell_keeps_how_far_it_reaches_within_reason() -> None:
    html = cleaned_html(mail("<table><tr><td colspan=2 rowspan='3'>a<th colspan=99999 rowspan=x onclick=x()>b</table>"))
    assert html is not None
    assert re.search(r'<td (?=.*colspan="2")(?=.*rowspan="3")[^>]*>a', html)
    assert "<th>b" in html


def test_no_attribute_of_every_tag_is_kept() -> None:
    assert "<p>a</p>" == cleaned_html(mail('<p title="Approve" lang="de" dir="rtl" id="x">a</p>'))


def test_a_link_is_its_text_and_the_host_it_leads_to_and_a_sender_cannot_write_such_a_host() -> None:
    html = cleaned_html(mail('<a href="https://evil.test/x">bank.test</a> <mark>[bank.test]</mark>'))
    assert html is not None
    assert "<u>bank.test</u> <mark>[evil.test]</mark>" in html
    assert ["[evil.test]"] == re.findall(r"<mark>(.*?)</mark>", html)


def test_direction_and_invisible_characters_are_gone_even_when_spelled_as_references() -> None:
    html = cleaned_html(mail("a\u202eb\u200bc &#x202e;d"))
    assert html is not None
    assert "\u202e" not in html
    assert "\u200b" not in html


def test_what_has_no_html_or_cannot_be_laid_out_has_no_view() -> None:
    assert cleaned_html(b"From: a@b.test\r\n\r\ntext") is None
    assert cleaned_html(mail("<div>" * 50_000)) is None


def test_the_child_cleans_on_request_and_a_child_that_fails_gives_nothing() -> None:
    assert "<b>hi</b>" == clean_html_in_child(mail("<script>x</script><b>hi</b>"))
    assert clean_html_in_child(b"x", command=("/bin/false",)) is None
    assert clean_html_in_child(b"x", command=("/bin/echo", "[1]")) is None


def test_a_reading_names_the_hosts_of_links_the_html_and_the_thread() -> None:
    more = "Message-ID: <c@x.test>\r\nReferences: <a@x.test> <b@x.test>\r\nIn-Reply-To: <b@x.test>\r\n"
    seen = read_message(mail('<a href="https://shop.test/x">Shop</a> https://other.test/y', more), cut=False, names=[])
    assert (["shop.test", "other.test"], True) == (seen.hosts, seen.has_html)
    assert [hashlib.sha256(each).hexdigest()[:16] for each in (b"c@x.test", b"b@x.test", b"a@x.test")] == seen.thread


def test_the_source_is_kept_bounded_and_shown_only_where_it_is_the_one_recorded(tmp_path: Path) -> None:
    clock = DeskClock()
    settings = settings_for(tmp_path)
    journal = journal_for(settings, clock)
    rows = Rows(journal, settings, clock)
    octets = b"Subject: x\r\n\r\n" + b"\xff\x00y" * evidence.KEPT_SOURCE_OCTETS
    proposal = rows.proposal()
    rows.look(proposal.id, read_message(octets[:1000], cut=True, names=[]), source=octets)
    with journal.reading() as connection:
        assert octets[: evidence.KEPT_SOURCE_OCTETS] == evidence.source(connection, proposal.id)
    for forged in ("", "not base64!", "AAAA"):
        with journal.writing() as writing:
            evidence.keep_text(writing, proposal.id, "source", forged)
        with journal.reading() as connection:
            assert evidence.source(connection, proposal.id) is None
    with journal.writing() as writing:
        evidence.keep_source(writing, proposal.id, b"another one")
    with journal.reading() as connection:
        assert evidence.source(connection, proposal.id) is None
    journal.close()
