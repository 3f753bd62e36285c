"""RFC 8621 §4.1.4: structure, body lists, values, sizes; what senders break on the way."""

import base64
from typing import Any

import pytest

from shared.message import (
    BodyValue,
    HeaderForm,
    body_lists,
    body_value,
    email_json,
    has_attachment,
    parse,
)
from tests.shared.message.mail import contents, entity, multipart


def value_of(octets: bytes, limit: int = 0) -> BodyValue:
    return body_value(parse(octets).root, limit)


# The lists


@pytest.mark.statement("128")
def test_the_example_of_rfc_8621_gives_the_lists_that_the_rfc_gives() -> None:
    """RFC 8621 §4.1.4: parts A to K."""
    text, html = "text/plain", "text/html"
    related = multipart("related", entity(html, "E"), entity("image/jpeg", "F"), boundary="r2")
    alternative = multipart(
        "alternative",
        multipart(
            "mixed",
            *(
                entity(text, "B", "Content-Disposition: inline"),
                entity("image/jpeg", "C", "Content-Disposition: inline"),
                entity(text, "D", "Content-Disposition: inline"),
            ),
            boundary="m2",
        ),
        related,
        boundary="a1",
    )
    message = parse(
        multipart(
            "mixed",
            entity(text, "A", "Content-Disposition: inline"),
            multipart(
                "mixed",
                alternative,
                entity("image/jpeg", "G", "Content-Disposition: attachment"),
                entity("application/x-excel", "H"),
                entity("message/rfc822", "J"),
                boundary="m1",
            ),
            entity(text, "K", "Content-Disposition: inline"),
        )
    )  # fmt: skip
    lists = body_lists(message)
    assert ("ABCDK", "AEK", "CFGHJ") == tuple(map(contents, (lists.text_body, lists.html_body, lists.attachments)))


@pytest.mark.parametrize(
    ("octets", "text", "html", "attached"),
    [
        (entity("text/plain", "A"), "A", "A", ""),
        (entity("text/html", "A"), "A", "A", ""),
        (entity("application/pdf", "A"), "", "", "A"),
        (entity("image/png", "A"), "A", "A", ""),
        (entity("text/plain", "A", "Content-Disposition: attachment"), "", "", "A"),
        (entity("text/plain; name=a.txt", "A"), "A", "A", ""),
        (multipart("mixed", entity("text/plain", "A"), entity("text/plain; name=b", "B")), "A", "A", "B"),
        (multipart("alternative", entity("text/plain", "A"), entity("text/html", "B")), "A", "B", ""),
        (multipart("alternative", entity("text/html", "B")), "B", "B", ""),
        (multipart("alternative", entity("text/plain", "A"), entity("text/calendar", "C")), "A", "A", "C"),
        (multipart("related", entity("text/html", "A"), entity("text/plain", "B")), "A", "A", "B"),
        (multipart("digest", entity("", "Subject: x\r\n\r\nA")), "", "", "Subject: x\r\n\r\nA"),
        (multipart("mixed", entity("text/plain", "A"), entity("image/png", "B")), "AB", "AB", ""),
        (multipart("mixed", entity("text/html", "A"), entity("video/mp4; name=v", "B")), "AB", "AB", ""),
        (
            multipart(
                "alternative",
                multipart("mixed", entity("text/plain", "A"), entity("image/png", "B"), boundary="m"),
                entity("text/html", "C"),
            ),
            *("AB", "C", "B"),
        ),
        (
            multipart(
                "alternative",
                entity("text/plain", "A"),
                multipart("mixed", entity("text/html", "B"), entity("audio/ogg", "C"), boundary="m"),
            ),
            *("A", "BC", "C"),
        ),
    ],
)
@pytest.mark.statement("129", "130", "131")
def test_each_part_is_body_or_attachment(octets: bytes, text: str, html: str, attached: str) -> None:
    lists = body_lists(parse(octets))
    assert (text, html, attached) == tuple(map(contents, (lists.text_body, lists.html_body, lists.attachments)))


