"""Facts, links, verdicts and attachments of any message: always a value, and in time linear in the octets."""

from __future__ import annotations

import sys
from functools import partial
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.fence import clean_line
from shared.message import (
    AttachmentOutcome,
    Message,
    attachment_text,
    authentication,
    defang,
    flags,
    link_findings,
    parse,
    parse_authentication_results,
    readable_text,
)
from tests.shared.message.test_any_octets import Repeated, Steps, mail_like

PIECES: Final = [
    *(b"Authentication-Results: ", b"mx.example.org", b"; dmarc=", b"pass", b" smtp.mailfrom=", b"reason=", b"/1"),
    *(b"Auto-Submitted: ", b"Reply-To: ", b"Return-Path: <>", b"text/calendar; method=", b"BEGIN:VEVENT", b"ATTENDEE"),
    *(b"https://", b"xn--", b"www.", b"@", b".example", b"mailto:", b"<a href=", b">", b"\xd0\xb0", b"text/vcard"),
    *(b"ENCODING=QUOTED-PRINTABLE", b"=", b";", b":", b'"', b"text/csv", b"Content-Type: ", b"\r\n", b"\r\n\r\n"),
]
of_facts = st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=50).map(b"".join)


def all_facts(message: Message) -> None:
    flags(message)
    authentication(message, "mx.example.org")
    reading = readable_text(message)
    for finding in link_findings(message, reading):
        for shown in (finding.host, finding.shown):
            assert clean_line(shown).text == shown
    defang(reading.text)
    for part in message.root.walk():
        found = attachment_text(part, 50)
        assert len(found.text) <= 50
        assert (found.outcome is AttachmentOutcome.TEXT) is (found.form is not None)


@settings(max_examples=300)
@given(of_facts | mail_like)
def test_any_message_has_facts(octets: bytes) -> None:
    all_facts(parse(octets))


@given(st.text(st.sampled_from('a.;=()"\\ /1\t') | st.characters(), max_size=80))
def test_any_text_is_authentication_results_or_none(text: str) -> None:
    parsed = parse_authentication_results(text)
    assert parsed is None or parsed.authserv_id


HTML: Final = b"To: a@b.example\r\nContent-Type: text/html\r\n\r\n"
HOSTILE: Final = {
    "comments in results": Repeated(b"Authentication-Results: a;", b"(x)"),
    "open comments in results": Repeated(b"Authentication-Results: a;", b"("),
    "results": Repeated(b"Authentication-Results: a;", b"spf=pass;"),
    "fields of results": Repeated(b"", b"Authentication-Results: a; spf=pass\r\n"),
    "recipients": Repeated(b"To: ", b"a@b.example,"),
    "recipients with one look": Repeated(b"To: ", b"a@l1l1.example,b@1l1l.example,"),
    "repeated fields": Repeated(b"", b"Subject: a\r\n"),
    "links": Repeated(HTML, b"<a href='https://a.example'>b.com</a>"),
    "hosts in a label": Repeated(HTML + b"<a href='https://a.example'>", b"b.com "),
    "dots in a label": Repeated(HTML + b"<a href='https://a.example'>", b"a."),
    "schemes": Repeated(b"\r\n", b"http://"),
    "encoded labels": Repeated(b"\r\nhttps://", b"xn--a."),
    "users": Repeated(b"\r\nhttps://", b"a@"),
    "armour": Repeated(b"\r\n", b"-----BEGIN PGP MESSAGE-----x\r\n"),
    "calendar lines": Repeated(b"Content-Type: text/calendar\r\n\r\n", b"BEGIN:VEVENT\r\n"),
    "folded lines": Repeated(b"Content-Type: text/calendar\r\n\r\nSUMMARY:", b"a\r\n "),
    "parameters": Repeated(b"Content-Type: text/calendar\r\n\r\nATTENDEE", b";A=B"),
    "one parameter again": Repeated(b"Content-Type: text/vcard\r\n\r\nTEL", b";HOME"),
    "left out parts": Repeated(b"Content-Type: text/calendar\r\n\r\n", b"BEGIN:VTIMEZONE\r\n"),
    "soft breaks": Repeated(b"Content-Type: text/vcard\r\n\r\nFN;ENCODING=QUOTED-PRINTABLE:", b"a=\r\n"),
    "dates": Repeated(b"Content-Type: text/calendar\r\n\r\nRDATE:", b"20260310,"),
    "quotes in a table": Repeated(b"Content-Type: text/csv\r\n\r\n", b'"a'),
    "cells": Repeated(b"Content-Type: text/csv\r\n\r\n", b","),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_twice_the_octets_take_no_more_than_twice_the_steps(name: str) -> None:
    small, large = (Steps().of(partial(all_facts, parse(HOSTILE[name](size)))) for size in (4_000, 16_000))
    assert 0 < small
    assert large <= 4 * 1.3 * small + 2_000


@pytest.mark.parametrize("name", HOSTILE)
def test_a_size_that_would_show_a_slow_regular_expression_ends(name: str) -> None:
    all_facts(parse(HOSTILE[name](300_000)))


def test_counting_leaves_no_trace() -> None:
    before = sys.gettrace()
    Steps().of(lambda: None)
    assert before is sys.gettrace()
