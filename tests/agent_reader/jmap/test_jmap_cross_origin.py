"""CORS: web pages of configured origins may read answers, and no others; the limits of the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from agent_reader.config import Jmap, Server
from agent_reader.jmap.capabilities import CORE
from tests.agent_reader.served import ACCOUNT, House, house

pytestmark = pytest.mark.anyio

ORIGIN = "https://mail.example.org"
PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
}
PATHS = ("/jmap/api", "/jmap/session", "/.well-known/jmap", f"/jmap/download/{ACCOUNT}/Bx/a", "/jmap/eventsource")


@pytest.fixture(scope="module")
def open_to_pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("served"), allow_origins=(ORIGIN,)) as open_house:
        yield open_house


@pytest.mark.statement("182")
@pytest.mark.parametrize("path", PATHS)
async def test_a_preflight_of_a_configured_origin_is_answered_without_a_token(open_to_pages: House, path: str) -> None:
    async with open_to_pages.client("") as client:
        response = await client.options(path, headers={"Origin": ORIGIN} | PREFLIGHT)
    assert (204, b"") == (response.status_code, response.content)
    assert ORIGIN == response.headers["access-control-allow-origin"]
    assert "POST" in response.headers["access-control-allow-methods"]
    assert {"authorization", "content-type", "last-event-id", "range", "if-range", "if-match", "if-none-match"} == {
        name.strip().lower() for name in response.headers["access-control-allow-headers"].split(",")
    }
    assert "access-control-allow-credentials" not in response.headers
    assert "Origin" in response.headers["vary"]


@pytest.mark.statement("182")
@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", f"{ORIGIN}.evil.example", "http://mail.example.org"]
)
@pytest.mark.parametrize("path", PATHS)
async def test_another_origin_gets_no_word_of_leave(open_to_pages: House, origin: str, path: str) -> None:
    async with open_to_pages.client() as client:
        preflight = await client.options(path, headers={"Origin": origin} | PREFLIGHT)
        asked = await client.get("/jmap/session", headers={"Origin": origin})
    assert 405 == preflight.status_code
    assert not [name for response in (preflight, asked) for name in response.headers if name.startswith("access-")]
    # A cache keeps what may be read apart from what may not.
    assert "Origin" in asked.headers["vary"]


@pytest.mark.statement("182")
async def test_without_a_configured_origin_there_is_no_cors_at_all(served: House) -> None:
    async with served.client() as client:
        response = await client.options("/jmap/api", headers={"Origin": ORIGIN} | PREFLIGHT)
    assert 405 == response.status_code
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.statement("182")
async def test_what_a_configured_origin_asks_is_answered_in_its_name_and_only_with_a_token(
    open_to_pages: House,
) -> None:
    body: dict[str, Any] = {"using": [CORE], "methodCalls": [["Core/echo", {}, "0"]]}
    async with open_to_pages.client() as client, open_to_pages.client("") as nobody:
        answered = await client.post("/jmap/api", json=body, headers={"Origin": ORIGIN})
        refused = await nobody.post("/jmap/api", json=body, headers={"Origin": ORIGIN})
        elsewhere = await client.get("/jmap/session", headers={"Origin": ORIGIN, "Host": "evil.example"})
    assert (200, 401, 421) == (answered.status_code, refused.status_code, elsewhere.status_code)
    for response in (answered, refused):
        assert ORIGIN == response.headers["access-control-allow-origin"]
        shown = {name.strip() for name in response.headers["access-control-expose-headers"].split(",")}
        assert {"Content-Disposition", "Content-Range", "ETag", "Retry-After", "WWW-Authenticate"} == shown


@pytest.mark.statement("6")
@pytest.mark.parametrize(
    "setting",
    [
        {"max_size_request": 65_535},
        {"max_objects_in_get": 63},
        {"max_calls_in_request": 1},
        {"max_concurrent_requests": 0},
        {"max_query_seconds": 0},
        {"allow_origins": ["*"]},
        {"allow_origins": ["https://mail.example.org/"]},
        {"allow_origins": ["https://Mail.example.org"]},
        {"allow_origins": ["null"]},
    ],
)
def test_a_limit_below_the_floor_and_what_is_no_origin_stop_the_start(setting: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Jmap.model_validate(setting)
    Jmap.model_validate(
        {"max_size_request": 65_536, "max_objects_in_get": 64, "allow_origins": ["http://[::1]:8080", ORIGIN]}
    )


@pytest.mark.parametrize(
    ("written", "spelled"),
    [
        (f"{ORIGIN}:443", ORIGIN),
        ("http://[::1]:80", "http://[::1]"),
        ("http://shop.example:0080", "http://shop.example"),
        ("https://shop.example:80", "https://shop.example:80"),
        ("http://shop.example:443", "http://shop.example:443"),
        ("https://shop.example:4430", "https://shop.example:4430"),
        ("http://[::80]", "http://[::80]"),
    ],
)
def test_the_usual_port_of_a_scheme_is_left_out_as_browsers_leave_it_out(written: str, spelled: str) -> None:
    assert (spelled,) == Jmap.model_validate({"allow_origins": [written]}).allow_origins
    assert spelled == Server.model_validate({"public_url": written}).public_url
