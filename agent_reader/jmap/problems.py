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
