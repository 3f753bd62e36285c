"""Typed facts about a message: what it is and where it says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.message import Fact, Flag, flags, parse
from tests.shared.message.mail import entity, multipart

GOLDEN = Path(__file__).parents[2] / "golden"
HEAD = "From: Ann <ann@example.org>\r\nTo: shop@example.org\r\nSubject: an order\r\n"


def facts(octets: bytes) -> list[tuple[Fact, str]]:
    return [(flag.fact, flag.where) for flag in flags(parse(octets))]


def test_an_ordinary_message_has_no_flag() -> None:
    assert () == flags(parse((HEAD + "Reply-To: ANN@example.org\r\nAuto-Submitted: no\r\n\r\nhi").encode()))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # RFC 3834 §5: any value but `no`, parameters and comments aside, in any letter case.
        ("Auto-Submitted: auto-replied", (Fact.AUTOMATIC_MAIL, "Auto-Submitted")),
        ("auto-submitted: (bot) Auto-Generated; x=y", (Fact.AUTOMATIC_MAIL, "Auto-Submitted")),
        ("Auto-Submitted: auto-notified (RFC 5436)", (Fact.AUTOMATIC_MAIL, "Auto-Submitted")),
        ("Auto-Submitted: x-something-new", (Fact.AUTOMATIC_MAIL, "Auto-Submitted")),
        ("Auto-Submitted: auto-replied\r\nAuto-Submitted: no", (Fact.AUTOMATIC_MAIL, "Auto-Submitted")),
        ("Precedence: Bulk", (Fact.AUTOMATIC_MAIL, "Precedence")),
        ("Precedence: junk", (Fact.AUTOMATIC_MAIL, "Precedence")),
        ("Return-Path: < >", (Fact.AUTOMATIC_MAIL, "Return-Path")),
        ("Return-Path:\r\n <> (bounce)", (Fact.AUTOMATIC_MAIL, "Return-Path")),
        ("Precedence: list", (Fact.LIST_MAIL, "Precedence")),
        ("List-Id: Friends <friends.example.org>", (Fact.LIST_MAIL, "List-Id")),
        ("List-Unsubscribe: <mailto:off@example.org>", (Fact.LIST_MAIL, "List-Unsubscribe")),
        ("Reply-To: eve@example.net", (Fact.REPLY_TO_DIFFERS, "Reply-To")),
        ("Reply-To: ann@example.org, eve@example.net", (Fact.REPLY_TO_DIFFERS, "Reply-To")),
        ("Sender: eve@example.net", (Fact.SENDER_DIFFERS, "Sender")),
        ("From: ann@example.org, eve@example.net", (Fact.SEVERAL_SENDERS, "From")),
        ('From: "ceo@bank.example" <eve@example.net>', (Fact.NAME_SHOWS_ANOTHER_ADDRESS, "From")),
        ("Subject: another", (Fact.REPEATED_FIELD, "Subject")),
    ],
)
def test_a_field_says_what_kind_of_mail_it_is(fields: str, expected: tuple[Fact, str]) -> None:
    assert expected in facts(f"{HEAD}{fields}\r\n\r\nhi".encode())


@pytest.mark.parametrize(
    "fields",
    [
        "Auto-Submitted: No",
        "Auto-Submitted: no (a person)",
        "Auto-Submitted:",
        "Precedence: first-class",
        "Return-Path: <ann@example.org>",
        # Only the topmost is the delivering server's.
        "Return-Path: <ann@example.org>\r\nReturn-Path: <>",
        "List-Id:",
        "X-List-Id: <a>",
        "Reply-To:",
        "Sender: Ann <Ann@Example.org>",
    ],
)
def test_what_says_nothing_raises_no_flag(fields: str) -> None:
    assert [] == facts(f"{HEAD}{fields}\r\n\r\nhi".encode())


BODY = "--b\r\n\r\nx\r\n--b--\r\n"


def test_what_people_write_to_a_list_is_not_automatic_because_the_list_calls_it_bulk() -> None:
    octets = f"{HEAD}Precedence: bulk\r\nList-Id: <friends.example.org>\r\n\r\nhi".encode()
    assert [(Fact.LIST_MAIL, "List-Id")] == facts(octets)


def test_each_repeated_field_is_named() -> None:
    octets = f"{HEAD}Subject: two\r\nDate: x\r\nDate: y\r\n\r\nhi".encode()
    assert [(Fact.REPEATED_FIELD, "Subject"), (Fact.REPEATED_FIELD, "Date")] == facts(octets)


CALENDAR = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:{}\r\nBEGIN:VEVENT\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"


@pytest.mark.parametrize(
    ("octets", "expected"),
    [
        (entity("multipart/report; report-type=Delivery-Status; boundary=b", BODY), Fact.DELIVERY_REPORT),
        (multipart("mixed", entity("message/delivery-status", "Reporting-MTA: dns; a")), Fact.DELIVERY_REPORT),
        (multipart("mixed", entity("message/global-delivery-status", "x")), Fact.DELIVERY_REPORT),
        (multipart("report", entity("message/disposition-notification", "x")), Fact.DISPOSITION_REPORT),
        (entity("text/calendar; method=REQUEST", "x"), Fact.CALENDAR_INVITATION),
        (entity("text/calendar", CALENDAR.format("REQUEST")), Fact.CALENDAR_INVITATION),
        (entity("application/ics", CALENDAR.format("request")), Fact.CALENDAR_INVITATION),
        (entity("text/calendar; method=reply", "x"), Fact.CALENDAR_REPLY),
        (entity("text/calendar; method=CANCEL", "x"), Fact.CALENDAR_CANCELLATION),
        (entity("text/calendar", CALENDAR.format("PUBLISH")), Fact.CALENDAR_ENTRY),
        (entity("text/calendar", "BEGIN:VCALENDAR"), Fact.CALENDAR_ENTRY),
        (entity('multipart/encrypted; protocol="application/pgp-encrypted"; boundary=b', BODY), Fact.ENCRYPTED),
        (entity("application/pkcs7-mime; smime-type=enveloped-data", "x"), Fact.ENCRYPTED),
        (entity("application/x-pkcs7-mime; smime-type=authEnveloped-data", "x"), Fact.ENCRYPTED),
        (entity("application/pkcs7-mime", "x"), Fact.ENCRYPTED),
        (entity("text/plain", "Hi\r\n-----BEGIN PGP MESSAGE-----\r\n\r\nabc"), Fact.ENCRYPTED),
        (entity("multipart/signed; micalg=sha-256; boundary=b", BODY), Fact.SIGNED_NOT_VERIFIED),
        (entity("application/pkcs7-mime; smime-type=signed-data", "x"), Fact.SIGNED_NOT_VERIFIED),
        (entity("text/plain", "-----BEGIN PGP SIGNED MESSAGE-----\r\nHash: SHA256"), Fact.SIGNED_NOT_VERIFIED),
    ],
)
def test_a_part_says_what_kind_of_mail_it_is(octets: bytes, expected: Fact) -> None:
    assert [expected] == [fact for fact, _ in facts(octets)]


@pytest.mark.parametrize(
    "octets",
    [
        entity("application/pkcs7-mime; smime-type=certs-only", "x"),
        entity("application/pkcs7-mime; smime-type=compressed-data", "x"),
        entity("text/plain", "Write -----BEGIN PGP MESSAGE----- before it."),
        entity("multipart/report; report-type=feedback-report; boundary=b", BODY),
    ],
)
def test_a_part_that_hides_and_signs_nothing_raises_no_flag(octets: bytes) -> None:
    assert [] == facts(octets)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("058-auto-submitted", [Flag(Fact.AUTOMATIC_MAIL, "Auto-Submitted")]),
        (
            "060-delivery-status",
            [Flag(Fact.AUTOMATIC_MAIL, "Auto-Submitted"), Flag(Fact.DELIVERY_REPORT, "multipart/report")],
        ),
        ("040-calendar-invite", [Flag(Fact.CALENDAR_INVITATION, "text/calendar")]),
    ],
)
def test_the_sample_messages_are_told_apart(name: str, expected: list[Flag]) -> None:
    assert expected == list(flags(parse((GOLDEN / f"{name}.eml").read_bytes())))


def test_where_a_fact_stands_is_never_the_senders_words() -> None:
    octets = entity("text/x-evil; method=REQUEST", "x", "X-Evil: evil", "Auto-Submitted: evil", "Precedence: evil")
    assert "evil" not in str(flags(parse(octets)))
