"""The refusals that every HTTP door has, one function each."""

from typing import Final

from agent_reader.damage import MessageDamaged
from shared.problem import Problem

# RFC 8620 §3.6.1: the limits are JMAP's, and the other door keeps the same ones.
_ERROR: Final = "urn:ietf:params:jmap:error:"


def too_large(limit: int) -> Problem:
    """Refuse a body over maxSizeRequest."""
    return Problem(
        413,
        "request_too_large",
        f"The body is over maxSizeRequest ({limit} octets).",
        "Ask for less in one request.",
        extra={"type": f"{_ERROR}limit", "limit": "maxSizeRequest"},
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


def encoded_body() -> Problem:
    """Refuse a body under a content coding: taken for what it is not, or grown to any size."""
    return Problem(
        415,
        "encoded_body",
        "The body is under a content coding (Content-Encoding); none is taken.",
        "Send the body as it is, without Content-Encoding.",
    )


def unknown_host() -> Problem:
    """Refuse a Host that is not this server's: a web page elsewhere may have been led here (DNS rebinding)."""
    return Problem(
        421,
        "unknown_host",
        "The Host field names another server.",
        "Use the address that the server was started with, or let its operator set `public_url`.",
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


def message_damaged(damaged: MessageDamaged) -> Problem:
    """Say that an answer has to wait for a message that is read again."""
    return Problem(503, "message_damaged", damaged.detail, damaged.fix, retryable=True)


def internal_fault(fault: str) -> Problem:
    """Say that this server failed; the log has the rest under the same id."""
    return Problem(
        500,
        "internal_fault",
        f"The server failed at this request (fault {fault}).",
        "Try again once; if it fails again, tell the operator the fault's id.",
        retryable=True,
    )


def method_not_allowed(allowed: str) -> Problem:
    """Refuse an HTTP method at a path that has one only."""
    return Problem(405, "method_not_allowed", "This path does not take this HTTP method.", f"Use {allowed}.")
