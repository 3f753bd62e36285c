"""`agent-reader digest`: a real process between the reader's door and the executor's intake."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_reader.access import Agent
from agent_reader.scope import Depth, Scope
from agent_reader.sync.mirror import ListedMailbox
from agent_reader.tool_answers.sheet import MAX_RESULT_CHARACTERS
from tests.agent_reader import synced
from tests.agent_reader.mcp.desk import Desked, desked, id_of, inside, outside
from tests.agent_reader.mcp.mails import CANARY, HOSTILE
from tests.agent_reader.mcp.served import SECONDS, app_of, served
from tests.agent_reader.mcp.test_mcp_stdio import Street, houses
from tests.agent_reader.served import ACCOUNT, NOW, fetched, octets
from tests.change_executor.intake.desk import Desk as Intake
from tests.change_executor.journal.clock import MovableClock
from tests.change_executor.journal.empty import empty_journal
from tests.change_executor.settings import settings_in

REPOSITORY = Path(__file__).resolve().parents[3]
OWNER = "Shop <shop@example.com>"


def reply(number: int, to: int, text: str, **headers: str) -> bytes:
    return octets(number, "Re: A", text, In_Reply_To=f"<{to}@example.org>", References=f"<{to}@example.org>", **headers)


ASKED = octets(21, "A", "Could you send the invoice?")
ANSWERED = reply(22, 21, "Here it is.", From=OWNER, To="person21@example.org")
AGAIN = reply(23, 21, "Thank you. And the one of May?", From="Person 21 <person21@example.org>")
URGENT = reply(24, 21, "I need it by Friday.", From="Person 21 <person21@example.org>")
SETTLED = octets(25, "B", "Do you open on Sunday?")
SAID = octets(26, "Re: B", "No.", From=OWNER, To="p@example.org", In_Reply_To="<25@example.org>")
ROBOT = octets(27, "Your ticket?", "Rate us?", Auto_Submitted="auto-generated")
LETTER = octets(28, "News?", "Buy?", List_Id="<news.example.org>")
ELSEWHERE = octets(29, "Not to the owner", "Shall we?", To="somebody@example.net")
INCOMING = (ASKED, AGAIN, URGENT, SETTLED, ROBOT, LETTER, ELSEWHERE)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def add_sent(standing: Desked, *messages: tuple[bytes, timedelta]) -> None:
    mirror = standing.house.store.account(ACCOUNT)
    mirror.put_mailboxes(
        [
            ListedMailbox("INBOX", "/", frozenset(), subscribed=True),
            ListedMailbox("Sent", "/", frozenset({"\\Sent"}), subscribed=True),
        ]
    )
    sent = next(mailbox.id for mailbox in mirror.mailboxes() if mailbox.name == "Sent")
    mirror.restart(sent, 9)
    synced.add(
        mirror, sent, [fetched(number, each, NOW - ago, "\\Seen") for number, (each, ago) in enumerate(messages, 1)]
    )


@pytest.fixture
def street(tmp_path: Path) -> Iterator[Street]:
    settings = settings_in(tmp_path, max_pending_per_agent=3)
    journal = empty_journal(settings.journal.url, MovableClock())
    try:
        with desked(tmp_path / "reader-side", INCOMING) as standing:
            # The first question came an hour ago less a minute, all others in the minutes after it.
            add_sent(standing, (ANSWERED, timedelta(minutes=58, seconds=30)), (SAID, timedelta(minutes=9)))
            yield Street(standing, Intake(journal, settings), tmp_path)
    finally:
        journal.close()


def account_of(standing: Desked, *, peek: bool = True) -> dict[str, Any]:
    (found,) = json.loads(standing.desk.digest(standing.agent, peek=peek))["accounts"][:1]
    assert isinstance(found, dict)
    return found


def with_scope(standing: Desked, scope: Scope) -> Desked:
    token = standing.house.access.create_token("narrow", scope=scope).text
    agent = standing.house.access.authenticate(f"Bearer {token}")
    assert isinstance(agent, Agent)
    return Desked(standing.desk, standing.house, agent)


async def said(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What the process says that `agent-reader digest` becomes; on a terminal it is started whole."""
    command = [sys.executable, "-m", "agent_reader.relay.digest_command", *arguments]
    return await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False, cwd=REPOSITORY)


def test_what_waits_is_what_another_person_said_last_to_the_owner_since_it_was_not_answered(street: Street) -> None:
    found = account_of(street.standing)
    assert found["sentMailIsShown"]
    (waiting,) = found["waiting"]
    assert (id_of(URGENT), False) == (waiting["emailId"], waiting["asks"])
    # The first of the two that nobody answered.
    assert f"{NOW - timedelta(hours=1) + timedelta(minutes=2):%Y-%m-%dT%H:%M:%SZ}" == waiting["since"]


def test_mail_marked_as_answered_waits_no_more_and_without_sent_mail_the_marks_are_all_there_is(tmp_path: Path) -> None:
    with desked(tmp_path, (ASKED, SETTLED)) as standing:
        found = account_of(standing)
        assert not found["sentMailIsShown"]
        assert [(id_of(ASKED), True), (id_of(SETTLED), True)] == [
            (each["emailId"], each["asks"]) for each in found["waiting"]
        ]
        mirror = standing.house.store.account(ACCOUNT)
        inbox = next(mailbox.id for mailbox in mirror.mailboxes() if mailbox.name == "INBOX")
        synced.add(mirror, inbox, [fetched(9, SETTLED, NOW, "\\Answered")])
        assert [id_of(ASKED)] == [each["emailId"] for each in account_of(standing)["waiting"]]


