"""RFC 8621 §4.1.4: structure, body lists, properties of parts, sizes."""

import base64
from typing import Any

import pytest

from shared.message import body_lists, body_value, email_json, has_attachment, parse
from tests.shared.message.mail import contents, entity, multipart

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