def test_an_alternative_that_has_its_html_already_loses_no_plain_text() -> None:
    inner = multipart("alternative", entity("text/plain", "P"), entity("text/html", "Q"), boundary="i")
    outer = multipart("alternative", multipart("mixed", entity("text/html", "H"), inner, boundary="m"))
    lists = body_lists(parse(outer))
    assert "P" in contents((*lists.text_body, *lists.html_body, *lists.attachments))


@pytest.mark.parametrize(
    ("disposition", "expected"), [("inline", False), ("attachment", True), ("INLINE; filename=a", False)]
)
@pytest.mark.statement("144")
def test_only_attachments_that_are_not_inline_count(disposition: str, expected: bool) -> None:
    octets = multipart(
        "mixed", entity("text/plain", "A"), entity("application/pdf", "B", f"Content-Disposition: {disposition}")
    )
    assert has_attachment(parse(octets)) is expected


@pytest.mark.statement("144")
def test_one_attachment_that_is_not_inline_is_enough_and_inline_is_what_says_so() -> None:
    inline = entity("application/pdf", "B", "Content-Disposition: inline")
    for other in (entity("application/pdf", "C"), entity("message/rfc822", "Subject: x\r\n\r\n")):
        for parts in ((inline, other), (other, inline)):
            assert has_attachment(parse(multipart("mixed", entity("text/plain", "A"), *parts)))


# Part properties


@pytest.mark.parametrize(
    ("spelled", "part_type", "charset"),
    [
        ("Text/HTML; charset=UTF-8", "text/html", "UTF-8"),
        ("text/plain", "text/plain", "us-ascii"),
        ("text/html", "text/html", "us-ascii"),
        ("TEXT/Html (Comment)", "text/html", "us-ascii"),
        ("multipart/mixed", "text/plain", "us-ascii"),
        ("", "text/plain", "us-ascii"),
        ("application/pdf", "application/pdf", None),
        ("application/pdf; charset=x", "application/pdf", "x"),
        ("text", "text/plain", "us-ascii"),
        ("text/html charset=utf-8", "text/html", "utf-8"),
        ("text/html;charset='utf-8'", "text/html", "'utf-8'"),
        ('text/html; charset="utf-8"; charset=x', "text/html", "utf-8"),
        ("text/html (comment); charset=utf-8 (yes)", "text/html", "utf-8"),
        ("text/html; charset = utf-8 ;", "text/html", "utf-8"),
        ("/; a", "text/plain", "us-ascii"),
    ],
)
@pytest.mark.statement("132", "133")
def test_types_and_charsets(spelled: str, part_type: str, charset: str | None) -> None:
    root = parse(entity(spelled, "x")).root
    assert (part_type, charset) == (root.type, root.charset)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        (["Content-Disposition: attachment; filename=a.pdf"], "a.pdf"),
        (["Content-Disposition: attachment; filename*=utf-8''%E2%82%AC.pdf"], "€.pdf"),
        (["Content-Disposition: attachment; filename*0=lon; filename*1=g.pdf"], "long.pdf"),
        (["Content-Disposition: attachment; filename*0*=utf-8''%C3; filename*1*=%A9; filename*2=.pdf"], "é.pdf"),
        (["Content-Disposition: attachment; filename*0*=utf-8''a; filename*1=%41; filename*2*=it''s"], "a%41it''s"),
        (["Content-Disposition: attachment; filename*0=a; filename*2=c; filename*3=d"], "a"),
        (["Content-Disposition: attachment (c); filename=first; filename=second"], "first"),
        (["Content-Disposition: attachment; filename=first; filename=second"], "first"),
        (["Content-Disposition: attachment; filename*1=g.pdf; filename*0=lon"], "long.pdf"),
        (["Content-Disposition: attachment; filename=plain.pdf; filename*=utf-8''rich.pdf"], "rich.pdf"),
        (["Content-Disposition: attachment; filename=two words.pdf"], "two words.pdf"),
        ([r'Content-Disposition: attachment; filename="a\"b;c.pdf"'], 'a"b;c.pdf'),
        (["Content-Disposition: attachment; filename*=x-nobody''%E9"], "\ufffd"),
        (["Content-Disposition: attachment"], "type.pdf"),
        (['Content-Disposition: attachment; filename=""'], "type.pdf"),
        ([], "type.pdf"),
    ],
)
@pytest.mark.statement("134")
def test_names_come_from_the_filename_and_else_from_the_type(fields: list[str], name: str) -> None:
    assert name == parse(entity("application/pdf; name=type.pdf", "x", *fields)).root.name


