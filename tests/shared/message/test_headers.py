"""RFC 8621 §4.1.2 and §4.1.3: header fields in every form, whatever senders do to them."""

from typing import Any

import pytest

from shared.message import (
    BadHeaderProperty,
    DefectCode,
    HeaderForm,
    email_json,
    parse,
    parse_header_property,
)


def read(value: bytes | str, form: HeaderForm = HeaderForm.TEXT, name: str = "X-Test") -> Any:
    octets = value.encode("utf-8") if isinstance(value, str) else value
    return parse(name.encode() + b":" + octets + b"\r\n\r\n").header(name, form)


def people(value: bytes | str) -> list[tuple[str | None, str]]:
    return [(found["name"], found["email"]) for found in read(value, HeaderForm.ADDRESSES, "To")]


# Raw and Text


@pytest.mark.statement("110")
def test_raw_keeps_leading_blanks_folding_and_trailing_blanks() -> None:
    assert read(b"  one\r\n\ttwo  ", HeaderForm.RAW) == "  one\r\n\ttwo  "


@pytest.mark.statement("110")
def test_raw_drops_nul_and_replaces_bad_utf8() -> None:
    assert read(b" a\0b\xe9c", HeaderForm.RAW) == " ab\ufffdc"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (" folded\r\n  over", "folded  over"),
        (" =?utf-8?Q?caf=C3=A9?=", "café"),
        (" =?ISO-8859-1?Q?caf=E9?= noir", "café noir"),
        (" =?utf-8*fr?Q?caf=C3=A9?=", "café"),
        (" =?utf-8?Q?a?= =?utf-8?Q?b?=", "ab"),
        (" =?utf-8?Q?a?=\r\n =?utf-8?Q?b?= c", "ab c"),
        (" a =?utf-8?Q?b?= c", "a b c"),
        (" a=?utf-8?Q?b?=c", "a=?utf-8?Q?b?=c"),
        (" =?utf-8?Q?b?=c", "=?utf-8?Q?b?=c"),
        (" a=?utf-8?Q?b?= c", "a=?utf-8?Q?b?= c"),
        (" =?x-nobody-knows?Q?b?=", "=?x-nobody-knows?Q?b?="),
        (" =?utf-8?X?b?=", "=?utf-8?X?b?="),
        (" =?utf-8?Q?un done?=", "=?utf-8?Q?un done?="),
        (" =?utf-8?Q?a=0D=0Ab=00=07c?=", "abc"),
        (" =?utf-8?B?8J8=?= =?UTF-8?B?p74=?=", "🧾"),
        (" =?utf-8?Q?=E2=82?=", "\ufffd"),
        (" =?iso-2022-jp?B?GyRCRnxLXBsoQg==?=", "日本"),
        (" =?iso-2022-jp?B?GyRCLSEtahsoQg==?=", "①㈱"),
        (" =?koi8-r?B?8NLJ18XU?=", "Привет"),
        (" =?gb2312?B?xOO6ww==?=", "你好"),
        (" =?utf-8?B?Y2Fmw6k?=", "café"),
        (" Grüße", "Grüße"),
        (" e\u0301", "é"),
    ],
)
@pytest.mark.statement("111", "112", "113")
def test_text_is_decoded_by_rfc_2047_and_normalised(value: str, text: str) -> None:
    assert text == read(value)


def test_a_long_stack_of_marks_is_left_as_it_is() -> None:
    stacked = "a" + "\u0315\u0300" * 50_000
    assert stacked == read(" " + stacked)


@pytest.mark.statement("125")
def test_latin_1_octets_become_replacement_characters() -> None:
    assert read(b" caf\xe9") == "caf\ufffd"


