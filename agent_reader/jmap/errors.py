"""Method-level errors (RFC 8620 §3.6.2): one call fails, the others go on."""

from enum import StrEnum
from typing import Any, Final

# RFC 8620 §3.6.2 leaves the words to us; an agent reads them, so they say what to do next.
READ_ONLY: Final = (
    "This server shows mail and changes nothing. Do not retry, and do not look for other credentials: "
    "a person decides about changes."
)


class ErrorType(StrEnum):
    """The types that the dispatch itself gives; the methods have more of their own."""

    UNKNOWN_METHOD = "unknownMethod"
    INVALID_ARGUMENTS = "invalidArguments"
    INVALID_RESULT_REFERENCE = "invalidResultReference"
    ACCOUNT_NOT_FOUND = "accountNotFound"
    ACCOUNT_NOT_SUPPORTED_BY_METHOD = "accountNotSupportedByMethod"
    ACCOUNT_READ_ONLY = "accountReadOnly"
    FORBIDDEN = "forbidden"
    REQUEST_TOO_LARGE = "requestTooLarge"
    SERVER_FAIL = "serverFail"
    SERVER_UNAVAILABLE = "serverUnavailable"


class MethodError(Exception):
    """The answer to one call is `["error", {"type", "description"}, callId]`.

    `arguments` names those at fault; `code` tells apart what RFC 8620 has one type for.
    """

    def __init__(self, kind: str, description: str, arguments: tuple[str, ...] = (), code: str | None = None) -> None:
        super().__init__(kind)
        self.kind, self.description, self.arguments, self.code = kind, description, arguments, code

    def document(self) -> dict[str, Any]:
        """Return the arguments of the error response."""
        document: dict[str, Any] = {"type": str(self.kind), "description": self.description}
        if self.arguments:
            document["arguments"] = list(self.arguments)
        if self.code is not None:
            document["code"] = self.code
        return document
