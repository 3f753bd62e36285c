"""Roles, and the question who is there before tokens, people and resuming."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from change_executor.audit import verify
from change_executor.journal import schema
from change_executor.review.app import ROUTES, Access
from change_executor.review.people import (
    PersonRefused,
    Role,
    add_person,
    change_role,
    insert_person,
    list_people,
    remove_person,
)
from change_executor.switch import press_stop
from tests.servers.desk import PASSWORD, PERSON, ReviewPage, fields_of, press, reading

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

REVIEWER = "ines"
PROOF = "proof-password"


@pytest.fixture
def page(review_page: ReviewPage) -> ReviewPage:
    review_page.rows.person(REVIEWER)
    return review_page


def events(page: ReviewPage, kind: str) -> list[tuple[str, str]]:
    columns = schema.events.c
    with page.journal.reading() as connection:
        rows = connection.execute(select(columns.subject, columns.actor).where(columns.kind == kind)).all()
    return [(row.subject, row.actor) for row in rows]


def roles(page: ReviewPage) -> dict[str, str]:
    with page.journal.reading() as connection:
        return {person.name: person.role.value for person in list_people(connection)}


def token(page: ReviewPage, client: httpx.Client) -> dict[str, str]:
    return {"csrf": fields_of(client.get("/").text, "/sign-out")["csrf"]}


def resent(answer: httpx.Response, action: str, **fields: str) -> dict[str, str]:
    """What a browser without scripts sends from the page that asks."""
    return fields_of(answer.text, action) | fields


def test_the_first_person_is_an_administrator_and_all_others_are_reviewers(page: ReviewPage) -> None:
    assert {PERSON: "administrator", REVIEWER: "reviewer"} == roles(page)
    add_person(page.journal, "ada", Role.ADMINISTRATOR)
    assert "administrator" == roles(page)["ada"]


def test_the_last_administrator_stays_one(page: ReviewPage) -> None:
    with pytest.raises(PersonRefused) as another_role, page.journal.writing() as writing:
        change_role(writing, PERSON, Role.REVIEWER, "operator")
    with pytest.raises(PersonRefused) as removed, page.journal.writing() as writing:
        remove_person(writing, PERSON, "operator")
    assert ("last_administrator", "last_administrator") == (another_role.value.code, removed.value.code)
    assert "administrator" == roles(page)[PERSON]


def test_the_first_person_cannot_be_a_reviewer(page: ReviewPage) -> None:
    with page.journal.writing() as writing:
        for table in (schema.sessions, schema.links, schema.people):
            writing.connection.execute(table.delete())
        with pytest.raises(PersonRefused) as refused:
            insert_person(writing, "ada", Role.REVIEWER, "operator")
    assert "first_is_administrator" == refused.value.code


def test_a_reviewer_decides_and_lets_nobody_in(page: ReviewPage) -> None:
    client = page.signed_in(REVIEWER)
    form = token(page, client)
    for method, path, access, _ in ROUTES:
        if access is Access.ADMINISTERING:
            concrete = path.replace("{token}", "abcdefgh").replace("{agent}", "mailbot")
            answer = client.request(method, concrete, data=form)
            assert (403, True) == (answer.status_code, "takes an administrator" in answer.text), path
    for path in ("/settings", "/agents"):
        shown = client.get(path).text
        assert 'action="/settings/people' not in shown
        assert 'action="/agents/tokens' not in shown
    proposal = page.rows.proposal(reading())
    item = client.get(f"/p/{proposal.id}").text
    assert 303 == press(client, item, f"/p/{proposal.id}/approve").status_code


def test_whoever_was_proved_within_five_minutes_is_not_asked(page: ReviewPage) -> None:
    client = page.signed_in()
    form = token(page, client)
    page.clock.pass_by(minutes=5)
    made = client.post("/agents/tokens", data=form | {"agent": "a", "queue": "support", "days": "9"})
    assert "is shown this once" in made.text


def test_later_a_person_is_asked_once_and_what_they_filled_in_goes_through(page: ReviewPage) -> None:
    client = page.signed_in()
    form = token(page, client) | {"agent": "sorter", "queue": "support", "days": "9"}
    page.clock.pass_by(minutes=6)
    asked = client.post("/agents/tokens", data=form)
    assert (403, True) == (asked.status_code, "Confirm that it is you" in asked.text)
    assert [] == events(page, "token:create")
    wrong = client.post("/agents/tokens", data=resent(asked, "/agents/tokens", **{PROOF: "not my password"}))
    assert (403, True) == (wrong.status_code, "That is not your password." in wrong.text)
    assert "not my password" not in wrong.text
    made = client.post("/agents/tokens", data=resent(wrong, "/agents/tokens", **{PROOF: PASSWORD}))
    assert (200, True) == (made.status_code, "is shown this once" in made.text)
    assert [(PERSON, f"person:{PERSON}")] == events(page, "session:proved")
    press_stop(page.journal, "operator")
    assert 303 == press(client, client.get("/").text, "/resume").status_code


def test_guesses_at_the_question_are_slowed_too(page: ReviewPage) -> None:
    client = page.signed_in()
    form = token(page, client)
    page.clock.pass_by(minutes=6)
    codes = [client.post("/resume", data=form | {PROOF: "guess"}).status_code for _ in range(6)]
    assert [403] * 5 + [429] == codes
    assert [] == events(page, "session:proved")


def test_the_question_is_not_answered_by_a_form_without_the_sessions_token(page: ReviewPage) -> None:
    client = page.signed_in()
    page.clock.pass_by(minutes=6)
    assert "not yours any more" in client.post("/resume", data={PROOF: PASSWORD, "csrf": "x"}).text


def test_who_came_by_a_link_and_has_no_way_in_is_told_to_set_one(page: ReviewPage) -> None:
    add_person(page.journal, "ada", Role.ADMINISTRATOR)
    client = page.signed_in("ada")
    answer = client.post("/agents/tokens", data=token(page, client))
    assert (403, True) == (answer.status_code, "Set a password or a passkey first" in answer.text)
    form = client.get("/password").text
    assert 303 == press(client, form, "/password", password=PASSWORD, again=PASSWORD).status_code
    made = client.post("/agents/tokens", data=token(page, client) | {"agent": "a", "queue": "support", "days": "9"})
    assert 200 == made.status_code


def test_an_administrator_lets_somebody_in_who_comes_by_the_link_that_is_shown_once(page: ReviewPage) -> None:
    client = page.signed_in()
    answer = client.post("/settings/people", data=token(page, client) | {"name": "mia", "role": "reviewer"})
    link = answer.text.partition(f"{page.url}/link#")[2].partition("<")[0]
    assert link
    assert link not in client.get("/settings").text
    mia = page.client()
    assert "/password" == mia.post("/link", data={"secret": link}).headers["location"]
    assert "reviewer" == roles(page)["mia"]
    assert [("mia", f"person:{PERSON}")] == events(page, "link:made")[-1:]
    # She has no way in yet, so a new link may be made for her; for who has one, only on the machine.
    again = client.post("/settings/people/link", data=token(page, client) | {"name": "mia"})
    assert "shown this once" in again.text
    refused = client.post("/settings/people/link", data=token(page, client) | {"name": REVIEWER})
    assert 422 == refused.status_code


def test_a_removed_person_is_out_at_once_and_the_record_stays(page: ReviewPage) -> None:
    proposal = page.rows.proposal(reading())
    theirs, mine = page.signed_in(REVIEWER), page.signed_in()
    item = theirs.get(f"/p/{proposal.id}").text
    assert 303 == press(theirs, item, f"/p/{proposal.id}/approve").status_code
    link = page.rows.link(REVIEWER)
    assert 303 == mine.post("/settings/people/remove", data=token(page, mine) | {"name": REVIEWER}).status_code
    assert 303 == theirs.get("/").status_code
    assert 403 == page.client().post("/link", data={"secret": link}).status_code
    assert 403 == page.client().post("/sign-in", data={"name": REVIEWER, "password": PASSWORD}).status_code
    assert REVIEWER in mine.get(f"/p/{proposal.id}").text
    assert [(REVIEWER, f"person:{PERSON}")] == events(page, "person:removed")
    with page.journal.reading() as connection:
        assert () == verify(connection).findings


def test_another_role_counts_from_the_next_request(page: ReviewPage) -> None:
    client, other = page.signed_in(), page.signed_in(REVIEWER)
    give = {"name": REVIEWER, "role": "administrator"}
    assert 303 == client.post("/settings/people/role", data=token(page, client) | give).status_code
    take = {"name": PERSON, "role": "reviewer"}
    assert 303 == other.post("/settings/people/role", data=token(page, other) | take).status_code
    refused = client.post("/settings/people/role", data=token(page, client) | give)
    assert "takes an administrator" in refused.text
    assert {PERSON: "reviewer", REVIEWER: "administrator"} == roles(page)


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/settings/people/remove", {"name": PERSON}, 422),
        ("/settings/people/role", {"name": PERSON, "role": "reviewer"}, 422),
        ("/settings/people/role", {"name": REVIEWER, "role": "owner"}, 400),
        ("/settings/people/role", {"name": "nobody", "role": "reviewer"}, 422),
        ("/settings/people", {"name": "Not a name", "role": "reviewer"}, 422),
        ("/settings/people", {"name": REVIEWER, "role": "reviewer"}, 422),
    ],
)
def test_what_would_shut_an_administrator_out_or_names_nobody_is_refused(
    page: ReviewPage, path: str, fields: dict[str, str], status: int
) -> None:
    client = page.signed_in()
    before = roles(page)
    assert status == client.post(path, data=token(page, client) | fields).status_code
    assert before == roles(page)


def test_a_guesser_behind_the_same_proxy_slows_nobody_who_was_here_before(page: ReviewPage) -> None:
    known = page.signed_in()
    guesser = page.client()
    for _ in range(6):
        guesser.post("/sign-in", data={"name": PERSON, "password": "guess"})
    right = {"name": PERSON, "password": PASSWORD}
    assert 429 == guesser.post("/sign-in", data=right).status_code
    page.clock.pass_by(hours=9)
    for _ in range(6):
        guesser.post("/sign-in", data={"name": PERSON, "password": "guess"})
    assert 303 == known.get("/").status_code, "the session has ended"
    assert 429 == guesser.post("/sign-in", data=right).status_code
    assert 303 == known.post("/sign-in", data=right).status_code
    stranger = page.client(Cookie=f"mailwarrant_session={secrets.token_urlsafe(32)}")
    assert 429 == stranger.post("/sign-in", data=right).status_code


def test_over_tls_every_cookie_has_the_host_prefix_and_is_for_this_site_alone(tmp_path: Path) -> None:
    page = ReviewPage(tmp_path, secure=True)
    try:
        page.rows.person()
        client = page.client(Origin=page.url.replace("http:", "https:"))
        answer = client.post("/sign-in", data={"name": PERSON, "password": PASSWORD})
        secret = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
        client.headers["Cookie"] = f"__Host-mailwarrant_session={secret}"
        answers = [answer, client.post("/settings/keys", data=token(page, client) | {"switch": "off"})]
        for each in answers:
            cookie = each.headers["set-cookie"]
            assert cookie.startswith("__Host-mailwarrant_")
            assert {"secure", "httponly", "samesite=strict", "path=/"} <= set(cookie.lower().split("; "))
        client.headers["Cookie"] = f"mailwarrant_session={secret}"
        assert 303 == client.get("/").status_code, "without the prefix another host might have set it"
    finally:
        page.close()
