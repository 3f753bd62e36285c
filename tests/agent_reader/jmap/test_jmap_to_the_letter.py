"""What a client may send that knows the RFCs by their letter, and no other way of asking."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agent_reader.jmap.capabilities import CORE, MAIL
from tests.agent_reader.served import ACCOUNT, House, house, octets

pytestmark = pytest.mark.anyio

ERROR = "urn:ietf:params:jmap:error:"

NONCHARACTERS = ("\ufdd0", "\ufdef", "\ufffe", "\uffff", "\U0001fffe", "\U0007ffff", "\U000fffff", "\U0010fffe")

# The neighbours of noncharacters, and what shares octets with them.
CHARACTERS = "\ufdcf\ufdf0\ufdfa\ufffd\U0001fffd\U00020000\U00010ffe\u0fff\u0ffe\U0010fffd"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    odd = "".join(NONCHARACTERS)
    message = octets(
        1,
        f"=?utf-8?q?an_{''.join(f'={octet:02X}' for octet in odd.encode())}_order?=",
        f"a teapot {odd} and {CHARACTERS}",
        Comments=f"raw {odd}",
    )
    with house(tmp_path_factory.mktemp("letter"), (message,)) as open_house:
        yield open_house


def _echo(argument: str) -> bytes:
    return f'{{"using": ["{CORE}"], "methodCalls": [["Core/echo", {{"a": {argument}}}, "0"]]}}'.encode()


@pytest.mark.statement("19")
@pytest.mark.parametrize("noncharacter", NONCHARACTERS)
async def test_a_noncharacter_is_no_i_json_however_it_is_written(served: House, noncharacter: str) -> None:
    """RFC 7493 §2.1 has them in neither names nor values."""
    for value in (noncharacter, {noncharacter: 1}, [["deep", {"x": f"é{noncharacter}"}]]):
        for written in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
            response = await served.post(_echo(written))
            assert (400, f"{ERROR}notJSON") == (response.status_code, response.json()["type"]), written


@pytest.mark.statement("19", "30")
async def test_what_is_beside_a_noncharacter_is_text_like_any_other(served: House) -> None:
    for written in (json.dumps(CHARACTERS), json.dumps(CHARACTERS, ensure_ascii=False)):
        response = await served.post(_echo(written))
        assert [["Core/echo", {"a": CHARACTERS}, "0"]] == response.json()["methodResponses"]


@pytest.mark.statement("149")
async def test_whatever_a_message_holds_the_answer_is_i_json(served: House) -> None:
    query = ("Email/query", {"accountId": ACCOUNT})
    found = {"accountId": ACCOUNT, "#ids": {"resultOf": "0", "name": "Email/query", "path": "/ids"}}
    shown = ["subject", "preview", "header:Comments", "header:Comments:asText", "bodyValues", "headers"]
    responses = await served.call(
        query,
        ("Email/get", found | {"properties": shown, "fetchAllBodyValues": True}),
        ("SearchSnippet/get", {"accountId": ACCOUNT, "filter": {"text": "teapot order"}, "#emailIds": found["#ids"]}),
    )
    (email,) = responses[1][1]["list"]
    replaced = "\ufffd" * len(NONCHARACTERS)
    assert f"an {replaced} order" == email["subject"]
    assert f" raw {replaced}" == email["header:Comments"]
    assert f"a teapot {replaced} and {CHARACTERS}\n" == email["bodyValues"]["1"]["value"]
    assert replaced in email["preview"]
    (snippet,) = responses[2][1]["list"]
    assert f"<mark>an</mark> {replaced}" not in snippet["subject"]
    assert f" {replaced} <mark>order</mark>" in snippet["subject"]
    said = json.dumps(responses, ensure_ascii=False)
    assert not [each for each in NONCHARACTERS if each in said]


@pytest.mark.statement("76", "72", "74", "61")
@pytest.mark.parametrize(
    ("name", "argument", "written", "as_usual"),
    [
        ("Email/query", "limit", "1.0", 1),
        ("Email/query", "limit", "0.0", 0),
        ("Email/query", "limit", "-0.0", 0),
        ("Email/query", "position", "1e0", 1),
        ("Email/query", "position", "-10e-1", -1),
        ("Email/query", "anchorOffset", "0e7", 0),
        ("Mailbox/query", "limit", "10E-1", 1),
        ("Mailbox/query", "position", "-1.000", -1),
        ("Email/get", "maxBodyValueBytes", "5e1", 50),
    ],
)
async def test_a_whole_number_may_be_written_in_any_way_that_json_has(
    served: House, name: str, argument: str, written: str, as_usual: int
) -> None:
    """RFC 8620 §1.3: an Int is an integer in a range, represented as a JSON number."""

    async def asked(number: str) -> Any:
        call = f'["{name}", {{"accountId": "{ACCOUNT}", "{argument}": {number}}}, "0"]'
        return (await served.post(f'{{"using": ["{MAIL}"], "methodCalls": [{call}]}}'.encode())).json()

    answer = await asked(written)
    assert name == answer["methodResponses"][0][0], answer
    assert await asked(str(as_usual)) == answer
    for wrong in ("1.5", "1e-1", "1e300", "9007199254740992.0", "true", '"1"'):
        ((_, refused, _),) = (await asked(wrong))["methodResponses"]
        assert "invalidArguments" == refused["type"], wrong


@pytest.mark.statement("26")
@pytest.mark.parametrize("created", [{"a b": "M1"}, {"": "M1"}, {"k": ""}, {"k": "#k"}, {"k": "M1 "}, {"k": "M" * 256}])
async def test_created_ids_are_ids(served: House, created: dict[str, str]) -> None:
    """RFC 8620 §3.3: the type is `Id[Id]`, and what does not match it is no Request (§3.6.1)."""
    response = await served.post({"using": [CORE], "methodCalls": [], "createdIds": created})
    assert (400, f"{ERROR}notRequest") == (response.status_code, response.json()["type"])


@pytest.mark.statement("63")
@pytest.mark.parametrize("kind", ["Email", "Mailbox", "Thread"])
async def test_another_spelling_of_a_state_is_no_state(served: House, kind: str) -> None:
    _, body = await served.one(f"{kind}/get", ids=[])
    epoch, _, number = body["state"].partition("-")
    for spelled in (f"{epoch}-0{number}", f"{epoch}-{number}.{kind}.01", f"{epoch}-{number}.{kind}.0", f"{epoch}-00"):
        _, refused = await served.one(f"{kind}/changes", sinceState=spelled)
        assert "cannotCalculateChanges" == refused.get("type"), spelled


@pytest.mark.statement("42")
async def test_an_unknown_account_comes_before_read_only_by_reference_too(served: House) -> None:
    reference = {"resultOf": "0", "name": "Core/echo", "path": "/a"}
    for account_id, kind in (("nobody", "accountNotFound"), (ACCOUNT, "accountReadOnly"), (7, "accountReadOnly")):
        responses = await served.call(("Core/echo", {"a": account_id}), ("Email/set", {"#accountId": reference}))
        assert kind == responses[1][1]["type"]
    # What is wrong with the reference is no answer to a change.
    for wrong in ({"#accountId": reference | {"path": "/b"}}, {"accountId": ACCOUNT, "#accountId": reference}):
        responses = await served.call(("Core/echo", {"a": ACCOUNT}), ("Email/set", wrong))
        assert "accountReadOnly" == responses[1][1]["type"]