# Addresses


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("ana@example.org", [(None, "ana@example.org")]),
        ("Ana Reyes <ana@example.org>", [("Ana Reyes", "ana@example.org")]),
        ('"Reyes, Ana" <ana@example.org>', [("Reyes, Ana", "ana@example.org")]),
        (r'"A \"B\" C" <a@b.test>', [('A "B" C', "a@b.test")]),
        ("ana@example.org (Ana Reyes)", [("Ana Reyes", "ana@example.org")]),
        ("Ana (the boss) <a@b.test> (yes)", [("Ana", "a@b.test")]),
        ("<ana@b.test> (Ana), bob@b.test", [("Ana", "ana@b.test"), (None, "bob@b.test")]),
        ("a@b.test, c@d.test", [(None, "a@b.test"), (None, "c@d.test")]),
        ("a@b.test,,c@d.test,", [(None, "a@b.test"), (None, "c@d.test")]),
        ("a@b.test; c@d.test", [(None, "a@b.test"), (None, "c@d.test")]),
        ("=?utf-8?Q?Reyes=2C_Ana?= <a@b.test>", [("Reyes, Ana", "a@b.test")]),
        ("=?utf-8?Q?M=C3=A9lanie?= =?utf-8?Q?_Dupont?= <m@b.test>", [("Mélanie Dupont", "m@b.test")]),
        ('"=?utf-8?Q?a?=" <a@b.test>', [("=?utf-8?Q?a?=", "a@b.test")]),
        ("(=?utf-8?Q?caf=C3=A9?=) a@b.test", [("café", "a@b.test")]),
        ("John Q. Public <j@b.test>", [("John Q. Public", "j@b.test")]),
        ("<@relay.test,@other.test:user@b.test>", [(None, "user@b.test")]),
        ("user @ b . test", [(None, "user@b.test")]),
        ('"a b"@c.test', [(None, '"a b"@c.test')]),
        ("x@[192.0.2.1]", [(None, "x@[192.0.2.1]")]),
        ("Ana ana@b.test", [("Ana", "ana@b.test")]),
        ("Ana <ana@b.test", [("Ana", "ana@b.test")]),
        ('"Ana <ana@b.test>', [("Ana", "ana@b.test")]),
        ("Ana (x <ana@b.test>", [("Ana x", "ana@b.test")]),
        ("nobody", [(None, "nobody")]),
        ("<>", []),
        ("", []),
        ("Grüße <ü@b.test>", [("Grüße", "ü@b.test")]),
        ("A: a@b.test, b@b.test;, c@b.test", [(None, "a@b.test"), (None, "b@b.test"), (None, "c@b.test")]),
        ("undisclosed-recipients:;", []),
    ],
)
@pytest.mark.statement("114", "115", "125")
def test_addresses_are_read_exactly_and_broken_ones_as_well_as_can_be(
    value: str, expected: list[tuple[str | None, str]]
) -> None:
    assert expected == people(" " + value)


@pytest.mark.statement("116")
def test_groups_keep_their_names_and_loose_neighbours_share_one_without() -> None:
    value = " a@b.test, b@b.test, Team: c@b.test;, Empty:;, d@b.test"
    found = read(value, HeaderForm.GROUPED_ADDRESSES, "To")
    assert [(None, 2), ("Team", 1), ("Empty", 0), (None, 1)] == [(it["name"], len(it["addresses"])) for it in found]


