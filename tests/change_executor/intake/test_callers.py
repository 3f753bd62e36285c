"""Who comes with which token is told why it opens nothing, and looked up anew each time."""

from __future__ import annotations

import base64
import contextlib
import json
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from change_executor.errors import JournalUnavailable
from change_executor.intake.proposer_tokens import revoke_token
from change_executor.journal import schema
from change_executor.journal.open import open_journal
from tests.change_executor.intake.desk import PROPOSAL, READER_TOKEN, Desk, code_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from change_executor.config import ExecutorSettings
    from change_executor.journal.journal import Journal
    from tests.change_executor.journal.clock import MovableClock


@pytest.mark.parametrize(
    ("code", "authorization"),
    [
        ("token_missing", None),
        ("token_missing", "Bearer"),
        ("token_missing", "Bearer "),
        ("token_missing", "Digest abc"),
        ("token_malformed", "Bearer hello"),
        ("token_malformed", "Bearer mwp_aaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_00000000"),
        pytest.param("wrong_token_kind", f"Bearer {READER_TOKEN}", id="wrong_token_kind"),
    ],
)
def test_a_caller_without_a_proposer_token_is_told_why(desk: Desk, code: str, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    answer = desk.ask("GET", "/v1/queues", None, headers=headers)
    assert (401, code) == (answer.status_code, code_of(answer))
    assert answer.headers["www-authenticate"].startswith("Bearer")
    for secret in (READER_TOKEN, "aaaaaaaa"):
        assert secret not in answer.text


def test_a_token_of_basic_is_taken_with_any_user_name(desk: Desk) -> None:
    basic = base64.b64encode(f"anybody:{desk.token}".encode()).decode()
    assert desk.ask("GET", "/v1/queues", None, headers={"Authorization": f"Basic {basic}"}).status_code == 200


def test_an_expired_token_opens_nothing(desk: Desk, clock: MovableClock) -> None:
    token = desk.token_of("brief", days=1)
    assert desk.ask("GET", "/v1/queues", token).status_code == 200
    clock.advance(days=1)
    answer = desk.ask("GET", "/v1/queues", token)
    assert (401, "token_expired") == (answer.status_code, code_of(answer))


def test_a_secret_is_never_guessed_from_the_id(desk: Desk) -> None:
    """The right id and right check digits with another secret."""
    from shared.tokens import _check_digits  # noqa: PLC0415 - a forger can count too

    forged = desk.token[:13] + "a" * 32
    forged = f"{forged}_{_check_digits(forged)}"
    answer = desk.ask("GET", "/v1/queues", forged)
    assert (401, "token_unknown") == (answer.status_code, code_of(answer))


def test_a_token_that_another_process_revokes_opens_nothing_from_then_on(
    desk: Desk, settings: ExecutorSettings
) -> None:
    assert 201 == desk.propose().status_code
    with contextlib.closing(open_journal(settings.journal.url, desk.journal.now)) as elsewhere:
        revoke_token(elsewhere, desk.token.split("_")[1])
    assert code_of(desk.propose()) == "token_revoked"


@pytest.mark.parametrize("ends", ["token_revoked", "token_expired"])
def test_a_token_that_ends_while_its_body_comes_proposes_nothing(desk: Desk, clock: MovableClock, ends: str) -> None:
    async def body() -> AsyncIterator[bytes]:
        proposal = json.dumps(PROPOSAL).encode()
        yield proposal[:9]
        if ends == "token_revoked":
            revoke_token(desk.journal, desk.token.split("_")[1])
        else:
            clock.advance(days=400)
        yield proposal[9:]

    refused = desk.ask("POST", "/v1/proposals", content=body(), headers={"Content-Type": "application/json"})
    assert (401, ends) == (refused.status_code, code_of(refused))
    with desk.journal.reading() as connection:
        assert connection.execute(select(schema.proposals)).first() is None


def test_where_a_glance_would_have_to_wait_the_token_is_looked_up_with_patience(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked() -> None:
        raise JournalUnavailable("database is locked")

    monkeypatch.setattr(desk.journal, "glancing", locked)
    assert 201 == desk.propose().status_code
    revoke_token(desk.journal, desk.token.split("_")[1])
    assert code_of(desk.propose()) == "token_revoked"


def test_a_glance_waits_for_nobody_and_goes_on_after_an_error(journal: Journal) -> None:
    with journal.glancing() as connection:
        assert 0 == connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one()
    with pytest.raises(JournalUnavailable), journal.glancing() as connection:
        connection.exec_driver_sql("SELECT * FROM nothing")
    with journal.glancing() as connection:
        assert 0 == connection.exec_driver_sql("SELECT count(*) FROM proposals").scalar_one()
