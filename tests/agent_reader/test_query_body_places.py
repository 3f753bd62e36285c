"""The texts and parts of bodies are read alone where they can be, and say what the message taken apart says."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from agent_reader.keep import Keep
from agent_reader.query import email_get_as_asked, parse_email_get
from agent_reader.query.email_content import ContentAsked
from agent_reader.query.email_get_arguments import EmailGetArguments
from agent_reader.scope import WHOLE, Depth, Scope
from agent_reader.store import body_places, document
from agent_reader.store.body_places import BodyText
from agent_reader.store.snapshot import Snapshot, StoredEmail
from agent_reader.store.written import Written
from shared.message import body_lists, body_value, parse
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, fetched, id_of, letter, mirrored

GOLDEN: Final = [path.read_bytes() for path in sorted(Path(__file__).parent.parent.glob("golden/*.eml"))]
BOTH: Final = letter(
    "--b\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
    "Gr=FC=DFe <b>\r\n--b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Language: de, en\r\n"
    "Content-Location: a.html\r\nContent-ID: <a@b>\r\n\r\n"
    f"<p title='a > b'>{'Grüße ' * 999}</p>\r\n--b--",
    content_type="multipart/alternative; boundary=b",
)
# Texts that need more than decoding, each in its way.
NOT_PLAIN: Final = {
    "a lone CR": letter("one\rtwo"),
    "a NUL": letter("one\0two"),
    "a byte order mark": letter("\ufeffone"),
    "another charset than it says": letter("Grüße", content_type="text/plain; charset=us-ascii"),
    "a charset that nobody knows": letter("Hello", content_type="text/plain; charset=x-unheard-of"),
    "an encoding that nobody knows": letter("Hello").replace(b"8bit", b"x-zipped"),
    "letters of EBCDIC": letter("\u0015", content_type="text/plain; charset=cp037"),
}
ESCAPED: Final = letter('"a" \\ \\n \tb\r\n/</script> \u2028 \x7f ü')
OTHERWISE_ESCAPED: Final = letter("a \x01 \x0c \x1f b")
LETTERS: Final = (
    *GOLDEN,
    BOTH,
    ESCAPED,
    OTHERWISE_ESCAPED,
    letter(""),
    letter("x" * body_places.MOST_OCTETS),
    *NOT_PLAIN.values(),
)

QUESTIONS: Final[list[dict[str, Any]]] = [
    {"properties": ["subject", "from", "bodyValues", "preview"], "fetchTextBodyValues": True},
    {"properties": ["bodyValues"], "fetchHTMLBodyValues": True, "maxBodyValueBytes": 20},
    {
        "properties": ["bodyValues", "id"],
        "fetchTextBodyValues": True,
        "fetchHTMLBodyValues": True,
        "maxBodyValueBytes": 7,
    },
    {"properties": ["size", "bodyValues"]},
    {"properties": ["subject", "hasAttachment", "keywords"]},
    # The RFC's default.
    {"fetchTextBodyValues": True},
    {"properties": ["attachments", "subject", "htmlBody"], "fetchHTMLBodyValues": True},
    {"properties": ["textBody", "bodyValues"], "bodyProperties": ["type", "language", "partId", "type"]},
    {"properties": ["attachments"], "bodyProperties": []},
]

# What is not at hand: the texts of attachments, the header of a part, the tree.
NOT_AT_HAND: Final[list[dict[str, Any]]] = [
    {"properties": ["bodyValues"], "fetchTextBodyValues": True, "fetchAllBodyValues": True},
    {"properties": ["textBody"], "bodyProperties": ["partId", "headers", "header:Content-Type:asText"]},
    {"properties": ["htmlBody"], "bodyProperties": ["subParts", "size"]},
    {"properties": ["bodyStructure", "textBody"]},
]


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Mirrored]:
    with mirrored(tmp_path / "store") as made:
        made.begin("INBOX")
        made.add("INBOX", *(fetched(uid, each) for uid, each in enumerate(LETTERS, 1)))
        yield made


def emails(snapshot: Snapshot) -> list[StoredEmail]:
    return list(snapshot.each_email([id_of(each) for each in LETTERS], with_documents=True))


def taken_apart(snapshot: Snapshot, email: StoredEmail, asked: EmailGetArguments) -> Written:
    content = ContentAsked(asked)
    return content.written(content.taken_apart(email, partial(snapshot.message_of, email)))


def read_texts(packed: bytes, *, of_text: bool, of_html: bool) -> list[BodyText] | None:
    body = body_places.read_body(packed, of_text=of_text, of_html=of_html)
    return None if body is None else list(body.texts)


@pytest.mark.parametrize("depth", [Depth.FULL, Depth.TEXT])
@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_what_is_at_hand_is_what_the_message_says_octet_by_octet(
    account: Mirrored, question: dict[str, Any], depth: Depth
) -> None:
    asked = parse_email_get(question)
    content = ContentAsked(asked)
    with account.store.snapshot(ACCOUNT, replace(WHOLE, depth=depth)) as snapshot:
        found = [(content.at_hand(email), taken_apart(snapshot, email, asked)) for email in emails(snapshot)]
    at_hand = [(short, whole) for short, whole in found if short is not None]
    assert len(at_hand) >= len(GOLDEN) // 2
    assert [short for short, _ in at_hand] == [whole for _, whole in at_hand]


def test_what_older_releases_packed_gives_the_same_answers(account: Mirrored) -> None:
    def answers() -> list[bytes]:
        given: list[bytes] = []
        with account.store.snapshot(ACCOUNT) as snapshot:
            for question in (*QUESTIONS, *NOT_AT_HAND):
                asked = parse_email_get(question | {"ids": [id_of(each) for each in LETTERS]})
                assert email_get_as_asked(snapshot, asked, lambda email, _: given.append(email)) == ()
        return given

    before = answers()
    with account.store.snapshot(ACCOUNT) as snapshot:
        rows = [(email.key, snapshot.connection.execute(DOCUMENT, (email.key,)).get) for email in emails(snapshot)]
    for end in (b"", b"\x92\x90\x90\x00\x03\x00texts\x01\n"):
        as_before = [(without_places(packed) + end, key) for key, packed in rows]
        assert as_before != [(packed, key) for key, packed in rows]
        account.mirror._connection.executemany("UPDATE email_texts SET document = ? WHERE key = ?", as_before)
        assert before == answers()


DOCUMENT: Final = "SELECT document FROM email_texts WHERE key = ?"


def without_places(packed: bytes) -> bytes:
    packing = zlib.decompressobj()
    packing.decompress(packed)
    return packed.removesuffix(packing.unused_data)


@pytest.mark.parametrize("letter_", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_a_text_that_needs_more_than_decoding_has_no_place(letter_: bytes) -> None:
    packed = document.pack(parse(letter_))
    assert read_texts(packed, of_text=True, of_html=False) is None
    # Its part is at hand all the same.
    body = body_places.read_body(packed, of_text=False, of_html=False, lists=["textBody"])
    assert body is not None
    assert [1] == [len(parts) for parts in body.lists]


def test_a_document_without_places_says_so_itself() -> None:
    # Whoever wrote the message cannot make its document end as if it had places.
    packed = document.pack(parse(BOTH))
    for each in (document.pack(parse(BOTH), has_body=False), document.narrow(packed, Keep.METADATA)):
        assert NO_PLACES == each.removeprefix(without_places(each))


def test_what_is_longer_than_may_lie_beside_what_others_read_is_taken_apart() -> None:
    for octets, is_at_hand in ((body_places.MOST_OCTETS // 2, True), (body_places.MOST_OCTETS, False)):
        packed = document.pack(parse(letter("x" * octets)))
        assert is_at_hand == (read_texts(packed, of_text=True, of_html=False) is not None)
        body = body_places.read_body(packed, of_text=False, of_html=False, lists=["textBody"])
        assert is_at_hand == (body is not None)


def test_a_message_with_more_parts_than_a_letter_has_is_taken_apart() -> None:
    part = "--b\r\nContent-Type: application/pdf\r\n\r\n%PDF\r\n"
    for number, is_at_hand in ((32, True), (33, False)):
        packed = document.pack(parse(letter(f"{part * number}--b--", content_type="multipart/mixed; boundary=b")))
        body = body_places.read_body(packed, of_text=False, of_html=False, lists=["attachments"])
        assert is_at_hand == (body is not None)


# A length of none, and what every document ends in.
NO_PLACES: Final = bytes(6) + b"\x00texts\x02\n"


@pytest.mark.parametrize("letter_", [ESCAPED, OTHERWISE_ESCAPED, BOTH])
def test_a_text_comes_as_the_json_that_its_characters_make(letter_: bytes) -> None:
    text = body_value(body_lists(parse(letter_)).text_body[0]).value
    expected = [BodyText("1", False, msgspec.json.encode(text))]
    assert expected == read_texts(document.pack(parse(letter_)), of_text=True, of_html=False)


def test_the_html_behind_a_text_is_not_unpacked() -> None:
    packed = document.pack(parse(BOTH))
    assert read_texts(packed, of_text=True, of_html=False) == [BodyText("1", False, '"Grüße <b>"'.encode())]
    whole = read_texts(packed, of_text=True, of_html=True)
    assert whole is not None
    assert [(text.part_id, text.is_html) for text in whole] == [("1", False), ("2", True)]
    # The end of the HTML is missing, and nobody looked for it who wanted the text.
    places = packed.removeprefix(without_places(packed))
    short = without_places(packed)[:-40] + places
    assert read_texts(short, of_text=True, of_html=False) == [BodyText("1", False, '"Grüße <b>"'.encode())]
    assert read_texts(short, of_text=True, of_html=True) is None


def test_what_is_kept_no_more_has_no_place() -> None:
    packed = document.pack(parse(BOTH))
    texts = read_texts(packed, of_text=True, of_html=True)
    assert texts == read_texts(document.narrow(packed, Keep.TEXT), of_text=True, of_html=True)
    nothing = document.narrow(packed, Keep.METADATA)
    assert read_texts(nothing, of_text=True, of_html=True) is None
    assert read_texts(document.narrow(nothing, Keep.TEXT), of_text=True, of_html=True) is None
    # Words that stand in the header as well are no text that is kept.
    said_twice = document.narrow(document.pack(parse(b"Subject: twice\r\n\r\ntwice")), Keep.METADATA)
    assert read_texts(said_twice, of_text=True, of_html=True) is None
    header_alone = document.pack(parse(BOTH.partition(b"\r\n\r\n")[0]), has_body=False)
    assert read_texts(header_alone, of_text=True, of_html=True) is None


@pytest.mark.parametrize("lists", [(), body_places.LISTS], ids=["texts", "texts and parts"])
def test_a_damaged_document_gives_its_texts_or_none_and_never_others(lists: tuple[str, ...]) -> None:
    # What follows the texts is not unpacked, nor is the checksum behind it looked at.
    for letter_ in (ESCAPED, letter("Twelve teapots to Köln, please: 49.90 EUR, order 20261130. " * 9)):
        packed = document.pack(parse(letter_))
        whole = body_places.read_body(packed, of_text=True, of_html=True, lists=lists)
        assert whole is not None
        given = set[bool]()
        for place in range(8 * len(packed)):
            damaged = bytearray(packed)
            damaged[place // 8] ^= 1 << place % 8
            body = body_places.read_body(bytes(damaged), of_text=True, of_html=True, lists=lists)
            assert body in (None, whole), place
            given.add(body is None)
        # The checksum of the whole, which nobody looked at, has octets too.
        assert {True, False} == given


def test_octets_that_only_look_like_places_are_none() -> None:
    packed = without_places(document.pack(parse(BOTH)))
    mark = document.pack(parse(BOTH))[-8:]
    for forged in (b"", b"\xff\xff", b"\x92\x90\x90\x00\x02", b"\xc1\x00\x01"):
        assert read_texts(packed + forged + mark, of_text=True, of_html=True) is None


@pytest.mark.parametrize("depth", Depth)
def test_a_token_that_may_not_read_texts_gets_none_of_those_at_hand(account: Mirrored, depth: Depth) -> None:
    scope = replace(WHOLE, depth=depth)
    given: list[dict[str, Any]] = []
    asked = parse_email_get(QUESTIONS[0] | {"ids": [id_of(BOTH)]})
    for seen in (WHOLE, scope):
        with account.store.snapshot(ACCOUNT, seen) as snapshot:
            email_get_as_asked(snapshot, asked, lambda email, _: given.append(msgspec.json.decode(email)))
    whole, narrow = given
    assert whole["bodyValues"]["1"]["value"] == "Grüße <b>"
    if depth is Depth.HEADERS:
        assert narrow["bodyValues"] == {"1": {"value": "", "isEncodingProblem": False, "isTruncated": True}}
        assert narrow["preview"] == ""
        assert narrow["subject"] == whole["subject"]
    else:
        assert narrow == whole


def test_what_is_outside_a_scope_is_not_at_hand_either(account: Mirrored) -> None:
    asked = parse_email_get(QUESTIONS[0] | {"ids": [id_of(BOTH)]})
    with account.store.snapshot(ACCOUNT, Scope(senders=("other@example.org",))) as snapshot:
        assert email_get_as_asked(snapshot, asked, lambda *_: pytest.fail("it was shown")) == (id_of(BOTH),)
