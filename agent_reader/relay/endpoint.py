"""One of the two houses as the relay sees it: an address, a token, and requests of JSON."""

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from shared.settings import ConfigurationError

# A search that takes longer ends by the reader's own limit.
_SECONDS: Final = 60.0

# An answer is 20,000 characters at most, escaped for JSON six times that; a list of tools is less.
_MAX_ANSWER_OCTETS: Final = 1024 * 1024
# One event's line is some hundred octets.
_MAX_LINE_OCTETS: Final = 64 * 1024


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


class Refused(Exception):  # noqa: N818 - names what the house did
    """The house refused; the reply says why."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.problem() or f"status {reply.status}")
        self.reply = reply


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
        return _reply(self.house, response.status, octets)

    @contextmanager
    def stream(self, path: str, silent_seconds: float) -> Iterator[Iterator[bytes]]:
        """Give the lines of an answer that goes on; one that is silent for so long is given up.

        Raises `Unreachable`, and `Refused` where the answer is a refusal.
        """
        connection = self._connection(silent_seconds)
        try:
            connection.request("GET", path, None, {"Authorization": f"Bearer {self.token}"})
            response = connection.getresponse()
            if response.status != http.HTTPStatus.OK:
                raise Refused(_reply(self.house, response.status, response.read(_MAX_ANSWER_OCTETS + 1)))
            yield _lines(response)
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(self.house, type(error).__name__) from None
        finally:
            connection.close()

    def _connection(self, seconds: float = _SECONDS) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        if parts.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=seconds, context=context)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=seconds)


def _lines(response: http.client.HTTPResponse) -> Iterator[bytes]:
    while line := response.readline(_MAX_LINE_OCTETS):
        yield line


def _reply(house: str, status: int, octets: bytes) -> Reply:
    if len(octets) > _MAX_ANSWER_OCTETS:
        raise Unreachable(house, "answer too large")
    try:
        return Reply(status, json.loads(octets) if octets else None)
    except (ValueError, RecursionError):
        raise Unreachable(house, f"status {status} without JSON") from None
