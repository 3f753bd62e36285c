"""The HTTP door with the SDK's own client, in both protocol eras, over a real socket."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from agent_reader.door.keeper import Places
from agent_reader.errors import AccessUnavailable
from agent_reader.mcp.door import McpDoor, beside
from shared.tokens import TokenKind, new_token
from tests.agent_reader.mcp.desk import Desked, desked, id_of, short
from tests.agent_reader.mcp.served import ERAS, app_of, client, served, text_of
from tests.agent_reader.mcp.test_mcp_short_ids import TWINS
from tests.agent_reader.served import MESSAGES

TOOLS = ["whats_new", "search_mail", "read_mail", "read_thread", "read_attachment", "list_mailboxes"]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desked]:
    with desked(tmp_path_factory.mktemp("mcp"), (*MESSAGES, *TWINS)) as found:
        yield found


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_of_either_era_lists_calls_and_is_told_the_rule(standing: Desked, era: str) -> None:
    house = standing.house
    async with served(app_of(standing.desk, house)) as address, client(address, house.token, era) as opened:
        assert TOOLS == [tool.name for tool in (await opened.list_tools()).tools]
        assert "never instructions" in str(opened.instructions)
        found = await opened.call_tool("search_mail", {"text": "teapot"})
        assert short(id_of(MESSAGES[0])) in text_of(found)
        assert not found.is_error
        assert found.structured_content is None
        prompts = (await opened.list_prompts()).prompts
        assert ["daily_triage", "chase_answers", "support_queue"] == [prompt.name for prompt in prompts]
        prompt = await opened.get_prompt("daily_triage")
        assert "refusal is final" in prompt.messages[0].content.text  # type: ignore[union-attr]  # a text, as asked
        wrong = await opened.call_tool("read_mail", {"ids": "nonsense"})
        assert wrong.is_error
        assert text_of(wrong).startswith("unknown_email")
    assert not house.log.calls


def posted(address: str, body: object, path: str = "/mcp", **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(f"{address}{path}", content=content, headers=ACCEPT | headers, trust_env=False, timeout=30)


@pytest.mark.anyio
async def test_every_kind_of_token_but_the_right_one_is_refused_as_at_the_other_door(standing: Desked) -> None:
    access = standing.house.access
    revoked = access.create_token("clerk")
    access.revoke(revoked.id)
    tokens = {
        "no_token": None,
        "unknown_token": "mwr_nonsense",
        "wrong_token_kind": new_token(TokenKind.PROPOSER, secrets.token_bytes).text,
        "revoked_token": revoked.text,
    }
    async with served(app_of(standing.desk, standing.house)) as address:
        for code, token in tokens.items():
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            answer = await asyncio.to_thread(posted, address, INITIALIZE, **headers)
            assert (401, code) == (answer.status_code, answer.json()["code"])
            # A challenge without metadata: some clients drop their token where a server names an issuer.
            assert "resource_metadata" not in answer.headers["www-authenticate"]
            assert token is None or token not in answer.text
        right = {"Authorization": f"Bearer {standing.house.token}"}
        assert 200 == (await asyncio.to_thread(posted, address, INITIALIZE, **right)).status_code
        for method in ("GET", "PUT", "DELETE", "HEAD", "OPTIONS"):
            answer = await asyncio.to_thread(httpx.request, method, f"{address}/mcp", headers=right, trust_env=False)
            assert (405, "POST") == (answer.status_code, answer.headers["allow"])
        # The other door is where it was, and there are no others.
        session = await asyncio.to_thread(httpx.get, f"{address}/jmap/session", headers=right, trust_env=False)
        assert 200 == session.status_code
        for path in ("/mcp/", "/mcp/x", "/sse", "/.well-known/oauth-protected-resource"):
            answer = await asyncio.to_thread(httpx.post, f"{address}{path}", headers=right, trust_env=False)
            assert 404 == answer.status_code, path
    assert not standing.house.log.calls


@pytest.mark.anyio
async def test_web_pages_and_other_hosts_are_refused(standing: Desked) -> None:
    right = {"Authorization": f"Bearer {standing.house.token}"}
    async with served(app_of(standing.desk, standing.house, "https://mail.example")) as address:

        async def status(**headers: str) -> int:
            return (await asyncio.to_thread(posted, address, INITIALIZE, **right | headers)).status_code

        assert 421 == await status(Host="evil.example")
        assert 421 == await status(Host="localhost.evil.example")
        assert 403 == await status(Origin="https://evil.example")
        assert 403 == await status(Origin="null")
        assert 403 == await status(Origin="http://localhost.evil.example")
        assert 200 == await status(Origin="http://localhost:3000")
        assert 200 == await status(Host="mail.example", Origin="https://mail.example")


def _with_limit(call: dict[str, Any], limit: str) -> bytes:
    """A search whose limit is this piece of JSON."""
    return (
        json.dumps(call | {"params": {"name": "search_mail", "arguments": {"limit": 0}}})
        .replace(": 0}", f": {limit}}}")
        .encode()
    )


@pytest.mark.anyio
async def test_what_is_too_large_or_no_message_is_refused_and_nothing_is_echoed(standing: Desked) -> None:
    right = {"Authorization": f"Bearer {standing.house.token}"}
    call = INITIALIZE | {"method": "tools/call", "params": {"name": "zanzibar", "arguments": {"zanzibar": "zanzibar"}}}
    bodies: list[tuple[int, object]] = [
        (413, b"x" * (64 * 1024 + 1)),
        (400, b"zanzibar"),
        (400, b"[" * 60_000),
        (400, [INITIALIZE, INITIALIZE]),
        (200, call),
        (200, call | {"params": {"name": "search_mail", "arguments": {"limit": "zanzibar"}}}),
        (200, call | {"params": {"name": "search_mail", "arguments": "zanzibar"}}),
        (200, call | {"params": {"name": ["zanzibar"]}}),
        (200, call | {"method": "prompts/get", "params": {"name": "zanzibar"}}),
        (200, call | {"method": "resources/read", "params": {"uri": "zanzibar"}}),
        # Well formed, and nothing that anybody should have to walk through.
        (400, _with_limit(call, "[" * 30_000 + "]" * 30_000)),
        (400, _with_limit(call, '{"a":' * 8_000 + "1" + "}" * 8_000)),
        (400, _with_limit(call, "9" * 5_000)),
        (400, _with_limit(call, '"\\ud800"')),
        (200, _with_limit(call, "1e999")),
        (200, _with_limit(call, "NaN")),
        (200, _with_limit(call, '"\\u0000"')),
        (400, b"[" + b",".join([_with_limit(call, "1")] * 300) + b"]"),
        # Neither asks for anything, so that neither is answered.
        (202, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        (202, {"jsonrpc": "2.0", "id": 1, "result": {"zanzibar": 1}}),
    ]
    async with served(app_of(standing.desk, standing.house)) as address:
        for status, body in bodies:
            answer = await asyncio.to_thread(posted, address, body, **right)
            assert status == answer.status_code, answer.text
            assert "zanzibar" not in answer.text
            # A refusal, by JSON-RPC or by a tool that looked at its arguments, and no fault of ours.
            assert status == 202 or '"error"' in answer.text or '"isError":true' in answer.text or status == 413
    assert not standing.house.log.calls


@pytest.mark.anyio
async def test_the_relay_is_told_the_whole_id_of_what_the_token_shows_and_whoever_else_asks_nothing(
    standing: Desked,
) -> None:
    door = McpDoor(standing.desk, standing.house.access, places := Places(1))
    right = {"Authorization": f"Bearer {standing.house.token}"}
    other = {"Authorization": f"Bearer {new_token(TokenKind.PROPOSER, secrets.token_bytes).text}"}
    receipt, first, second = id_of(MESSAGES[2]), *map(id_of, TWINS)
    asked: list[tuple[int, str, object, dict[str, str]]] = [
        (404, "ambiguous_id", {"beginsWith": short(first)}, right),
        (404, "unknown_email", {"beginsWith": receipt[:10]}, right),
        (404, "unknown_email", {"beginsWith": "zanzibar"}, right),
        (400, "malformed_id_request", {"beginsWith": receipt, "zanzibar": 1}, right),
        (400, "malformed_id_request", {"beginsWith": [receipt]}, right),
        (400, "malformed_id_request", b"zanzibar", right),
        (400, "malformed_id_request", b"[" * 1_000, right),
        (413, "request_too_large", b"x" * 2_000, right),
        (401, "no_token", {"beginsWith": short(receipt)}, {}),
        (401, "wrong_token_kind", {"beginsWith": short(receipt)}, other),
        (421, "unknown_host", {"beginsWith": short(receipt)}, right | {"Host": "evil.example"}),
    ]
    async with served(beside(door, standing.house.app)) as address:

        async def said(body: object, **headers: str) -> httpx.Response:
            return await asyncio.to_thread(posted, address, body, "/agent/email-id", **headers)

        for start in (receipt, short(receipt)):
            answer = await said({"beginsWith": start}, **right)
            assert (200, {"emailId": receipt}) == (answer.status_code, answer.json())
        for status, code, body, headers in asked:
            answer = await said(body, **headers)
            assert (status, code) == (answer.status_code, answer.json()["code"]), answer.text
            assert "zanzibar" not in answer.text
        both = (await said({"beginsWith": short(first)}, **right)).text
        assert (True, True) == (first in both, second in both)
        got = await asyncio.to_thread(httpx.get, f"{address}/agent/email-id", headers=right, trust_env=False)
        assert (405, "POST") == (got.status_code, got.headers["allow"])
        with places.place(standing.agent):
            assert 429 == (await said({"beginsWith": receipt}, **right)).status_code
    assert "zanzibar" not in str(standing.house.log.calls)


@pytest.mark.anyio
async def test_an_agent_has_its_places_whichever_door_it_comes_by(standing: Desked) -> None:
    right = {"Authorization": f"Bearer {standing.house.token}"}
    door = McpDoor(standing.desk, standing.house.access, Places(1))
    async with served(beside(door, standing.house.app)) as address:
        with door._places.place(standing.agent):
            answer = await asyncio.to_thread(posted, address, INITIALIZE, **right)
        assert (429, "too_many_requests") == (answer.status_code, answer.json()["code"])
        assert 200 == (await asyncio.to_thread(posted, address, INITIALIZE, **right)).status_code


@pytest.mark.anyio
async def test_whatever_path_is_asked_for_the_other_door_answers_and_refuses_by_its_own_rules(standing: Desked) -> None:
    app = app_of(standing.desk, standing.house)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost:8620") as anybody:
        for path in ("/none", "/no%0Ane", "/no%0D%0Ane", "/jmap/download/shop/x/a%0Ab"):
            refused = await anybody.get(path)
            assert (404, "application/problem+json") == (refused.status_code, refused.headers["content-type"]), path
            assert "nosniff" == refused.headers["x-content-type-options"], path


@pytest.mark.anyio
async def test_the_door_makes_itself_ready_some_time_after_the_start_though_nobody_knocked(standing: Desked) -> None:
    early, late = (
        McpDoor(standing.desk, standing.house.access, Places(1), warm_after=seconds) for seconds in (0.0, 3_600.0)
    )
    async with late.running(), early.running(), asyncio.timeout(60):
        # The import runs in a thread, and nobody is told of its end but who knocks.
        while not early.is_ready:  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.005)
        assert not late.is_ready


@pytest.mark.anyio
async def test_where_the_read_log_cannot_be_written_no_mail_is_shown(
    standing: Desked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise AccessUnavailable("FullError")

    monkeypatch.setattr(standing.house.access, "record", full)
    async with (
        served(app_of(standing.desk, standing.house)) as address,
        client(address, standing.house.token, "auto") as opened,
    ):
        answer = await opened.call_tool("search_mail", {"text": "teapot"})
        assert text_of(answer).startswith("read_log_unavailable: ")
        assert "teapot" not in text_of(answer)
    standing.house.log.calls.clear()


@pytest.mark.anyio
async def test_a_token_whose_hour_is_spent_is_told_so_at_this_door_too(standing: Desked) -> None:
    right = {"Authorization": f"Bearer {standing.house.access.create_token('spender', budget=4_000).text}"}
    call = INITIALIZE | {"method": "tools/call", "params": {"name": "search_mail", "arguments": {}}}
    async with served(app_of(standing.desk, standing.house)) as address:
        answers = [await asyncio.to_thread(posted, address, call, **right) for _ in range(10)]
    assert "teapot" in answers[0].text
    assert "teapot" not in answers[-1].text
    assert "budget" in answers[-1].text
