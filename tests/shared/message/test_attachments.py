"""Attachments as text: what each form reads like, what is bounded, and what is said of the others."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.message import (
    AttachmentForm,
    AttachmentOutcome,
    AttachmentText,
    attachment_text,
    body_lists,
    parse,
)
from shared.message.content_lines import calendar_text, card_text, content_lines
from tests.shared.message.mail import entity

GOLDEN = Path(__file__).parents[2] / "golden"


def read(content_type: str, body: str | bytes, *fields: str, limit: int = 200_000) -> AttachmentText:
    return attachment_text(parse(entity(content_type, body, *fields)).root, limit)


def named(name: str) -> str:
    return f"Content-Disposition: attachment; filename={name}"


def test_plain_text_comes_as_it_is_with_its_charset_undone() -> None:
    found = read("text/plain; charset=koi8-r", "привет\r\nмир".encode("koi8-r"), named("a.txt"))
    assert ("привет\nмир", AttachmentForm.PLAIN, AttachmentOutcome.TEXT) == (found.text, found.form, found.outcome)
    assert ("a.txt", "text/plain", 11) == (found.name, found.type, found.size)


def test_html_comes_as_a_person_sees_it_and_the_hidden_apart() -> None:
    found = read("text/html", '<p>One</p><p hidden>two</p><a href="https://a.example/">three</a>')
    assert ("One\n\nthree <https://a.example/>", ["two"]) == (found.text, [each.text for each in found.hidden])


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        # RFC 4180 §2: quotes hold separators, line breaks and doubled quotes.
        ("text/csv", 'a,b,c\r\n"1,5","x\r\ny","say ""hi"""\r\n', 'a | b | c\n1,5 | x y | say "hi"'),
        ("text/csv", "naam;bedrag\r\nAnn;1,50\r\n", "naam | bedrag\nAnn | 1,50"),
        ("text/tab-separated-values", "a\tb\r\n1\t2", "a | b\n1 | 2"),
        ("application/csv", "a,,b", "a |  | b"),
    ],
)
def test_a_table_comes_as_rows(content_type: str, body: str, text: str) -> None:
    found = read(content_type, body)
    assert (text, AttachmentForm.TABLE) == (found.text, found.form)


CALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//example//EN
METHOD:REQUEST
BEGIN:VTIMEZONE
TZID:Europe/Paris
BEGIN:STANDARD
DTSTART:19701025T030000
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:19700329T020000
COMMENT:summer
END:DAYLIGHT
END:VTIMEZONE
BEGIN:VEVENT
UID:e1@example.org
DTSTART;TZID=Europe/Paris:20260310T090000
DTEND:20260310T093015Z
SUMMARY:Boiler visit\\, second
 try
DESCRIPTION:Bring:\\n\\n- keys\\n- a lamp\\; please
ORGANIZER;CN="Reyes, Ana":mailto:ana@example.org
ATTENDEE;CN=Bo;PARTSTAT=NEEDS-ACTION:MAILTO:bo@example.org
ATTACH;ENCODING=BASE64;VALUE=BINARY:AAAA
X-SECRET:no
BEGIN:VALARM
TRIGGER:-PT15M
END:VALARM
END:VEVENT
BEGIN:VTODO
DUE;VALUE=DATE:20260401
SUMMARY:Pay
END:VTODO
END:VCALENDAR
"""

CALENDAR_TEXT = """Method: REQUEST

Event
UID: e1@example.org
Start: 2026-03-10 09:00 Europe/Paris
End: 2026-03-10 09:30:15 UTC
Summary: Boiler visit, secondtry
Description: Bring:
  - keys
  - a lamp; please
Organizer: Reyes, Ana <ana@example.org>
Attendee: Bo <bo@example.org> (needs-action)
Attached: (not shown)

Reminder
Trigger: -PT15M

Task
Due: 2026-04-01
Summary: Pay"""


def test_a_calendar_is_unfolded_and_readable() -> None:
    found = read("text/calendar; method=REQUEST; charset=utf-8", CALENDAR.replace("\n", "\r\n"))
    assert (CALENDAR_TEXT, AttachmentForm.CALENDAR) == (found.text, found.form)


def test_the_invitation_of_the_sample_messages_reads_alike_in_both_its_parts() -> None:
    lists = body_lists(parse((GOLDEN / "040-calendar-invite.eml").read_bytes()))
    expected = "Method: REQUEST\n\nEvent\nUID: hb-40@example.test\nStart: 2026-03-10 09:00 UTC\nSummary: Boiler visit"
    assert [expected, expected] == [attachment_text(part).text for part in lists.attachments]


CARD = """BEGIN:VCARD
VERSION:4.0
FN:Ana Reyes
N:Reyes;Ana;;;
ORG:Example\\, Ltd;Sales
item1.EMAIL;TYPE=work:ana@example.org
TEL;TYPE="cell,voice":tel:+31-6-1234
ADR;TYPE=home:;;1 Main St;Town;;1234 AB;Netherlands
BDAY:19960415
NOTE:one\\ntwo
PHOTO:data:image/jpeg;base64,AAAA
END:VCARD
BEGIN:VCARD
VERSION:2.1
FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:J=C3=BCrgen =
=C3=96z
TEL;HOME:123
END:VCARD
"""

CARD_TEXT = """Card
Name: Ana Reyes
Name in parts: Reyes, Ana
Organization: Example, Ltd, Sales
Email (work): ana@example.org
Telephone (cell,voice): +31-6-1234
Address (home): 1 Main St, Town, 1234 AB, Netherlands
Birthday: 1996-04-15
Note: one
  two
