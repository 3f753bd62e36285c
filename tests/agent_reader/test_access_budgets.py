"""An hour's budget of octets, at the door and in the books."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_reader.access import Access, Agent, Shown
from shared.problem import Problem
from tests.agent_reader.empty import empty_access
from tests.agent_reader.jmap.scoped_world import ACCOUNT, NOW, World, world
from tests.agent_reader.mirrored import Moment

HOUR = timedelta(hours=1)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> Moment:
    return Moment(NOW)


@pytest.fixture
def access(tmp_path: Path, clock: Moment) -> Iterator[Access]:
    empty_access(tmp_path)
    with Access(tmp_path, clock, secrets.token_bytes) as opened:
        yield opened


def _read(access: Access, octets: int, token_id: str = "aaaaaaaa", budget: int | None = 1_000) -> Problem | None:
    agent = Agent("clerk", token_id, budget=budget)
    try:
        access.record(agent, [Shown("Email/get", "shop", ("M1",), octets=octets)], octets)
    except Problem as problem:
        return problem
    return None


def test_an_answer_past_the_budget_is_refused_with_the_time_until_it_fits(access: Access, clock: Moment) -> None:
    assert _read(access, 600) is None
    clock.now += timedelta(minutes=20)
    assert _read(access, 300) is None
    refused = _read(access, 101)
    assert refused is not None
    assert (429, "budget_spent", True) == (refused.status, refused.code, refused.retryable)
    clock.now += timedelta(seconds=refused.extra["retryAfter"] - 61)
    assert _read(access, 101) is not None
    clock.now += timedelta(seconds=61)
    assert _read(access, 101) is None
    # Nothing of what was refused is on record.
    assert [600, 300, 101] == [line.octets for line in access.lines(agent=None, since=None, email_id=None, limit=9)]


@pytest.mark.parametrize("second", [0, 1, 30, 59])
def test_an_hour_is_no_shorter_than_an_hour_and_a_minute_longer_at_most(
    access: Access, clock: Moment, second: int
) -> None:
    start = clock.now = NOW + timedelta(seconds=second)
    # To the octet.
    assert _read(access, 1_000) is None
    assert _read(access, 1) is not None
    clock.now = start + HOUR - timedelta(microseconds=1)
    assert _read(access, 1) is not None
    clock.now = start + HOUR + timedelta(minutes=1)
    assert _read(access, 1_000) is None


@pytest.mark.parametrize("octets", [1, 399, 600, 601, 1_000])
def test_the_time_that_is_told_is_enough_and_no_longer_than_needed(access: Access, clock: Moment, octets: int) -> None:
    clock.now += timedelta(milliseconds=500)
    assert _read(access, 600) is None
    clock.now += timedelta(minutes=20)
    assert _read(access, 400) is None
    refused = _read(access, octets)
    assert refused is not None
    clock.now += timedelta(seconds=refused.extra["retryAfter"] - 2)
    assert _read(access, octets) is not None
    clock.now += timedelta(seconds=2)
    assert _read(access, octets) is None


def test_what_was_charged_with_the_record_is_known_to_who_charges_the_rest(access: Access) -> None:
    for budget in (None, 1_000):
        agent = Agent("clerk", "aaaaaaaa", budget=budget)
        access.record(agent, [Shown("Email/get", "shop", ("M1",))], 300)
        access.budgets.charge(agent, 50)
        assert 350 == agent.meter.charged


def test_what_goes_out_after_the_clock_went_back_is_counted_still(access: Access, clock: Moment) -> None:
    assert _read(access, 600) is None
    clock.now = NOW - timedelta(minutes=10)
    assert _read(access, 400) is None
    clock.now = NOW + timedelta(minutes=50)
    assert _read(access, 1) is not None
    clock.now = NOW + HOUR + timedelta(minutes=1)
    assert _read(access, 1_000) is None


def test_an_answer_that_no_hour_has_room_for_says_so(access: Access) -> None:
    refused = _read(access, 1_001)
    assert refused is not None
    assert ("answer_over_budget", False) == (refused.code, refused.retryable)
    # It never fits: a client that came again after a while would do so for ever.
    assert "retryAfter" not in refused.extra


def test_each_token_has_a_budget_of_its_own_and_one_without_has_none(access: Access) -> None:
    assert _read(access, 1_000) is None
    assert _read(access, 1_000, "bbbbbbbb") is None
    assert _read(access, 1_000) is not None
    assert _read(access, 10_000_000, "cccccccc", None) is None


def test_a_restart_gives_no_second_budget(access: Access, tmp_path: Path, clock: Moment) -> None:
    assert _read(access, 900) is None
    with Access(tmp_path, clock, secrets.token_bytes) as again:
        refused = _read(again, 200)
        assert refused is not None
        assert 3_500 < refused.extra["retryAfter"] <= 3_660
        clock.now += HOUR + timedelta(minutes=2)
        assert _read(again, 200) is None


@pytest.fixture
def served(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


async def _ask(client: httpx.AsyncClient, *calls: tuple[str, dict[str, Any]]) -> httpx.Response:
    method_calls = [[name, {"accountId": ACCOUNT} | arguments, "0"] for name, arguments in calls]
    body = {"using": ["urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"], "methodCalls": method_calls}
    return await client.post("/jmap/api", content=json.dumps(body), headers={"Content-Type": "application/json"})


@pytest.mark.anyio
async def test_every_door_is_charged_and_refuses_with_retry_after(served: World) -> None:
    served.tokens["poor"] = served.access.create_token("poor", budget=20_000).text
    spent = 0
    async with served.client("poor") as client:
        spent += len((await client.get("/jmap/session")).content)
        spent += len((await _ask(client, ("Core/echo", {"a": "x" * 3_000}))).content)
        spent += len((await client.get(f"/jmap/download/{ACCOUNT}/B{served.mail[0].id[1:]}/x")).content)
        for _ in range(100):
            answer = await _ask(client, ("Email/get", {"ids": [served.mail[0].id], "fetchAllBodyValues": True}))
            if answer.status_code != 200:
                break
            spent += len(answer.content)
        assert 20_000 - len(answer.content) - 3_000 < spent <= 20_000
        assert (429, "budget_spent") == (answer.status_code, answer.json()["code"])
        assert int(answer.headers["retry-after"]) == answer.json()["retryAfter"] > 0
        big = await _ask(client, ("Core/echo", {"a": "x" * 3_000}))
        assert (429, True) == (big.status_code, "x" * 100 not in big.text)
    async with served.client("whole") as client:
        assert 200 == (await _ask(client, ("Core/echo", {}))).status_code
    # What left is on record to the octet, with the place it went to.
    lines = served.access.lines(agent="poor", since=None, email_id=None, limit=1_000)
    assert {"127.0.0.1"} == {line.peer for line in lines}
    assert ("download", len(served.mail[0].octets)) == (lines[0].method, lines[0].octets)
    assert {"whole message"} == set(lines[0].parts[served.mail[0].id])
    assert {"header", "structure", "preview", "text/1"} == set(lines[1].parts[served.mail[0].id])


@pytest.mark.anyio
async def test_a_token_whose_hour_is_spent_is_told_nothing_for_nothing(served: World) -> None:
    """An answer without octets is charged nothing, and tells what is there all the same."""
    served.tokens["spent"] = token = served.access.create_token("spent", budget=10).text
    agent = served.access.authenticate(f"Bearer {token}")
    assert isinstance(agent, Agent)
    served.access.budgets.charge(agent, 10)
    blob_id = f"B{served.mail[0].id[1:]}"
    async with served.client("spent") as client:
        for http_method, fields in (("HEAD", {}), ("GET", {"If-None-Match": f'"{blob_id}"'})):
            answer = await client.request(http_method, f"/jmap/download/{ACCOUNT}/{blob_id}/x", headers=fields)
            assert 429 == answer.status_code


@pytest.mark.anyio
async def test_a_stream_that_has_nothing_to_tell_ends_with_its_token(served: World, tmp_path: Path) -> None:
    token = served.access.create_token("listener")
    began, sent = asyncio.Event(), list[Any]()

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "http.response.body":
            began.set()

    async def receive() -> Any:
        await asyncio.Event().wait()

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/jmap/eventsource",
        "raw_path": b"/jmap/eventsource",
        "query_string": b"types=*&closeafter=no&ping=300",
        "headers": [(b"host", b"localhost:8620"), (b"authorization", f"Bearer {token.text}".encode())],
        "client": ("127.0.0.1", 40000),
        "server": ("localhost", 8620),
        "root_path": "",
        "state": {},
    }
    streaming = asyncio.create_task(served.app(scope, receive, send))
    async with asyncio.timeout(30):
        await began.wait()
        assert not streaming.done()
        # By another process, as the command does.
        with Access(tmp_path / "store", lambda: NOW, secrets.token_bytes) as command:
            assert command.revoke(token.id)
        await streaming
    assert (200, False) == (sent[0]["status"], sent[-1]["more_body"])
    served.tokens["listener"] = token.text
    async with served.client("listener") as client:
        assert 401 == (await client.get("/jmap/session")).status_code
