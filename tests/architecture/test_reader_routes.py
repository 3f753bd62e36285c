"""Every route of the reader with every kind of token and every HTTP method: what is not in the tables is refused."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from starlette.routing import Route as StarletteRoute

from agent_reader import private_socket
from agent_reader.door import bare_app
from agent_reader.door.faults import Faults
from agent_reader.jmap import http as jmap_http
from shared.tokens import TokenKind, new_token
from tests.agent_reader.served import ACCOUNT, BASE_URL, House, house

HTTP_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "MOVE")
TOKENS = ("none", "malformed", "proposer", "expired", "revoked", "right")
CODES = {
    "none": "no_token",
    "malformed": "unknown_token",
    "proposer": "wrong_token_kind",
    "expired": "expired_token",
    "revoked": "revoked_token",
}
# What a right token gets, with the HTTP method that the table names.
OPENED = {
    "/.well-known/jmap": 200,
    "/jmap/session": 200,
    "/jmap/api": 200,
    "/jmap/download/{account_id}/{blob_id}/{name:path}": 404,
    "/jmap/upload/{account_id}/": 403,
    # Without its arguments.
    "/jmap/eventsource": 400,
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("routes")) as open_house:
        yield open_house


@pytest.fixture(scope="module")
def tokens(served: House) -> dict[str, str | None]:
    expired = served.access.create_token("clerk", timedelta(seconds=1)).text
    served.clock.forward(timedelta(seconds=2))
    revoked = served.access.create_token("clerk")
    served.access.revoke(revoked.id)
    return {
        "none": None,
        "malformed": "mwr_nonsense",
        "proposer": new_token(TokenKind.PROPOSER, secrets.token_bytes).text,
        "expired": expired,
        "revoked": revoked.text,
        "right": served.token,
    }


def _url(path: str) -> str:
    return path.replace(":path", "").format(account_id=ACCOUNT, blob_id="Bx", name="a.txt")


def test_the_table_of_routes_is_what_the_app_has() -> None:
    assert set(OPENED) == {route.path for route in jmap_http.ROUTES}


def test_the_app_has_no_route_beside_the_table(served: House) -> None:
    assert [(route.path, route.http_method) for route in jmap_http.ROUTES] == [
        (route.path, "POST" if "POST" in (route.methods or ()) else "GET")
        for route in served.app.routes
        if isinstance(route, StarletteRoute)
    ]
    assert len(jmap_http.ROUTES) == len(served.app.routes)


@pytest.mark.anyio
@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("route", jmap_http.ROUTES, ids=lambda route: route.path)
async def test_every_route_with_every_token_and_every_http_method(
    served: House, tokens: dict[str, str | None], route: bare_app.Route, token: str
) -> None:
    text = tokens[token]
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {text}"} if text else {})
    transport = httpx.ASGITransport(app=served.app)
    async with httpx.AsyncClient(transport=transport, base_url=BASE_URL, headers=headers) as client:
        for http_method in HTTP_METHODS:
            response = await client.request(http_method, _url(route.path), content=b'{"using":[],"methodCalls":[]}')
            allowed = {route.http_method, "HEAD"} if route.http_method == "GET" else {route.http_method}
            if http_method not in allowed:
                assert 405 == response.status_code, (http_method, response.text)
            elif token == "right":
                assert OPENED[route.path] == response.status_code, response.text
                continue
            else:
                assert 401 == response.status_code
                assert "www-authenticate" in response.headers
                assert http_method == "HEAD" or response.json()["code"] == CODES[token]
            assert "application/problem+json" == response.headers["content-type"]
            assert ACCOUNT not in response.text
            assert text is None or text not in response.text
    # A refused token leaves no line in the log, and an opened door none with a token in it.
    assert not served.log.calls


@pytest.mark.anyio
async def test_no_path_of_the_executor_and_no_documentation_is_here(served: House) -> None:
    async with served.client() as client:
        for path in (
            "/",
            "/v1/proposals",
            "/docs",
            "/redoc",
            "/openapi.json",
            "/locate",
            "/reads",
            "/jmap/api/",
            "/JMAP/session",
        ):
            for http_method in ("GET", "POST"):
                assert 404 == (await client.request(http_method, path)).status_code, path


@pytest.mark.anyio
async def test_no_token_opens_the_private_socket_and_no_peer_means_refused(
    served: House, tokens: dict[str, str | None], tmp_path: Path
) -> None:
    faults = Faults(served.structured, secrets.token_bytes)
    app = private_socket.make_app(served.store, served.access, [ACCOUNT], frozenset({0, 1000}), faults)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://reader") as client:
        for route in (*private_socket.ROUTES, bare_app.Route("/none", "GET", "")):
            for text in tokens.values():
                headers = {"Authorization": f"Bearer {text}"} if text else {}
                for http_method in HTTP_METHODS:
                    response = await client.request(http_method, route.path, headers=headers)
                    assert 403 == response.status_code
                    assert http_method == "HEAD" or response.json()["code"] == "peer_not_allowed"