def test_the_place_is_that_of_whats_new_and_a_peek_leaves_it(street: Street) -> None:
    standing = street.standing
    assert "first" == account_of(standing)["look"]
    assert len(INCOMING) == account_of(standing, peek=False)["newMessages"]
    assert 0 == account_of(standing)["newMessages"]
    assert "New: no messages." in standing.text("whats_new")
    read = standing.house.access.lines(agent="clerk", since=None, email_id=None, limit=9)
    assert "mcp/digest" in {line.method for line in read}


def test_a_token_for_headers_gets_no_word_of_a_body(street: Street) -> None:
    found = account_of(with_scope(street.standing, Scope(depth=Depth.HEADERS)))
    assert "invoice" not in json.dumps(found)
    assert not any(each["asks"] for each in found["waiting"])


@pytest.mark.anyio
async def test_the_command_tells_a_model_what_came_what_waits_and_what_was_proposed(street: Street) -> None:
    async with houses(street) as (reader, intake):
        arguments = street.arguments(reader, intake)
        asked = {"emailId": id_of(ASKED), "from": "incoming", "to": "processed"}
        await asyncio.to_thread(street.intake.ask, "POST", "/v1/proposals", json=asked)
        peeked = await said(*arguments, "--peek")
        told = await said(*arguments)
        again = await said(*arguments)
        as_json = json.loads((await said(*arguments, "--json")).stdout)
    assert (0, "") == (told.returncode, told.stderr)
    assert len(peeked.stdout) == len(told.stdout)
    assert "7 new messages" in outside(told.stdout)
    assert "1 conversations wait" in outside(told.stdout)
    assert "1 proposals made, decided or open; 1 wait for a person." in outside(told.stdout)
    assert f"{id_of(ASKED)} to processed" in inside(told.stdout)
    assert "0 new messages" in outside(again.stdout)
    assert ["pending"] == [each["state"] for each in as_json["proposals"]]


@pytest.mark.anyio
async def test_no_word_of_hostile_mail_stands_outside_the_fence_of_a_digest(tmp_path: Path) -> None:
    with desked(tmp_path, HOSTILE) as standing:
        street = Street(standing, Intake.__new__(Intake), tmp_path)
        async with served(app_of(standing.desk, standing.house)) as reader:
            done = await said(*street.arguments(reader, None))
    assert CANARY in inside(done.stdout)
    assert CANARY not in outside(done.stdout) + done.stderr
    assert len(done.stdout) <= MAX_RESULT_CHARACTERS + 1


@pytest.mark.anyio
async def test_on_a_terminal_it_is_text_for_a_person_that_no_mail_can_colour_or_reorder(street: Street) -> None:
    hostile = octets(30, "=?utf-8?q?=1b[31mred_=E2=80=AEder?=", "x")
    mirror = street.standing.house.store.account(ACCOUNT)
    inbox = next(mailbox.id for mailbox in mirror.mailboxes() if mailbox.name == "INBOX")
    synced.add(mirror, inbox, [fetched(30, hostile, NOW)])
    async with houses(street) as (reader, _):
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "agent_reader", "digest", *street.arguments(reader, None)]
        process = await asyncio.to_thread(subprocess.Popen, command, stdout=theirs, cwd=REPOSITORY)
        os.close(theirs)
        text = (await asyncio.to_thread(_drained, ours)).decode()
        assert 0 == await asyncio.to_thread(process.wait, 30)
    assert "red der" in text.replace("[31m", "")
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "| " not in text.split("\r\n")[0]


def _drained(descriptor: int) -> bytes:
    found = b""
    with os.fdopen(descriptor, "rb", buffering=0) as terminal:
        while True:
            try:
                piece = terminal.read(65_536)
            except OSError:
                return found
            if not piece:
                return found
            found += piece


@pytest.mark.anyio
async def test_without_the_executor_the_mail_is_told_and_without_the_reader_the_place_stays(street: Street) -> None:
    async with houses(street) as (reader, _):
        arguments = street.arguments(reader, "http://127.0.0.1:9")
        told = await said(*arguments)
    assert "What became of proposals is not known now (executor_unreachable)." in outside(told.stdout)
    assert "7 new messages" in outside(told.stdout)
    gone = await said(*street.arguments("http://127.0.0.1:9", None))
    assert 1 == gone.returncode
    assert "Is it running?" in gone.stderr
    assert "" == gone.stdout


@pytest.mark.anyio
async def test_the_route_takes_its_one_question_and_no_other(street: Street) -> None:
    import httpx  # noqa: PLC0415 - this test's alone

    async with houses(street) as (reader, _), httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
        headers = {"Authorization": f"Bearer {street.standing.house.token}"}
        for body in (b"", b"[]", b"{}", b'{"peek": 1}', b'{"peek": true, "account": "x"}', b"[" * 900):
            refused = await client.post(f"{reader}/agent/digest", content=body, headers=headers)
            assert (400, "malformed_digest_request") == (refused.status_code, refused.json()["code"])
        assert 413 == (await client.post(f"{reader}/agent/digest", content=b"x" * 2_000, headers=headers)).status_code
        assert 405 == (await client.get(f"{reader}/agent/digest", headers=headers)).status_code
        nobody = await client.post(f"{reader}/agent/digest", content=b'{"peek": true}')
        assert (401, "no_token") == (nobody.status_code, nobody.json()["code"])
        elsewhere = headers | {"Host": "evil.example"}
        led = await client.post(f"{reader}/agent/digest", content=b'{"peek": true}', headers=elsewhere)
        assert 421 == led.status_code
