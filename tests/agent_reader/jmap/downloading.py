"""Downloads to be tried: a message of several parts, their addresses, and how they are asked for."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

from shared.identity import blob_id, message_digest
from tests.agent_reader.served import ACCOUNT, MESSAGES, House, octets

PICTURE = bytes(range(256)) * 40
INNER = octets(8, "A forwarded letter", "Inside.").replace(b"text/plain; charset=utf-8", b"text/plain; name=inner.txt")


def _wrapped(content: bytes) -> bytes:
    return base64.encodebytes(content).replace(b"\n", b"\r\n")


MIXED = (
    b"From: Ann <ann@example.org>\r\nSubject: Papers\r\nMessage-ID: <9@example.org>\r\nMIME-Version: 1.0\r\n"
    b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
    b"--b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    + _wrapped("Grüße, siehe Anlage.\r\n".encode())
    + b"--b\r\nContent-Type: image/png\r\nContent-Disposition: attachment; filename=a.png\r\n"
    b"Content-Transfer-Encoding: base64\r\n\r\n"
    + _wrapped(PICTURE)
    + b"--b\r\nContent-Type: message/rfc822\r\n\r\n"
    + INNER
    + b"\r\n--b--\r\n"
)
ALL = (*MESSAGES, MIXED)


def url(blob: str, name: str = "a.bin", content_type: str | None = None, account: str = ACCOUNT) -> str:
    asked = "" if content_type is None else f"?type={quote(content_type, safe='')}"
    return f"/jmap/download/{account}/{blob}/{quote(name, safe='')}{asked}"


def blob_of(content: bytes) -> str:
    return blob_id(message_digest(content))


async def get(served: House, path: str, method: str = "GET", **headers: str) -> Any:
    async with served.client() as client:
        return await client.request(method, path, headers={name.replace("_", "-"): v for name, v in headers.items()})
