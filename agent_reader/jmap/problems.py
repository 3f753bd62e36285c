"""Request-level errors (RFC 8620 §3.6.1) and the other refusals of the HTTP door, one function each."""

from typing import Final

from agent_reader.jmap.errors import READ_ONLY
from agent_reader.query import BlobUnavailable, Unavailable
from shared.problem import Problem

_ERROR: Final = "urn:ietf:params:jmap:error:"


def not_json(why: str) -> Problem:
    """Refuse a body that is not I-JSON, or another content type."""
    return Problem(
        400,
        "not_json",
        f"The body is not I-JSON of content type application/json: {why}.",
        "Send one JSON object in UTF-8 as application/json, each member name once.",
        extra={"type": f"{_ERROR}notJSON"},
    )


def not_request(why: str) -> Problem:
    """Refuse JSON that is no Request object."""
    return Problem(
        400,
        "not_request",
        f"The body is no Request object of RFC 8620 §3.3: {why}.",
        'Send {"using": [...], "methodCalls": [["Core/echo", {}, "0"]]}.',
        extra={"type": f"{_ERROR}notRequest"},
    )


def unknown_capability(known: tuple[str, ...]) -> Problem:
    """Refuse a `using` that names what this server does not have."""
    return Problem(
        400,
        "unknown_capability",
        "`using` names a capability that this server does not have. No call was run.",
        f"Use only {', '.join(known)}.",
        extra={"type": f"{_ERROR}unknownCapability"},
    )


def too_many_calls(limit: int) -> Problem:
    """Refuse more calls than maxCallsInRequest."""
    return Problem(
        400,
        "too_many_calls",
        f"The request has more than maxCallsInRequest ({limit}) method calls. No call was run.",
        "Send them in several requests.",
        extra={"type": f"{_ERROR}limit", "limit": "maxCallsInRequest"},
    )


def not_found() -> Problem:
    """Refuse a path that is not in the table of routes."""
    return Problem(404, "not_found", "There is nothing at this path.", "GET /.well-known/jmap tells the addresses.")


def method_not_allowed() -> Problem:
    """Refuse an HTTP method that the path does not have."""
    return Problem(
        405, "method_not_allowed", "This path does not take this HTTP method.", "GET the session, POST to apiUrl."
    )


def upload_refused() -> Problem:
    """Refuse an upload; nothing of it is read or kept."""
    return Problem(403, "read_only", "Uploads are not taken (maxSizeUpload is 0). Nothing was stored.", READ_ONLY)


def no_such_blob() -> Problem:
    """Refuse a download; the same words whether the id is unknown, malformed, hidden or another account's."""
    return Problem(
        404, "blob_not_found", "There is no such blob.", "Take `blobId` from Email/get, and the account of that answer."
    )


def blob_unavailable(unavailable: BlobUnavailable) -> Problem:
    """Refuse a blob that is known and cannot be given now."""
    status, fix = _UNAVAILABLE[unavailable.reason]
    if unavailable.reason is Unavailable.GONE:
        return no_such_blob()
    return Problem(status, unavailable.reason.value, unavailable.detail, fix, retryable=unavailable.retryable)


_UNAVAILABLE: Final = {
    Unavailable.GONE: (404, ""),
    Unavailable.MAIL_SERVER: (503, "Try again in a minute. Texts can be read with Email/get meanwhile."),
    Unavailable.NO_SPACE: (503, "Try again later; the operator finds the cause in the reader's log."),
    Unavailable.TOO_LARGE: (403, "Read its header with Email/get; do not retry."),
    Unavailable.ALTERED: (
        502,
        "Do not retry; tell the operator: `agent-reader doctor` looks whether the server always does so.",
    ),
}


def invalid_type(why: str) -> Problem:
    """Refuse a `type` that may not stand in a header field."""
    return Problem(
        400, "invalid_type", f"{why}.", "Write it as `type=text/plain`, percent-encoded (RFC 8620 §6.2); once."
    )


def invalid_name() -> Problem:
    """Refuse a `name` with control characters."""
    return Problem(
        400, "invalid_name", "`name` has control characters.", "Use a plain file name of your own, percent-encoded."
    )


def precondition_failed() -> Problem:
    """Refuse a blob to who wants another one under this address."""
    return Problem(
        412,
        "precondition_failed",
        "If-Match names other octets than this blob's.",
        "Leave If-Match out: what a blobId names never changes.",
    )


def range_not_satisfiable(size: int) -> Problem:
    """Refuse a range that the blob does not have."""
    return Problem(
        416, "range_not_satisfiable", f"The blob has {size} octets.", "Ask for a range within, or for the whole."
    )


def too_many_large_requests(limit: int) -> Problem:
    """Refuse more large bodies of one agent at once."""
    return Problem(
        429,
        "too_many_large_requests",
        f"{limit} request of this agent with a body above 512 KiB, or of no declared length, is being worked on.",
        "Wait for it to end, then send this one again; or declare its length.",
        extra={"type": f"{_ERROR}limit", "limit": "maxConcurrentRequests"},
        retryable=True,
    )


def too_many_downloads(limit: int) -> Problem:
    """Refuse more downloads of one agent at once."""
    return Problem(
        429,
        "too_many_downloads",
        f"{limit} downloads of this agent are running.",
        "Wait for one of them to end, then send this one again.",
        retryable=True,
    )


def too_many_streams(limit: int) -> Problem:
    """Refuse more event sources of one agent at once."""
    return Problem(
        429,
        "too_many_streams",
        f"{limit} event sources of this agent are open.",
        "Use one that is open, with types=*; or close one.",
        retryable=True,
    )


def invalid_event_source(name: str, why: str) -> Problem:
    """Refuse an argument of the event source."""
    return Problem(
        400,
        "invalid_argument",
        f"`{name}` {why}.",
        "Fill in eventSourceUrl, e.g. types=*&closeafter=no&ping=60.",
        extra={"argument": name},
    )