# Message-IDs, dates, URLs


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<a@b>", ["a@b"]),
        ("<a@b> <c@d>", ["a@b", "c@d"]),
        ("<a@b>,\r\n <c@d>", ["a@b", "c@d"]),
        ("(first) <a@b> (second)", ["a@b"]),
        ("<a\r\n @b>", ["a@b"]),
        ("Your message of Tue <a@b>", ["a@b"]),
        ("<a(who)@(where)b>", ["a@b"]),
        ("a@b", ["a@b"]),
        ("a@b,c@d", ["a@b", "c@d"]),
        ("nothing here", None),
        ("", None),
        ("<>", None),
    ],
)
@pytest.mark.statement("117")
def test_message_ids_lose_brackets_comments_and_folding(value: str, expected: list[str] | None) -> None:
    assert expected == read(" " + value, HeaderForm.MESSAGE_IDS, "References")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Tue, 3 Mar 2026 09:07:05 +0100", "2026-03-03T09:07:05+01:00"),
        ("3 Mar 2026 09:07 +0000", "2026-03-03T09:07:00Z"),
        ("Tue, 3 Mar 2026 09:07:05 -0330 (NST)", "2026-03-03T09:07:05-03:30"),
        ("Tue, 3 Mar 2026 09:07:05 EST", "2026-03-03T09:07:05-05:00"),
        ("Tue, 3 Mar 2026 09:07:05 edt", "2026-03-03T09:07:05-04:00"),
        ("Tue, 3 Mar 2026 09:07:05 CST", "2026-03-03T09:07:05-06:00"),
        ("Tue, 3 Mar 2026 09:07:05 CDT", "2026-03-03T09:07:05-05:00"),
        ("Tue, 3 Mar 2026 09:07:05 MST", "2026-03-03T09:07:05-07:00"),
        ("Tue, 3 Mar 2026 09:07:05 MDT", "2026-03-03T09:07:05-06:00"),
        ("Tue, 3 Mar 2026 09:07:05 PST", "2026-03-03T09:07:05-08:00"),
        ("Tue, 3 Mar 2026 09:07:05 PDT", "2026-03-03T09:07:05-07:00"),
        ("Tue, 3 Mar 2026 09:07:05 GMT", "2026-03-03T09:07:05Z"),
        ("Tue, 3 Mar 2026 09:07:05 K", "2026-03-03T09:07:05Z"),
        ("Tue, 3 Mar 26 09:07:05 +0000", "2026-03-03T09:07:05Z"),
        ("Sat, 3 Mar 49 09:07:05 +0000", "2049-03-03T09:07:05Z"),
        ("Fri, 3 Mar 50 09:07:05 +0000", "1950-03-03T09:07:05Z"),
        ("Tue, 3 Mar 99 09:07:05 +0000", "1999-03-03T09:07:05Z"),
        ("Tue, 3 Mar 102 09:07:05 +0000", "2002-03-03T09:07:05Z"),
        ("Tue,\r\n 3 Mar 2026 09:07:05\r\n +0100", "2026-03-03T09:07:05+01:00"),
        ("Tue, 3 (the third) Mar 2026 09 : 07 : 05 +0100", "2026-03-03T09:07:05+01:00"),
        ("Wed, 31 Dec 2008 23:59:60 +0000", "2008-12-31T23:59:59Z"),
        ("Mon, 30 Feb 2026 09:07:05 +0000", None),
        ("Tue, 3 Mar 2026 24:00:00 +0000", None),
        ("Tue, 3 Mar 2026 09:07:05 +2500", None),
        ("yesterday", None),
        ("", None),
    ],
)
@pytest.mark.statement("118")
def test_dates_keep_their_offset_and_rubbish_is_null(value: str, expected: str | None) -> None:
    assert expected == read(" " + value, HeaderForm.DATE, "Date")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<https://a.test/u>, <mailto:u@a.test>", ["https://a.test/u", "mailto:u@a.test"]),
        ("(one) <https://a.test/u\r\n ?x=1> (two)", ["https://a.test/u?x=1"]),
        ("NO (no posting)", None),
        ("https://a.test/u", None),
        # RFC 2369 §2, what a client ignores.
        ("see <https://a.test/u>", None),
        ("<https://a.test/u> or ask, <mailto:u@a.test>", ["https://a.test/u"]),
        ("<https://a.test/u>, ask, <mailto:u@a.test>", ["https://a.test/u"]),
        ("<https://a.test/u> <mailto:u@a.test> or <https://a.test/v>", ["https://a.test/u", "mailto:u@a.test"]),
        ("<https://a.test/u>\r\n (or by mail) <mailto:u@a.test>", ["https://a.test/u", "mailto:u@a.test"]),
        ("<https://a.test/u>, <mailto:u@a.test", ["https://a.test/u"]),
        ("<>, <mailto:u@a.test>", None),
    ],
)
@pytest.mark.statement("119")
def test_urls_lose_brackets_and_comments(value: str, expected: list[str] | None) -> None:
    assert expected == read(" " + value, HeaderForm.URLS, "List-Unsubscribe")


