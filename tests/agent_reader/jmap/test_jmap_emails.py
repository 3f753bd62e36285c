"""What an Email, a Thread and their ids look like through the door, and messages within messages (RFC 8621 §3, §4)."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_reader.door.limits import Limits
from agent_reader.jmap.asking import Asking
from agent_reader.jmap.capabilities import CORE, MAIL
from agent_reader.jmap.queries import answer_email_query
from agent_reader.jmap.sheet import Sheet
from agent_reader.query import BlobCache, BlobReader
from agent_reader.query.email_parse import is_message
from agent_reader.query.patience import Patience
from shared.identity import blob_id, email_id, message_digest
from shared.imap_login import ImapFailure
from shared.message import DEFAULT_BODY_PROPERTIES, parse
from tests.agent_reader.served import ACCOUNT, House, house, octets
from tests.agent_reader.served import MESSAGES as SHOP_MESSAGES

pytestmark = pytest.mark.anyio

INNERMOST = octets(91, "Innermost", "Deep inside.")
INNER = (
    b"From: ann@example.org\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nDate: Tue, 3 Mar 2026 09:07:05 +0100\r\n"
    b"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=i\r\n\r\n"
    b"--i\r\nContent-Type: text/plain\r\n\r\nInner text.\r\n"
    b"--i\r\nContent-Type: message/rfc822\r\n\r\n" + INNERMOST + b"\r\n--i--\r\n"
)
NO_MESSAGE = b"just: a note\r\n\r\nand nothing else"
OUTER = (
    b"From: bob@example.org\r\nSubject: Forwarded\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=o\r\n"
    b"\r\n--o\r\nContent-Type: text/plain\r\n\r\nSee below.\r\n"
    b"--o\r\nContent-Type: message/rfc822\r\n\r\n"
    + INNER
    + b"\r\n--o\r\nContent-Type: application/octet-stream\r\nContent-Disposition: attachment; filename=n\r\n\r\n"
    + NO_MESSAGE
    + b"\r\n--o--\r\n"
)
TWICE = (
    b"From: first@example.org\r\nFrom: last@example.org\r\nSubject: one\r\nX-A: 1\r\nSUBJECT: two\r\nx-a: 2\r\n"
    b"Message-ID: <twice@example.org>\r\nReferences: <a@x> <b@x>\r\n\r\nText.\r\n"
)
EVERY_FIELD = (
    b"Message-ID: <every@x>\r\nIn-Reply-To: <before@x>\r\nReferences: <first@x> <before@x>\r\nSender: sender@x\r\n"
    b"From: from@x\r\nTo: to@x\r\nCc: cc@x\r\nBcc: bcc@x\r\nReply-To: reply@x\r\nSubject: Every field\r\n"
    b"Date: Tue, 3 Mar 2026 09:07:05 +0100\r\n\r\nText.\r\n"
)
BOTH_WAYS = (
    b"From: ann@x\r\nSubject: Both ways\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=m\r\n\r\n"
    b"--m\r\nContent-Type: multipart/alternative; boundary=a\r\n\r\n--a\r\nContent-Type: text/plain\r\n\r\nPlain.\r\n"
    b"--a\r\nContent-Type: text/html\r\n\r\n<p>Rich.</p>\r\n--a--\r\n"
    b"--m\r\nContent-Type: text/csv\r\nContent-Disposition: attachment\r\n\r\na,b\r\n--m--\r\n"
)
MESSAGES = (
    octets(1, "An order", "I would like a teapot."),
    octets(2, "Re: An order", "And cups.", In_Reply_To="<1@example.org>"),
    octets(3, "RE: [list] An order", "And more.", References="<1@example.org> <2@example.org>"),
    OUTER,
    TWICE,
    EVERY_FIELD,
    BOTH_WAYS,
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("served"), MESSAGES) as open_house:
        yield open_house


async def _got(served: House, content: bytes, **arguments: Any) -> dict[str, Any]:
    _, body = await served.one("Email/get", ids=[email_id(message_digest(content))], **arguments)
    (email,) = body["list"]
    got: dict[str, Any] = email
    return got


async def _parsed(served: House, *blob_ids: str, **arguments: Any) -> dict[str, Any]:
    name, body = await served.one("Email/parse", blobIds=list(blob_ids), **arguments)
    assert "Email/parse" == name, body
    answer: dict[str, Any] = body
    return answer


def _blob(content: bytes) -> str:
    return blob_id(message_digest(content))


@pytest.mark.statement("58")
async def test_ids_are_safe_everywhere_and_no_two_differ_in_case_alone(served: House) -> None:
    responses = await served.call(
        ("Mailbox/get", {"accountId": ACCOUNT, "ids": None}), ("Email/get", {"accountId": ACCOUNT, "ids": None})
    )
    emails = responses[1][1]["list"]
    ids = [each["id"] for each in responses[0][1]["list"]] + [each["id"] for each in emails]
    ids += [each["threadId"] for each in emails] + [each["blobId"] for each in emails] + [ACCOUNT]
    assert len(ids) > 10
    for each in ids:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,254}", each)
        assert not each.isdigit()
        assert "nil" != each.lower()
    assert len(set(ids)) == len({each.lower() for each in ids})


@pytest.mark.statement("56")
async def test_only_what_is_asked_for_is_there_and_always_the_id(served: House) -> None:
    assert {"id", "subject"} == set(await _got(served, TWICE, properties=["subject"]))
    assert {"id"} == set(await _got(served, TWICE, properties=[]))
    for name in ("Email/get", "Mailbox/get", "Thread/get"):
        _, refused = await served.one(name, ids=[], properties=["Subject"])
        assert ("invalidArguments", ["properties"]) == (refused["type"], refused["arguments"])


@pytest.mark.statement("100", "104")
async def test_a_thread_lists_its_emails_oldest_first_and_each_email_is_in_one(served: House) -> None:
    first = await _got(served, MESSAGES[0], properties=["threadId"])
    _, body = await served.one("Thread/get", ids=[first["threadId"], "Tnone"])
    ids = [email_id(message_digest(content)) for content in MESSAGES[:3]]
    assert [{"id": first["threadId"], "emailIds": ids}] == body["list"]
    assert ["Tnone"] == body["notFound"]
    _, everything = await served.one("Email/get", ids=None, properties=["threadId"])
    _, threads = await served.one("Thread/get", ids=[each["threadId"] for each in everything["list"]])
    named = [each for thread in threads["list"] for each in thread["emailIds"]]
    assert sorted(named) == sorted(each["id"] for each in everything["list"])


@pytest.mark.statement("106", "108")
async def test_dates_are_utc_sizes_are_octets_and_keywords_are_true(served: House) -> None:
    email = await _got(served, MESSAGES[0], properties=["receivedAt", "size", "keywords", "mailboxIds", "sentAt"])
    assert "2026-11-29T11:01:00Z" == email["receivedAt"]
    assert len(MESSAGES[0]) == email["size"]
    assert ["$seen"] == list(email["keywords"])
    # Not 1, which Python takes for the same.
    assert 1 == len(email["mailboxIds"])
    assert all(value is True for value in (*email["keywords"].values(), *email["mailboxIds"].values()))
    assert email["sentAt"] is None


# RFC 8621 §4.1.3: the header form that each is short for.
CONVENIENT = {
    "messageId": "header:Message-ID:asMessageIds",
    "inReplyTo": "header:In-Reply-To:asMessageIds",
    "references": "header:References:asMessageIds",
    "sender": "header:Sender:asAddresses",
    "from": "header:From:asAddresses",
    "to": "header:To:asAddresses",
    "cc": "header:Cc:asAddresses",
    "bcc": "header:Bcc:asAddresses",
    "replyTo": "header:Reply-To:asAddresses",
    "subject": "header:Subject:asText",
    "sentAt": "header:Date:asDate",
}


@pytest.mark.statement("124")
async def test_each_convenient_property_is_the_header_form_that_it_is_short_for(served: House) -> None:
    asked = [*CONVENIENT, *CONVENIENT.values()]
    email = await _got(served, EVERY_FIELD, properties=asked)
    values = [email[name] for name in CONVENIENT]
    assert [email[form] for form in CONVENIENT.values()] == values
    # All there, and no two alike.
    assert len(CONVENIENT) == len({str(value) for value in values if value})
    email = await _got(served, TWICE, properties=asked)
    assert [email[form] for form in CONVENIENT.values()] == [email[name] for name in CONVENIENT]


@pytest.mark.statement("120", "121", "123", "124")
async def test_a_property_is_its_header_form_of_the_last_field_and_null_where_it_is_missing(served: House) -> None:
    names = ["header:subject:asText", "header:FROM:asAddresses", "header:X-A", "header:x-a:all", "header:X-B:all"]
    email = await _got(
        served, TWICE, properties=["subject", "from", "cc", "messageId", "references", "sentAt", "headers", *names]
    )
    assert "two" == email["subject"] == email["header:subject:asText"]
    assert [{"name": None, "email": "last@example.org"}] == email["from"] == email["header:FROM:asAddresses"]
    assert (None, None) == (email["cc"], email["sentAt"])
    assert (["twice@example.org"], ["a@x", "b@x"]) == (email["messageId"], email["references"])
    assert (" 2", [" 1", " 2"], []) == (email["header:X-A"], email["header:x-a:all"], email["header:X-B:all"])
    spelled = ["From", "From", "Subject", "X-A", "SUBJECT", "x-a", "Message-ID", "References"]
    assert spelled == [field["name"] for field in email["headers"]]


@pytest.mark.statement("145")
async def test_the_preview_is_short_and_plain(served: House) -> None:
    email = await _got(served, OUTER, properties=["preview"])
    assert "See below." == email["preview"]


@pytest.mark.statement("169", "171")
async def test_an_attached_message_is_parsed_like_any_other(served: House) -> None:
    blob = _blob(INNER)
    properties = ["id", "blobId", "mailboxIds", "keywords", "receivedAt", "threadId", "size", "subject", "sentAt"]
    body = await _parsed(served, blob, properties=[*properties, "header:From:asAddresses", "attachments"])
    assert {"accountId", "parsed", "notParsable", "notFound"} == set(body)
    assert (None, None, [blob]) == (body["notParsable"], body["notFound"], list(body["parsed"]))
    email = body["parsed"][blob]
    for name in ("id", "mailboxIds", "keywords", "receivedAt", "threadId"):
        assert email[name] is None
    assert (blob, len(INNER)) == (email["blobId"], email["size"])
    assert ("Grüße", "2026-03-03T09:07:05+01:00") == (email["subject"], email["sentAt"])
    assert [{"name": None, "email": "ann@example.org"}] == email["header:From:asAddresses"]
    (innermost,) = email["attachments"]
    assert _blob(INNERMOST) == innermost["blobId"]
    deeper = await _parsed(served, innermost["blobId"], fetchTextBodyValues=True, maxBodyValueBytes=4)
    (value,) = deeper["parsed"][innermost["blobId"]]["bodyValues"].values()
    assert {"value": "Deep", "isEncodingProblem": False, "isTruncated": True} == value
    async with served.client() as client:
        response = await client.get(f"/jmap/download/{ACCOUNT}/{innermost['blobId']}/a.eml?type=message/rfc822")
    assert INNERMOST == response.content


@pytest.mark.statement("171")
@pytest.mark.parametrize(
    ("flag", "values"),
    [
        ("fetchTextBodyValues", {"1": "Plain."}),
        ("fetchHTMLBodyValues", {"2": "<p>Rich.</p>"}),
        ("fetchAllBodyValues", {"1": "Plain.", "2": "<p>Rich.</p>", "3": "a,b"}),
        ("maxBodyValueBytes", {}),
    ],
)
async def test_each_flag_of_parse_gives_its_texts(served: House, flag: str, values: dict[str, str]) -> None:
    arguments = {flag: 9 if flag == "maxBodyValueBytes" else True}
    body = await _parsed(served, _blob(BOTH_WAYS), properties=["bodyValues"], **arguments)
    found = body["parsed"][_blob(BOTH_WAYS)]["bodyValues"]
    assert values == {part_id: value["value"].strip() for part_id, value in found.items()}


@pytest.mark.statement("169")
async def test_the_default_properties_of_parse_are_those_of_the_rfc(served: House) -> None:
    body = await _parsed(served, _blob(MESSAGES[0]), _blob(MESSAGES[0]))
    asked = (
        "messageId inReplyTo references sender from to cc bcc replyTo subject sentAt hasAttachment preview bodyValues "
        "textBody htmlBody attachments"
    )
    assert asked.split() == list(body["parsed"][_blob(MESSAGES[0])])
    (part,) = body["parsed"][_blob(MESSAGES[0])]["textBody"]
    assert list(DEFAULT_BODY_PROPERTIES) == list(part)
    # Nothing that is asked for is nothing, and not what there is if nobody says.
    body = await _parsed(served, _blob(MESSAGES[0]), properties=[])
    assert {_blob(MESSAGES[0]): {}} == body["parsed"]


@pytest.mark.statement("171")
async def test_the_properties_of_parts_that_parse_gives_are_those_that_are_asked_for(served: House) -> None:
    for asked in ([], ["type", "header:Content-Type"]):
        body = await _parsed(served, _blob(BOTH_WAYS), properties=["textBody", "bodyStructure"], bodyProperties=asked)
        email = body["parsed"][_blob(BOTH_WAYS)]
        (part,) = email["textBody"]
        assert asked == list(part)
        assert {*asked, "subParts"} == set(email["bodyStructure"])


@pytest.mark.statement("170")
async def test_what_is_not_there_and_what_is_no_message_are_told_apart_and_nothing_is_null(served: House) -> None:
    unknown = ["B" + "0" * 32, "nonsense", "X1", ""]
    body = await _parsed(served, *unknown, *unknown)
    assert (None, None, unknown) == (body["parsed"], body["notParsable"], body["notFound"])
    body = await _parsed(served, _blob(NO_MESSAGE))
    assert (None, [_blob(NO_MESSAGE)], None) == (body["parsed"], body["notParsable"], body["notFound"])
    body = await _parsed(served)
    assert (None, None, None) == (body["parsed"], body["notParsable"], body["notFound"])


@pytest.mark.statement("170")
@pytest.mark.parametrize("field", ["Content-Type: text/plain", "Bcc: ann@x", "Reply-To: ann@x", "References: <a@x>"])
def test_one_field_of_a_message_makes_a_message(field: str) -> None:
    assert is_message(parse(f"{field}\r\n\r\nText.".encode()))
    assert not is_message(parse(f"X-{field}\r\n\r\nText.".encode()))


@pytest.mark.statement("171")
@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({}, "invalidArguments"),
        ({"blobIds": None}, "invalidArguments"),
        ({"blobIds": [1]}, "invalidArguments"),
        ({"blobIds": [], "ids": []}, "invalidArguments"),
        ({"blobIds": [], "properties": ["nonsense"]}, "invalidArguments"),
        ({"blobIds": [], "properties": ["header:From:asDate"]}, "invalidArguments"),
        ({"blobIds": [], "bodyProperties": ["nonsense"]}, "invalidArguments"),
        ({"blobIds": [], "maxBodyValueBytes": -1}, "invalidArguments"),
        ({"blobIds": [f"B{number}" for number in range(501)]}, "requestTooLarge"),
    ],
)
async def test_wrong_arguments_of_parse_are_refused(served: House, arguments: dict[str, Any], kind: str) -> None:
    _, refused = await served.one("Email/parse", **arguments)
    assert kind == refused["type"]


async def test_a_mail_server_that_is_down_fails_the_call_and_says_that_it_may_be_tried_again(tmp_path: Path) -> None:
    with house(tmp_path, MESSAGES) as served:
        served.shelf.failure = ImapFailure("unreachable", "down", "", retryable=True)
        responses = await served.call(
            ("Email/parse", {"accountId": ACCOUNT, "blobIds": [_blob(INNER)]}), ("Core/echo", {"a": 1})
        )
    assert ("error", "serverUnavailable") == (responses[0][0], responses[0][1]["type"])
    assert "Core/echo" == responses[1][0]


@pytest.mark.statement("172", "173")
async def test_snippets_are_found_by_the_ids_of_a_query(served: House) -> None:
    condition = {"text": "teapot"}
    responses = await served.call(
        ("Email/query", {"accountId": ACCOUNT, "filter": condition}),
        (
            "SearchSnippet/get",
            {
                "accountId": ACCOUNT,
                "filter": condition,
                "#emailIds": {"resultOf": "0", "name": "Email/query", "path": "/ids"},
            },
        ),
    )
    ids = responses[0][1]["ids"]
    preview = "I would like a <mark>teapot</mark>."
    snippet = {"emailId": ids[0], "subject": None, "preview": preview}
    assert {"accountId": ACCOUNT, "list": [snippet], "notFound": None} == responses[1][1]


@pytest.mark.statement("173")
async def test_snippets_of_nothing_and_of_nobody(served: House) -> None:
    known = email_id(message_digest(MESSAGES[0]))
    for nothing in (None, {}, {"hasKeyword": "$seen"}):
        _, body = await served.one("SearchSnippet/get", filter=nothing, emailIds=[known, "Mnone"])
        assert [{"emailId": known, "subject": None, "preview": None}] == body["list"]
        assert (["Mnone"], False) == (body["notFound"], "state" in body)
    many = [f"M{number}" for number in range(501)]
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"filter": None, "emailIds": many}, "requestTooLarge"),
        ({"filter": {"shoeSize": 1}, "emailIds": []}, "unsupportedFilter"),
        ({"filter": {"text": "---"}, "emailIds": []}, "unsupportedFilter"),
        ({"filter": {"text": 1}, "emailIds": []}, "invalidArguments"),
        ({"filter": None}, "invalidArguments"),
        ({"filter": None, "emailIds": None}, "invalidArguments"),
    ]
    for arguments, kind in refusals:
        _, refused = await served.one("SearchSnippet/get", **arguments)
        assert kind == refused["type"], arguments


@pytest.mark.statement("183")
async def test_what_is_parsed_or_shown_as_a_snippet_is_on_record_with_the_email_that_it_lies_in(tmp_path: Path) -> None:
    with house(tmp_path, MESSAGES) as served:
        outer, blob = email_id(message_digest(OUTER)), _blob(INNER)

        def line() -> tuple[str, tuple[str, ...], bool, dict[str, list[str]]]:
            (found,) = served.access.lines(agent="clerk", since=None, email_id=None, limit=1)
            return found.method, found.email_ids, found.has_bodies, found.parts

        await _parsed(served, blob, properties=["subject"])
        assert ("Email/parse", (outer,), False, {outer: [f"part {blob}"]}) == line()
        await _parsed(served, blob, fetchTextBodyValues=True)
        assert ("Email/parse", (outer,), True, {outer: [f"part {blob}"]}) == line()
        await served.one("SearchSnippet/get", filter={"body": "below"}, emailIds=[outer])
        assert ("SearchSnippet/get", (outer,), False, {outer: ["snippet of preview"]}) == line()


@pytest.mark.statement("149")
async def test_whatever_a_message_holds_the_answer_is_utf_8(tmp_path: Path) -> None:
    broken = (
        b"Subject: =?utf-16?b?2AA=?= \xed\xa0\x80 \xff\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
        b"\xed\xa0\x80\xff\x00"
    )
    with house(tmp_path, (broken,)) as served:
        arguments = {"accountId": ACCOUNT, "ids": None, "fetchAllBodyValues": True}
        response = await served.post({"using": [CORE, MAIL], "methodCalls": [["Email/get", arguments, "0"]]})
    assert 200 == response.status_code
    assert "methodResponses" in response.content.decode("utf-8", "strict")
    assert not re.search(r"\\ud[89a-f]", response.text, re.IGNORECASE)


async def test_an_answer_that_outgrows_its_room_ends_before_the_rest_is_read(tmp_path: Path) -> None:
    large = tuple(octets(number, f"Large {number}", "x" * 40_000) for number in range(5))
    with house(tmp_path, large, limits=Limits(max_answer_octets=100_000)) as served:
        _, refused = await served.one("Email/get", ids=None, fetchAllBodyValues=True)
        assert "requestTooLarge" == refused["type"]
        _, body = await served.one("Email/get", ids=None, fetchAllBodyValues=True, maxBodyValueBytes=100)
        assert 5 == len(body["list"])
        blobs = [_blob(content) for content in large]
        _, refused = await served.one("Email/parse", blobIds=blobs, fetchAllBodyValues=True)
        assert "requestTooLarge" == refused["type"]


async def test_a_total_that_takes_too_long_is_left_out_and_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_reader.store.snapshot._STEPS_BETWEEN_LOOKS", 1)
    cache = BlobCache(tmp_path / "blobs", 1_000)
    with (
        contextlib.closing(cache),
        Sheet() as sheet,
        house(tmp_path) as served,
        served.store.snapshot(ACCOUNT) as snapshot,
    ):
        blobs = BlobReader({}, cache, 1_000)

        def answer(calculate_total: bool, seconds: float) -> tuple[dict[str, Any], float]:
            moments = itertools.count()
            asking = Asking(
                snapshot=snapshot,
                limits=Limits(),
                using=frozenset({CORE, MAIL}),
                sheet=sheet,
                blobs=blobs,
                patience=Patience(lambda: float(next(moments)), seconds, seconds),
            )
            return answer_email_query(asking, {"calculateTotal": calculate_total, "limit": 1}), float(next(moments))

        whole, _ = answer(True, math.inf)
        _, for_the_ids = answer(False, math.inf)
        late, _ = answer(True, for_the_ids)
        assert (whole["ids"], "timeLimit") == (late["ids"], late["totalNotComputed"]["type"])
        assert ("total" in late, "totalNotComputed" in whole, 3) == (False, False, whole["total"])


async def test_a_search_without_time_is_refused_with_a_code_and_a_total_left_out_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_reader.store.snapshot._STEPS_BETWEEN_LOOKS", 1)
    with house(tmp_path, limits=Limits(max_query_seconds=0.0)) as served:
        _, refused = await served.one("Email/query", filter={"text": "teapot"})
        assert ("unsupportedFilter", "timeLimit") == (refused["type"], refused["code"])
        known = email_id(message_digest(SHOP_MESSAGES[0]))
        _, refused = await served.one("SearchSnippet/get", filter={"text": "a"}, emailIds=[known])
        assert ("unsupportedFilter", "timeLimit") == (refused["type"], refused["code"])
