"""The way of an agent through a mailbox: query, threads, messages; and what of it is on record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_reader.jmap.methods import METHODS, Read
from agent_reader.jmap.shown_parts import FoundEmails
from agent_reader.query.shown_email import ShownEmail, shows_text
from shared.link import OpenedState
from tests.agent_reader.served import ACCOUNT, House, house


@pytest.fixture
def served(tmp_path: Path) -> Iterator[House]:
    """One for each test: its read log is looked at."""
    with house(tmp_path) as open_house:
        yield open_house


@pytest.mark.anyio
@pytest.mark.statement("45")
async def test_an_agent_finds_and_reads_a_message_in_one_request(served: House) -> None:
    responses = await served.call(
        ("Email/query", {"accountId": ACCOUNT, "filter": {"text": "teapot"}}),
        (
            "Email/get",
            {
                "accountId": ACCOUNT,
                "#ids": {"resultOf": "0", "name": "Email/query", "path": "/ids"},
                "properties": ["subject", "from", "bodyValues", "textBody"],
                "fetchTextBodyValues": True,
            },
        ),
    )
    assert ["Email/query", "Email/get"] == [name for name, _, _ in responses]
    (email,) = responses[1][1]["list"]
    assert "An order" == email["subject"]
    assert "teapot" in str(email["bodyValues"])


@pytest.mark.anyio
@pytest.mark.statement("46", "49")
async def test_the_four_call_chain_shows_whole_threads(served: House) -> None:
    def by(call: str, name: str, path: str) -> dict[str, str]:
        return {"resultOf": call, "name": name, "path": path}

    responses = await served.call(
        ("Email/query", {"accountId": ACCOUNT, "collapseThreads": True, "limit": 10}),
        ("Email/get", {"accountId": ACCOUNT, "#ids": by("0", "Email/query", "/ids"), "properties": ["threadId"]}),
        ("Thread/get", {"accountId": ACCOUNT, "#ids": by("1", "Email/get", "/list/*/threadId")}),
        (
            "Email/get",
            {
                "accountId": ACCOUNT,
                "#ids": by("2", "Thread/get", "/list/*/emailIds"),
                "properties": ["subject", "preview"],
            },
        ),
    )
    assert 2 == len(responses[0][1]["ids"])
    assert ["Your receipt", "An order", "Re: An order"] == [email["subject"] for email in responses[3][1]["list"]]


@pytest.mark.anyio
@pytest.mark.statement("52")
async def test_ids_null_gives_all_mailboxes(served: House) -> None:
    _, body = await served.one("Mailbox/get", ids=None)
    counts: dict[str, Any] = {mailbox["name"]: mailbox["totalEmails"] for mailbox in body["list"]}
    assert {"INBOX": 3, "Processed": 0} == counts
    assert [] == body["notFound"]


@pytest.mark.anyio
@pytest.mark.statement("183")
async def test_each_call_that_shows_mail_is_on_record_with_its_ids(served: House) -> None:
    _, found = await served.one("Email/query")
    (first, second, third) = found["ids"]
    await served.one("Email/get", ids=[first, "Munknown"], properties=["subject"])
    await served.one("Email/get", ids=[second], fetchTextBodyValues=True)
    lines = [line for _, line in served.access.reads("clerk")]
    assert ["Email/query", "Email/get", "Email/get"] == [line.method for line in lines]
    assert [[first, second, third], [first], [second]] == [line.email_ids for line in lines]
    assert OpenedState.NOT_OPENED is served.access.opened("clerk", ACCOUNT, first).state
    assert OpenedState.OPENED is served.access.opened("clerk", ACCOUNT, second).state


@pytest.mark.anyio
async def test_a_refused_call_and_an_echo_leave_no_line(served: House) -> None:
    await served.call(("Core/echo", {}), ("Email/set", {"accountId": ACCOUNT}), ("Email/get", {"accountId": "x"}))
    assert [] == served.access.reads("clerk")


@pytest.mark.anyio
@pytest.mark.statement("183")
async def test_a_thread_names_its_messages_on_record(served: House) -> None:
    _, found = await served.one("Email/query", filter={"text": "teapot"})
    _, got = await served.one("Email/get", ids=found["ids"], properties=["threadId"])
    await served.one("Thread/get", ids=[got["list"][0]["threadId"]])
    _, line = served.access.reads("clerk")[-1]
    assert ("Thread/get", 2) == (line.method, len(line.email_ids))
    assert found["ids"][0] in line.email_ids


@pytest.mark.anyio
async def test_headers_previews_and_body_values_that_were_not_fetched_open_nothing(served: House) -> None:
    _, found = await served.one("Email/query", limit=1)
    asked: list[dict[str, Any]] = [
        {"properties": ["subject", "preview", "header:From"]},
        {"properties": ["bodyValues"]},
        {},
    ]
    for arguments in asked:
        await served.one("Email/get", ids=found["ids"], **arguments)
    assert OpenedState.NOT_OPENED is served.access.opened("clerk", ACCOUNT, found["ids"][0]).state


@pytest.mark.parametrize(
    ("parts", "opened"),
    [
        ({}, False),
        ({"1": {"value": "", "isTruncated": True}}, False),
        ({"1": {"value": "", "isTruncated": False}}, True),
        ({"1": {"value": "a", "isTruncated": True}}, True),
        ({"1": {"value": "", "isTruncated": True}, "2": {"value": "a", "isTruncated": False}}, True),
    ],
)
def test_a_part_that_was_cut_to_nothing_opens_nothing(parts: dict[str, Any], opened: bool) -> None:
    method = METHODS["Email/get"]
    assert isinstance(method, Read)
    found = FoundEmails({}, [ShownEmail("M1", shows_text({"bodyValues": parts}), ())])
    assert (("M1",), ("M1",) if opened else ()) == method.shows(found)
