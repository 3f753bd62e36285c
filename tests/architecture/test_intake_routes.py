"""Every route of the intake with every kind of token and none: only the right one opens its own."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from starlette.routing import Route

from change_executor.intake.proposer_tokens import revoke_token
from change_executor.journal.open import open_journal
from shared.tokens import TokenKind, new_token
from tests.change_executor.intake.desk import EMAIL_ID, PROPOSAL, Desk, code_of
from tests.change_executor.journal.clock import MovableClock
from tests.change_executor.settings import settings_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OWN_EMAIL = "M" + "b" * 32

# What the holder of the right token, and of another agent's, is answered. `{own}` is the first's proposal.
ROUTES = {
    ("POST", "/v1/proposals"): (201, 201),
    ("GET", "/v1/proposals"): (200, 200),
    ("GET", "/v1/proposals/{proposal_id}"): (200, 404),
    ("POST", "/v1/proposals/{proposal_id}/withdraw"): (200, 404),
    ("GET", "/v1/queues"): (200, 200),
    ("GET", "/v1/health"): (200, 200),
}
OPEN_TO_ALL = {("GET", "/v1/health")}

REFUSED = {
    "none": "token_missing",
    "malformed": "token_malformed",
    "reader": "wrong_token_kind",
    "unknown": "token_unknown",
    "expired": "token_expired",
    "revoked": "token_revoked",
}


class Holders:
    """A token of each kind."""

    def __init__(self, desk: Desk, clock: MovableClock) -> None:
        revoked, expired = desk.token_of("triage"), desk.token_of("triage", days=1)
        revoke_token(desk.journal, revoked.split("_")[1])
        clock.now += timedelta(days=2)
        self.tokens: dict[str, str | None] = {
            "none": None,
            "malformed": desk.token[:-1] + ("0" if desk.token[-1] != "0" else "1"),
            "reader": new_token(TokenKind.READER, secrets.token_bytes).text,
            "unknown": new_token(TokenKind.PROPOSER, secrets.token_bytes).text,
            "expired": expired,
            "revoked": revoked,
            "other agent": desk.token_of("other"),
            "right": desk.token,
        }


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def desk(tmp_path: Path, clock: MovableClock) -> Iterator[Desk]:
    settings = settings_in(tmp_path)
    journal = open_journal(settings.journal.url, clock)
    yield Desk(journal, settings)
    journal.close()


def test_the_table_of_this_test_is_the_table_of_the_application(desk: Desk) -> None:
    found = {
        (method, route.path) for route in desk.app.routes if isinstance(route, Route) for method in route.methods or ()
    }
    assert set(ROUTES) == found
    assert len(ROUTES) == len(desk.app.routes)


@pytest.mark.parametrize("holder", [*REFUSED, "other agent", "right"])
@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_each_route_opens_to_its_own_token_and_to_no_other(
    desk: Desk, clock: MovableClock, route: tuple[str, str], holder: str
) -> None:
    token = Holders(desk, clock).tokens[holder]
    own = desk.propose(emailId=OWN_EMAIL).json()["id"]
    before = desk.ask("GET", f"/v1/proposals/{own}").json()
    method, path = route
    more = {"json": PROPOSAL | {"emailId": EMAIL_ID}} if route == ("POST", "/v1/proposals") else {}
    answer = desk.ask(method, path.format(proposal_id=own), token, **more)
    if route in OPEN_TO_ALL:
        assert (200, {"status": "ok", "codes": []}) == (answer.status_code, answer.json())
    elif holder in REFUSED:
        assert (401, REFUSED[holder]) == (answer.status_code, code_of(answer))
        assert before == desk.ask("GET", f"/v1/proposals/{own}").json()
        assert 1 == len(desk.ask("GET", "/v1/proposals").json()["proposals"])
    elif holder == "other agent":
        assert ROUTES[route][1] == answer.status_code
        assert own not in answer.text
        assert before == desk.ask("GET", f"/v1/proposals/{own}").json()
    else:
        assert ROUTES[route][0] == answer.status_code


@pytest.mark.parametrize("decision", ["approve", "reject", "undo", "settle", "apply", "claim", "stop", "resume"])
def test_no_route_decides(desk: Desk, decision: str) -> None:
    own = desk.propose(emailId=OWN_EMAIL).json()
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        for path in (f"/v1/proposals/{own['id']}/{decision}", f"/p/{own['id']}/{decision}", f"/v1/{decision}"):
            assert 404 == desk.ask(method, path).status_code
    assert own == desk.ask("GET", f"/v1/proposals/{own['id']}").json()