@pytest.mark.statement("134")
def test_encoded_words_in_a_name_are_read_wherever_it_stands() -> None:
    spelled = '"=?utf-8?Q?=E2=82=AC_1.pdf?="'
    for part in (
        entity(f"application/pdf; name={spelled}", "x"),
        entity("application/pdf", "x", f"Content-Disposition: attachment; filename={spelled}"),
    ):
        assert "€ 1.pdf" == parse(part).root.name


@pytest.mark.statement("132")
def test_a_part_of_a_digest_is_a_message_and_one_of_another_multipart_is_text() -> None:
    for subtype, kind, charset in (("digest", "message/rfc822", None), ("mixed", "text/plain", "us-ascii")):
        (part,) = parse(multipart(subtype, entity("", "Subject: x\r\n\r\nA"))).root.subparts
        assert (kind, charset) == (part.type, part.charset)
    # RFC 2045 §5.2: a type that is none is text, wherever it stands.
    for spelled in ("; charset=utf-8", "nonsense"):
        (part,) = parse(multipart("digest", entity(spelled, "A"))).root.subparts
        assert "text/plain" == part.type


@pytest.mark.statement("132", "136")
def test_cid_language_location_and_disposition() -> None:
    root = parse(
        entity(
            "image/png",
            "x",
            "Content-ID: <a@b> (c)",
            "Content-Language: en, de (German),",
            "Content-Location: http://a.test/\r\n x.png",
            "Content-Disposition: INLINE; filename=a.png",
        )
    ).root
    assert ("a@b", ("en", "de"), "http://a.test/x.png", "inline") == (
        root.cid,
        root.language,
        root.location,
        root.disposition,
    )


@pytest.mark.parametrize(
    ("field", "cid"),
    [
        ("<a@b>", "a@b"),
        ("(c <x>) <a@b>", "a@b"),
        ("a@b", "a@b"),
        ("a@b>", "a@b"),
        ("<a@b> trailing", "a@b"),
        ("< a@b >", "a@b"),
        ("<>", None),
    ],
)
@pytest.mark.statement("136")
def test_a_cid_is_what_stands_between_the_brackets(field: str, cid: str | None) -> None:
    assert cid == parse(entity("image/png", "x", f"Content-ID: {field}")).root.cid


@pytest.mark.statement("130", "132", "133", "134", "135", "136")
def test_each_property_of_a_part_is_told_under_its_own_name() -> None:
    fields = (
        *("Content-ID: <a@b>", "Content-Language: en, de", "Content-Location: http://a.test/x"),
        *("Content-Disposition: inline; filename=n.csv", "Content-Transfer-Encoding: base64"),
    )
    whole = parse(multipart("mixed", entity("text/csv; charset=utf-8", base64.b64encode(b"a,b\r\n"), *fields)))
    structure: Any = email_json(whole, properties=["bodyStructure", "size"])
    told, of_it = structure["bodyStructure"], structure["bodyStructure"]["subParts"][0]
    assert {
        "partId": "1",
        "blobId": whole.root.subparts[0].blob_id,
        "size": 5,
        "name": "n.csv",
        "type": "text/csv",
        "charset": "utf-8",
        "disposition": "inline",
        "cid": "a@b",
        "language": ["en", "de"],
        "location": "http://a.test/x",
    } == of_it
    # The size of a message has its header in it.
    assert len(whole.octets) == structure["size"]
    nothing = dict.fromkeys(("partId", "blobId", "name", "charset", "disposition", "cid", "language", "location"))
    assert nothing == {name: told[name] for name in nothing}
    bare: Any = email_json(
        parse(entity("image/png", "x", "Content-Disposition: ; filename=a")), properties=["attachments", "textBody"]
    )
    assert (None, "a") == (bare["textBody"][0]["disposition"], bare["textBody"][0]["name"])


