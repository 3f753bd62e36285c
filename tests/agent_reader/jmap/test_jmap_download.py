"""Downloads: exact octets or a typed refusal, on record first, under header fields that make them harmless."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from agent_reader.jmap.capabilities import DEFAULT_LIMITS
from agent_reader.scope import Depth, Scope
from agent_reader.sync.mirror import FetchedMessage, MessageState
from shared.identity import MAX_MESSAGE_OCTETS, blob_id, email_id, message_digest, unprovable_email_id
from shared.imap_login import ImapFailure
from shared.link import OpenedState
from tests.agent_reader.on_loopback import await_true, descriptors, on_loopback
from tests.agent_reader.served import ACCOUNT, MESSAGES, NOW, OTHER_ACCOUNT, House, house, octets

pytestmark = pytest.mark.anyio

PICTURE = bytes(range(256)) * 40
INNER = octets(8, "A forwarded letter", "Inside.").replace(b"text/plain; charset=utf-8", b"text/plain; name=inner.txt")


def _wrapped(content: bytes) -> bytes:
    return base64.encodebytes(content).replace(b"\n", b"\r\n")


MIXED = (
    b"From: Ann <ann@example.org>\r\nSubject: Papers\r\nMessage-ID: <9@example.org>\r\nMIME-Version: 1.0\r\n"
    b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
    b"--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    + _wrapped("Grüße, siehe Anlage.\r\n".encode())
    + b"--b\r\nContent-Type: image/png\r\nContent-Disposition: attachment; filename=a.png\r\n"
    b"Content-Transfer-Encoding: base64\r\n\r\n"
    + _wrapped(PICTURE)
    + b"--b\r\nContent-Type: message/rfc822\r\n\r\n"
    + INNER
    + b"\r\n--b--\r\n"
)
ALL = (*MESSAGES, MIXED)


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One for all tests that look neither at the read log nor at what was fetched."""
    with house(tmp_path_factory.mktemp("downloads"), ALL) as open_house:
        yield open_house


@pytest.fixture
def served(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path, ALL) as open_house:
        yield open_house


def url(blob: str, name: str = "a.bin", content_type: str | None = None, account: str = ACCOUNT) -> str:
    asked = "" if content_type is None else f"?type={quote(content_type, safe='')}"
    return f"/jmap/download/{account}/{blob}/{quote(name, safe='')}{asked}"


def blob_of(content: bytes) -> str:
    return blob_id(message_digest(content))


async def get(served: House, path: str, method: str = "GET", **headers: str) -> Any:
    async with served.client() as client:
        return await client.request(method, path, headers={name.replace("_", "-"): v for name, v in headers.items()})


@pytest.mark.parametrize("message", ALL, ids=["one", "two", "three", "mixed"])
@pytest.mark.statement("109", "175")
async def test_a_message_comes_octet_for_octet(standing: House, message: bytes) -> None:
    response = await get(standing, url(blob_of(message), "a.eml", "message/rfc822"))
    assert (200, message) == (response.status_code, response.content)
    assert str(len(message)) == response.headers["content-length"]
    assert "message/rfc822" == response.headers["content-type"]
    assert 'attachment; filename="a.eml"' == response.headers["content-disposition"]


async def test_what_email_get_names_can_be_downloaded(served: House) -> None:
    _, got = await served.one("Email/get", ids=[email_id(message_digest(MIXED))], properties=["blobId", "attachments"])
    (email,) = got["list"]
    (picture, letter) = email["attachments"]
    assert MIXED == (await get(served, url(email["blobId"]))).content
    assert PICTURE == (await get(served, url(picture["blobId"], "a.png", "image/png"))).content
    assert INNER == (await get(served, url(letter["blobId"], "a.eml", "message/rfc822"))).content
    # The message came once for all of them.
    assert [4] == served.shelf.fetched


@pytest.mark.statement("171")
async def test_a_part_of_an_attached_message_can_be_downloaded(served: House) -> None:
    response = await get(served, url(blob_of(b"Inside.\r\n")))
    assert (200, b"Inside.\r\n") == (response.status_code, response.content)


async def test_a_text_that_the_store_keeps_needs_no_mail_server(served: House) -> None:
    served.shelf.failure = ImapFailure("unreachable", "down", "", retryable=True)
    text = "Grüße, siehe Anlage.\r\n".encode()
    response = await get(served, url(blob_of(text)))
    assert (200, text) == (response.status_code, response.content)


