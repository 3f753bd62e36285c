"""How signing in goes, by credential: what is refused is tried again ever more seldom, whoever wants to sign in.

A mail server counts refused logins and locks accounts and addresses out, so no number of proposals, and no click, may
set how often one is tried. A server that cannot be reached is not held here: it is asked as its proposals fall due.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from shared.imap_login import ImapFailure
from shared.settings import ConfigurationError

_log = structlog.get_logger()

Failure = ImapFailure | ConfigurationError

# Fail2ban's ordinary rule is five refusals in ten minutes; these are three in the first ten, then one an hour at last.
FIRST_PAUSE: Final = timedelta(minutes=1)
LONGEST_PAUSE_REFUSED: Final = timedelta(hours=1)
# A certificate, or a file of the secret, is looked at without a login: whoever mended it need not wait for long.
LONGEST_PAUSE: Final = timedelta(minutes=5)
_TIMES_LONGER: Final = 4


@dataclass(frozen=True, slots=True)
class _Held:
    failure: Failure
    tried: int
    since: datetime
    due: datetime | None


class SignIns:
    """Remembers the credentials that fail; each is used by one thread (and at the start, before there are any)."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._held: dict[str, _Held] = {}

    def check(self, credential: str) -> None:
        """Raise the last failure of a credential again while its pause lasts."""
        if self.held_until(credential) is not None:
            # With the stack of this time, not with all of the earlier ones.
            raise self._held[credential].failure.with_traceback(None)

    def held_until(self, credential: str) -> datetime | None:
        """Return when a credential may be tried again, or None for now."""
        held, now = self._held.get(credential), self._clock()
        # A clock that was set back would hold it for as long as that.
        if held is None or held.due is None or not held.since <= now < held.due:
            return None
        return held.due

    def failed(self, credential: str, failure: Failure) -> None:
        """Note that signing in did not work; told in the log when it begins, and when the failure is another one."""
        before = self._held.get(credential)
        if before is None or failure_code(before.failure) != failure_code(failure):
            _log.warning(
                "mail_server:failed",
                credential=credential,
                code=failure_code(failure),
                detail=failure.detail if isinstance(failure, ImapFailure) else f"{failure.where}: {failure.what}",
                fix=failure.fix,
            )
            before = None
        tried = 1 if before is None else before.tried + 1
        now = self._clock()
        self._held[credential] = _Held(failure, tried, now, self._due(failure, tried, now))

    def worked(self, credential: str) -> None:
        """Note that signing in worked; told in the log where it had failed before."""
        if self._held.pop(credential, None) is not None:
            _log.info("mail_server:works", credential=credential)

    def _due(self, failure: Failure, tried: int, now: datetime) -> datetime | None:
        if isinstance(failure, ImapFailure) and failure.retryable:
            return None
        longest = LONGEST_PAUSE_REFUSED if failure_code(failure) == "login_refused" else LONGEST_PAUSE
        pause: timedelta = min(FIRST_PAUSE * _TIMES_LONGER ** min(tried - 1, 8), longest)
        return now + pause


def failure_code(failure: Failure) -> str:
    """Return the code of a failure to sign in; a file of the operator's that cannot be read has one of its own."""
    return failure.code if isinstance(failure, ImapFailure) else "secret_unreadable"
