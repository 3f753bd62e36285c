"""The private socket: five questions, asked over a real Unix socket by processes of allowed and other users."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from agent_reader.access import Agent, Shown
from agent_reader.door.faults import Faults
from agent_reader.peers import PeerProtocol, allowed_uids
from agent_reader.private_socket import make_app
from agent_reader.query import EmailQueryArguments, email_query
from shared.link import MAX_ANSWER_OCTETS, Agents, Located, OpenedState, ReadsPage, Status, WasOpened
from shared.unix_peer import uid_of_unix_peer
from tests.agent_reader.on_loopback import await_true
from tests.agent_reader.served import ACCOUNT, NOW, OTHER_ACCOUNT, House, house

OTHER_UID = 64_997
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Signals are pytest's.
        yield


@contextmanager
def listening(served: House, path: Path, allow_uids: frozenset[int]) -> Iterator[Path]:
    """Serve the private socket for as long as the block lasts."""
    faults = Faults(served.structured, secrets.token_bytes)
    app = make_app(served.store, served.access, [ACCOUNT, OTHER_ACCOUNT], allow_uids, faults)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    path.chmod(0o666)
    config = uvicorn.Config(app, http=PeerProtocol, lifespan="off", log_config=None, access_log=False, ws="none")
    server = _Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    try:
        await_true(lambda: server.started)
        yield path
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path) as open_house:
        yield open_house


@pytest.fixture
def asker(served: House, tmp_path: Path) -> Iterator[httpx.Client]:
    with (
        listening(served, tmp_path / "reader.sock", frozenset({os.geteuid()})) as path,
        httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://reader", timeout=20) as client,
    ):
        yield client


def _ask(client: httpx.Client, path: str, **question: Any) -> bytes:
    response = client.post(path, json=question)
    assert 200 == response.status_code, response.text
    assert "application/json" == response.headers["content-type"]
    return response.content


def _some_email(served: House) -> str:
    with served.store.snapshot(ACCOUNT) as snapshot:
        return email_query(snapshot, EmailQueryArguments(limit=1)).ids[0]


def test_locate_tells_the_copies_and_whether_the_index_is_fresh(served: House, asker: httpx.Client) -> None:
    email_id = _some_email(served)
    found = Located.model_validate_json(_ask(asker, "/locate", account=ACCOUNT, emailId=email_id))
    assert ([(7, 3)], True) == ([(copy.uidvalidity, copy.uid) for copy in found.copies], found.fresh)
    unknown = Located.model_validate_json(_ask(asker, "/locate", account=ACCOUNT, emailId="M" + "0" * 32))
    assert [] == unknown.copies
    served.clock.forward(timedelta(hours=1))
    assert not Located.model_validate_json(_ask(asker, "/locate", account=ACCOUNT, emailId=email_id)).fresh


def test_opened_and_reads_tell_what_an_agent_was_shown(served: House, asker: httpx.Client) -> None:
    email_id = "M" + "1" * 32
    served.access.record(Agent("clerk", "aaaaaaaa"), [Shown("Email/get", ACCOUNT, (email_id,), (email_id,))])
    opened = WasOpened.model_validate_json(_ask(asker, "/opened", agent="clerk", account=ACCOUNT, emailId=email_id))
    assert (OpenedState.OPENED, NOW) == (opened.state, opened.at)
    page = ReadsPage.model_validate_json(_ask(asker, "/reads", agent="clerk"))
    assert [("Email/get", [email_id])] == [(line.method, line.email_ids) for line in page.reads]
    assert page.cursor is None
    page = ReadsPage.model_validate_json(_ask(asker, "/reads", agent="clerk", since="2026-11-29T12:00:01Z"))
    assert [] == page.reads


def test_reads_come_in_pages_that_each_fit_the_limit(served: House, asker: httpx.Client) -> None:
    ids = tuple(f"M{number:032d}" for number in range(500))
    served.access.record(Agent("clerk", "aaaaaaaa"), [Shown("Email/query", ACCOUNT, ids)] * 40)
    served.access.record(Agent("clerk", "aaaaaaaa"), [Shown("Email/get", ACCOUNT, ids[:1])] * 700)
    lines, cursor, pages = 0, None, 0
    while True:
        answer = _ask(asker, "/reads", agent="clerk", cursor=cursor)
        assert MAX_ANSWER_OCTETS >= len(answer)
        page = ReadsPage.model_validate_json(answer)
        lines, pages, cursor = lines + len(page.reads), pages + 1, page.cursor
        if cursor is None:
            break
    assert (740, True) == (lines, pages > 3)


def test_agents_and_status(served: House, asker: httpx.Client) -> None:
    assert ["clerk"] == Agents.model_validate_json(asker.get("/agents").content).agents
    status = Status.model_validate_json(asker.get("/status").content)
    assert [(ACCOUNT, True, 3, None), (OTHER_ACCOUNT, True, 1, None)] == [
        (account.account, account.fresh, account.messages, account.error) for account in status.accounts
    ]


def test_no_mailbox_name_and_no_word_of_a_mail_crosses(served: House, asker: httpx.Client) -> None:
    served.store.account(ACCOUNT).failed("mailbox_refused", "The mailbox `Processed` cannot be opened.", "Mend it.")
    answers = [
        asker.get("/status").text,
        asker.get("/agents").text,
        asker.post("/locate", json={"account": ACCOUNT, "emailId": _some_email(served)}).text,
        asker.post("/reads", json={"agent": "clerk"}).text,
    ]
    assert "mailbox_refused" in answers[0]
    for word in ("INBOX", "Processed", "receipt", "teapot", "person"):
        assert word not in "".join(answers)


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/locate", b"{", 400, "bad_question"),
        ("/locate", b"[]", 400, "bad_question"),
        ("/locate", b"{}", 400, "bad_question"),
        ("/locate", b'{"account": "shop", "emailId": "X1"}', 400, "bad_question"),
        ("/locate", b'{"account": "shop", "account": "shop", "emailId": "M%s"}' % (b"0" * 32), 400, "bad_question"),
        ("/locate", b'{"account": "shop", "emailId": "M%s", "more": 1}' % (b"0" * 32), 400, "bad_question"),
        ("/locate", b'{"account": "nobody", "emailId": "M%s"}' % (b"0" * 32), 404, "unknown_account"),
        ("/opened", b'{"agent": "A B", "account": "shop", "emailId": "M%s"}' % (b"0" * 32), 400, "bad_question"),
        ("/reads", b'{"agent": "clerk", "cursor": 99999999999999999999}', 400, "bad_question"),
        ("/reads", b'{"agent": "clerk", "cursor": -1}', 400, "bad_question"),
        ("/reads", b'{"agent": "clerk", "since": "2026-11-29T12:00:00"}', 400, "bad_question"),
        ("/reads", b'{"agent": "clerk", "since": "yesterday"}', 400, "bad_question"),
        ("/reads", b"x" * 9_000, 413, "question_too_large"),
        ("/status", b"{}", 405, "not_in_the_table"),
        ("/search", b"{}", 404, "not_in_the_table"),
        ("/jmap/api", b"{}", 404, "not_in_the_table"),
    ],
)
def test_what_is_not_in_the_table_is_a_problem(
    asker: httpx.Client, path: str, body: bytes, status: int, code: str
) -> None:
    response = asker.post(path, content=body, headers={"Content-Type": "application/json"})
    assert (status, code) == (response.status_code, response.json()["code"])
    assert "application/problem+json" == response.headers["content-type"]


def test_the_kernel_names_the_peer_of_a_unix_socket_and_of_no_other() -> None:
    left, right = socket.socketpair(socket.AF_UNIX)
    with left, right, socket.socket(socket.AF_INET) as other:
        assert os.geteuid() == uid_of_unix_peer(left)
        assert uid_of_unix_peer(other) is None


def test_with_no_executor_configured_only_ourselves_and_root_are_answered() -> None:
    assert frozenset({1000, 0}) == allowed_uids(None, 1000)
    assert frozenset({1000, 1001}) == allowed_uids(1001, 1000)


_ASK = """
import json, socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
client.sendall(b"GET /agents HTTP/1.1\\r\\nHost: reader\\r\\nConnection: close\\r\\n\\r\\n")
answer = b""
while piece := client.recv(65536):
    answer += piece
