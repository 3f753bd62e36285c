"""Request-level errors (RFC 8620 §3.6.1) and the other refusals of the HTTP door, one function each."""

from typing import Final

from agent_reader.jmap.errors import READ_ONLY
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


def too_large(limit: int) -> Problem:
    """Refuse a body over maxSizeRequest."""
    return Problem(
        413,
        "request_too_large",
        f"The body is over maxSizeRequest ({limit} octets).",
        "Ask for less in one request.",
        extra={"type": f"{_ERROR}limit", "limit": "maxSizeRequest"},
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


def too_many_requests(limit: int) -> Problem:
    """Refuse more parallel requests than maxConcurrentRequests."""
    return Problem(
        429,
        "too_many_requests",
        f"{limit} requests of this agent are being answered (maxConcurrentRequests).",
        "Wait for one of them to end, then send this one again.",
        retryable=True,
        extra={"type": f"{_ERROR}limit", "limit": "maxConcurrentRequests"},
    )


def too_slow() -> Problem:
    """Refuse a body that trickles."""
    return Problem(408, "body_too_slow", "The body did not arrive in time.", "Send it whole.", retryable=True)


def unknown_host() -> Problem:
    """Refuse a Host that is not this server's: a web page elsewhere may have been led here (DNS rebinding)."""
    return Problem(
        421,
        "unknown_host",
        "The Host field names another server.",
        "Use the address that the server was started with, or let its operator set `public_url`.",
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


def download_unavailable() -> Problem:
    """Say that octets cannot be downloaded."""
    return Problem(
        501,
        "download_unavailable",
        "This version cannot give the octets of a message or a part.",
        "Read texts with Email/get and fetchTextBodyValues.",
    )


def push_unavailable() -> Problem:
    """Say that there is no push."""
    return Problem(
        501, "push_unavailable", "This version has no event source.", "Ask again with Email/query after a while."
    )


def log_unavailable() -> Problem:
    """Refuse to show what cannot be put on record."""
    return Problem(
        503,
        "read_log_unavailable",
        "Tokens or the read log cannot be used now, and no mail is shown unrecorded.",
        "Try again in a minute. The operator finds the cause in the reader's log.",
        retryable=True,
    )


def internal_fault(fault: str) -> Problem:
    """Say that this server failed; the log has the rest under the same id."""
    return Problem(
        500,
        "internal_fault",
        f"The server failed at this request (fault {fault}).",
        "Try again once; if it fails again, tell the operator the fault's id.",
        retryable=True,
    )
