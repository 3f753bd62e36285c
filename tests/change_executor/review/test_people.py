"""How a person comes in: links, passwords, sessions, and the throttle on guesses."""

from __future__ import annotations

import asyncio
import re
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from sqlalchemy import select, text, update

from change_executor.journal import schema
from change_executor.journal.journal import is_stopped
from change_executor.journal.open import open_journal
from change_executor.review.links import LinkRefused, new_link, spend_link
from change_executor.review.passwords import FREE_GUESSES, Passwords, Throttle, too_weak
from change_executor.review.people import PersonRefused, add_person
from change_executor.review.sessions import (
    ABSOLUTE_LIMIT,
    IDLE_LIMIT,
    How,
    begin_session,
    csrf_matches,
    end_session,
    find_session,
)
from change_executor.switch import press_stop
from tests.servers.desk import CHEAP, PASSWORD, PERSON, Clock, ReviewPage, fields_of, press

if TYPE_CHECKING:
    from collections.abc import MutableMapping

WEAK_FIRST = "twelve chars"


@pytest.fixture
def page(review_page: ReviewPage) -> ReviewPage:
    return review_page


def dump(page: ReviewPage) -> str:
    """Everything that the journal holds, as text."""
    with page.journal.reading() as connection:
        tables = [row[0] for row in connection.execute(text("SELECT name FROM sqlite_schema WHERE type = 'table'"))]
        return "\n".join(repr(row) for table in tables for row in connection.execute(text(f"SELECT * FROM {table}")))


def kinds(page: ReviewPage) -> list[str]:
    with page.journal.reading() as connection:
        return list(connection.execute(select(schema.events.c.kind).order_by(schema.events.c.seq)).scalars())


@pytest.mark.parametrize("name", ["", "Rosa", "ro sa", "-rosa", "a" * 41, "rosa\n", "röslein"])
def test_a_malformed_name_is_refused_with_the_mend(page: ReviewPage, name: str) -> None:
    with pytest.raises(PersonRefused) as refused:
        add_person(page.journal, name)
    assert "malformed_name" == refused.value.code
    assert "a-z" in refused.value.fix


def test_a_person_is_added_once_and_a_link_is_made_only_for_somebody(page: ReviewPage) -> None:
    with pytest.raises(PersonRefused) as twice:
        add_person(page.journal, PERSON)
    with pytest.raises(PersonRefused) as nobody:
        new_link(page.journal, "nobody", secrets.token_bytes)
    assert ("person_exists", "unknown_person") == (twice.value.code, nobody.value.code)


def test_a_link_has_256_bits_opens_once_and_only_for_ten_minutes(page: ReviewPage) -> None:
    secret = page.rows.link()
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", secret)
    client = page.client()
    assert 303 == client.post("/link", data={"secret": secret}).status_code
    again = client.post("/link", data={"secret": secret})
    assert 403 == again.status_code
    assert "change-executor user link NAME" in again.text
    late = page.rows.link()
    page.clock.pass_by(minutes=10)
    assert 403 == client.post("/link", data={"secret": late}).status_code
    with page.journal.writing() as writing, pytest.raises(LinkRefused):
        spend_link(writing, "A" * 43, begin_anew=False)


def test_looking_at_a_link_spends_nothing(page: ReviewPage) -> None:
    secret = page.rows.link()
    client = page.client()
    client.get(f"/link?secret={secret}")
    assert 303 == client.post("/link", data={"secret": secret}).status_code


def test_no_secret_is_stored_or_journalled(page: ReviewPage) -> None:
    secret = page.rows.link()
    client = page.client()
    client.post("/link", data={"secret": secret})
    cookie = next(iter(client.cookies.values()))
    csrf = fields_of(client.get("/").text, "/sign-out")["csrf"]
    held = dump(page)
    for word in (secret, cookie, csrf, PASSWORD):
        assert word not in held
    assert "$argon2id$" in held


def test_a_first_person_sets_a_password_by_a_link_and_signs_in_with_it(page: ReviewPage) -> None:
    add_person(page.journal, "ines")
    client = page.client()
    answer = client.post("/link", data={"secret": page.rows.link("ines")})
    assert "/password" == answer.headers["location"]
    form = client.get("/password").text
    assert "The password you have" not in form
    short = press(client, form, "/password", password="short", again="short")
    assert (422, True) == (short.status_code, "at least 12 characters" in short.text)
    other = press(client, form, "/password", password=PASSWORD, again=PASSWORD + "!")
    assert (422, True) == (other.status_code, "not the same" in other.text)
    assert 303 == press(client, form, "/password", password=PASSWORD, again=PASSWORD).status_code
    fresh = page.client()
    assert 303 == fresh.post("/sign-in", data={"name": "ines", "password": PASSWORD}).status_code
    assert 200 == fresh.get("/").status_code
    assert "person:password_set" in kinds(page)