@pytest.mark.parametrize(
    "path",
    [
        url("B" + "0" * 32),
        url("nonsense"),
        url("M" + blob_of(MIXED)[1:]),
        url(blob_of(MIXED), account="nobody"),
        url(blob_of(MIXED), account=OTHER_ACCOUNT),
        url(blob_of(MIXED) + "0"),
        url(blob_of(MIXED).upper()),
        url("BX" + "0" * 32),
    ],
)
@pytest.mark.statement("177")
async def test_what_is_not_there_has_one_answer(standing: House, path: str) -> None:
    response = await get(standing, path)
    assert 404 == response.status_code
    assert response.content == (await get(standing, url("B" + "1" * 32))).content
    assert "application/problem+json" == response.headers["content-type"]


async def test_a_message_that_the_server_has_no_more_is_not_there(served: House) -> None:
    served.shelf.octets.clear()
    response = await get(served, url(blob_of(MIXED)))
    assert response.content == (await get(served, url("B" + "1" * 32))).content
    assert [] == served.access.reads("clerk")


async def test_a_mail_server_that_is_down_is_said_and_may_be_asked_again(served: House) -> None:
    served.shelf.failure = ImapFailure("unreachable", "reader at imap.internal:993: no connection", "", retryable=True)
    response = await get(served, url(blob_of(MIXED)))
    assert (503, "mail_server_unavailable", True) == (
        response.status_code,
        response.json()["code"],
        response.json()["retryable"],
    )
    assert "imap.internal" not in response.text
    served.shelf.failure = None
    assert MIXED == (await get(served, url(blob_of(MIXED)))).content


async def test_the_wrong_octets_are_neither_given_nor_kept(served: House) -> None:
    served.shelf.octets[4] = MIXED.replace(b"Papers", b"Pepers")
    for path in (url(blob_of(MIXED)), url(blob_of(PICTURE))):
        response = await get(served, path)
        assert (502, "octets_altered", False) == (
            response.status_code,
            response.json()["code"],
            response.json()["retryable"],
        )
    served.shelf.octets[4] = MIXED
    assert MIXED == (await get(served, url(blob_of(MIXED)))).content
    assert PICTURE == (await get(served, url(blob_of(PICTURE)))).content


async def test_another_copy_is_tried_where_one_holds_something_else(served: House) -> None:
    mirror = served.store.account(ACCOUNT)
    other = next(mailbox for mailbox in mirror.mailboxes() if mailbox.name == "Processed")
    state = MessageState(frozenset(), 1)
    mirror.add(other.id, [FetchedMessage(77, state, NOW, len(MIXED), MIXED, b"")])
    served.shelf.octets[4], served.shelf.octets[77] = MIXED[:-1], MIXED
    assert MIXED == (await get(served, url(blob_of(MIXED)))).content
    assert [4, 77] == served.shelf.fetched


async def test_a_message_over_the_limit_is_refused_and_not_fetched_to_its_end(tmp_path: Path) -> None:
    with house(tmp_path, ALL, largest_octets=len(MIXED) - 1) as served:
        response = await get(served, url(blob_of(MIXED)))
        assert (403, "blob_too_large", False) == (
            response.status_code,
            response.json()["code"],
            response.json()["retryable"],
        )


async def test_a_record_without_a_digest_is_what_its_one_copy_holds(served: House) -> None:
    blob = without_digest(served, b"Enormous, and yet not so here.\r\n")
    _, found = await served.one("Email/query", limit=1)
    _, got = await served.one("Email/get", ids=found["ids"], properties=["blobId"])
    assert got["list"][0]["id"].startswith("X")
    assert blob == got["list"][0]["blobId"]
    response = await get(served, url(blob))
    assert (200, served.shelf.octets[50]) == (response.status_code, response.content)


def without_digest(served: House, content: bytes) -> str:
    """Put in a message that was too large to be read whole, with these octets on the server; gives its blob id."""
    mirror = served.store.account(ACCOUNT)
    inbox = next(mailbox for mailbox in mirror.mailboxes() if mailbox.name == "INBOX")
    header = MIXED.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    mirror.add(inbox.id, [FetchedMessage(50, MessageState(frozenset(), 1), NOW, MAX_MESSAGE_OCTETS + 1, None, header)])
    served.shelf.octets[50] = content
    return "B" + unprovable_email_id(inbox.id, 7, 50)