@pytest.mark.statement("135")
def test_size_counts_octets_after_transfer_decoding_with_crlf() -> None:
    root = parse(
        entity("text/plain; charset=utf-8", base64.b64encode("é\r\n".encode()), "Content-Transfer-Encoding: base64")
    ).root
    assert (4, "é\n") == (root.size, body_value(root).value)
    # The line break before a boundary is the boundary's, whichever it is (RFC 2046 §5.1.1).
    whole = multipart("mixed", entity("text/plain", "a\r\n"), entity("text/plain", "b"))
    for octets, sizes in ((whole, [3, 1]), (whole.replace(b"\r\n", b"\n"), [2, 1])):
        assert sizes == [part.size for part in parse(octets).root.subparts]


@pytest.mark.statement("150")
def test_the_same_content_has_the_same_blob_and_other_content_another() -> None:
    first = parse(entity("text/plain", "abc")).root.blob_id
    again = parse(entity("image/png", "YWJj", "Content-Transfer-Encoding: base64")).root.blob_id
    other = parse(entity("text/plain", "abd")).root.blob_id
    assert (first == again, first == other) == (True, False)


# Values


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("iso-2022-jp", "日本語"),
        ("euc-kr", "한국어"),
        ("ks_c_5601-1987", "한국어 똠"),
        ("EUC-KR", "한국어 똠"),
        ("gbk", "中文𠀀"),
        ("gb18030", "中文€"),
        ("gb2312", "中文镕"),
        ("big5", "中文"),
        ("shift_jis", "日本①"),
        ("windows-1251", "Привет"),
        ("windows-1252", "“€”"),
        ("iso-8859-1", "“€”"),
        ("ISO_8859-1:1987", "café"),
        ("koi8-r", "Привет"),
        ("koi8-u", "Привіт"),
        ("utf-7", "日本 +"),
        ("utf-16", "日本"),
        ("utf-16be", "ab日本"),
        ("utf-32", "日本"),
        ("utf-8", "日本🧾"),
        ('"UTF-8"', "日本"),
        ("cp1252", "é"),
        ("iso-8859-15", "€"),
        ("x-euc-kr", "한국어"),
        ("X-Windows-949", "한국어"),
    ],
)
@pytest.mark.statement("140")
def test_charsets_in_real_use_decode_without_a_problem(charset: str, text: str) -> None:
    codec = {
        "ks_c_5601-1987": "cp949",
        "EUC-KR": "cp949",
        "gbk": "gb18030",
        "gb2312": "gbk",
        "shift_jis": "cp932",
        "x-euc-kr": "cp949",
        "X-Windows-949": "cp949",
        "iso-8859-1": "cp1252",
        '"UTF-8"': "utf-8",
    }.get(charset, charset)
    value = value_of(entity(f"text/plain; charset={charset}", text.encode(codec)))
    assert (text, False) == (value.value, value.is_encoding_problem)


@pytest.mark.statement("140")
def test_the_octets_that_windows_1252_leaves_undefined_are_no_problem() -> None:
    """WHATWG Encoding: the controls that iso-8859-1 means by them."""
    value = value_of(entity("text/plain; charset=windows-1252", b"\x81\x93\x9d"))
    assert ("\x81“\x9d", False) == (value.value, value.is_encoding_problem)


@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.statement("140")
def test_the_order_of_octets_is_the_mark_s_or_that_of_latin_letters(width: int, order: str, mark: str) -> None:
    octets = f"{mark}ab 日本".encode(f"utf-{width}-{order}")
    for charset in (f"utf-{width}", f"utf-{width}{order}"):
        value = value_of(entity(f"text/plain; charset={charset}", octets))
        assert ("ab 日本", False) == (value.value, value.is_encoding_problem)


