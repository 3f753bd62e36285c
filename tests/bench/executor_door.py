"""Proposals over HTTP beside what the server's stack can do at all, asked by a client that leaves the server its core.

The client is a process of its own without an HTTP library: sixteen connections, one request under way on each, of which
only the number of the message changes. The server runs in the bench's process, whose main thread waits meanwhile.
"""

import contextlib
import gc
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI
from starlette.types import ASGIApp

from change_executor.intake.app import make_app
from change_executor.intake.proposer_tokens import create_token
from change_executor.journal.open import open_journal
from shared.proposal import ProposalRequest
from tests.change_executor.moving.workshop import settings_for
from tests.servers.page import Served

CONNECTIONS: Final = 16

_CLIENT: Final = """
import selectors, socket, sys, time
port, seconds, tokens = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
body = b'{"emailId": "M%032d", "from": "incoming", "to": "processed", "reason": "a receipt"}'
chosen, sent, taken = selectors.DefaultSelector(), 0, 0
for token in tokens:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    head = (b"POST /v1/proposals HTTP/1.1\\r\\nHost: localhost\\r\\nAuthorization: Bearer " + token.encode()
        + b"\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body % 0))
    chosen.register(connection, selectors.EVENT_READ, (head, bytearray()))
end = time.monotonic() + seconds
for key in list(chosen.get_map().values()):
    sent += 1
    key.fileobj.sendall(key.data[0] + body % sent)
while chosen.get_map():
    for key, _ in chosen.select():
        head, got = key.data
        got += key.fileobj.recv(65536) or sys.exit("the server closed a connection")
        stop = got.find(b"\\r\\n\\r\\n")
        at = got.find(b"content-length: ")
        if stop < 0 or len(got) < stop + 4 + int(got[at + 16 : got.index(b"\\r", at)]):
            continue
        assert got.startswith(b"HTTP/1.1 201 "), bytes(got)
        got.clear()
        if time.monotonic() < end:
            taken, sent = taken + 1, sent + 1
            key.fileobj.sendall(head + body % sent)
        else:
            chosen.unregister(key.fileobj)
            key.fileobj.close()
print(taken, time.process_time())
"""

_ANSWER: Final[dict[str, Any]] = {
    "id": "P" + "0" * 20,
    "state": "pending",
    "queue": "support",
    "emailId": "M" + "0" * 32,
    "from": "incoming",
    "to": "processed",
    "reason": "a receipt",
    "createdAt": "2026-11-29T12:00:00.123456Z",
    "expiresAt": "2026-12-04T12:00:00.123456Z",
    "predecessor": None,
    "waiting": None,
    "decision": None,
    "outcome": None,
}


@dataclass(frozen=True, slots=True)
class Door:
    """What was taken a second, and milliseconds of processor time for each, of the server and of the client."""

    a_second: float
    server_ms: float
    client_ms: float


def proposals(folder: Path, seconds: float) -> Door:
    """The intake: who asks, what exactly, the policy, a row, a text and an event, on the disk before the answer."""
    most = {"max_pending_per_agent": 10_000, "max_proposals_per_hour": 10_000, "max_proposals_per_day": 100_000}
    settings = settings_for(folder, 143, "x", queue=most)
    with contextlib.closing(open_journal(settings.journal.url, lambda: datetime.now(UTC))) as journal:
        # One token each, as sixteen agents have: caps are per agent.
        tokens = [
            create_token(journal, agent=f"agent-{number}", queue="support", days=1, random_octets=secrets.token_bytes)
            for number in range(CONNECTIONS)
        ]
        app = make_app(journal, settings, secrets.token_bytes)
        return _asked(app, [token.text for token in tokens], seconds)


def constant(seconds: float) -> Door:
    """An endpoint of FastAPI that reads the same body by the same model and answers always the same."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)

    @app.post("/v1/proposals", status_code=201)
    async def propose(_: ProposalRequest) -> dict[str, Any]:
        return _ANSWER

    return _asked(app, ["none"] * CONNECTIONS, seconds)


def _asked(app: ASGIApp, tokens: list[str], seconds: float) -> Door:
    with _served(app) as port:
        before = time.process_time()
        client = subprocess.run(
            [sys.executable, "-c", _CLIENT, str(port), str(seconds), *tokens],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=120,
        )
        server = time.process_time() - before
    taken, used = client.stdout.split()
    each = 1000 / int(taken)
    return Door(int(taken) / seconds, server * each, float(used) * each)


@contextlib.contextmanager
def _served(app: ASGIApp) -> Iterator[int]:
    served = Served()
    served.serve(app)
    # As the program does once it listens.
    gc.collect()
    gc.freeze()
    try:
        yield served.port
    finally:
        gc.unfreeze()
        served.close()
