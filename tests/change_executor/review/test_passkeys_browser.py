"""Passkeys in Chromium with its virtual authenticator: the second way in, and the only one."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import select

from change_executor.audit import verify
from change_executor.config import Review
from change_executor.journal import schema
from change_executor.review.passkeys import CHALLENGE_LASTS, Challenges, relying_party
from change_executor.review.people import add_person
from tests.servers.browser import NewPage, console_errors
from tests.servers.desk import PASSWORD, PERSON, ReviewPage, fields_of

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession

AUTHENTICATOR = {
    "protocol": "ctap2",
    "ctap2Version": "ctap2_1",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


class Device:
    """The virtual authenticator of a page (WebAuthn §11)."""

    def __init__(self, page: Page) -> None:
        self._session: CDPSession = page.context.new_cdp_session(page)
        self._session.send("WebAuthn.enable")
        added = self._session.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
        self._id: str = added["authenticatorId"]

    def verifies(self, verified: bool) -> None:
        self._session.send("WebAuthn.setUserVerified", {"authenticatorId": self._id, "isUserVerified": verified})

    def credentials(self) -> list[dict[str, object]]:
        found = self._session.send("WebAuthn.getCredentials", {"authenticatorId": self._id})
        return list(found["credentials"])


def events(page: ReviewPage, prefix: str) -> list[str]:
    columns = schema.events.c
    with page.journal.reading() as connection:
        rows = connection.execute(
            select(columns.kind, columns.actor).where(columns.kind.like(f"{prefix}%")).order_by(columns.seq)
        ).all()
    return [f"{row.kind} {row.actor}" for row in rows]


def come_by_link(review_page: ReviewPage, page: Page, name: str = PERSON) -> None:
    page.goto(f"{review_page.url}/link#{review_page.rows.link(name)}")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def sign_in_by_passkey(review_page: ReviewPage, page: Page) -> None:
    page.goto(f"{review_page.url}/sign-in?next=/log")
    page.get_by_role("button", name="Use a passkey").click()


def test_a_passkey_is_the_only_way_in_from_the_first_moment_and_proves_who_is_there(
    review_page: ReviewPage, browser_page: Page
) -> None:
    page, device = browser_page, Device(browser_page)
    add_person(review_page.journal, "ada")
    come_by_link(review_page, page, "ada")
    page.get_by_role("button", name="Make a passkey").click()
    expect(page.get_by_role("heading", name="You are ada")).to_be_visible()
    (made,) = device.credentials()
    assert (True, "localhost") == (made["isResidentCredential"], made["rpId"])
    page.get_by_role("button", name="Sign out").click()

    sign_in_by_passkey(review_page, page)
    expect(page.get_by_role("heading", name="Log")).to_be_visible()
    review_page.clock.pass_by(minutes=6)
    page.get_by_role("button", name="Stop all").click()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("heading", name="Confirm that it is you")).to_be_visible()
    expect(page.get_by_label("Your password")).to_have_count(0)
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_text("Everything is stopped.")).to_be_hidden()
    expect(page.get_by_role("heading", name="Log")).to_be_visible()
    added, *used = events(review_page, "passkey:")
    assert "passkey:added person:ada" == added
    assert ["passkey:used person:ada"] * 2 == used
    # The page that asks is answered with 403, which Chromium notes.
    assert [] == [each for each in console_errors(page) if "403" not in each]
    with review_page.journal.reading() as connection:
        assert () == verify(connection).findings


def test_a_passkey_beside_the_password_and_then_instead_of_it_but_never_nothing(
    review_page: ReviewPage, browser_page: Page
) -> None:
    page, device = browser_page, Device(browser_page)
    come_by_link(review_page, page)
    page.goto(f"{review_page.url}/settings")
    page.get_by_role("button", name="Add a passkey").click()
    # She came by a link, so the password is asked for; what the device made goes along.
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm and go on").click()
    expect(page.get_by_text("never used")).to_be_visible()
    assert 1 == len(device.credentials())
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_text("The browser gave no passkey.")).to_be_visible()
    page.get_by_role("button", name="Remove the password").click()
    expect(page.get_by_text("No password")).to_be_visible()
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_role("heading", name="That is your only way in")).to_be_visible()
    page.goto(review_page.url)
    page.get_by_role("button", name="Sign out").click()
    sign_in_by_passkey(review_page, page)
    expect(page.get_by_role("heading", name="Log")).to_be_visible()
    assert "person:password_forgotten person:rosa" in events(review_page, "person:")


def test_a_device_that_verified_nobody_a_removed_passkey_and_one_of_another_page_let_nobody_in(
    review_page: ReviewPage, browser_page: Page
) -> None:
    page, device = browser_page, Device(browser_page)
    page.goto(f"{review_page.url}/sign-in")
    page.get_by_label("Name").fill(PERSON)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.goto(f"{review_page.url}/settings")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_text("never used")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    device.verifies(False)
    sign_in_by_passkey(review_page, page)
    expect(page.get_by_text("The browser gave no passkey.")).to_be_visible()
    device.verifies(True)
    page.goto(f"{review_page.url.replace('localhost', '127.0.0.1')}/sign-in")
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_text("The browser gave no passkey.")).to_be_visible()
    with review_page.journal.writing() as writing:
        writing.connection.execute(schema.passkeys.delete())
    sign_in_by_passkey(review_page, page)
    expect(page.get_by_role("alert")).to_contain_text("not known here any more")


def test_what_a_passkey_answered_is_worth_nothing_twice_elsewhere_or_late(
    review_page: ReviewPage, new_browser_page: NewPage
) -> None:
    page = new_browser_page()
    Device(page)
    page.goto(f"{review_page.url}/sign-in")
    page.get_by_label("Name").fill(PERSON)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.goto(f"{review_page.url}/settings")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_text("never used")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()

    def answered() -> str:
        page.goto(f"{review_page.url}/sign-in")
        # Until it has failed, or it might still arrive and be spent.
        with page.expect_event("requestfailed", lambda request: request.url.endswith("/sign-in/passkey")) as sent:
            page.route("**/sign-in/passkey", lambda route: route.abort())
            page.get_by_role("button", name="Use a passkey").click()
        page.unroute("**/sign-in/passkey")
        return str(parse_qs(sent.value.post_data or "")["credential"][0])

    def status(credential: str) -> int:
        return review_page.client().post("/sign-in/passkey", data={"credential": credential}).status_code

    good = answered()
    forged = json.loads(good)
    forged["response"]["signature"] = forged["response"]["signature"][:-4] + "AAAA"
    for wrong in ("", "{}", "[]", "null", '{"id": 1}', json.dumps(forged), good[:-2], "[" * 5000):
        assert 403 == status(wrong), wrong[:40]
    # To prove who is there, a challenge of its own is needed.
    client = review_page.signed_in()
    csrf = fields_of(client.get("/").text, "/sign-out")["csrf"]
    review_page.clock.pass_by(minutes=4)
    assert 303 == status(good)
    assert 403 == status(good)
    late = answered()
    proved = events(review_page, "session:proved")
    review_page.clock.pass_by(minutes=2)
    assert 403 == client.post("/resume", data={"csrf": csrf, "proof-credential": late}).status_code
    review_page.clock.pass_by(minutes=4)
    assert 403 == status(late)
    assert proved == events(review_page, "session:proved")


def test_a_challenge_is_for_one_purpose_once_and_within_five_minutes() -> None:
    challenges, now = Challenges(secrets.token_bytes), datetime(2026, 11, 30, tzinfo=UTC)
    challenge = challenges.new("sign in", now)
    assert challenges.is_good(challenge, "sign in", now)
    assert not challenges.is_good(challenge, "prove x", now)
    assert not challenges.is_good(challenge, "sign in", now + CHALLENGE_LASTS)
    assert not challenges.is_good(bytes([challenge[0] ^ 1]) + challenge[1:], "sign in", now)
    assert not challenges.is_good(b"", "sign in", now)
    assert not Challenges(secrets.token_bytes).is_good(challenge, "sign in", now)
    challenges.met(challenge, now)
    assert not challenges.is_good(challenge, "sign in", now)
    challenges.met(challenges.new("sign in", now), now + CHALLENGE_LASTS + timedelta(seconds=1))
    assert 1 == len(challenges._met), "what has ended is forgotten"


@pytest.mark.parametrize(
    ("keys", "party"),
    [
        ({"listen": "localhost:8622"}, ("localhost", "http://localhost:8622")),
        ({"public_url": "https://review.shop.example"}, ("review.shop.example", "https://review.shop.example")),
        (
            {"public_url": "https://review.shop.example:8443"},
            ("review.shop.example", "https://review.shop.example:8443"),
        ),
        ({"public_url": "http://review.shop.example"}, None),
        ({"public_url": "https://192.0.2.7"}, None),
    ],
)
def test_the_relying_party_is_the_host_of_the_pages_address(
    keys: dict[str, str], party: tuple[str, str] | None
) -> None:
    found = relying_party(Review.model_validate({"allow_uids": [0]} | keys))
    assert party == (None if found is None else (found.id, found.origin))
