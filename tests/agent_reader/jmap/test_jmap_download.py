"""Downloads: exact octets or a typed refusal, on record first, under header fields that make them harmless."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from agent_reader.door.limits import DEFAULT_LIMITS
from agent_reader.scope import Depth, Scope
from agent_reader.sync.mirror import FetchedMessage, MessageState
from shared.identity import MAX_MESSAGE_OCTETS, email_id, message_digest, unprovable_email_id
from shared.imap_login import ImapFailure
from shared.link import OpenedState
from tests.agent_reader import synced
from tests.agent_reader.jmap.downloading import ALL, INNER, MIXED, PICTURE, blob_of, get, url
from tests.agent_reader.on_loopback import await_true, descriptors, on_loopback
from tests.agent_reader.served import ACCOUNT, NOW, OTHER_ACCOUNT, House, house

pytestmark = pytest.mark.anyio


@pytest.fixture
def served(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path, ALL) as open_house:
        yield open_house


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


@pytest.mark.statement("177")
async def test_asking_for_an_account_that_is_none_makes_no_file(served: House, tmp_path: Path) -> None:
    before = _files(tmp_path)
    for account in ("nobody", "..%2F..%2Fnobody", "x%00y"):
        assert 404 == (await get(served, f"/jmap/download/{account}/{blob_of(MIXED)}/a.eml")).status_code
    assert before == _files(tmp_path)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


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
    synced.add(mirror, other.id, [FetchedMessage(77, state, NOW, len(MIXED), MIXED, b"")])
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
    synced.add(
        mirror, inbox.id, [FetchedMessage(50, MessageState(frozenset(), 1), NOW, MAX_MESSAGE_OCTETS + 1, None, header)]
    )
    served.shelf.octets[50] = content
    return "B" + unprovable_email_id(inbox.id, 7, 50)


@pytest.mark.statement("178", "183")
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
    synced.vanish(mirror, inbox.id, [4])
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


def test_a_token_that_is_revoked_ends_its_download(tmp_path: Path) -> None:
    with house(tmp_path, largest_octets=len(LARGE)) as open_house, on_loopback(open_house.app) as listening:
        path = url(without_digest(open_house, LARGE))
        token = open_house.access.create_token("other")
        idle = listening.tasks()
        with listening.connect(path, Authorization=f"Bearer {token.text}") as slow:
            # Nothing more is taken: what does not fit between the two programs is still to be sent.
            slow.until(b"\r\n\r\n")
            assert open_house.access.revoke(token.id)
            await_true(lambda: listening.tasks() == idle)
            assert len(LARGE) > len(slow.to_the_end())


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
