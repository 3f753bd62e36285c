"""Every refusal of the intake, in one place: status, code, what was wrong, what to do next.

`RefusedByRule` is for a caller that is known and asked for what it may not: those are journalled, within bounds. The
others (unknown callers, malformed requests) are counted only, or an outsider could fill the journal.
"""

from typing import Final

from change_executor.intake.proposer_tokens import TokenFault
from change_executor.policy import ProposingRuling
from shared.problem import Problem
from shared.proposal import MAX_BODY_OCTETS, MAX_REASON_CHARACTERS, State

# Longer than any random identifier in use; the field is hashed at once.
MAX_KEY_CHARACTERS: Final = 255


class RefusedByRule(Problem):
    """A refusal of an authenticated and well-formed request."""


_ASK_FOR_ONE: Final = "Ask the operator for one: change-executor token create --agent NAME --queue QUEUE"


def token_missing() -> Problem:
    """No Authorization field, or one that carries no token."""
    return Problem(401, "token_missing", "The request carries no token.", f"Send it as Bearer. {_ASK_FOR_ONE}")


def token_malformed() -> Problem:
    """What was sent is no token at all, or its check digits disagree."""
    return Problem(
        401, "token_malformed", "That is not a token: a character is missing or wrong.", "Copy the whole of it again."
    )


def wrong_token_kind() -> Problem:
    """A reader token: it opens the other house."""
    return Problem(401, "wrong_token_kind", "A reader token (mwr_) opens the reader, not the intake.", _ASK_FOR_ONE)


def token_refused(fault: TokenFault) -> Problem:
    """A well-formed proposer token that opens nothing."""
    match fault:
        case TokenFault.UNKNOWN:
            return Problem(401, fault.value, "Nobody holds this token.", _ASK_FOR_ONE)
        case TokenFault.EXPIRED:
            return Problem(401, fault.value, "This token has expired.", _ASK_FOR_ONE)
        case TokenFault.REVOKED:
            return Problem(401, fault.value, "This token was revoked.", _ASK_FOR_ONE)


def unsupported_media_type() -> Problem:
    """Another content type or coding than plain JSON."""
    return Problem(
        415, "unsupported_media_type", "The body is not declared as JSON.", "Send Content-Type: application/json."
    )


def body_too_large() -> Problem:
    """Past what a proposal can hold; the rest was not read."""
    return Problem(413, "body_too_large", f"The body is over {MAX_BODY_OCTETS} octets.", "Shorten `reason`.")


def body_too_slow() -> Problem:
    """The body did not arrive in time."""
    return Problem(408, "body_too_slow", "The body did not arrive in time.", "Send it in one piece.", retryable=True)


def not_json(why: str) -> Problem:
    """Not I-JSON (RFC 7493)."""
    return Problem(400, "not_json", f"The body is not JSON as RFC 7493 has it: {why}.", "Mend the body.")


def not_an_object() -> Problem:
    """JSON, and no object."""
    return Problem(422, "not_an_object", "The body is not a JSON object.", 'Send {"emailId", "from", "to"}.')


def unknown_field(name: str) -> Problem:
    """A member that a proposal does not have."""
    return Problem(
        422,
        "unknown_field",
        f"There is no field {name!r}.",
        "A proposal has emailId, from, to, reason and queue; nothing else can be asked for.",
    )


def missing_field(name: str) -> Problem:
    """A member that a proposal must have."""
    return Problem(422, "missing_field", f"The field {name!r} is missing.", "Give emailId, from and to.")


_FIX_OF_FIELD: Final = {
    "reason": f"Give text of at most {MAX_REASON_CHARACTERS} characters without control characters, or leave it out.",
    "from": "Write `incoming`, in small letters: nothing is moved out of another place.",
    "to": "Give one of the destinations that GET /v1/queues lists, as it is spelled there: a role, no mailbox's name.",
    "queue": "Give the id of a queue as GET /v1/queues lists it, or leave it out.",
}


# By what the library that checks it calls it, in our own words.
WRONG_FORMS: Final = {
    "string_type": "is no string",
    "string_too_long": "is too long",
    "string_pattern_mismatch": "is not spelled as one can be",
    "value_error": "has control characters",
}


def invalid_field(name: str, kind: str) -> Problem:
    """A member of another form than a proposal's; `kind` is one of `WRONG_FORMS`, or whatever else may be wrong."""
    wrong = WRONG_FORMS.get(kind, "is of another form")
    return Problem(422, "invalid_field", f"`{name}` {wrong}.", _FIX_OF_FIELD.get(name, "Mend the field."))


def malformed_email_id() -> Problem:
    """No Email id of ours."""
    return Problem(
        422,
        "malformed_email_id",
        "emailId is not an Email id.",
        "Use the whole `id` of an Email as the reader gave it: M and 32 characters. The beginning of one is not taken.",
    )


def identity_unstable() -> Problem:
    """An `E...` id: the mail server does not give the same octets twice, so nothing can be proved."""
    return Problem(
        422,
        "identity_unstable",
        "This mail server does not give the same octets twice; what was reviewed could not be proved at the move.",
        "Such messages can be read and not proposed; do not look for another id of it.",
    )


def identity_unknown() -> Problem:
    """An `X...` id: the message is too large for a digest, or has no header that tells it from others."""
    return Problem(
        422,
        "identity_unknown",
        "Only its place tells this message from others (most are too large to be digested); what was reviewed could "
        "not be proved at the move.",
        "Such messages can be read about and not moved.",
    )


