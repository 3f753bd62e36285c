"""RFC 2046 §5.1: the tree of parts, whatever is wrong with boundaries."""

from typing import Any

import pytest

from shared.message import DefectCode, Message, email_json, parse, preview
from tests.shared.message.mail import codes, entity, multipart


def leaves(message: Message) -> list[tuple[str | None, bytes]]:
    return [(part.part_id, part.content()) for part in message.root.walk() if not part.is_multipart]


@pytest.mark.statement("127")
def test_leaves_are_numbered_depth_first_and_multiparts_have_neither_id_nor_blob() -> None:
    inner = multipart("alternative", entity("text/plain", "A"), entity("text/html", "B"), boundary="i")
    message = parse(multipart("mixed", inner, entity("text/plain", "C")))
    assert [("1", b"A"), ("2", b"B"), ("3", b"C")] == leaves(message)
    assert (None, None) == (message.root.part_id, message.root.blob_id)
    structure: Any = email_json(message, properties=["bodyStructure"], body_properties=["partId", "type"])
    assert structure["bodyStructure"] == {
        "partId": None,
        "type": "multipart/mixed",
        "subParts": [
            {
                "partId": None,
                "type": "multipart/alternative",
                "subParts": [{"partId": "1", "type": "text/plain"}, {"partId": "2", "type": "text/html"}],
            },
            {"partId": "3", "type": "text/plain"},
        ],
    }


@pytest.mark.statement("127")
def test_a_leaf_says_that_it_has_no_subparts_where_they_are_asked_for() -> None:
    message = parse(multipart("mixed", entity("text/plain", "A"), entity("image/png", "B")))
    asked = email_json(message, properties=["bodyStructure", "textBody"], body_properties=["type", "subParts"])
    leaves_of_it: Any = [{"type": "text/plain", "subParts": []}, {"type": "image/png", "subParts": []}]
    assert {"type": "multipart/mixed", "subParts": leaves_of_it} == asked["bodyStructure"]
    assert leaves_of_it == asked["textBody"]
    # A multipart has them unasked; a leaf has not.
    unasked: Any = email_json(message, properties=["bodyStructure"], body_properties=["type"])["bodyStructure"]
    assert [{"type": "text/plain"}, {"type": "image/png"}] == unasked["subParts"]


@pytest.mark.statement("127")
def test_an_attached_message_is_a_leaf_with_its_exact_octets() -> None:
    inner = multipart("mixed", entity("text/plain", "deep"), boundary="x")
    message = parse(multipart("mixed", entity("text/plain", "A"), entity("message/rfc822", inner)))
    assert [("1", b"A"), ("2", inner)] == leaves(message)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"preamble\r\n--b\r\n\r\nA\r\n--b--\r\nepilogue", [b"A"]),
        (b"--b\n\nA\n--b\n\nB\n--b--\n", [b"A", b"B"]),
        # What comes after the end is the epilogue, whatever it looks like.
        (b"--b\r\n\r\nA\r\n--b--\r\n--b\r\n\r\nB\r\n", [b"A"]),
        # A line break before a delimiter may be of one octet where the others are of two.
        (b"--b\r\n\r\nA\n--b--\r\n", [b"A"]),
        (b"--b\r\n\r\nA\r\n--b", [b"A", b""]),
        (b"--b\r\n\r\nA", [b"A"]),
        (b"--b \t\r\n\r\nA\r\n--b-- \r\n", [b"A"]),
        (b"--b\r\n\r\nA\r\n--bc\r\n--b--\r\n", [b"A\r\n--bc"]),
        (b"--b\r\n\r\nA\r\n --b\r\n--b--\r\n", [b"A\r\n --b"]),
        (b"--b\r\n\r\nA --b\r\n--b--\r\n", [b"A --b"]),
        (b"--b\r\nX: 1\r\n--b--\r\n", [b""]),
        (b"--b\r\n--b\r\n\r\nB\r\n--b--\r\n", [b"", b"B"]),
        (b"--b\r\n\r\n\r\n--b--\r\n", [b""]),
        (b"--b\r\n\r\nA\r\n\r\n--b--\r\n", [b"A\r\n"]),
        (b"--b\r\nA without a header\r\n--b--\r\n", [b"A without a header"]),
    ],
)
@pytest.mark.statement("147")
def test_boundaries_are_whole_lines(body: bytes, expected: list[bytes]) -> None:
    assert expected == [content for _, content in leaves(parse(entity("multipart/mixed; boundary=b", body)))]