print(answer.split(b" ", 2)[1].decode())
"""


def _status_for(uid: int, path: Path) -> str:
    command = [
        "setpriv",
        f"--reuid={uid}",
        f"--regid={uid}",
        "--clear-groups",
        "/usr/bin/python3",
        "-c",
        _ASK,
        str(path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


@needs_root
def test_a_process_of_another_user_is_refused_and_of_the_allowed_one_answered(served: House) -> None:
    # A folder that every user can enter: pytest's own are private.
    folder = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    folder.chmod(0o755)
    path = folder / "reader.sock"
    try:
        with listening(served, path, frozenset({OTHER_UID})):
            assert "200" == _status_for(OTHER_UID, path)
            assert "403" == _status_for(OTHER_UID + 1, path)
            # Root too, where it is not allowed: being local or mighty is no credential.
            with httpx.Client(
                transport=httpx.HTTPTransport(uds=str(path)), base_url="http://reader", timeout=20
            ) as client:
                response = client.get("/agents")
            assert (403, "peer_not_allowed") == (response.status_code, json.loads(response.text)["code"])
    finally:
        path.unlink()
        folder.rmdir()


def test_a_slow_question_is_ended(asker: httpx.Client, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(tmp_path / "reader.sock"))
        client.sendall(
            b"POST /locate HTTP/1.1\r\nHost: reader\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
        )
        assert b"408" in client.recv(100)
    assert 200 == asker.get("/agents").status_code