Photo: (not shown)

Card
Name: Jürgen Öz
Telephone (home): 123"""


def test_a_card_is_readable_in_its_new_and_its_old_form() -> None:
    found = read("text/vcard; charset=utf-8", CARD)
    assert (CARD_TEXT, AttachmentForm.CARD) == (found.text, found.form)


@pytest.mark.parametrize(
    ("content_type", "name", "outcome"),
    [
        ("application/pdf", "a.pdf", AttachmentOutcome.NOT_READABLE_YET),
        ("application/msword", "a.doc", AttachmentOutcome.NOT_READABLE_YET),
        (
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "a.docx",
            AttachmentOutcome.NOT_READABLE_YET,
        ),
        ("application/vnd.oasis.opendocument.text", "a.odt", AttachmentOutcome.NOT_READABLE_YET),
        ("application/vnd.ms-excel", "a.xls", AttachmentOutcome.NOT_READABLE_YET),
        ("text/rtf", "a.rtf", AttachmentOutcome.NOT_READABLE_YET),
        ("application/octet-stream", "a.PDF", AttachmentOutcome.NOT_READABLE_YET),
        ("application/octet-stream", "a.exe", AttachmentOutcome.NOT_TEXT),
        ("application/octet-stream", "csv", AttachmentOutcome.NOT_TEXT),
        ("image/png", "a.txt", AttachmentOutcome.NOT_TEXT),
        ("image/svg+xml", "a.svg", AttachmentOutcome.NOT_TEXT),
        ("message/rfc822", "a.eml", AttachmentOutcome.MESSAGE),
    ],
)
def test_what_is_not_read_has_its_name_type_and_size_and_says_why(
    content_type: str, name: str, outcome: AttachmentOutcome
) -> None:
    found = read(content_type, "12345", named(name))
    assert (outcome, "", None) == (found.outcome, found.text, found.form)
    assert (name, content_type, 5) == (found.name, found.type, found.size)
    assert found.reason


@pytest.mark.parametrize(
    ("name", "body", "form"),
    [
        ("a.csv", "a,b", AttachmentForm.TABLE),
        ("a.ics", CALENDAR, AttachmentForm.CALENDAR),
        ("a.VCF", CARD, AttachmentForm.CARD),
        ("a.b.txt", "hello", AttachmentForm.PLAIN),
        ("a.html", "<p>hello", AttachmentForm.HTML),
    ],
)
def test_a_file_that_its_sender_did_not_know_is_read_by_the_end_of_its_name(
    name: str, body: str, form: AttachmentForm
) -> None:
    found = read("application/octet-stream", body, named(name))
    assert (AttachmentOutcome.TEXT, form) == (found.outcome, found.form)


@pytest.mark.parametrize(
    ("content_type", "name"),
    [
        ("application/xml", "invoice.xml"),
        ("application/json; charset=utf-8", "a"),
        ("application/ld+json", "a"),
        ("application/rss+xml", "a"),
        ("application/octet-stream", "invoice.XML"),
        ("application/octet-stream", "a.json"),
    ],
)
def test_text_for_programs_is_text(content_type: str, name: str) -> None:
    found = read(content_type, "<total>12 \u20ac</total>", named(name))
    assert (AttachmentOutcome.TEXT, AttachmentForm.PLAIN) == (found.outcome, found.form)
    assert ("<total>12 \u20ac</total>", False) == (found.text.strip(), found.is_encoding_problem)


@pytest.mark.parametrize("octets", [b"\x89PNG\r\n\x1a\n", b"words\0and more", b"\xff\xfe\xfa" * 5])
def test_a_name_does_not_make_octets_a_text(octets: bytes) -> None:
    body = base64.b64encode(octets)
    found = read("application/octet-stream", body, named("a.txt"), "Content-Transfer-Encoding: base64")
    assert (AttachmentOutcome.NOT_DECODABLE, "") == (found.outcome, found.text)


def test_a_long_attachment_is_cut_and_says_so() -> None:
    found = read("text/plain", "word " * 100, limit=20)
    assert ("word word word word ", True) == (found.text, found.is_truncated)
    whole = read("text/plain", "word", limit=4)
    assert ("word", False) == (whole.text, whole.is_truncated)


def test_a_report_is_text() -> None:
    found = read("message/delivery-status", "Reporting-MTA: dns; mx.example.org\r\n")
    assert (AttachmentOutcome.TEXT, "Reporting-MTA: dns; mx.example.org\n") == (found.outcome, found.text)


TYPES = st.sampled_from(
    ["text/calendar", "text/vcard", "text/csv", "text/html", "text/plain", "application/octet-stream", "x/y"]
)


@given(TYPES, st.binary(max_size=300))
def test_any_attachment_gives_a_value(content_type: str, octets: bytes) -> None:
    assert isinstance(read(content_type, octets, named("a.csv")).outcome, AttachmentOutcome)


@given(st.text(st.sampled_from('BEGIN:VD;="\\n, \n=A1T'), max_size=200))
def test_any_lines_give_a_text(text: str) -> None:
    assert isinstance(calendar_text(text) + card_text(text), str)


def test_a_property_is_read_with_quoted_parameters_and_without_its_group() -> None:
    (line,) = content_lines('g.TEL;TYPE="a:b;c";PREF=1:x:y')
    assert ("TEL", {"TYPE": "a:b;c", "PREF": "1"}, "x:y") == (line.name, line.parameters, line.value)
