"""Only a right session decides: every route of the review page, tried by everybody else (G5)."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

import httpx
import pytest
from fastapi.routing import APIRoute
from sqlalchemy import select

from change_executor.config import Review
from change_executor.journal import schema
from change_executor.journal.journal import read_proposal
from change_executor.lifecycle import Event
from change_executor.review.app import ROUTES, Access, allowed_hosts
from change_executor.review.sessions import IDLE_LIMIT
from shared.proposal import State
from shared.settings import ConfigurationError, settings_from
from shared.tokens import TokenKind, new_token
from tests.servers.desk import PERSON, ReviewPage, fields_of, press, reading


def nobody(page: ReviewPage) -> tuple[httpx.Client, dict[str, str]]:
    return page.client(), {}


def with_a_proposer_token(page: ReviewPage) -> tuple[httpx.Client, dict[str, str]]:
    token = new_token(TokenKind.PROPOSER, secrets.token_bytes).text
    return page.client(Authorization=f"Bearer {token}"), {"csrf": token}


def with_a_reader_token(page: ReviewPage) -> tuple[httpx.Client, dict[str, str]]:
    token = new_token(TokenKind.READER, secrets.token_bytes).text
    client = page.client(Authorization=f"Bearer {token}")
    client.cookies.set("mailwarrant_session", token)
    return client, {"csrf": token}


def with_an_expired_session(page: ReviewPage) -> tuple[httpx.Client, dict[str, str]]:
    client, fields = with_a_session(page)
    page.clock.pass_by(seconds=IDLE_LIMIT.total_seconds())
    return client, fields


def with_a_session_and_no_token(page: ReviewPage) -> tuple[httpx.Client, dict[str, str]]:
    return page.signed_in(), {}


def with_the_token_of_another_session(page: ReviewPage) -> tuple[httpx.Client, dict[str, str]]:
    return page.signed_in(), with_a_session(page)[1]


def from_another_site(page: ReviewPage) -> tuple[httpx.Client, dict[str, str]]:
    client, fields = with_a_session(page)
    client.headers.update({"Origin": "https://evil.test", "Sec-Fetch-Site": "cross-site"})
    return client, fields


def from_another_site_that_hides_its_origin(page: ReviewPage) -> tuple[httpx.Client, dict[str, str]]:
    client, fields = with_a_session(page)
    client.headers.update({"Origin": "null", "Sec-Fetch-Site": "cross-site"})
    return client, fields


def from_the_address_bar(page: ReviewPage) -> tuple[httpx.Client, dict[str, str]]:
    client, fields = with_a_session(page)
    client.headers.update({"Origin": "null", "Sec-Fetch-Site": "none"})
    return client, fields


def from_another_port_of_this_machine(page: ReviewPage) -> tuple[httpx.Client, dict[str, str]]:
    client, fields = with_a_session(page)
    client.headers.update({"Origin": "http://localhost:1", "Sec-Fetch-Site": "same-site"})
    return client, fields


def without_saying_where_it_comes_from(page: ReviewPage) -> tuple[httpx.Client, dict[str, str]]:
    client, fields = with_a_session(page)
    del client.headers["Origin"], client.headers["Sec-Fetch-Site"]
    return client, fields


def from_a_sandboxed_frame(page: ReviewPage) -> tuple[httpx.Client, dict[str, str]]:
    client, fields = with_a_session(page)
    client.headers.update({"Origin": "null"})
    del client.headers["Sec-Fetch-Site"]
    return client, fields


def under_another_name(page: ReviewPage) -> tuple[httpx.Client, dict[str, str]]:
    client, fields = with_a_session(page)
    name = f"rebound.test:{page.served.port}"
    client.headers.update({"Host": name, "Origin": f"http://{name}"})
    return client, fields


def under_another_port(page: ReviewPage) -> tuple[httpx.Client, dict[str, str]]:
    client, fields = with_a_session(page)
    client.headers.update({"Host": "localhost:1", "Origin": "http://localhost:1"})
    return client, fields


def with_a_session(page: ReviewPage) -> tuple[httpx.Client, dict[str, str]]:
    client = page.signed_in()
    return client, {"csrf": fields_of(client.get("/").text, "/sign-out")["csrf"]}


Intruder = Callable[[ReviewPage], tuple[httpx.Client, dict[str, str]]]

ACTING = {Access.ACTING, Access.PROVED, Access.ADMINISTERING}

INTRUDERS: list[Intruder] = [
    nobody,
    with_a_proposer_token,
    with_a_reader_token,
    with_an_expired_session,
    with_a_session_and_no_token,
    with_the_token_of_another_session,
    from_another_site,
    from_another_site_that_hides_its_origin,
    from_the_address_bar,
    from_another_port_of_this_machine,
    without_saying_where_it_comes_from,
    from_a_sandboxed_frame,
    under_another_name,
    under_another_port,
]
WAY_IN = re.compile(r"/sign-in(\?next=/(p/P[0-9a-v]{20}|log|agents|settings|status|password))?")
# These are turned away from looking too; the others only may not act.
MAY_NOT_LOOK: list[Intruder] = [
    nobody,
    with_a_proposer_token,
    with_a_reader_token,
    with_an_expired_session,
    under_another_name,
    under_another_port,
]


def name_of(intruder: Intruder) -> str:
    return str(getattr(intruder, "__name__", intruder))


def ground(page: ReviewPage) -> dict[str, str]:
    """A proposal that each decision fits, by action."""
    doubtful = page.rows.proposal(reading("Doubtful secret"))
    page.rows.approve(doubtful.id)
    page.rows.happen(doubtful.id, Event.CLAIM, Event.DOUBT)
    return {
        "approve": page.rows.proposal(reading("Pending secret"), days=30).id,
        "reject": page.rows.proposal(reading("Another secret"), days=30).id,
        "undo": page.rows.moved(page.rows.proposal(reading("Moved secret")).id).id,
        "settle": doubtful.id,
    }


def states(page: ReviewPage, proposals: dict[str, str]) -> dict[str, State]:
    with page.journal.reading() as connection:
        return {action: read_proposal(connection, name).state for action, name in proposals.items()}


def events(page: ReviewPage) -> list[str]:
    # Sessions come and go with the intruders themselves.
    with page.journal.reading() as connection:
        kinds = connection.execute(select(schema.events.c.kind).order_by(schema.events.c.seq)).scalars()
        return [kind for kind in kinds if not kind.startswith(("session:", "link:"))]


def concrete(path: str, proposals: dict[str, str]) -> str:
    action = path.rpartition("/")[2]
    return path.replace("{proposal_id}", proposals.get(action, proposals["approve"])).replace("{name}", "page.css")


def what_was_seen(page: ReviewPage, proposals: dict[str, str]) -> dict[str, dict[str, str]]:
    """The right version and digest for each decision, as an agent might have guessed them."""
    client = page.signed_in()
    seen = {}
    for action, name in proposals.items():
        fields = fields_of(client.get(f"/p/{name}").text, f"/p/{name}/{action}")
        seen[action] = {"version": fields["version"], "shown": fields["shown"], "outcome": "applied"}
    return seen


def test_the_table_of_routes_is_all_that_the_application_answers(review_page: ReviewPage) -> None:
    routes = [route for route in review_page.app.routes if isinstance(route, APIRoute)]
    assert len(routes) == len(review_page.app.routes)
    found = {(method, route.path) for route in routes for method in route.methods or ()}
    assert {(method, path) for method, path, _, _ in ROUTES} == found


def test_every_route_that_changes_something_but_the_ways_in_needs_a_session_and_its_token() -> None:
    assert {("POST", "/sign-in"), ("POST", "/sign-in/passkey"), ("POST", "/link")} == {
        (method, path) for method, path, access, _ in ROUTES if method != "GET" and access not in ACTING
    }
    assert {method for method, _, access, _ in ROUTES if access in ACTING} == {"POST"}


def test_what_gives_others_power_asks_who_is_there_and_what_lets_others_in_asks_for_an_administrator() -> None:
    def paths(access: Access) -> set[str]:
        return {path for _, path, needed, _ in ROUTES if needed is access}

    assert {"/resume", "/settings/passkeys/remove", "/password/remove"} == paths(Access.PROVED)
    administering = {path for _, path, _, _ in ROUTES if path.startswith("/settings/people")} | {
        "/agents/tokens",
        "/agents/tokens/{token}/revoke",
        "/agents/{agent}/revoke",
    }
    assert administering == paths(Access.ADMINISTERING)


@pytest.mark.parametrize("intruder", INTRUDERS, ids=name_of)
def test_nobody_else_decides_or_stops_or_resumes(review_page: ReviewPage, intruder: Intruder) -> None:
    proposals = ground(review_page)
    seen = what_was_seen(review_page, proposals)
    client, fields = intruder(review_page)
    before, recorded = states(review_page, proposals), events(review_page)
    for method, path, access, _ in ROUTES:
        if access not in ACTING:
            continue
        action = path.rpartition("/")[2]
        answer = client.request(method, concrete(path, proposals), data=fields | seen.get(action, {}))
        assert answer.status_code in {400, 401, 403, 421}, path
    assert before == states(review_page, proposals)
    assert recorded == events(review_page)


@pytest.mark.parametrize("intruder", MAY_NOT_LOOK, ids=name_of)
def test_nobody_else_sees_a_message_or_hears_of_one(review_page: ReviewPage, intruder: Intruder) -> None:
    proposals = ground(review_page)
    client, _ = intruder(review_page)
    for method, path, access, _ in ROUTES:
        if access is not Access.LOOKING:
            continue
        answer = client.request(method, concrete(path, proposals))
        assert answer.status_code in {303, 421}, path
        assert "secret" not in answer.text
        if answer.status_code == 303:
            assert WAY_IN.fullmatch(answer.headers["location"])


def test_a_token_that_exists_opens_nothing_either(review_page: ReviewPage) -> None:
    proposals = ground(review_page)
    with review_page.journal.writing() as writing:
        token = new_token(TokenKind.PROPOSER, secrets.token_bytes)
        writing.connection.execute(
            schema.tokens.insert().values(
                id=token.id,
                agent="mailbot",
                queue="support",
                digest=token.digest().hex(),
                created_at=writing.now,
                expires_at=writing.now.replace(year=2030),
            )
        )
    for headers in ({"Authorization": f"Bearer {token.text}"}, {"Cookie": f"mailwarrant_session={token.text}"}):
        client = review_page.client(**headers)
        assert 303 == client.get("/").status_code
        assert 401 == client.post(f"/p/{proposals['approve']}/approve", data={"csrf": token.text}).status_code
        assert 403 == client.post("/sign-in", data={"name": PERSON, "password": token.text}).status_code
        assert 403 == client.post("/link", data={"secret": token.text}).status_code


def test_a_right_session_does_decide(review_page: ReviewPage) -> None:
    """The positive control: the very requests above, with the right to make them."""
    proposals = ground(review_page)
    seen = what_was_seen(review_page, proposals)
    client, fields = with_a_session(review_page)
    for action, name in proposals.items():
        answer = client.post(f"/p/{name}/{action}", data=fields | seen[action])
        assert 303 == answer.status_code, action
    assert {
        "approve": State.APPROVED,
        "reject": State.REJECTED,
        "undo": State.UNDOING,
        "settle": State.APPLIED,
    } == states(review_page, proposals)
    assert 303 == client.post("/stop", data=fields).status_code
    fields |= fields_of(client.get("/").text, "/resume")
    for path in ("/resume", "/sign-out"):
        assert 303 == client.post(path, data=fields).status_code


def test_only_the_loopback_names_with_the_right_port_are_hosts(review_page: ReviewPage) -> None:
    port = review_page.served.port
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", f"LOCALHOST:{port}"):
        assert 200 == review_page.client(Host=host).get("/sign-in").status_code
    for host in ("localhost", "", f"localhost.evil.test:{port}", f"127.0.0.1.evil.test:{port}", f"localhost:{port}:1"):
        assert review_page.client(Host=host).get("/sign-in").status_code in {400, 421}


def test_a_form_of_the_right_origin_without_fetch_metadata_is_accepted(review_page: ReviewPage) -> None:
    client = review_page.signed_in()
    page = client.get("/").text
    del client.headers["Sec-Fetch-Site"]
    assert 303 == press(client, page, "/stop").status_code


def test_behind_a_proxy_its_public_name_is_the_only_host() -> None:
    def review(**keys: str) -> Review:
        return settings_from({"allow_uids": [0]} | keys, Review, "executor.toml")

    with pytest.raises(ConfigurationError, match="public_url"):
        review(listen="unix:/run/review.sock")
    behind = review(listen="unix:/run/review.sock", public_url="https://review.shop.example")
    assert frozenset({"review.shop.example"}) == allowed_hosts(behind)
    assert "https://review.shop.example" == behind.url
    alone = review(listen="localhost:8622")
    assert "http://localhost:8622" == alone.url
    assert frozenset({"localhost:8622", "127.0.0.1:8622", "[::1]:8622"}) == allowed_hosts(alone)


def test_a_page_that_lets_nobody_in_does_not_start() -> None:
    with pytest.raises(ConfigurationError, match="allow_uids"):
        settings_from({"allow_uids": []}, Review, "executor.toml")