# Instances and properties

TWICE = b"Subject: first\r\nsubject: =?utf-8?Q?last?=\r\nX-A: 1\r\n\r\n"


@pytest.mark.statement("120")
def test_the_last_instance_counts_and_all_gives_each_in_order() -> None:
    message = parse(TWICE)
    assert message.header("SUBJECT", HeaderForm.TEXT) == "last"
    assert message.header("Subject", HeaderForm.TEXT, all_instances=True) == ["first", "last"]
    assert message.header("Missing") is None
    assert message.header("Missing", all_instances=True) == []


@pytest.mark.statement("121")
def test_the_answer_is_named_as_the_request_spelled_it() -> None:
    asked = ["header:sUbJeCt", "header:Subject:asText:all", "headers", "subject"]
    assert email_json(parse(TWICE), properties=asked) == {
        "header:sUbJeCt": " =?utf-8?Q?last?=",
        "header:Subject:asText:all": ["first", "last"],
        "headers": [
            {"name": "Subject", "value": " first"},
            {"name": "subject", "value": " =?utf-8?Q?last?="},
            {"name": "X-A", "value": " 1"},
        ],
        "subject": "last",
    }


# RFC 8621 §4.1.2: the fields of RFC 5322 and RFC 2369, by the forms besides asRaw that each may be read in.
FIELDS_BY_FORMS = {
    ("asText",): "Subject Comments Keywords",
    ("asAddresses", "asGroupedAddresses"): "From Sender Reply-To To Cc Bcc Resent-From Resent-Sender Resent-Reply-To "
    "Resent-To Resent-Cc Resent-Bcc",
    ("asMessageIds",): "Message-ID In-Reply-To References Resent-Message-ID",
    ("asDate",): "Date Resent-Date",
    ("asURLs",): "List-Help List-Unsubscribe List-Subscribe List-Post List-Owner List-Archive",
    (): "Return-Path Received",
    (
        "asText",
        "asAddresses",
        "asGroupedAddresses",
        "asMessageIds",
        "asDate",
        "asURLs",
    ): "List-Id X-Anything Content-ID",
}


@pytest.mark.parametrize(("allowed", "names"), FIELDS_BY_FORMS.items())
@pytest.mark.statement("122")
def test_each_field_may_be_read_in_the_forms_of_the_rfc_and_in_no_other(allowed: tuple[str, ...], names: str) -> None:
    for name in names.split():
        for spelled in (name, name.upper()):
            assert HeaderForm.RAW is parse_header_property(f"header:{spelled}:asRaw").form
            for form in HeaderForm:
                if form in {HeaderForm.RAW, *allowed}:
                    assert form is parse_header_property(f"header:{spelled}:{form}:all").form
                else:
                    with pytest.raises(BadHeaderProperty):
                        parse_header_property(f"header:{spelled}:{form}")


@pytest.mark.parametrize(
    "spelled",
    [
        "header:",
        "header",
        "header::asText",
        "header:From:asDate",
        "header:Subject:asAddresses",
        "header:Subject:astext",
        "header:Subject:all:asText",
        "header:Subject:asText:asRaw",
        "header:Subject:all:all",
        "header:Subject:asText:all:",
        "header:Received:asText",
        "header:Date:asText",
        "header:List-Post:asText",
        "header:Message-ID:asText",
        "header:Sub ject",
        "header:Sübject",
    ],
)
@pytest.mark.statement("121", "122")
def test_forbidden_and_unknown_forms_are_refused(spelled: str) -> None:
    with pytest.raises(BadHeaderProperty) as refused:
        parse_header_property(spelled)
    assert refused.value.spelled == spelled


