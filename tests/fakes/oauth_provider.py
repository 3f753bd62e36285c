"""A provider of consents on loopback: token, device and introspection endpoints. Real ones cannot be reached."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit


class OAuthProvider:
    """Each refresh token is good once (rotation). `pending` device polls are answered `authorization_pending`."""

    def __init__(self, email: str = "reader") -> None:
        self.email = email
        self.pending: list[str] = []
        self.lifetime = 3600
        self.live: set[str] = set()
        self.refresh_tokens: set[str] = set()
        self.challenges: dict[str, str] = {}
        self.asked: list[dict[str, str]] = []
        self.refusing: tuple[int, dict[str, Any]] | None = None
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                octets = self.rfile.read(int(self.headers["Content-Length"]))
                fields = {name: values[0] for name, values in parse_qs(octets.decode()).items()}
                status, answer = provider.answer(urlsplit(self.path).path, fields)
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, path: str, fields: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if path == "/introspect":
            return 200, {"active": fields.get("token") in self.live, "email": self.email, "scope": "mail"}
        self.asked.append(fields)
        if self.refusing is not None:
            return self.refusing
        if path == "/device":
            answer = {"device_code": "device-1", "user_code": "ABCD-EFGH", "interval": 1, "expires_in": 600}
            return 200, answer | {"verification_uri": f"{self.url}/enter"}
        if fields["grant_type"] == "refresh_token":
            if fields["refresh_token"] not in self.refresh_tokens:
                return 400, {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}
            self.refresh_tokens.remove(fields["refresh_token"])
        elif fields["grant_type"] == "authorization_code":
            made = base64.urlsafe_b64encode(hashlib.sha256(fields["code_verifier"].encode()).digest())
            if self.challenges.pop(fields["code"], None) != made.rstrip(b"=").decode():
                return 400, {"error": "invalid_grant", "error_description": "PKCE verification failed"}
        elif self.pending:
            return 400, {"error": self.pending.pop(0)}
        return 200, self.new_tokens()

    def new_tokens(self) -> dict[str, Any]:
        access, refresh = secrets.token_hex(16), secrets.token_hex(16)
        self.live.add(access)
        self.refresh_tokens.add(refresh)
        return {"access_token": access, "refresh_token": refresh, "expires_in": self.lifetime, "token_type": "Bearer"}
