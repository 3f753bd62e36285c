"""One of the two houses as the relay sees it: an address, a token, and requests of JSON."""

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from shared.settings import ConfigurationError

# A search that takes longer ends by the reader's own limit.
_SECONDS: Final = 60.0

# An answer is 20,000 characters at most, escaped for JSON six times that; a list of tools is less.
_MAX_ANSWER_OCTETS: Final = 1024 * 1024


class Unreachable(Exception):  # noqa: N818 - names the state of things
    """The house did not answer, or with what is no JSON; `house` is its name."""

    def __init__(self, house: str, why: str) -> None:
        super().__init__(house)
        self.house, self.why = house, why


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP status, and the JSON of the body, None for an empty one."""

    status: int
    content: Any = field(repr=False)

    def problem(self) -> str | None:
        """Return the refusal that a house wrote (RFC 9457 with `fix`), as one line."""
        match self.content:
            case {"code": str(code), "detail": str(detail), "fix": str(fix)}:
                return f"{code}: {detail} {fix}"
            case _:
                return None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A house at an address without a path. No proxy is asked, no redirect followed: the token goes nowhere else."""

    house: str
    url: str
    token: str = field(repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path not in {"", "/"} or parts.query:
            raise ConfigurationError(
                f"the {self.house}'s address",
                "is no address without a path.",
                "Write it as http://127.0.0.1:PORT or https://HOST.",
            )

    def request(
        self, method: str, path: str, content: object = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Ask, and return the reply. Raises `Unreachable`."""
        body = None if content is None else json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        sent = {"Authorization": f"Bearer {self.token}", "Accept": "application/json, text/event-stream"}
        sent |= {} if body is None else {"Content-Type": "application/json"}
        connection = self._connection()
        try:
            connection.request(method, path, body, sent | dict(headers or {}))
            response = connection.getresponse()
            octets = response.read(_MAX_ANSWER_OCTETS + 1)
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(self.house, type(error).__name__) from None
        finally:
            connection.close()
        if len(octets) > _MAX_ANSWER_OCTETS:
            raise Unreachable(self.house, "answer too large")
        try:
            return Reply(response.status, json.loads(octets) if octets else None)
        except (ValueError, RecursionError):
            raise Unreachable(self.house, f"status {response.status} without JSON") from None

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        if parts.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=_SECONDS, context=context)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=_SECONDS)
