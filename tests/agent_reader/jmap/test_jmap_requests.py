"""The Request object and what is refused before any call runs (RFC 8620 §3.3 to §3.6.1)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from agent_reader.door.limits import Limits
from agent_reader.jmap.capabilities import CORE, MAIL
from tests.agent_reader.served import House, house

pytestmark = pytest.mark.anyio

ERROR = "urn:ietf:params:jmap:error:"
ECHO = ["Core/echo", {}, "0"]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "notJSON"),
        (b"{", "notJSON"),
        (b"\xff\xfe", "notJSON"),
        (b'{"using": [], "using": [], "methodCalls": []}', "notJSON"),
        (b'{"using": [], "methodCalls": [["Core/echo", {"a": "\\ud800"}, "0"]]}', "notJSON"),
        (b'{"using": [], "methodCalls": [["Core/echo", {"a": NaN}, "0"]]}', "notJSON"),
        (b'{"using": [], "methodCalls": [["Core/echo", {"a": 1e999}, "0"]]}', "notJSON"),
        (b'{"using": [], "methodCalls": [["Core/echo", {"a": ' + b"9" * 5000 + b'}, "0"]]}', "notJSON"),
        (b"[" * 100_000, "notJSON"),
        (b"[]", "notRequest"),
        (b'"text"', "notRequest"),
        (b"null", "notRequest"),
        (b"{}", "notRequest"),
        (b'{"using": []}', "notRequest"),
        (b'{"methodCalls": []}', "notRequest"),
        (b'{"using": "core", "methodCalls": []}', "notRequest"),
        (b'{"using": [1], "methodCalls": []}', "notRequest"),
        (b'{"using": [], "methodCalls": {}}', "notRequest"),
        (b'{"using": [], "methodCalls": [["Core/echo", {}]]}', "notRequest"),
        (b'{"using": [], "methodCalls": [["Core/echo", [], "0"]]}', "notRequest"),
        (b'{"using": [], "methodCalls": [["Core/echo", {}, 0]]}', "notRequest"),
        (b'{"using": [], "methodCalls": [["Core/echo", {}, "0", 1]]}', "notRequest"),
        (b'{"using": [], "methodCalls": [], "createdIds": []}', "notRequest"),
        (b'{"using": [], "methodCalls": [], "createdIds": {"a": 1}}', "notRequest"),
        (b'{"using": ["urn:example:unknown"], "methodCalls": []}', "unknownCapability"),
    ],
)
@pytest.mark.statement("17", "19", "20", "21", "29")
async def test_what_is_no_request_is_refused_with_its_type(served: House, body: bytes, kind: str) -> None:
    response = await served.post(body)
    assert 400 == response.status_code
    assert "application/problem+json" == response.headers["content-type"]
    assert f"{ERROR}{kind}" == response.json()["type"]


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "x-gzip", "br", "identity, gzip", "identity;q=0", "unheard-of"])
async def test_a_body_under_a_content_coding_is_refused_and_never_taken_for_plain(served: House, coding: str) -> None:
    """RFC 9110 §8.4, §15.5.16: no coding is taken, and the refusal says so."""
    plain = json.dumps({"using": [], "methodCalls": []}).encode()
    for body in (gzip.compress(plain), plain):
        refused = await served.post(body, **{"Content-Encoding": coding})
        assert (415, "encoded_body", False) == (
            refused.status_code,
            refused.json()["code"],
            refused.json()["retryable"],
        )
        assert ("application/problem+json", "identity") == (
            refused.headers["content-type"],
            refused.headers["accept-encoding"],
        )
    for none in ("", "identity", "Identity, identity"):
        assert 200 == (await served.post(plain, **{"Content-Encoding": none})).status_code


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/jmap",
        "application/json5",
        "application/json-patch+json",
        "",
        "application/json; charset=latin-1",
        "application/json; x=y; charset=utf-16",
    ],
)
@pytest.mark.statement("18")
async def test_another_content_type_is_not_json(served: House, content_type: str) -> None:
    response = await served.post({"using": [], "methodCalls": []}, **{"Content-Type": content_type})
    assert 400 == response.status_code
    assert f"{ERROR}notJSON" == response.json()["type"]


@pytest.mark.statement("18")
async def test_two_content_types_are_none(served: House) -> None:
    for others in (["text/plain"], ["application/json"]):
        fields = [("Content-Type", each) for each in ("application/json", *others)]
        async with served.client() as client:
            response = await client.post("/jmap/api", content=b'{"using": [], "methodCalls": []}', headers=fields)
        assert (400, f"{ERROR}notJSON") == (response.status_code, response.json()["type"])


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        'Application/JSON;charset="UTF-8"',
        "application/json; x=y; charset=utf-8",
        "application/json;",
    ],
)
@pytest.mark.statement("18")
async def test_json_may_name_its_charset(served: House, content_type: str) -> None:
    assert 200 == (await served.post({"using": [], "methodCalls": []}, **{"Content-Type": content_type})).status_code


@pytest.mark.statement("21", "42")
async def test_an_unknown_capability_is_refused_before_any_call_runs(served: House) -> None:
    body = {"using": [CORE, MAIL, "urn:x"], "methodCalls": [["Email/query", {"accountId": "shop"}, "0"]]}
    assert f"{ERROR}unknownCapability" == (await served.post(body)).json()["type"]
    assert [] == served.access.reads("clerk")


@pytest.mark.statement("23")
async def test_no_more_calls_than_the_limit(served: House) -> None:
    assert 200 == (await served.post({"using": [CORE], "methodCalls": [ECHO] * 16})).status_code
    response = await served.post({"using": [CORE], "methodCalls": [ECHO] * 17})
    assert 400 == response.status_code
    assert (f"{ERROR}limit", "maxCallsInRequest") == (response.json()["type"], response.json()["limit"])


@pytest.mark.statement("22")
async def test_no_more_octets_than_the_limit(tmp_path: Path) -> None:
    with house(tmp_path, limits=Limits(max_size_request=65_536)) as served:
        body = {"using": [CORE], "methodCalls": [["Core/echo", {"a": ""}, "0"]]}
        room = 65_536 - len(json.dumps(body))
        body["methodCalls"] = [["Core/echo", {"a": "x" * room}, "0"]]
        assert 200 == (await served.post(body)).status_code
        response = await served.post(json.dumps(body).encode() + b" ")
        assert 413 == response.status_code
        assert (f"{ERROR}limit", "maxSizeRequest") == (response.json()["type"], response.json()["limit"])


@pytest.mark.statement("25")
async def test_members_that_nobody_knows_are_ignored(served: House) -> None:
    response = await served.post({"using": [CORE], "methodCalls": [ECHO], "later": {"a": 1}})
    assert [ECHO] == response.json()["methodResponses"]


@pytest.mark.statement("26")
async def test_created_ids_come_back_where_they_were_sent(served: House) -> None:
    response = await served.post({"using": [CORE], "methodCalls": [], "createdIds": {"k1": "M1"}})
    assert {"k1": "M1"} == response.json()["createdIds"]
    response = await served.post({"using": [CORE], "methodCalls": [], "createdIds": {}})
    assert {} == response.json()["createdIds"]
    response = await served.post({"using": [CORE], "methodCalls": []})
    assert {"methodResponses", "sessionState"} == set(response.json())


@pytest.mark.statement("27", "34")
async def test_responses_keep_the_order_and_the_call_ids_even_repeated_ones(served: House) -> None:
    calls = [["Core/echo", {"n": 1}, "a"], ["No/such", {}, "b"], ["Core/echo", {"n": 2}, "a"], ["Core/echo", {}, ""]]
    responses = (await served.post({"using": [CORE], "methodCalls": calls})).json()["methodResponses"]
    assert ["a", "b", "a", ""] == [call_id for _, _, call_id in responses]
    assert ["Core/echo", "error", "Core/echo", "Core/echo"] == [name for name, _, _ in responses]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"hello": True, "high": 5},
        {"nested": {"list": [1, 2.5, None, {"deep": [[]]}]}},
        {"text": "Grüße 日本 \U0001f600 \u202e"},
        {"number": 2**53 - 1, "large": 10**30, "small": -1e-300},
    ],
)
@pytest.mark.statement("30")
async def test_echo_returns_its_arguments_unchanged(served: House, arguments: dict[str, Any]) -> None:
    ((name, body, _),) = await served.call(("Core/echo", arguments))
    assert ("Core/echo", arguments) == (name, body)


async def test_the_read_log_that_cannot_be_written_holds_every_answer_back(served: House) -> None:
    served.access._writer.pragma("query_only", 1)
    response = await served.post({"using": [CORE, MAIL], "methodCalls": [["Email/query", {"accountId": "shop"}, "0"]]})
    assert 503 == response.status_code
    assert "read_log_unavailable" == response.json()["code"]
    assert "methodResponses" not in response.text
    served.access._writer.pragma("query_only", 0)
    assert [] == served.access.reads("clerk")
    # What shows no mail needs no log.
    assert 200 == (await served.post({"using": [CORE], "methodCalls": [ECHO]})).status_code