@pytest.mark.statement("147")
def test_an_outer_boundary_ends_inner_multiparts_that_never_ended() -> None:
    body = b"--b\r\nContent-Type: multipart/mixed; boundary=i\r\n\r\n--i\r\n\r\nA\r\n--b\r\n\r\nB\r\n--b--\r\n"
    message = parse(entity("multipart/mixed; boundary=b", body))
    assert [b"A", b"B"] == [content for _, content in leaves(message)]
    assert DefectCode.MISSING_CLOSING_BOUNDARY in codes(message)


@pytest.mark.statement("147")
def test_a_boundary_that_begins_like_another_is_another() -> None:
    inner = multipart("mixed", entity("", "A"), boundary="b2")
    assert [("1", b"A"), ("2", b"B")] == leaves(parse(multipart("mixed", inner, entity("", "B"))))


def test_a_boundary_with_a_colon_does_not_look_like_a_field() -> None:
    message = parse(entity('multipart/mixed; boundary="a:b"', b"--a:b\r\nX: 1\r\n--a:b\r\n\r\nB\r\n--a:b--\r\n"))
    assert [b"", b"B"] == [content for _, content in leaves(message)]


@pytest.mark.parametrize(
    ("content_type", "code"),
    [
        ("multipart/mixed", DefectCode.MISSING_BOUNDARY),
        ('multipart/mixed; boundary=""', DefectCode.MISSING_BOUNDARY),
        ("multipart/mixed; boundary=nowhere", DefectCode.MULTIPART_WITHOUT_PARTS),
    ],
)
def test_a_multipart_without_parts_is_shown_as_text(content_type: str, code: DefectCode) -> None:
    message = parse(entity(content_type, "hidden?"))
    assert ("text/plain", b"hidden?") == (message.root.type, message.root.content())
    assert code in codes(message)
    assert preview(message) == "hidden?"


def test_two_multiparts_with_one_boundary_lose_nothing() -> None:
    inner = multipart("mixed", entity("", "A"), boundary="b")
    message = parse(multipart("mixed", inner, entity("", "B")))
    assert DefectCode.CLASHING_BOUNDARY in codes(message)
    assert b"A" in b"".join(content for _, content in leaves(message))


@pytest.mark.statement("148")
def test_two_thousand_nested_multiparts_end_at_a_hundred() -> None:
    octets = b"".join(entity(f"multipart/mixed; boundary=b{i}", f"--b{i}\r\n") for i in range(2_000)) + b"\r\ndeep"
    message = parse(octets)
    depth, part = 0, message.root
    while part.subparts:
        depth, part = depth + 1, part.subparts[0]
    assert (100, True) == (depth, part.content().endswith(b"deep"))
    assert DefectCode.TOO_DEEP in codes(message)
    assert email_json(message, properties=["bodyStructure", "textBody", "preview"])


@pytest.mark.statement("148")
def test_of_twenty_thousand_parts_a_thousand_are_made_and_the_last_holds_the_rest() -> None:
    message = parse(entity("multipart/mixed; boundary=b", b"--b\r\n\r\nx\r\n" * 20_000 + b"--b--\r\n"))
    parts = list(message.root.walk())
    assert (1_000, True) == (len(parts), parts[-1].content().endswith(b"--b--\r\n"))
    assert DefectCode.TOO_MANY_PARTS in codes(message)
