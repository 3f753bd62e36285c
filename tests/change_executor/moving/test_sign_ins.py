"""What is refused is tried ever more seldom, and told once."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from change_executor.outcomes import Waiting
from change_executor.sign_ins import Failure, SignIns
from change_executor.steps import waiting_for
from shared.imap_login import ImapFailure
from shared.settings import ConfigurationError
from tests.change_executor.journal.clock import MovableClock

REFUSED = ImapFailure("login_refused", "The server refused the login.", "Mend the secret.", retryable=False)
CERTIFICATE = ImapFailure("certificate", "The certificate is not trusted.", "Mend `host`.", retryable=False)
NO_STARTTLS = ImapFailure("no_starttls", "No STARTTLS.", "Use TLS.", retryable=False)
DOWN = ImapFailure("unreachable", "No connection.", "Wait.", retryable=True)
UNREADABLE = ConfigurationError("the login `move`", "the secret cannot be read.", "Mend its mode.")


@pytest.mark.parametrize(
    ("failure", "pauses"),
    [
        (REFUSED, [1, 4, 16, 60, 60]),
        (CERTIFICATE, [1, 4, 5, 5, 5]),
        (NO_STARTTLS, [1, 4, 5, 5, 5]),
        (UNREADABLE, [1, 4, 5, 5, 5]),
        (DOWN, [0, 0, 0, 0, 0]),
    ],
)
def test_the_pauses_grow_to_a_bound_that_depends_on_what_is_wrong(failure: Failure, pauses: list[int]) -> None:
    clock = MovableClock()
    sign_ins = SignIns(clock)
    for minutes in pauses:
        sign_ins.failed("move", failure)
        clock.advance(minutes=minutes, seconds=-1)
        if minutes:
            with pytest.raises(type(failure)):
                sign_ins.check("move")
        clock.advance(seconds=1)
        sign_ins.check("move")
        assert sign_ins.held_until("move") is None


def test_a_clock_that_is_set_back_lengthens_no_pause() -> None:
    clock = MovableClock()
    sign_ins = SignIns(clock)
    sign_ins.failed("move", REFUSED)
    clock.advance(hours=-3)
    sign_ins.check("move")
    assert sign_ins.held_until("move") is None


def test_one_credential_does_not_hold_another() -> None:
    sign_ins = SignIns(MovableClock())
    sign_ins.failed("move", REFUSED)
    sign_ins.check("other")


def test_it_is_told_when_it_begins_when_it_changes_and_when_it_works_again() -> None:
    clock = MovableClock()
    sign_ins = SignIns(clock)
    with capture_logs() as logged:
        for failure in (DOWN, DOWN, REFUSED, REFUSED, UNREADABLE):
            sign_ins.failed("move", failure)
        for _ in range(2):
            sign_ins.worked("move")
    assert [
        ("mail_server:failed", "unreachable", "No connection.", "Wait."),
        ("mail_server:failed", "login_refused", "The server refused the login.", "Mend the secret."),
        ("mail_server:failed", "secret_unreadable", "the login `move`: the secret cannot be read.", "Mend its mode."),
        ("mail_server:works", None, None, None),
    ] == [tuple(line.get(key) for key in ("event", "code", "detail", "fix")) for line in logged]


@pytest.mark.parametrize(
    ("failure", "waiting"),
    [
        (REFUSED, Waiting.LOGIN_REFUSED),
        (CERTIFICATE, Waiting.CERTIFICATE_REFUSED),
        (NO_STARTTLS, Waiting.NO_STARTTLS),
        (DOWN, Waiting.MAIL_SERVER_UNREACHABLE),
        (UNREADABLE, Waiting.SECRET_UNREADABLE),
    ],
)
def test_each_failure_has_its_reason_to_wait(failure: Failure, waiting: Waiting) -> None:
    assert waiting is waiting_for(failure)