def test_another_password_needs_the_old_one_and_ends_the_other_sessions(page: ReviewPage) -> None:
    client, other = page.signed_in(), page.signed_in()
    form = client.get("/password").text
    wrong = press(
        client, form, "/password", current="not that one at all", password="a wholly new one", again="a wholly new one"
    )
    assert 403 == wrong.status_code
    right = press(client, form, "/password", current=PASSWORD, password="a wholly new one", again="a wholly new one")
    assert 303 == right.status_code
    assert 200 == client.get("/").status_code
    assert 303 == other.get("/").status_code


def test_a_forgotten_password_is_replaced_by_a_link(page: ReviewPage) -> None:
    client = page.client()
    answer = client.post("/link", data={"secret": page.rows.link(), "forget": "yes"})
    assert "/password" == answer.headers["location"]
    assert 403 == page.client().post("/sign-in", data={"name": PERSON, "password": PASSWORD}).status_code
    assert "person:password_forgotten" in kinds(page)


@pytest.mark.parametrize("name", [PERSON, "nobody", ""])
def test_a_wrong_name_and_a_wrong_password_look_alike(page: ReviewPage, name: str) -> None:
    answer = page.client().post("/sign-in", data={"name": name, "password": "wrong wrong wrong"})
    assert 403 == answer.status_code
    assert "do not go together" in answer.text
    assert not answer.cookies


def test_an_unknown_name_costs_a_check_of_its_own() -> None:
    class Counting:
        """Argon2 that counts."""

        def __init__(self) -> None:
            self.checks = 0

        def hash(self, password: str) -> str:
            return CHEAP.hash(password)

        def verify(self, stored: str, password: str) -> bool:
            self.checks += 1
            return CHEAP.verify(stored, password)

    counting = Counting()
    passwords = Passwords(counting)  # type: ignore[arg-type]  # as much of argon2 as is used
    assert not passwords.matches(None, "nobody has this password")
    assert not passwords.matches(CHEAP.hash(PASSWORD), "wrong")
    assert passwords.matches(CHEAP.hash(PASSWORD), PASSWORD)
    assert not passwords.matches("not a hash", PASSWORD)
    assert 4 == counting.checks


def test_a_hash_with_old_parameters_is_renewed_at_the_next_sign_in(page: ReviewPage) -> None:
    old = type(CHEAP)(time_cost=2, memory_cost=16, parallelism=1).hash(PASSWORD)
    with page.journal.writing() as writing:
        writing.connection.execute(schema.people.update().values(password_hash=old))
    client = page.client()
    assert 303 == client.post("/sign-in", data={"name": PERSON, "password": PASSWORD}).status_code
    assert old not in dump(page)
    assert 303 == page.client().post("/sign-in", data={"name": PERSON, "password": PASSWORD}).status_code
    assert 1 == kinds(page).count("person:password_rehashed")


def test_guesses_are_slowed_by_source_and_account_together_never_by_the_account_alone() -> None:
    throttle, clock = Throttle(), Clock()
    for _ in range(FREE_GUESSES):
        assert timedelta(0) == throttle.wait("uid:1001", PERSON, clock())
        throttle.failed("uid:1001", PERSON, clock())
    assert timedelta(seconds=2) == throttle.wait("uid:1001", PERSON, clock())
    assert timedelta(0) == throttle.wait("uid:1000", PERSON, clock())
    assert timedelta(0) == throttle.wait("uid:1001", "ines", clock())
    clock.pass_by(seconds=2)
    assert timedelta(0) == throttle.wait("uid:1001", PERSON, clock())
    throttle.failed("uid:1001", PERSON, clock())
    assert timedelta(seconds=4) == throttle.wait("uid:1001", PERSON, clock())
    for _ in range(60):
        throttle.failed("uid:1001", PERSON, clock())
    assert timedelta(minutes=15) == throttle.wait("uid:1001", PERSON, clock())
    throttle.succeeded("uid:1001", PERSON)
    assert timedelta(0) == throttle.wait("uid:1001", PERSON, clock())