# Header fields


@pytest.mark.statement("176", "178")
async def test_what_comes_is_harmless_and_lasting(standing: House) -> None:
    headers = (await get(standing, url(blob_of(MIXED), content_type="text/html"))).headers
    assert "text/html" == headers["content-type"]
    assert "private, immutable, max-age=31536000" == headers["cache-control"]
    assert f'"{blob_of(MIXED)}"' == headers["etag"]
    assert "nosniff" == headers["x-content-type-options"]
    assert headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert headers["content-disposition"].startswith("attachment;")
    assert "same-origin" == headers["cross-origin-resource-policy"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("report.pdf", "report.pdf"),
        ("Grüße aus Köln.txt", "Grüße aus Köln.txt"),
        ("発注書.xlsx", "発注書.xlsx"),
        ('a"b.txt', "a_b.txt"),
        ("100%.txt", "100%.txt"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("..\\..\\boot.ini", "_.._boot.ini"),
        (".bashrc", "bashrc"),
        ("a.txt:stream", "a.txt_stream"),
        ("exe\u202efdp.txt", "exefdp.txt"),
        ("a\U000e0041b.txt", "ab.txt"),
        ("", "download"),
        ("...", "download"),
        ("x" * 400 + ".pdf", "x" * 196 + ".pdf"),
        ("é" * 200 + ".pdf", "é" * 98 + ".pdf"),
    ],
)
@pytest.mark.statement("175", "176")
async def test_the_name_that_was_asked_for_is_made_harmless(standing: House, name: str, shown: str) -> None:
    field = (await get(standing, url(blob_of(MIXED), name))).headers["content-disposition"]
    assert "\n" not in field
    plain, _, extended = field.removeprefix("attachment; filename=").partition("; filename*=UTF-8''")
    assert plain[0] == plain[-1] == '"'
    assert plain[1:-1].isascii()
    assert '"' not in plain[1:-1]
    assert shown == (unquote(extended) if extended else plain[1:-1])


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        # A path with a line feed is in no table of routes.
        ("a\r\nSet-Cookie: x=y", 404, "not_found"),
        ("a\nb", 404, "not_found"),
        ("a\rb", 400, "invalid_name"),
        ("a\x00b", 400, "invalid_name"),
        ("a\x7fb", 400, "invalid_name"),
        ("a\x85b", 400, "invalid_name"),
        ("\t", 400, "invalid_name"),
    ],
)
@pytest.mark.statement("176")
async def test_a_name_with_control_characters_is_refused(standing: House, name: str, status: int, code: str) -> None:
    response = await get(standing, url(blob_of(MIXED), name))
    assert (status, code) == (response.status_code, response.json()["code"])
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", "application/octet-stream"),
        ("?type=", "application/octet-stream"),
        ("?type=image/svg+xml", "image/svg+xml"),
        ("?type=image%2Fsvg%2Bxml", "image/svg+xml"),
        ("?type=text/plain%3B%20charset%3Dutf-8", "text/plain; charset=utf-8"),
        ("?accept=1&type=text/csv", "text/csv"),
    ],
)
@pytest.mark.statement("175")
async def test_the_type_that_was_asked_for_comes_back(standing: House, query: str, shown: str) -> None:
    assert shown == (await get(standing, url(blob_of(MIXED)) + query)).headers["content-type"]


@pytest.mark.parametrize(
    "query",
    [
        "?type=text",
        "?type=text/",
        "?type=/plain",
        "?type=text/plain%0d%0aSet-Cookie:x=y",
        "?type=text/pl%C3%A4in",
        "?type=text/plain;charset",
        "?type=text/plain&type=text/html",
        "?type=text/plain%3B%20a%3D%22%5C%22",
        "?type=" + "a" * 300 + "/b",
        "?type=text/plain%00",
    ],
)
async def test_what_is_no_media_type_is_refused(standing: House, query: str) -> None:
    response = await get(standing, url(blob_of(MIXED)) + query)
    assert (400, "invalid_type") == (response.status_code, response.json()["code"])
    assert "set-cookie" not in response.headers


# Conditions and ranges