def unknown_parameter(name: str) -> Problem:
    """A query parameter that the route does not have, or has only once."""
    return Problem(422, "unknown_parameter", f"The query parameter {name!r} is unknown or repeated.", "Leave it out.")


def invalid_parameter(name: str, why: str) -> Problem:
    """A query parameter of another form than the route's."""
    return Problem(422, "invalid_parameter", f"{name}: {why}.", "Mend the parameter.")


def invalid_idempotency_key() -> Problem:
    """More than one Idempotency-Key, or one of another form."""
    return Problem(
        400,
        "invalid_idempotency_key",
        f"Idempotency-Key is not one of 1 to {MAX_KEY_CHARACTERS} printable ASCII characters.",
        "Send one, a random one for each proposal, and the same again with each repetition; or leave it out.",
    )


def idempotency_key_reused() -> RefusedByRule:
    """The key of a request that asked for something else."""
    return RefusedByRule(
        422,
        "idempotency_key_reused",
        "This Idempotency-Key came within the last day with another request.",
        "Use a new key for a new proposal; repeat a request with its own body.",
    )


def refused_by_policy(ruling: ProposingRuling) -> RefusedByRule:
    """What policy does not allow."""
    match ruling:
        case ProposingRuling.UNKNOWN_QUEUE:
            return RefusedByRule(
                422, ruling.value, "There is no such queue for this token.", "See GET /v1/queues, or leave it out."
            )
        case ProposingRuling.UNKNOWN_ROLE:
            return RefusedByRule(
                422,
                ruling.value,
                "`from` or `to` is not a role of the queue.",
                "See GET /v1/queues: `from` is `incoming`, `to` one of its destinations.",
            )
        case ProposingRuling.AGENT_REVOKED:
            return RefusedByRule(
                403,
                ruling.value,
                "A person has revoked this agent.",
                f"Nothing that it asks for is taken. {_ASK_FOR_ONE}",
            )
        case (
            ProposingRuling.TOO_MANY_PENDING
            | ProposingRuling.TOO_MANY_PROPOSALS
            | ProposingRuling.TOO_MANY_PROPOSALS_TODAY
            | ProposingRuling.TOO_MANY_UNFOUND
        ):
            return _over_a_cap(ruling)
        case ProposingRuling.STOPPED:
            return RefusedByRule(
                503, ruling.value, "A person has stopped everything.", "Wait until it is released.", retryable=True
            )
        case ProposingRuling.ALLOWED:
            raise AssertionError("what is allowed is not refused")


def _over_a_cap(ruling: ProposingRuling) -> RefusedByRule:
    match ruling:
        case ProposingRuling.TOO_MANY_PENDING:
            return RefusedByRule(
                429,
                ruling.value,
                "As many of your proposals wait for a person as may wait at once.",
                "Wait for decisions, or withdraw some.",
                retryable=True,
            )
        case ProposingRuling.TOO_MANY_PROPOSALS:
            return RefusedByRule(
                429,
                ruling.value,
                "You made as many proposals in the last hour as this queue takes.",
                "Wait; propose what needs a person, once.",
                retryable=True,
            )
        case ProposingRuling.TOO_MANY_PROPOSALS_TODAY:
            return RefusedByRule(
                429,
                ruling.value,
                "You made as many proposals in the last day as this queue takes.",
                "Wait until tomorrow; propose what needs a person, once.",
                retryable=True,
            )
        case ProposingRuling.TOO_MANY_UNFOUND:
            return RefusedByRule(
                429,
                ruling.value,
                "Too many of your latest proposals named messages that are not in incoming.",
                "Wait an hour, or a day; then propose only ids that the reader gave you, of messages in incoming.",
                retryable=True,
            )
        case _:
            raise AssertionError("no cap is called so")


def already_proposed() -> RefusedByRule:
    """Another agent, or another destination, has the one open proposal of this message; whose is not told."""
    return RefusedByRule(
        409,
        "already_proposed",
        "This message has an open proposal already.",
        "A person decides about that one: do not propose this again. Your own you can withdraw.",
    )


def unknown_proposal() -> RefusedByRule:
    """No proposal of this id, or another agent's: both are answered alike."""
    return RefusedByRule(
        404, "unknown_proposal", "You have no proposal of this id.", "See GET /v1/proposals for yours."
    )


def not_withdrawable(state: State) -> RefusedByRule:
    """Too late: a move may be under way, or the proposal has ended."""
    return RefusedByRule(
        409,
        "not_withdrawable",
        f"A proposal that is {state.value} cannot be withdrawn.",
        "Only pending and approved ones can; what was moved a person can undo.",
    )


def journal_unavailable() -> Problem:
    """Nothing is done unrecorded."""
    return Problem(
        503,
        "journal_unavailable",
        "The journal cannot be written or read, so nothing was done.",
        "Try again later; the operator finds the cause in the log.",
        retryable=True,
    )


def not_found() -> Problem:
    """No such route."""
    return Problem(
        404,
        "not_found",
        "There is nothing at this address.",
        "The API is /v1/proposals, /v1/proposals/{id}, /v1/proposals/{id}/withdraw, /v1/queues and /v1/health.",
    )


def method_not_allowed(allowed: str) -> Problem:
    """A route, asked in another way."""
    return Problem(405, "method_not_allowed", "This address cannot be asked in this way.", f"Use {allowed}.")


def internal() -> Problem:
    """Our own mistake; the log says more."""
    return Problem(
        500,
        "internal",
        "The executor made a mistake; what you asked for may or may not be recorded.",
        "Look at GET /v1/proposals before asking again, and tell the operator.",
    )