@pytest.mark.parametrize(
    ("charset", "octets", "text"),
    [
        ("iso-2022-jp", b"\x1b$B-!-j\x1b(B ok \x1b$BF|K\\|b!!\x1b(I6@\x1b(J\\\x1b(B", "①㈱ ok 日本髙　ｶﾀ¥"),
        ("iso-2022-jp-ms", b"\x1b$B-!\nplain\x1b$@F|\x1b(B", "①\nplain日"),
        ("iso-2022-jp", b"\x1b$(D0!\x1b$B-!\x1b(B", "丂①"),
        ("euc-jp", b"a\xad\xa1\xc6\xfc\x8e\xb6\x8f\xb0\xa1\xfc\xe2", "a①日ｶ丂髙"),
    ],
)
@pytest.mark.statement("140")
def test_characters_that_windows_adds_to_japanese_charsets_are_read(charset: str, octets: bytes, text: str) -> None:
    value = value_of(entity(f"text/plain; charset={charset}", octets))
    assert (text, False) == (value.value, value.is_encoding_problem)


@pytest.mark.parametrize(
    "octets", [b"\x1b$B-!\xff", b"\x1b$B-", b"\x1b$(P-!", b"\x1b(B\x1b$B\x7e\x7e", b"\x1b$B-!\x1b(Z"]
)
@pytest.mark.statement("139")
def test_what_is_no_japanese_either_is_flagged(octets: bytes) -> None:
    assert value_of(entity("text/plain; charset=iso-2022-jp", octets)).is_encoding_problem


@pytest.mark.parametrize(
    ("content_type", "octets", "text"),
    [
        ("text/plain; charset=x-nobody-knows", "é".encode(), "é"),
        ("text/plain; charset=x-nobody-knows", b"\xe9", "é"),
        ("text/plain", "é".encode(), "é"),
        ("text/plain; charset=utf-8", b"ok \xff \xc3\xa9", "ok \ufffd é"),
        ("text/plain; charset=punycode", b"abc", "abc"),
        ("text/plain; charset=rot13", b"abc", "abc"),
        ("text/plain; charset=euc-kr", b"a\xff", "a\ufffd"),
        ("text/html", b"<meta charset=koi8-r>\xf0", "<meta charset=koi8-r>П"),
    ],
)
@pytest.mark.statement("139", "141")
def test_what_does_not_fit_its_label_is_flagged_and_still_shown(content_type: str, octets: bytes, text: str) -> None:
    value = value_of(entity(content_type, octets))
    assert (text, True) == (value.value, value.is_encoding_problem)


@pytest.mark.statement("140")
@pytest.mark.parametrize("number", range(1250, 1259))
def test_each_windows_charset_is_read_under_each_of_its_names(number: int) -> None:
    letters = bytes(range(0xC0, 0xE0)).decode(f"cp{number}", "ignore")
    for name in (f"windows-{number}", f"WINDOWS-{number}", f"cp{number}", f"x-cp{number}"):
        value = value_of(entity(f"text/plain; charset={name}", letters.encode(f"cp{number}")))
        assert (letters, False) == (value.value, value.is_encoding_problem)


@pytest.mark.statement("139")
def test_a_transfer_encoding_that_nobody_knows_is_flagged_and_what_stands_there_is_shown() -> None:
    part = parse(entity("text/plain; charset=utf-8", "é=20!", "Content-Transfer-Encoding: x-uuencode")).root
    value = body_value(part)
    assert ("é=20!", True) == (value.value, value.is_encoding_problem)
    # RFC 8621 §4.1.4: as though it had none.
    assert len("é=20!".encode()) == part.size


@pytest.mark.statement("149")
def test_half_a_surrogate_pair_never_leaves() -> None:
    value = value_of(entity("text/plain; charset=utf-7", b"a+2AA-b"))
    assert "a\ufffdb" == value.value
    assert parse(b"Subject: =?utf-7?Q?a+2AA-b?=\r\n\r\n").header("Subject", HeaderForm.TEXT) == "a\ufffdb"


