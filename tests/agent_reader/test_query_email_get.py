"""Email/get from what the store keeps, compared with the message itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_reader.query import QueryRefused, parse_email_get
from agent_reader.sync.mirror import FetchedMessage, MessageState
from shared.identity import MAX_MESSAGE_OCTETS, blob_id, message_digest
from shared.message import (
    BODY_PROPERTIES,
    CONTENT_PROPERTIES,
    DEFAULT_EMAIL_PROPERTIES,
    JSON,
    SERVER_PROPERTIES,
    email_json,
    parse,
)
from tests.agent_reader.email_get import email_get
from tests.agent_reader.mirrored import ACCOUNT, START, Mirrored, fetched, id_of, letter, mirrored, with_attachment

GOLDEN = sorted(Path(__file__).parent.parent.glob("golden/*.eml"))


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Mirrored]:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX", "Archive")
        yield account


def _get(account: Mirrored, email_id: str, **arguments: Any) -> dict[str, JSON]:
    with account.store.snapshot(ACCOUNT) as snapshot:
        return email_get(snapshot, [email_id], **arguments).list[0]


@pytest.mark.statement("123")
def test_every_property_of_every_golden_message_is_what_its_octets_say(account: Mirrored) -> None:
    assert len(GOLDEN) > 20
    octets = [path.read_bytes() for path in GOLDEN]
    account.add("INBOX", *(fetched(uid, each) for uid, each in enumerate(octets, 1)))
    assert account.mirror.set_aside(account.handle("INBOX")) == {}
    asked: dict[str, Any] = {
        "properties": [*CONTENT_PROPERTIES, "header:Received:all", "header:Subject:asText", "header:To:asAddresses"],
        "body_properties": [*BODY_PROPERTIES, "header:Content-Type"],
        "fetch_all": True,
    }
    for path, each in zip(GOLDEN, octets, strict=True):
        assert {"id": id_of(each), **email_json(parse(each), **asked)} == _get(account, id_of(each), **asked), path.name


@pytest.mark.statement("126")
def test_the_default_properties_are_those_of_the_rfc(account: Mirrored) -> None:
    octets = letter("Hello Bob", subject="Grüße")
    account.add("INBOX", fetched(1, octets, flags=["\\Seen"]))
    account.add("Archive", fetched(1, octets))
    email = _get(account, id_of(octets))
    assert sorted(email) == sorted(DEFAULT_EMAIL_PROPERTIES)
    assert email["id"] == id_of(octets)
    assert email["blobId"] == blob_id(message_digest(octets))
    assert email["size"] == len(octets)
    assert email["receivedAt"] == "2026-01-01T12:01:00Z"
    assert email["keywords"] == {"$seen": True}
    assert email["mailboxIds"] == {account.mailbox_id(name): True for name in ("INBOX", "Archive")}
    assert email["subject"] == "Grüße"
    assert email["from"] == [{"name": "Ann Sender", "email": "ann@example.org"}]
    assert email["preview"] == "Hello Bob"
    assert email["bodyValues"] == {}
    assert email["textBody"] == email["htmlBody"]


@pytest.mark.statement("56")
def test_only_what_is_asked_for_is_there_and_always_the_id(account: Mirrored) -> None:
    octets = letter()
    account.add("INBOX", fetched(1, octets))
    assert _get(account, id_of(octets), properties=["subject"]) == {"id": id_of(octets), "subject": "A letter"}
    assert _get(account, id_of(octets), properties=[]) == {"id": id_of(octets)}
    part = _get(account, id_of(octets), properties=["textBody"], body_properties=["type"])["textBody"]
    assert part == [{"type": "text/plain"}]
    assert set(_get(account, id_of(octets), properties=sorted(SERVER_PROPERTIES))) == SERVER_PROPERTIES


def test_body_values_are_cut_where_asked(account: Mirrored) -> None:
    octets = letter("äöü and so on")
    account.add("INBOX", fetched(1, octets))
    values = _get(account, id_of(octets), properties=["bodyValues"], fetch_text=True, max_body_value_bytes=5)
    assert values["bodyValues"] == {"1": {"value": "äö", "isEncodingProblem": False, "isTruncated": True}}


def test_an_attachment_has_its_size_and_blob_id_and_its_octets_are_not_kept(account: Mirrored) -> None:
    octets = with_attachment("See attached " * 50)
    account.add("INBOX", fetched(1, octets))
    asked = ["size", "blobId", "name", "type", "disposition"]
    attachments = _get(account, id_of(octets), properties=["attachments"], body_properties=asked)["attachments"]
    assert attachments == [
        {
            "size": 4,
            "blobId": blob_id(message_digest(b"%PDF")),
            "name": "a.pdf",
            "type": "application/pdf",
            "disposition": "attachment",
        }
    ]
    with account.store.snapshot(ACCOUNT) as snapshot:
        key = snapshot.key_of(id_of(octets))
        assert key is not None
        kept = {part.type: part.content() for part in snapshot.message(key).root.walk() if not part.is_multipart}
    assert kept["application/pdf"] == b""
    assert kept["text/plain"]


def test_a_large_text_attachment_that_is_not_kept_is_cut_to_nothing_and_says_so(account: Mirrored) -> None:
    log = "line of a log\r\n" * 80_000
    octets = letter(
        f"--b\r\nContent-Type: text/plain\r\n\r\nShort.\r\n--b\r\nContent-Type: text/x-log\r\n"
        f"Content-Disposition: attachment; filename=a.log\r\n\r\n{log}--b--",
        content_type="multipart/mixed; boundary=b",
    )
    account.add("INBOX", fetched(1, octets))
    values = _get(account, id_of(octets), properties=["bodyValues"], fetch_all=True)["bodyValues"]
    assert values == {
        "1": {"value": "Short.", "isEncodingProblem": False, "isTruncated": False},
        "2": {"value": "", "isEncodingProblem": False, "isTruncated": True},
    }


def test_a_message_known_by_its_header_alone_says_that_its_text_is_missing(account: Mirrored) -> None:
    header = letter("", subject="Enormous").partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    size = MAX_MESSAGE_OCTETS + 1
    account.add("INBOX", FetchedMessage(1, MessageState(frozenset(), 1), START, size, None, header))
    (email_id,) = account.query().ids
    email = _get(account, email_id, fetch_text=True)
    assert (email["size"], email["subject"]) == (size, "Enormous")
    assert email["bodyValues"] == {"1": {"value": "", "isEncodingProblem": False, "isTruncated": True}}


@pytest.mark.statement("54")
def test_ids_come_back_once_in_order_and_unknown_ones_are_not_found(account: Mirrored) -> None:
    one, two = letter("one"), letter("two")
    account.add("INBOX", fetched(1, one), fetched(2, two, flags=["\\Deleted"]))
    with account.store.snapshot(ACCOUNT) as snapshot:
        result = email_get(snapshot, [id_of(two), id_of(one), "M" + "0" * 32, id_of(one), "?"], properties=["id"])
        assert result.list == ({"id": id_of(one)},)
        assert result.not_found == (id_of(two), "M" + "0" * 32, "?")
        assert result.state == snapshot.state
        assert email_get(snapshot, []).list == ()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"properties": ["shoeSize"]}, "properties"),
        ({"properties": ["header:From:asDate"]}, "properties"),
        ({"properties": ["header:"]}, "properties"),
        ({"properties": ["subject"] * 201}, "properties"),
        ({"properties": "subject"}, "properties"),
        ({"properties": [1]}, "properties"),
        ({"bodyProperties": ["preview"]}, "bodyProperties"),
        ({"bodyProperties": ["header:Content-Type:asNothing"]}, "bodyProperties"),
        ({"maxBodyValueBytes": -1}, "maxBodyValueBytes"),
        ({"fetchAllBodyValues": 1}, "fetchAllBodyValues"),
        ({"ids": "M1"}, "ids"),
        ({"ids": [None]}, "ids"),
        ({"fetch": True}, "fetch"),
    ],
)
@pytest.mark.statement("56", "122", "143", "146")
def test_wrong_arguments_are_refused_and_named(arguments: dict[str, JSON], named: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        parse_email_get({"ids": [], **arguments})
    assert (refused.value.type, refused.value.arguments) == ("invalidArguments", (named,))
    assert len(refused.value.description) < 400


def test_right_arguments_come_through() -> None:
    parsed = parse_email_get({"accountId": "a", "ids": ["x"], "properties": ["id"], "fetchTextBodyValues": True})
    assert (parsed.ids, parsed.properties, parsed.fetch_text, parsed.fetch_html) == (("x",), ("id",), True, False)
    assert parse_email_get({"ids": None}).ids is None