def test_the_page_tells_a_guesser_to_wait_and_lets_the_right_person_in_after_it(page: ReviewPage) -> None:
    client = page.client()
    right = {"name": PERSON, "password": PASSWORD}
    for _ in range(FREE_GUESSES):
        assert 403 == client.post("/sign-in", data=right | {"password": "wrong wrong wrong"}).status_code
    slowed = client.post("/sign-in", data=right)
    assert (429, True) == (slowed.status_code, "Try again in" in slowed.text)
    page.clock.pass_by(seconds=3)
    assert 303 == client.post("/sign-in", data=right).status_code


@pytest.mark.parametrize("password", ["", "short", "a" * 40, "x" * 1001])
def test_a_weak_or_endless_password_is_refused(password: str) -> None:
    assert too_weak(password)
    assert too_weak(WEAK_FIRST) is None


def test_a_session_ends_idle_at_last_and_by_signing_out(page: ReviewPage) -> None:
    with page.journal.writing() as writing:
        idle, ended = (begin_session(writing, PERSON, How.LINK, secrets.token_bytes) for _ in range(2))
    session = find_session(page.journal, ended)
    assert session is not None
    assert csrf_matches(session, session.csrf)
    assert not csrf_matches(session, "")
    end_session(page.journal, session)
    assert find_session(page.journal, ended) is None
    page.clock.pass_by(seconds=(IDLE_LIMIT - timedelta(minutes=1)).total_seconds())
    assert find_session(page.journal, idle)
    page.clock.pass_by(hours=1)
    assert find_session(page.journal, idle), "it was used, so the idle limit began anew"
    page.clock.pass_by(seconds=IDLE_LIMIT.total_seconds())
    assert find_session(page.journal, idle) is None


def test_a_session_in_use_ends_at_the_absolute_limit(page: ReviewPage) -> None:
    client = page.signed_in()
    for _ in range(int(ABSOLUTE_LIMIT / timedelta(hours=7)) - 1):
        page.clock.pass_by(hours=7)
        assert 200 == client.get("/").status_code
    page.clock.pass_by(hours=7)
    assert 303 == client.get("/").status_code


def test_signing_out_ends_the_row_whatever_becomes_of_the_cookie(page: ReviewPage) -> None:
    client = page.signed_in()
    cookies = dict(client.cookies)
    assert 303 == press(client, client.get("/").text, "/sign-out").status_code
    stolen = page.client()
    stolen.cookies.update(cookies)
    assert 303 == stolen.get("/").status_code
    assert "session:ended" in kinds(page)


def test_g9_a_session_that_ends_while_its_form_arrives_resumes_nothing(page: ReviewPage) -> None:
    client = page.signed_in()
    press_stop(page.journal, "operator")
    form = urlencode(fields_of(client.get("/").text, "/resume")).encode()
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    fields = {
        "host": page.url.removeprefix("http://"),
        "origin": page.url,
        "cookie": cookie,
        "content-type": "application/x-www-form-urlencoded",
    }
    answered: list[MutableMapping[str, Any]] = []

    async def body() -> MutableMapping[str, Any]:
        # By now it is known whose session it is; a form may take ten seconds.
        with page.journal.writing() as writing:
            writing.connection.execute(update(schema.sessions).values(ended_at=writing.now))
        return {"type": "http.request", "body": form, "more_body": False}

    async def answer(message: MutableMapping[str, Any]) -> None:
        answered.append(message)

    headers = [(name.encode(), value.encode()) for name, value in fields.items()]
    scope = {"type": "http", "method": "POST", "path": "/resume", "query_string": b"", "headers": headers}
    asyncio.run(page.app(scope, body, answer))
    assert 401 == answered[0]["status"]
    with page.journal.reading() as connection:
        assert is_stopped(connection)


def test_a_proof_lasts_no_longer_for_a_clock_that_is_set_back(page: ReviewPage) -> None:
    with page.journal.writing() as writing:
        secret = begin_session(writing, PERSON, How.PASSWORD, secrets.token_bytes)
    session = find_session(page.journal, secret)
    assert session is not None
    assert session.is_proved(page.clock())
    page.clock.pass_by(hours=-3)
    assert not session.is_proved(page.clock())


def test_the_cookie_is_kept_from_scripts_and_other_sites(page: ReviewPage) -> None:
    answer = page.client().post("/link", data={"secret": page.rows.link()})
    cookie = answer.headers["set-cookie"].lower()
    assert cookie.startswith("mailwarrant_session=")
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "__host-" not in cookie, "the prefix needs Secure, which browsers refuse on plain http"


def test_the_journal_can_be_opened_again_with_everybody_in_it(page: ReviewPage) -> None:
    again = open_journal(page.settings.journal.url, page.clock)
    with again.reading() as connection:
        assert [PERSON] == list(connection.execute(select(schema.people.c.name)).scalars())
    again.close()
