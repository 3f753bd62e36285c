"""Mutated requests: whatever is posted, the answer is a response or the right refusal, and never a fault."""

from __future__ import annotations

import asyncio
import copy
import json
import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_reader.jmap.capabilities import CORE, MAIL, SUBMISSION, VACATION_RESPONSE
from agent_reader.jmap.methods import METHODS
from tests.agent_reader.served import ACCOUNT, House

SEED: dict[str, Any] = {
    "using": [CORE, MAIL],
    "methodCalls": [
        [
            "Email/query",
            {
                "accountId": ACCOUNT,
                "filter": {
                    "operator": "OR",
                    "conditions": [
                        {"text": 'tea"pot', "hasAttachment": False},
                        {"before": "2026-11-30T00:00:00Z", "hasKeyword": "$seen"},
                    ],
                },
                "sort": [{"property": "receivedAt", "isAscending": False, "collation": "i;unicode-casemap"}],
                "position": 0,
                "anchor": None,
                "anchorOffset": 0,
                "limit": 10,
                "calculateTotal": True,
                "collapseThreads": True,
            },
            "0",
        ],
        [
            "Email/get",
            {
                "accountId": ACCOUNT,
                "#ids": {"resultOf": "0", "name": "Email/query", "path": "/ids"},
                "properties": ["subject", "header:From:asAddresses", "bodyValues", "bodyStructure"],
                "bodyProperties": ["partId", "type", "header:Content-Type"],
                "fetchAllBodyValues": True,
                "maxBodyValueBytes": 5,
            },
            "1",
        ],
        ["Thread/get", {"accountId": ACCOUNT, "ids": ["T1"]}, "2"],
        ["Mailbox/get", {"accountId": ACCOUNT, "ids": None, "properties": ["name"]}, "3"],
        ["Core/echo", {"#a": {"resultOf": "1", "name": "Email/get", "path": "/list/*/id"}}, "4"],
        ["Email/set", {"accountId": ACCOUNT, "destroy": ["M1"]}, "5"],
        ["Email/changes", {"accountId": ACCOUNT, "sinceState": "01-1", "maxChanges": 3}, "6"],
        ["Mailbox/changes", {"accountId": ACCOUNT, "sinceState": "01-1.Mailbox.1", "maxChanges": None}, "7"],
        [
            "Email/queryChanges",
            {
                "accountId": ACCOUNT,
                "sinceQueryState": "01-1",
                "filter": {"header": ["Subject", "order"], "someInThreadHaveKeyword": "$seen"},
                "sort": [{"property": "hasKeyword", "keyword": "$seen"}],
                "upToId": "M1",
                "maxChanges": 5,
            },
            "8",
        ],
        [
            "Mailbox/query",
            {
                "accountId": ACCOUNT,
                "filter": {"operator": "NOT", "conditions": [{"parentId": None, "name": "x", "hasAnyRole": True}]},
                "sort": [{"property": "name"}],
                "sortAsTree": True,
                "filterAsTree": True,
            },
            "9",
        ],
        ["Mailbox/queryChanges", {"accountId": ACCOUNT, "sinceQueryState": "01-1"}, "10"],
        ["Email/parse", {"accountId": ACCOUNT, "blobIds": ["B1"], "properties": ["subject"]}, "11"],
        [
            "SearchSnippet/get",
            {
                "accountId": ACCOUNT,
                "filter": {"operator": "AND", "conditions": [{"text": "tea"}, {"subject": '"an order"'}]},
                "#emailIds": {"resultOf": "0", "name": "Email/query", "path": "/ids"},
            },
            "12",
        ],
    ],
}