@pytest.mark.statement("178")
async def test_every_variable_may_be_percent_encoded(standing: House) -> None:
    def encoded(text: str) -> str:
        return "".join(f"%{octet:02x}" for octet in text.encode())

    account, blob, name = encoded(ACCOUNT), encoded(blob_of(MIXED)), encoded("Grüße 1.eml")
    answer = await get(standing, f"/jmap/download/{account}/{blob}/{name}?type={encoded('message/rfc822')}")
    assert (200, MIXED) == (answer.status_code, answer.content)
    assert "message/rfc822" == answer.headers["content-type"]
    assert "filename*=UTF-8''Gr%C3%BC%C3%9Fe%201.eml" in answer.headers["content-disposition"]


@pytest.mark.statement("178")
async def test_head_says_what_get_would_and_gives_no_octet(standing: House) -> None:
    head = await get(standing, url(blob_of(MIXED)), "HEAD")
    whole = await get(standing, url(blob_of(MIXED)))
    assert (200, b"") == (head.status_code, head.content)
    assert dict(head.headers) == dict(whole.headers)


@pytest.mark.parametrize("field", ['"{}"', 'W/"{}"', '"x", "{}"', "*"])
async def test_who_has_it_already_is_not_given_it_again(served: House, field: str) -> None:
    response = await get(served, url(blob_of(MIXED)), If_None_Match=field.format(blob_of(MIXED)))
    assert (304, b"") == (response.status_code, response.content)
    assert f'"{blob_of(MIXED)}"' == response.headers["etag"]
    assert not served.shelf.fetched
    assert not served.access.reads("clerk")


SIZE = len(PICTURE)


@pytest.mark.parametrize(
    ("field", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-99", 0, 100),
        ("bytes=100-", 100, SIZE),
        ("bytes=-1", SIZE - 1, SIZE),
        ("bytes=-99999999", 0, SIZE),
        (f"bytes={SIZE - 1}-{SIZE + 5}", SIZE - 1, SIZE),
        ("Bytes=5-9", 5, 10),
    ],
)
async def test_one_range_is_given(standing: House, field: str, start: int, end: int) -> None:
    response = await get(standing, url(blob_of(PICTURE)), Range=field)
    assert (206, PICTURE[start:end]) == (response.status_code, response.content)
    assert f"bytes {start}-{end - 1}/{SIZE}" == response.headers["content-range"]
    assert str(end - start) == response.headers["content-length"]


@pytest.mark.parametrize(
    "field", ["bytes=0-1,5-6", "octets=0-1", "bytes=5-1", "bytes=-", "bytes", "bytes=a-b", "bytes=1-2x", ""]
)
async def test_what_is_not_one_range_of_octets_is_ignored(standing: House, field: str) -> None:
    response = await get(standing, url(blob_of(PICTURE)), Range=field)
    assert (200, PICTURE) == (response.status_code, response.content)


@pytest.mark.parametrize("field", [f"bytes={SIZE}-", "bytes=999999999999999999-", "bytes=-0"])
async def test_a_range_that_is_not_there_is_refused_with_the_size(served: House, field: str) -> None:
    response = await get(served, url(blob_of(PICTURE)), Range=field)
    assert (416, f"bytes */{SIZE}") == (response.status_code, response.headers["content-range"])
    assert "range_not_satisfiable" == response.json()["code"]
    assert [] == served.access.reads("clerk")


async def test_a_range_counts_only_for_the_octets_that_the_client_has(standing: House) -> None:
    same, other = f'"{blob_of(PICTURE)}"', '"x"'
    assert 206 == (await get(standing, url(blob_of(PICTURE)), Range="bytes=0-1", If_Range=same)).status_code
    assert 200 == (await get(standing, url(blob_of(PICTURE)), Range="bytes=0-1", If_Range=other)).status_code


# The record


async def test_a_download_is_on_record_with_its_message(served: House) -> None:
    await get(served, url(blob_of(PICTURE)))
    ((_, line),) = served.access.reads("clerk")
    mixed = email_id(message_digest(MIXED))
    assert ("download", ACCOUNT, [mixed]) == (line.method, line.account, line.email_ids)
    # A picture is no text of a body.
    assert OpenedState.NOT_OPENED is served.access.opened("clerk", ACCOUNT, mixed).state
    await get(served, url(blob_of(MIXED)), "HEAD")
    assert OpenedState.NOT_OPENED is served.access.opened("clerk", ACCOUNT, mixed).state
    await get(served, url(blob_of("Grüße, siehe Anlage.\r\n".encode())))
    assert OpenedState.OPENED is served.access.opened("clerk", ACCOUNT, mixed).state


