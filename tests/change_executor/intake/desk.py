"""An intake in front of a real journal, asked over ASGI."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

import httpx

from change_executor.intake.app import make_app
from change_executor.intake.proposer_tokens import create_token
from shared.tokens import TokenKind, new_token

if TYPE_CHECKING:
    from change_executor.config import ExecutorSettings
    from change_executor.journal.journal import Journal

EMAIL_ID = "M" + "0" * 31 + "a"
PROPOSAL = {"emailId": EMAIL_ID, "from": "incoming", "to": "processed", "reason": "A receipt"}
READER_TOKEN = new_token(TokenKind.READER, secrets.token_bytes).text


def email(number: int) -> str:
    return f"M{number:032d}"


class Desk:
    def __init__(self, journal: Journal, settings: ExecutorSettings) -> None:
        self.journal = journal
        self.app = make_app(journal, settings, secrets.token_bytes)
        self.token = self.token_of("triage")

    def token_of(self, agent: str, queue: str = "support", days: int = 90) -> str:
        return create_token(self.journal, agent=agent, queue=queue, days=days, random_octets=secrets.token_bytes).text

    def ask(self, method: str, path: str, token: str | None = "", **more: Any) -> httpx.Response:
        """Ask as `triage`, as another token's holder, or (None) as nobody."""

        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                headers = httpx.Headers(more.pop("headers", {}))
                if token is not None:
                    headers.setdefault("Authorization", f"Bearer {token or self.token}")
                return await client.request(method, path, headers=headers, **more)

        return asyncio.run(asked())

    def propose(self, token: str = "", **change: Any) -> httpx.Response:
        body = {name: value for name, value in (PROPOSAL | change).items() if value is not ...}
        return self.ask("POST", "/v1/proposals", token, json=body)

    def post(self, body: bytes, **headers: str) -> httpx.Response:
        return self.ask("POST", "/v1/proposals", content=body, headers={"Content-Type": "application/json"} | headers)


def code_of(answer: httpx.Response) -> str:
    """The code of a refusal, which must be a whole problem document."""
    assert "application/problem+json" == answer.headers["content-type"], answer.text
    document = answer.json()
    assert {"type", "status", "code", "detail", "fix", "retryable"} <= set(document)
    assert answer.status_code == document["status"]
    return str(document["code"])
