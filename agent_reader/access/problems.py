"""The refusals of the door, one function each: 401 where a token opens nothing, 429 where it was answered enough."""

from typing import Final

from shared.problem import Problem

_UNAUTHORIZED: Final = 401
_TOO_MANY_REQUESTS: Final = 429
_ASK: Final = "Ask the person who runs this server for a new reader token; do not look for other credentials."


def no_token() -> Problem:
    """Refuse a request without credentials."""
    return Problem(
        _UNAUTHORIZED,
        "no_token",
        "The request holds no token.",
        "Send `Authorization: Bearer mwr_...`, or the token as the password of Basic.",
    )


def unknown_token() -> Problem:
    """Refuse what is no token, or none of ours."""
    return Problem(_UNAUTHORIZED, "unknown_token", "This is no token of this server.", f"Check for a typo. {_ASK}")


def expired_token() -> Problem:
    """Refuse a token past its time."""
    return Problem(_UNAUTHORIZED, "expired_token", "This token has expired.", _ASK)


def revoked_token() -> Problem:
    """Refuse a token that a person took back."""
    return Problem(_UNAUTHORIZED, "revoked_token", "This token was revoked.", _ASK)


def wrong_token_kind() -> Problem:
    """Refuse a token of the other house."""
    return Problem(
        _UNAUTHORIZED,
        "wrong_token_kind",
        "This is a proposer token; it opens the intake API and reads no mail.",
        "Send the reader token (`mwr_...`) here, and keep the proposer token for the intake API.",
    )


def budget_spent(budget: int, seconds: int) -> Problem:
    """Refuse an answer that does not fit in what is left of the token's hour; `seconds` until it does."""
    return Problem(
        _TOO_MANY_REQUESTS,
        "budget_spent",
        f"This token may be answered {budget} octets in an hour, and this answer would go over that.",
        f"Ask again after {seconds} seconds, or ask for less: fewer messages, fewer properties, shorter texts.",
        retryable=True,
        extra={"retryAfter": seconds},
    )


def answer_over_budget(octets: int, budget: int) -> Problem:
    """Refuse an answer that no hour has room for."""
    return Problem(
        _TOO_MANY_REQUESTS,
        "answer_over_budget",
        f"The answer has {octets} octets; this token may be answered {budget} in an hour.",
        "Ask for less at once: fewer messages, fewer properties, shorter texts.",
    )