async def test_what_cannot_be_put_on_record_does_not_leave(served: House) -> None:
    served.access._writer.pragma("query_only", 1)
    response = await get(served, url(blob_of(MIXED)))
    assert (503, "read_log_unavailable") == (response.status_code, response.json()["code"])
    assert b"Papers" not in response.content


async def test_an_email_that_was_destroyed_is_not_given_from_the_cache(served: House) -> None:
    assert 200 == (await get(served, url(blob_of(PICTURE)))).status_code
    mirror = served.store.account(ACCOUNT)
    served.clock.forward(timedelta(minutes=1))
    inbox = next(mailbox for mailbox in mirror.mailboxes() if mailbox.name == "INBOX")
    mirror.vanish(inbox.id, [4])
    for mailbox in mirror.mailboxes():
        mirror.looked(mailbox.id, 5, None)
    mirror.settle()
    assert 404 == (await get(served, url(blob_of(PICTURE)))).status_code
    assert 404 == (await get(served, url(blob_of(MIXED)))).status_code


@pytest.mark.parametrize("depth", [Depth.HEADERS, Depth.TEXT])
async def test_a_token_that_sees_no_octets_is_given_none_cached_or_kept(served: House, depth: Depth) -> None:
    text = "Grüße, siehe Anlage.\r\n".encode()
    paths = [url(blob_of(content)) for content in (MIXED, PICTURE, text, b"Inside.\r\n")]
    for path in paths:
        assert 200 == (await get(served, path)).status_code
    served.token = served.access.create_token("narrow", scope=Scope(depth=depth)).text
    for path in paths:
        assert 404 == (await get(served, path)).status_code


# Clients that go away

# More than the sockets of both sides hold.
LARGE = bytes(range(256)) * 60_000


def test_a_client_that_is_lost_in_the_middle_leaves_nothing_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        house(tmp_path, largest_octets=len(LARGE), cache_octets=0) as open_house,
        on_loopback(open_house.app) as listening,
    ):
        path = url(without_digest(open_house, LARGE))
        token = {"Authorization": f"Bearer {open_house.token}"}

        def held() -> tuple[int, int, int]:
            return descriptors(), listening.tasks(), listening.connections()

        def lose(number: int) -> None:
            with ExitStack() as opened:
                for _ in range(number):
                    opened.enter_context(listening.connect(path, **token)).until(b"\r\n\r\n")

        idle = listening.tasks()
        # What is kept for the next question, by as many threads as there will be, is opened before anything is counted.
        lose(4)
        # A connection is gone before the task that served it has ended.
        await_true(lambda: (0, idle) == (listening.connections(), listening.tasks()))
        before = held()
        for _ in range(3):
            lose(4)
            await_true(lambda: all(now <= then for now, then in zip(held(), before, strict=True)))
        with listening.connect(path, **token) as client:
            assert client.to_the_end().endswith(LARGE)
    # Nor was the rest of the message written to nobody, with everybody else waiting: asyncio complains of that.
    assert [] == [record for record in caplog.records if record.name == "asyncio"]


def test_an_agent_has_a_few_downloads_at_once_and_another_one_its_own(tmp_path: Path) -> None:
    limits = replace(DEFAULT_LIMITS, max_concurrent_downloads=1)
    with (
        house(tmp_path, limits=limits, largest_octets=len(LARGE)) as open_house,
        on_loopback(open_house.app) as listening,
    ):
        path = url(without_digest(open_house, LARGE))
        token = {"Authorization": f"Bearer {open_house.token}"}
        other = {"Authorization": f"Bearer {open_house.access.create_token('other').text}"}
        with listening.connect(path, **token) as slow:
            assert b" 200 " in slow.until(b"\r\n\r\n")
            with listening.connect(path, **token) as second:
                refused = second.to_the_end()
            assert b" 429 " in refused.partition(b"\r\n")[0]
            assert b"too_many_downloads" in refused
            with listening.connect(path, **other) as client:
                assert client.to_the_end().endswith(LARGE)