_CREATE = {"a": {"mailboxIds": {"F1": True}, "subject": "x", "blobId": "B1", "#emailId": "#b"}}
# What is refused or absent, with arguments as a client would give them.
REFUSED: dict[str, dict[str, Any]] = {
    "Thread/changes": {"sinceState": "01-1", "maxChanges": 2},
    "Mailbox/set": {"create": _CREATE, "update": {"F1": {"name": "x"}}, "onDestroyRemoveEmails": True},
    "Email/copy": {"fromAccountId": ACCOUNT, "create": _CREATE, "onSuccessDestroyOriginal": True},
    "Email/import": {"emails": _CREATE, "ifInState": "01-1"},
    "Blob/copy": {"fromAccountId": ACCOUNT, "blobIds": ["B1"]},
    "Identity/get": {"ids": None},
    "Identity/changes": {"sinceState": "01-1"},
    "Identity/set": {"update": {"I1": {"name": "x"}}},
    "EmailSubmission/get": {"ids": ["S1"], "properties": ["emailId"]},
    "EmailSubmission/changes": {"sinceState": "01-1"},
    "EmailSubmission/query": {"filter": {"before": "2026-11-30T00:00:00Z"}, "sort": [{"property": "sentAt"}]},
    "EmailSubmission/queryChanges": {"sinceQueryState": "01-1", "filter": None},
    "EmailSubmission/set": {"create": _CREATE, "onSuccessUpdateEmail": {"#a": {"keywords/$seen": True}}},
    "VacationResponse/get": {"ids": ["singleton"]},
    "VacationResponse/set": {"update": {"singleton": {"isEnabled": True}}},
}
OTHERS: dict[str, Any] = {
    "using": [CORE, MAIL, SUBMISSION, VACATION_RESPONSE],
    "methodCalls": [
        [name, {"accountId": ACCOUNT} | arguments, str(number)]
        for number, (name, arguments) in enumerate(REFUSED.items())
    ],
    "createdIds": {"b": "M1"},
}
PUSH: dict[str, Any] = {
    "using": [CORE],
    "methodCalls": [
        ["PushSubscription/get", {"ids": None, "properties": ["types"]}, "0"],
        [
            "PushSubscription/set",
            {"create": {"a": {"deviceClientId": "x", "url": "https://127.0.0.1/", "types": None}}},
            "1",
        ],
    ],
}
SEEDS = (SEED, OTHERS, PUSH)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.sampled_from([ACCOUNT, "*", "#ids", "AND", "NOT", "/list/*", CORE, SUBMISSION, "\x00", "$seen", *METHODS]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path] * bool(path) + [place for key, each in inner for place in _places(each, (*path, key))]


def _mutated(data: st.DataObject) -> Any:
    # The first as often as the others together: its methods do the most.
    request = copy.deepcopy(data.draw(st.sampled_from((SEED, *SEEDS))))
    for _ in range(data.draw(st.integers(1, 4))):
        places = _places(request)
        if not places:
            break
        *way, last = data.draw(st.sampled_from(places))
        holder: Any = request
        for step in way:
            holder = holder[step]
        match data.draw(st.sampled_from(["replace", "remove", "add", "twice"])):
            case "replace":
                holder[last] = data.draw(VALUES)
            case "remove":
                del holder[last]
            case "add" if isinstance(holder, dict):
                holder[data.draw(st.text(max_size=12) | st.sampled_from(["#properties", "#accountId", "ids"]))] = (
                    data.draw(VALUES)
                )
            case "twice" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[last]))
            case _:
                pass
    return request


def _check(served: House, body: bytes) -> None:
    response = asyncio.run(served.post(body))
    assert response.status_code in {200, 400}, response.text
    if response.status_code == 400:
        assert response.json()["type"].startswith("urn:ietf:params:jmap:error:")
        return
    request = json.loads(body)
    responses = response.json()["methodResponses"]
    assert [call[2] for call in request["methodCalls"]] == [call_id for _, _, call_id in responses]
    for call, (name, answer, _) in zip(request["methodCalls"], responses, strict=True):
        assert name in {call[0], "error"}
        assert name != "error" or answer["type"] != "serverFail", answer
    assert not served.log.calls


def test_what_is_mutated_calls_every_method_there_is(served: House) -> None:
    called = [name for seed in SEEDS for name, _, _ in seed["methodCalls"]]
    assert sorted(METHODS) == sorted(called)
    for seed in SEEDS:
        _check(served, json.dumps(seed).encode())


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_mutated_request_is_answered_or_refused_and_never_fails_inside(served: House, data: st.DataObject) -> None:
    _check(served, json.dumps(_mutated(data)).encode("utf-8", "surrogatepass"))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_a_request_with_broken_octets_is_answered_or_refused(served: House, seed: int) -> None:
    chance = random.Random(seed)
    octets = bytearray(json.dumps(chance.choice(SEEDS)).encode())
    for _ in range(chance.randint(1, 5)):
        position = chance.randrange(len(octets))
        match chance.randrange(3):
            case 0:
                octets[position] = chance.randrange(256)
            case 1:
                del octets[position : position + chance.randint(1, 20)]
            case _:
                octets[position:position] = chance.randbytes(chance.randint(1, 4))
    _check(served, bytes(octets))
