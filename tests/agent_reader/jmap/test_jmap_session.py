"""The session (RFC 8620 §2), statement by statement, and the read-only profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_reader.jmap.capabilities import AGENT, CORE, MAIL, SUBMISSION
from agent_reader.scope import Scope
from tests.agent_reader.served import ACCOUNT, BASE_URL, OTHER_ACCOUNT, House, house

pytestmark = pytest.mark.anyio


async def _session(served: House, path: str = "/jmap/session", **headers: str) -> dict[str, Any]:
    async with served.client(**headers) as client:
        response = await client.get(path)
    assert 200 == response.status_code
    assert "application/json" == response.headers["content-type"]
    session: dict[str, Any] = response.json()
    return session


@pytest.mark.statement("1", "10", "11")
async def test_the_session_has_every_member_and_absolute_addresses(served: House) -> None:
    session = await _session(served)
    assert {
        "capabilities",
        "accounts",
        "primaryAccounts",
        "username",
        "apiUrl",
        "downloadUrl",
        "uploadUrl",
        "eventSourceUrl",
        "state",
    } == set(session)
    assert "clerk" == session["username"]
    assert f"{BASE_URL}/jmap/api" == session["apiUrl"]
    path, _, query = session["downloadUrl"].partition("?")
    assert all(f"{{{name}}}" in path for name in ("accountId", "blobId", "name"))
    assert "type={type}" == query
    assert "{accountId}" in session["uploadUrl"]
    assert all(f"{{{name}}}" in session["eventSourceUrl"] for name in ("types", "closeafter", "ping"))


@pytest.mark.statement("3", "6", "7", "9")
async def test_the_limits_say_that_nothing_can_be_changed_and_keep_the_profiles_floor(served: House) -> None:
    core = (await _session(served))["capabilities"][CORE]
    assert {
        "maxSizeUpload": 0,
        "maxConcurrentUpload": 0,
        "maxSizeRequest": 10_000_000,
        "maxConcurrentRequests": 8,
        "maxCallsInRequest": 16,
        "maxObjectsInGet": 500,
        "maxObjectsInSet": 0,
        "collationAlgorithms": ["i;unicode-casemap"],
    } == core


@pytest.mark.statement("4", "5", "8", "9", "12", "15")
async def test_every_account_is_read_only_and_lists_mail_and_the_extension(served: House) -> None:
    session = await _session(served)
    assert {ACCOUNT, OTHER_ACCOUNT} == set(session["accounts"])
    assert {} == session["capabilities"][MAIL] == session["capabilities"][SUBMISSION] == session["capabilities"][AGENT]
    for account in session["accounts"].values():
        assert account["isReadOnly"] is True
        assert {MAIL, AGENT} == set(account["accountCapabilities"])
        mail = account["accountCapabilities"][MAIL]
        assert 100 <= mail["maxSizeMailboxName"]
        assert mail["mayCreateTopLevelMailbox"] is False
        assert (None, None) == (mail["maxMailboxesPerEmail"], mail["maxMailboxDepth"])
        assert 0 == mail["maxSizeAttachmentsPerEmail"]
        assert {"receivedAt", "sentAt", "size", "from", "to", "subject"} <= set(mail["emailQuerySortOptions"])
    assert {MAIL: ACCOUNT} == session["primaryAccounts"]


@pytest.mark.statement("12")
async def test_the_primary_account_is_one_that_the_token_has(served: House) -> None:
    for accounts in ((OTHER_ACCOUNT,), (OTHER_ACCOUNT, ACCOUNT), ("nobody",)):
        token = served.access.create_token("of-" + "-".join(accounts), scope=Scope(accounts=accounts)).text
        async with served.client(token) as client:
            session = (await client.get("/jmap/session")).json()
        assert {each for each in accounts if each != "nobody"} == set(session["accounts"])
        primary = {} if accounts == ("nobody",) else {MAIL: OTHER_ACCOUNT if len(accounts) == 1 else ACCOUNT}
        assert primary == session["primaryAccounts"]


@pytest.mark.statement("8")
async def test_each_sort_option_of_the_session_can_be_sorted_by(served: House) -> None:
    session = await _session(served)
    for option in session["accounts"][ACCOUNT]["accountCapabilities"][MAIL]["emailQuerySortOptions"]:
        keyword = {"keyword": "$seen"} if option.endswith("Keyword") else {}
        name, body = await served.one("Email/query", sort=[{"property": option} | keyword])
        assert "Email/query" == name, body


@pytest.mark.statement("2", "13")
async def test_the_state_changes_with_the_rest_and_only_then(served: House, tmp_path: Path) -> None:
    first = await _session(served)
    assert first == await _session(served) == await _session(served, "/.well-known/jmap")
    elsewhere = await _session(served, Host="localhost:9000")
    assert elsewhere["apiUrl"] == "http://localhost:9000/jmap/api"
    assert first["state"] != elsewhere["state"]
    states = {first["state"], elsewhere["state"]}
    for token in (
        served.access.create_token("another").text,
        served.access.create_token("shopper", scope=Scope(accounts=(ACCOUNT,))).text,
    ):
        async with served.client(token) as client:
            states.add((await client.get("/jmap/session")).json()["state"])
    # By the name alone, and by the accounts.
    assert 4 == len(states)


@pytest.mark.statement("28")
async def test_every_answer_has_the_state_of_the_session_of_who_asks_where_he_asks(served: House) -> None:
    tokens = (None, served.access.create_token("archivist", scope=Scope(accounts=(OTHER_ACCOUNT,))).text)
    for token in tokens:
        for host in ("localhost:8620", "localhost:9000"):
            async with served.client(token, Host=host) as client:
                session = (await client.get("/jmap/session")).json()
                for calls in ([], [["No/such", {}, "0"]], [["Core/echo", {}, "0"]]):
                    response = await client.post("/jmap/api", json={"using": [CORE], "methodCalls": calls})
                    assert session["state"] == response.json()["sessionState"]


async def test_a_public_address_stands_in_every_url_and_its_host_is_let_in(tmp_path: Path) -> None:
    with house(tmp_path, public_url="https://mail.example.com") as served:
        session = await _session(served, Host="mail.example.com")
        assert "https://mail.example.com/jmap/api" == session["apiUrl"]
        assert session == await _session(served)


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1@evil.example", "localhost:x", ""]
)
async def test_another_host_is_refused_with_and_without_a_token(served: House, host: str) -> None:
    for token in (None, ""):
        async with served.client(token, Host=host) as client:
            response = await client.get("/jmap/session")
        assert 421 == response.status_code
        assert "unknown_host" == response.json()["code"]


@pytest.mark.parametrize("host", ["localhost:9999", "127.0.0.1", "[::1]:8620", "LOCALHOST:8620"])
async def test_loopback_is_let_in_by_any_name_and_port(served: House, host: str) -> None:
    session = await _session(served, Host=host)
    assert f"http://{host}/jmap/api".lower() == session["apiUrl"].lower()


@pytest.mark.statement("14")
async def test_nothing_is_cached_or_guessed(served: House) -> None:
    async with served.client() as client, served.client("") as nobody:
        for response in (await client.get("/jmap/session"), await nobody.get("/jmap/session"), await client.get("/x")):
            assert "no-store" == response.headers["cache-control"]
            assert "nosniff" == response.headers["x-content-type-options"]


@pytest.mark.statement("43")
async def test_every_refusal_is_a_problem_document(served: House) -> None:
    async with served.client() as client:
        refused = [
            (404, await client.get("/")),
            (404, await client.get("/docs")),
            (404, await client.get("/openapi.json")),
            (405, await client.post("/jmap/session")),
            (405, await client.get("/jmap/api")),
            (403, await client.post(f"/jmap/upload/{ACCOUNT}/", content=b"octets")),
            (404, await client.get(f"/jmap/download/{ACCOUNT}/Bx/a.txt?type=text/plain")),
            (400, await client.get("/jmap/eventsource?types=*&closeafter=yes&ping=0")),
        ]
    for status, response in refused:
        assert status == response.status_code, response.text
        assert "application/problem+json" == response.headers["content-type"]
        assert {"type", "status", "code", "detail", "fix", "retryable"} <= set(json.loads(response.content))
        assert status == response.json()["status"]


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        ("", "no_token"),
        ("Bearer", "no_token"),
        ("Negotiate abc", "no_token"),
        ("Bearer nonsense", "unknown_token"),
        ("Bearer mwp_aaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_00000000", "wrong_token_kind"),
    ],
)
@pytest.mark.statement("16")
async def test_without_a_reader_token_every_door_says_how_to_authenticate_and_nothing_else(
    served: House, authorization: str, code: str
) -> None:
    async with served.client("", Authorization=authorization) as client:
        for response in (
            await client.get("/jmap/session"),
            await client.get("/.well-known/jmap"),
            await client.post("/jmap/api", content=b"{}"),
            await client.get(f"/jmap/download/{ACCOUNT}/Bx/a?type=a"),
            await client.get("/jmap/eventsource"),
        ):
            assert 401 == response.status_code
            assert code == response.json()["code"]
            assert "Bearer" in response.headers["www-authenticate"]
            assert ACCOUNT not in response.text


async def test_two_authorization_fields_are_none(served: House) -> None:
    async with served.client("") as client:
        fields = [("Authorization", f"Bearer {served.token}"), ("Authorization", "Bearer other")]
        response = await client.get("/jmap/session", headers=fields)
    assert 401 == response.status_code


@pytest.mark.statement("16")
async def test_a_client_that_knows_only_basic_sends_the_token_as_password(served: House) -> None:
    async with served.client("") as client:
        response = await client.get("/jmap/session", auth=("anybody", served.token))
    assert 200 == response.status_code


@pytest.mark.statement("43")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_no_other_http_method_opens_anything(served: House, method: str) -> None:
    paths = ["/jmap/session", "/jmap/api", f"/jmap/upload/{ACCOUNT}/", f"/jmap/download/{ACCOUNT}/Bx/a", "/nothing"]
    async with served.client() as client:
        for path in paths:
            response = await client.request(method, path, content=b"octets")
            assert (404 if path == "/nothing" else 405) == response.status_code
            assert "application/problem+json" == response.headers["content-type"]


@pytest.mark.statement("42")
async def test_an_unknown_capability_comes_before_an_unknown_account_and_read_only(served: House) -> None:
    body = {"using": [CORE, MAIL, "urn:x"], "methodCalls": [["Email/set", {"accountId": "nobody"}, "0"]]}
    response = await served.post(body)
    assert (400, "unknown_capability") == (response.status_code, response.json()["code"])
