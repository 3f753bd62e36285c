"""A receiver of messages on loopback: real HTTP, answers as the test says, keeps what came."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

PATIENCE = 20.0


@dataclass(frozen=True)
class Came:
    path: str
    headers: Mapping[str, str]
    body: bytes
    status: int


class Receiver:
    """`answers` are the statuses of the next answers; afterwards all are 204."""

    def __init__(self, *answers: int) -> None:
        self._answers = list(answers)
        self.came: list[Came] = []
        self._more = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver._take(self)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def recover(self) -> None:
        """Answer with 204 from now on."""
        with self._more:
            self._answers.clear()

    def wait_for_taken(self) -> list[Came]:
        """Wait until one was answered with 204; return all that came."""
        with self._more:
            assert self._more.wait_for(lambda: any(each.status == 204 for each in self.came), PATIENCE), self.came
            return list(self.came)

    def wait_for(self, count: int) -> list[Came]:
        with self._more:
            assert self._more.wait_for(lambda: len(self.came) >= count, PATIENCE), self.came
            return list(self.came)

    def _take(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        with self._more:
            status = self._answers.pop(0) if self._answers else 204
            self.came.append(Came(request.path, dict(request.headers.items()), body, status))
            request.send_response(status)
            if status == 302:
                request.send_header("Location", "/elsewhere")
            request.send_header("Content-Length", "0")
            request.end_headers()
            self._more.notify_all()