@pytest.mark.statement("138")
def test_line_ends_are_lf_only_and_nul_is_gone() -> None:
    assert value_of(entity("text/plain", b"a\r\nb\rc\nd\0e")).value == "a\nb\nc\nde"
    # Where a line end is more than its two octets too.
    for charset in ("utf-16", "utf-32"):
        octets = "a\r\nb\rc\nd\0e".encode(charset)
        assert value_of(entity(f"text/plain; charset={charset}", octets)).value == "a\nb\nc\nde"


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (b"=C3=A9=\r\n!", "é!"),
        (b"a=  \r\nb", "ab"),
        (b"trailing \t\r\nb", "trailing\nb"),
        (b"=zz =3", "=zz =3"),
        (b"=3d=\rx\r\ny", "==\nx\ny"),
        (b"soft at the end=", "soft at the end"),
    ],
)
def test_quoted_printable_with_garbage(octets: bytes, text: str) -> None:
    field = "Content-Transfer-Encoding: Quoted-Printable"
    assert text == value_of(entity("text/plain; charset=utf-8", octets, field)).value


@pytest.mark.parametrize(
    "octets",
    [
        b"aGVsbG8=",
        b"aGVsbG8",
        b"aG V\r\nsb\tG8=\r\n\r\n",
        b"a*G!V(s)b-G_8=",
        b"aGVs=bG8=",
        b"aGVsbG8=\r\n--\r\n=",
        b"aGU=bGxv",
    ],
)
def test_base64_with_garbage(octets: bytes) -> None:
    assert value_of(entity("text/plain", octets, "Content-Transfer-Encoding: BASE64 (c)")).value == "hello"


def test_base64_that_breaks_off_after_six_bits_keeps_what_came_before() -> None:
    assert value_of(entity("text/plain", b"aGVsbG8hQ", "Content-Transfer-Encoding: base64")).value == "hello!"


@pytest.mark.statement("142")
def test_limits_of_one_to_six_octets_never_cut_a_character() -> None:
    octets = entity("text/plain; charset=utf-8", "aé🧾")  # 1 + 2 + 4
    cut = [(value_of(octets, limit).value, value_of(octets, limit).is_truncated) for limit in range(8)]
    whole = "aé🧾"
    assert cut == [(whole, False), ("a", True), ("a", True), *[("aé", True)] * 4, (whole, False)]
    pictures = entity("text/plain; charset=utf-8", "🧾🧾")
    assert ["🧾", "🧾", "🧾🧾"] == [value_of(pictures, limit).value for limit in (6, 7, 8)]
    # Only HTML has tags.
    assert "a <b" == value_of(entity("text/plain", "a <bcd> e"), 4).value


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        (4, "abc "),
        (5, "abc "),
        (20, "abc "),
        (22, "abc "),
        (23, 'abc <a href="x>y" id=1>'),
        (25, 'abc <a href="x>y" id=1>de'),
        (26, 'abc <a href="x>y" id=1>def'),
        (40, 'abc <a href="x>y" id=1>def'),
    ],
)
@pytest.mark.statement("143")
def test_html_is_not_cut_inside_a_tag_or_comment(limit: int, value: str) -> None:
    octets = entity("text/html", 'abc <a href="x>y" id=1>def<!-- > it\'s -->gh')
    assert value == value_of(octets, limit).value


@pytest.mark.statement("142", "143")
def test_html_is_cut_before_any_kind_of_tag_and_not_where_it_is_no_longer_than_it_may_be() -> None:
    for tag in ("</b>", "<b>", "<!doctype html>", "<?pi?>", "<!-- c -->"):
        for limit in range(3, 3 + len(tag)):
            assert "abc" == value_of(entity("text/html", f"abc{tag}d"), limit).value, tag
    unfinished = entity("text/html", "abc <b")
    assert [("abc ", True), ("abc <b", False)] == [
        (value_of(unfinished, limit).value, value_of(unfinished, limit).is_truncated) for limit in (5, 6)
    ]
    assert "1 < 2" == value_of(entity("text/html", "1 < 2 is so"), 5).value
