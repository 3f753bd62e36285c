"""One shape for every refusal: RFC 9457 problem details with `code`, `fix` and `retryable` added."""

import json
from dataclasses import dataclass, field
from typing import Any, Final

MEDIA_TYPE: Final = "application/problem+json"


@dataclass(eq=False)
class Problem(Exception):  # noqa: N818 - RFC 9457 calls it a problem
    """A refusal that its reader can act on.

    `code` is stable and for programs; `detail` says what was wrong and `fix` what to do next, for people and agents;
    `retryable` says whether the same request may succeed later. `extra` holds further members of the document.
    """

    status: int
    code: str
    detail: str
    fix: str
    retryable: bool = False
    extra: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the problem details object."""
        return {
            "type": self.extra.get("type", "about:blank"),
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            "fix": self.fix,
            "retryable": self.retryable,
        } | self.extra

    def encoded(self) -> bytes:
        """Return the document as JSON octets."""
        return json.dumps(self.document(), ensure_ascii=False).encode()

    def __str__(self) -> str:
        return f"{self.code}: {self.detail} {self.fix}"
