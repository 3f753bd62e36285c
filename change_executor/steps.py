"""Small steps of a proposal that several parts of the worker take: to wait with a reason, to end with an outcome."""

from typing import Any, Final

from change_executor.journal.journal import Proposal, Writing
from change_executor.journal.moves import EXECUTOR
from change_executor.lifecycle import Event
from change_executor.outcomes import Outcome, Waiting
from shared.imap_login import ImapFailure
from shared.settings import ConfigurationError

# By the code of the failure; whatever else may pass by itself is a server that does not answer.
_WAITING: Final = {
    "login_refused": Waiting.LOGIN_REFUSED,
    "certificate": Waiting.CERTIFICATE_REFUSED,
    "no_starttls": Waiting.NO_STARTTLS,
}


def waiting_for(failure: ImapFailure | ConfigurationError) -> Waiting:
    """Return the reason to wait that a failure to sign in gives."""
    if isinstance(failure, ConfigurationError):
        return Waiting.SECRET_UNREADABLE
    if failure.retryable:
        return Waiting.MAIL_SERVER_UNREACHABLE
    return _WAITING.get(failure.code, Waiting.LOGIN_REFUSED)


def wait(writing: Writing, proposal: Proposal, waiting: Waiting) -> None:
    """Leave a proposal where it is, visibly; a reason that it has already keeps its time."""
    if proposal.waiting_code != waiting:
        writing.change(
            proposal.id,
            "wait",
            EXECUTOR,
            {"code": waiting.value},
            waiting_code=waiting.value,
            waiting_since=writing.now,
        )


def end(writing: Writing, proposal: Proposal, happened: Event, outcome: Outcome) -> None:
    """Let an event happen to a proposal together with its outcome."""
    values: dict[str, Any] = {"outcome_code": outcome.value, "outcome_at": writing.now}
    writing.advance(proposal.id, happened, EXECUTOR, details={"outcome": outcome.value}, **values)
