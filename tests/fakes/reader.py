"""A reader's private socket that says what the test says."""

from __future__ import annotations

import json
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path


class FakeReader:
    """Answers by target; an answer is an object (sent as JSON) or octets (sent as they are). Use it in a with.

    `refusals` answers a target with a status and the code of a problem instead.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers: dict[str, Any] = {
            "/locate": {"copies": [], "fresh": True},
            "/opened": {"state": "not_opened", "at": None},
            "/status": {"accounts": []},
        }
        self.refusals: dict[str, tuple[int, str]] = {}
        self.asked: list[tuple[str, Any]] = []
        self._server = _Server(str(path), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def locates(self, *copies: tuple[int, int], fresh: bool = True) -> None:
        """Answer with these (UIDVALIDITY, UID)."""
        found = [{"uidvalidity": uidvalidity, "uid": uid} for uidvalidity, uid in copies]
        self.answers["/locate"] = {"copies": found, "fresh": fresh}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self.path.unlink()


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, path: str, reader: FakeReader) -> None:
        self.reader = reader
        super().__init__(path, _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, question: Any) -> None:
        assert isinstance(self.server, _Server)
        reader = self.server.reader
        reader.asked.append((self.path, question))
        answer = reader.answers[self.path]
        status = 200 if answer != b"" else 500
        if self.path in reader.refusals:
            status, code = reader.refusals[self.path]
            answer = {"code": code}
        octets = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(octets)))
        self.end_headers()
        try:
            self.wfile.write(octets)
        except BrokenPipeError:
            return

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_: object) -> None:
        return


def a_read(at: datetime, *email_ids: str, method: str = "Email/get") -> dict[str, Any]:
    """Return a line of the reader's log, as it answers /reads: the agent saw these at that time."""
    return {"at": at.isoformat(), "method": method, "account": "shop", "emailIds": list(email_ids)}