@pytest.mark.parametrize(
    "spelled",
    [
        "header:From",
        "header:From:asRaw",
        "header:From:asGroupedAddresses:all",
        "header:List-Id:asText",
        "header:X-Anything:asDate",
        "header:X-Anything:asURLs",
        "header:Resent-Message-ID:asMessageIds",
        "header:List-Help:asURLs",
        "header:Return-Path",
    ],
)
def test_allowed_forms_are_accepted(spelled: str) -> None:
    assert parse_header_property(spelled).spelled == spelled


# Blocks


def names(octets: bytes) -> list[str]:
    return [field.name for field in parse(octets).fields]


@pytest.mark.parametrize(
    ("octets", "expected", "body"),
    [
        (b"A: 1\r\nB: 2\r\n\r\nbody", ["A", "B"], b"body"),
        (b"A: 1\nB: 2\n\nbody", ["A", "B"], b"body"),
        (b"A : 1\r\n\r\nbody", ["A"], b"body"),
        (b"A: 1\rB: 2\r\n\r\nbody", ["A"], b"body"),
        (b"A: 1\r\n \r\nB: 2\r\n\r\nbody", ["A", "B"], b"body"),
        (b"From me Tue Mar  3 2026\r\nA: 1\r\n\r\nbody", ["A"], b"body"),
        (b"From : a@b.test\r\n\r\nbody", ["From"], b"body"),
        (b" lost\r\nA: 1\r\n\r\nbody", ["A"], b"body"),
        (b"A: 1\r\nno field\r\n\r\nbody", ["A"], b"no field\r\n\r\nbody"),
        (b"just text\r\nand more", [], b"just text\r\nand more"),
        (b" just indented text", [], b" just indented text"),
        (b"\r\nbody", [], b"body"),
        (b"A: 1", ["A"], b""),
        (b"", [], b""),
    ],
)
def test_a_header_ends_where_it_ends_and_the_rest_is_body(octets: bytes, expected: list[str], body: bytes) -> None:
    assert (expected, body) == (names(octets), parse(octets).root.content())


def test_fields_know_their_place() -> None:
    octets = b"A: 1\r\nB: 2\r\n 3\r\n\r\nbody"
    assert [b"A: 1\r\n", b"B: 2\r\n 3\r\n"] == [octets[it.start : it.end] for it in parse(octets).fields]


@pytest.mark.statement("148")
def test_fifty_thousand_fields_are_cut_and_the_body_is_still_found() -> None:
    message = parse(b"A: 1\r\n" * 50_000 + b"\r\nbody")
    assert (10_000, b"body") == (len(message.fields), message.root.content())
    assert DefectCode.TOO_MANY_HEADER_FIELDS in {defect.code for defect in message.defects}


def test_a_header_of_two_mebibytes_is_cut_and_the_body_is_still_found() -> None:
    message = parse(b"A: 1\r\nB: " + b"x" * 2 * 1024 * 1024 + b"\r\n\r\nbody")
    assert (["A"], b"body") == ([field.name for field in message.fields], message.root.content())
    assert DefectCode.HEADER_TOO_LARGE in {defect.code for defect in message.defects}


@pytest.mark.statement("148")
def test_of_twenty_thousand_encoded_words_ten_thousand_are_decoded() -> None:
    message = parse(b"Subject: " + b"=?utf-8?Q?a?= " * 20_000 + b"\r\n\r\n")
    subject = message.header("Subject", HeaderForm.TEXT)
    assert isinstance(subject, str)
    assert subject.startswith("a" * 10_000)
    assert DefectCode.TOO_MANY_ENCODED_WORDS in {defect.code for defect in message.defects}
