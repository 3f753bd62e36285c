"""What a scope of the scoped world is answered, and which of its messages and threads it should see."""

from __future__ import annotations

import json
from typing import Any

from agent_reader.door.limits import DEFAULT_LIMITS
from agent_reader.jmap.capabilities import KNOWN_CAPABILITIES
from agent_reader.scope import Depth, Scope
from tests.agent_reader.jmap.scoped_world import ACCOUNT, Letter, World

Call = tuple[str, dict[str, Any]]


async def ask(here: World, scope: str, *calls: Call) -> list[tuple[str, dict[str, Any]]]:
    """The answers to calls, each with its name, as many of them in a request as it may hold."""
    found: list[tuple[str, dict[str, Any]]] = []
    async with here.client(scope) as client:
        most = DEFAULT_LIMITS.max_calls_in_request
        for start in range(0, len(calls), most):
            some = calls[start : start + most]
            method_calls = [[name, {"accountId": ACCOUNT} | arguments, "0"] for name, arguments in some]
            body = json.dumps({"using": list(KNOWN_CAPABILITIES), "methodCalls": method_calls})
            response = await client.post("/jmap/api", content=body, headers={"Content-Type": "application/json"})
            assert 200 == response.status_code, response.text
            found += [(name, answer) for name, answer, _ in response.json()["methodResponses"]]
    assert len(calls) == len(found)
    return found


async def got(here: World, scope: str, name: str, **arguments: Any) -> dict[str, Any]:
    ((answered, answer),) = await ask(here, scope, (name, arguments))
    assert name == answered, answer
    return answer


def seen(here: World, scope: Scope) -> list[Letter]:
    return [letter for letter in here.mail if letter.is_seen(scope)]


def hidden(here: World, scope: Scope) -> list[Letter]:
    return [letter for letter in here.mail if not letter.is_seen(scope)]


def traces(here: World, scope: Scope) -> list[str]:
    """Whatever may be in no answer."""
    found = [trace for letter in hidden(here, scope) for trace in letter.traces()]
    if scope.mailboxes is not None:
        outside = {name: each for name, each in here.mailbox_ids().items() if name not in scope.mailboxes}
        found += [*outside, *outside.values()]
    threads = here.thread_ids()
    found += set(threads.values()) - {threads[letter.number] for letter in seen(here, scope)}
    if scope.depth is not Depth.FULL:
        found += [f"{word}{letter.number}word" for letter in here.mail for word in ("cell", "inner")]
    if scope.depth is Depth.HEADERS:
        found += [f"body{letter.number}word" for letter in here.mail]
        found += [f"file{letter.number}name" for letter in here.mail]
    return found
