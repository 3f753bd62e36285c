"""What a process of another user is answered: which uid it has, and the key that lists who may come in.

Anybody on the machine can read either of them elsewhere. Nothing of the request stands in the answer.
"""

import time
from typing import Final

import structlog
from starlette.types import Scope

from shared.problem import MEDIA_TYPE, Problem
from shared.repeats import Repeats

_log = structlog.get_logger()

# A user may own some 65,000 uids; past these the log does not tell them apart.
_UIDS_TOLD_APART: Final = 100

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Not allowed · Mailwarrant</title>
</head>
<body>
<h1>Your user may not open this page</h1>
<p>{detail}</p>
<p>{fix}</p>
</body>
</html>
"""

_HEADERS: Final = (
    (b"connection", b"close"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
)


class PeerRefusal:
    """Answers and logs refusals; `key` is what to edit, as in `[review] allow_uids`."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._repeats = Repeats(time.monotonic)
        self._told: set[int | None] = set()

    def answer(self, scope: Scope, uid: int | None) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Return status, headers and body: a page where the request asks for HTML, else problem details."""
        problem = self._problem(uid)
        if _wants_html(scope):
            body, media_type = _PAGE.format(detail=problem.detail, fix=problem.fix).encode(), "text/html; charset=utf-8"
        else:
            body, media_type = problem.encoded(), MEDIA_TYPE
        headers = [(b"content-type", media_type.encode()), (b"content-length", str(len(body)).encode()), *_HEADERS]
        return problem.status, headers, body

    def log(self, uid: int | None) -> None:
        """Tell of a refusal, for each uid once a minute."""
        if len(self._told) < _UIDS_TOLD_APART:
            self._told.add(uid)
        left_out = self._repeats.left_out(uid if uid in self._told else "another")
        if left_out is not None:
            _log.warning("peer:refused", uid=uid, key=self._key, left_out=left_out)

    def _problem(self, uid: int | None) -> Problem:
        if uid is None:
            return Problem(
                403,
                "peer_not_allowed",
                "Whose process connects cannot be told.",
                f"Connect from a process on this machine, of a user whose uid is in {self._key} of executor.toml.",
            )
        return Problem(
            403,
            "peer_not_allowed",
            f"uid {uid} is not in {self._key} of executor.toml.",
            f"If it should be, add {uid} to {self._key} and start change-executor again.",
        )


def _wants_html(scope: Scope) -> bool:
    return any(name == b"accept" and b"text/html" in value.lower() for name, value in scope.get("headers", ()))
