"""Downloads and push with the reader as a process and a real mail server: exact, changing nothing, ending when told."""

from __future__ import annotations

import asyncio
import base64
import signal
import threading
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_bytes

import httpx

from agent_reader.access import Access
from shared.identity import blob_id, email_id, message_digest
from tests.fakes.reader_process import ReaderFolder
from tests.servers.dovecot import Dovecot

# Larger than what is fetched at once; 8-bit and odd on purpose.
PICTURE = bytes(range(256)) * 5_000
SECONDS = 30.0
USING = ["urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"]


def letter(subject: str, attached: bytes) -> bytes:
    head = (
        f"From: a@example.org\r\nSubject: {subject}\r\nMessage-ID: <{subject}@x>\r\nMIME-Version: 1.0\r\n"
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nSee attached.\r\n--b\r\n"
        'Content-Type: application/octet-stream; name="a.bin"\r\nContent-Disposition: attachment\r\n'
        "Content-Transfer-Encoding: base64\r\n\r\n"
    )
    return head.encode() + base64.encodebytes(attached).replace(b"\n", b"\r\n") + b"--b--\r\n"


def test_new_mail_is_pushed_downloaded_octet_for_octet_and_left_as_it_was(dovecot: Dovecot, tmp_path: Path) -> None:
    folder = ReaderFolder(tmp_path, dovecot)
    token = folder.token()
    message, later = letter("first", PICTURE), letter("second", PICTURE[::-1])
    dovecot.deliver("INBOX", letter("zeroth", b"x"))
    with folder.serve() as reader, httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=SECONDS) as agent:
        address = reader.address()
        reader.await_event("sync:round", whole=True)

        def download(content: bytes, name: str = "a") -> httpx.Response:
            return agent.get(f"{address}/jmap/download/shop/{blob_id(message_digest(content))}/{name}")

        with agent.stream("GET", f"{address}/jmap/eventsource?types=Email&closeafter=state&ping=0") as stream:
            lines = stream.iter_lines()
            assert ":" == next(lines)
            dovecot.deliver("INBOX", message)
            assert "event: state" in list(lines)
        before = dovecot.snapshot()
        assert message == download(message).content
        assert PICTURE == download(PICTURE, "a.bin").content
        assert before == dovecot.snapshot()
        dovecot.deliver("INBOX", later)
        # Its arrival is in the store once the agent finds it.
        await_found(agent, address, later)
        asyncio.run(ask_as_a_hundred(folder, address, {"zeroth", "first", "second"}))
        dovecot.stop()
        down = download(later)
        assert (503, "mail_server_unavailable", True) == (
            down.status_code,
            down.json()["code"],
            down.json()["retryable"],
        )
        assert message == download(message).content
        with agent.stream("GET", f"{address}/jmap/eventsource?types=*&closeafter=no&ping=0") as stream:
            assert ":" == next(stream.iter_lines())
            assert 0 == reader.end(by_signal=signal.SIGTERM)
    assert not any("FETCH" in line and "BODY[" in line for line in map(str, dovecot.commands("reader")))
    reads = folder.command("reads", "--agent", "bot").stdout
    assert 3 == reads.count(" shop download ")


async def ask_as_a_hundred(folder: ReaderFolder, address: str, subjects: set[str]) -> None:
    """A hundred agents at once, each with a token of its own: every answer is whole and right."""
    with Access(folder.folder / "store", lambda: datetime.now(UTC), token_bytes) as access:
        tokens = [access.create_token(f"agent-{number}").text for number in range(100)]
    call = {"accountId": "shop"}
    ids = {"resultOf": "0", "name": "Email/query", "path": "/ids"}
    get = call | {"#ids": ids, "properties": ["subject", "bodyValues"], "fetchTextBodyValues": True}
    body = {"using": USING, "methodCalls": [["Email/query", call, "0"], ["Email/get", get, "1"]]}

    async def ask(agent: httpx.AsyncClient, token: str) -> None:
        answer = await agent.post(f"{address}/jmap/api", json=body, headers={"Authorization": f"Bearer {token}"})
        assert 200 == answer.status_code, answer.text
        name, found, _ = answer.json()["methodResponses"][1]
        assert ("Email/get", subjects) == (name, {email["subject"] for email in found["list"]})
        texts = [value["value"] for email in found["list"] for value in email["bodyValues"].values()]
        assert ["See attached."] * len(subjects) == [text.strip() for text in texts]

    # As many connections as agents.
    limits = httpx.Limits(max_connections=len(tokens))
    async with httpx.AsyncClient(timeout=SECONDS, limits=limits) as agent:
        await asyncio.gather(*(ask(agent, token) for token in tokens))


def await_found(agent: httpx.Client, address: str, message: bytes) -> None:
    wanted = email_id(message_digest(message))
    call = ["Email/get", {"accountId": "shop", "ids": [wanted], "properties": ["id"]}, "0"]
    pause = threading.Event()
    for _ in range(int(SECONDS * 20)):
        answer = agent.post(f"{address}/jmap/api", json={"using": USING, "methodCalls": [call]}).json()
        if answer["methodResponses"][0][1]["list"]:
            return
        pause.wait(0.05)
    raise AssertionError("the message never came")
