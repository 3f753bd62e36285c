"""Result references (RFC 8620 §3.7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_reader.door.limits import Limits
from agent_reader.jmap.capabilities import CORE
from tests.agent_reader.served import ACCOUNT, House, house

pytestmark = pytest.mark.anyio

SOURCE: dict[str, Any] = {
    "ids": ["a", "b"],
    "list": [{"threadId": "t1", "emailIds": ["e1", "e2"]}, {"threadId": "t2", "emailIds": ["e3"]}],
    "nested": [[["x"]], [["y"], "z"]],
    "a/b": {"m~n": 1},
    "text": "abc",
    "nothing": None,
    "": "empty name",
    "*": "star",
    "~1": "tilde",
}


async def _referred(served: House, path: Any, result_of: Any = "0", name: Any = "Core/echo") -> tuple[str, Any]:
    reference = {"resultOf": result_of, "name": name, "path": path}
    responses = await served.call(("Core/echo", SOURCE), ("Core/echo", {"#value": reference}))
    answered, body, _ = responses[1]
    return answered, body.get("value", body)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("", SOURCE),
        ("/ids", ["a", "b"]),
        ("/ids/1", "b"),
        ("/ids/*", ["a", "b"]),
        ("/list/*/threadId", ["t1", "t2"]),
        ("/list/*/emailIds", ["e1", "e2", "e3"]),
        ("/list/1/emailIds/0", "e3"),
        ("/nested/*", [["x"], ["y"], "z"]),
        ("/nested/0/*", ["x"]),
        ("/a~1b/m~0n", 1),
        ("/nothing", None),
        ("/", "empty name"),
        ("/*", "star"),
        ("/~01", "tilde"),
    ],
)
@pytest.mark.statement("45", "46", "48")
async def test_a_pointer_finds_its_value(served: House, path: str, value: Any) -> None:
    assert ("Core/echo", value) == await _referred(served, path)


@pytest.mark.parametrize(
    "path",
    [
        "ids",
        "/none",
        "/ids/2",
        "/ids/01",
        "/ids/-",
        "/ids/-1",
        "/ids/٣",
        "/ids/99999999999999999999",
        "/text/*",
        "/text/0",
        "/list/*/none",
        "/nothing/a",
        "/a~1b/*",
        "/a~2b",
        "/a~",
        7,
        None,
        ["/ids"],
    ],
)
@pytest.mark.statement("47")
async def test_a_pointer_to_nowhere_is_an_invalid_result_reference(served: House, path: Any) -> None:
    answered, body = await _referred(served, path)
    assert ("error", "invalidResultReference") == (answered, body["type"])


@pytest.mark.parametrize(
    ("result_of", "name"),
    [("9", "Core/echo"), ("1", "Core/echo"), ("0", "Email/get"), ("0", "error"), (0, "Core/echo")],
)
@pytest.mark.statement("47")
async def test_a_reference_to_another_answer_fails(served: House, result_of: Any, name: str) -> None:
    answered, body = await _referred(served, "/ids", result_of, name)
    assert ("error", "invalidResultReference") == (answered, body["type"])


@pytest.mark.statement("47", "48")
async def test_a_reference_to_a_later_or_a_failed_call_fails(served: House) -> None:
    later = {"resultOf": "2", "name": "Core/echo", "path": "/a"}
    # It answered `error`, whatever was asked, and that has a type.
    failed = {"resultOf": "1", "name": "Email/get", "path": "/type"}
    responses = await served.call(
        ("Core/echo", {"#value": later}),
        ("Email/get", {"accountId": "nobody", "ids": []}),
        ("Core/echo", {"a": 1}),
        ("Core/echo", {"#value": failed}),
    )
    assert ["error", "error", "Core/echo", "error"] == [name for name, _, _ in responses]
    assert "invalidResultReference" == responses[0][1]["type"] == responses[3][1]["type"]


@pytest.mark.statement("45")
async def test_by_value_and_by_reference_is_invalid(served: House) -> None:
    reference = {"resultOf": "0", "name": "Core/echo", "path": ""}
    values: list[Any] = [1, None, [], {}]
    for value in values:
        responses = await served.call(("Core/echo", {}), ("Core/echo", {"#a": reference, "a": value}))
        assert "invalidArguments" == responses[1][1].get("type"), value


@pytest.mark.statement("51")
async def test_the_first_response_with_the_call_id_counts(served: House) -> None:
    reference = {"resultOf": "a", "name": "Core/echo", "path": "/n"}
    calls = [["Core/echo", {"n": 1}, "a"], ["Core/echo", {"n": 2}, "a"], ["Core/echo", {"#n": reference}, "b"]]
    responses = (await served.post({"using": [CORE], "methodCalls": calls})).json()["methodResponses"]
    assert {"n": 1} == responses[2][1]
    # Also where its name is another: the one that has it is not looked for (RFC 8620 §3.7).
    calls = [["No/such", {}, "a"], ["Core/echo", {"n": 2}, "a"], ["Core/echo", {"#n": reference}, "b"]]
    responses = (await served.post({"using": [CORE], "methodCalls": calls})).json()["methodResponses"]
    assert "invalidResultReference" == responses[2][1].get("type")


@pytest.mark.statement("50")
async def test_null_by_reference_means_all_properties(served: House) -> None:
    reference = {"resultOf": "0", "name": "Core/echo", "path": "/updatedProperties"}
    responses = await served.call(
        ("Core/echo", {"updatedProperties": None}),
        ("Mailbox/get", {"accountId": ACCOUNT, "ids": None, "#properties": reference}),
    )
    assert 11 == len(responses[1][1]["list"][0])


async def test_references_to_references_cannot_blow_an_answer_up(tmp_path: Path) -> None:
    """Sixteen calls that each hold the one before a hundred times would be 100 to the 15th."""
    with house(tmp_path, limits=Limits(max_referenced_octets=100_000)) as served:
        calls: list[tuple[str, dict[str, Any]]] = [("Core/echo", {"a": "laugh"})]
        for number in range(15):
            reference = {"resultOf": str(number), "name": "Core/echo", "path": ""}
            calls.append(("Core/echo", {f"#{each}": reference for each in range(100)}))
        responses = await served.call(*calls)
        assert "requestTooLarge" in {body.get("type") for _, body, _ in responses}
        assert 1_000_000 > len(str(responses))
