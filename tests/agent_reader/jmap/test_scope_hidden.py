"""What is hidden answers as what was never there: the same type, words, fields and length, on every path that names it.

Whoever holds a narrow token can name anything: ids from a wider one, from the other side of a conversation, or made up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import httpx
import pytest

from agent_reader.scope import Depth, Scope
from shared.identity import email_id, message_digest
from tests.agent_reader.jmap.scoped_asking import Call, ask, got, hidden, seen
from tests.agent_reader.jmap.scoped_world import ACCOUNT, OTHER_ACCOUNT, SCOPES, Letter, World, world

pytestmark = pytest.mark.anyio

# As long as the ids that it stands for.
NOBODY = email_id(message_digest(b"nobody"))[1:]
STATES = ("state", "newState", "queryState", "newQueryState")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("scoped")) as made:
        yield made


def _of_email(named: str, state: str) -> list[Call]:
    since = {"sinceQueryState": state, "upToId": named}
    return [
        ("Email/get", {"ids": [named]}),
        (
            "Email/get",
            {"ids": [named], "maxTotalBytes": 1_024, "properties": ["bodyValues"], "fetchAllBodyValues": True},
        ),
        ("Email/query", {"anchor": named}),
        ("Email/query", {"anchor": named, "collapseThreads": True, "anchorOffset": -1, "calculateTotal": True}),
        ("Email/queryChanges", since),
        ("SearchSnippet/get", {"emailIds": [named], "filter": {"text": "hello"}}),
        ("Thread/get", {"ids": [named]}),
    ]


def _of_thread(named: str, _state: str) -> list[Call]:
    return [("Thread/get", {"ids": [named]}), ("Email/get", {"ids": [named]})]


def _of_mailbox(named: str, _state: str) -> list[Call]:
    return [
        ("Mailbox/get", {"ids": [named]}),
        ("Mailbox/query", {"anchor": named}),
        ("Mailbox/query", {"filter": {"parentId": named}, "calculateTotal": True}),
        ("Email/query", {"filter": {"inMailbox": named}}),
        ("Email/query", {"filter": {"operator": "NOT", "conditions": [{"inMailbox": named}]}}),
        ("Email/query", {"filter": {"inMailboxOtherThan": [named]}}),
    ]


def _of_blob(named: str, _state: str) -> list[Call]:
    return [("Email/parse", {"blobIds": [named]})]


def _hidden_names(here: World, scope: Scope) -> Iterator[tuple[Callable[[str, str], list[Call]], str]]:
    threads = here.thread_ids()
    shown = {threads[each.number] for each in seen(here, scope)}
    for letter in hidden(here, scope):
        yield _of_email, letter.id
        yield from ((_of_blob, each) for each in (f"B{letter.id[1:]}", *letter.part_blobs))
        if threads[letter.number] not in shown:
            yield _of_thread, threads[letter.number]
    for name, mailbox_id in here.mailbox_ids().items():
        if scope.mailboxes is not None and name not in scope.mailboxes:
            yield _of_mailbox, mailbox_id


@pytest.mark.parametrize("scope", SCOPES)
async def test_what_is_hidden_is_answered_as_what_was_never_there(here: World, scope: str) -> None:
    state = (await got(here, scope, "Email/get", ids=[]))["state"]
    asked = [(call, named) for calls, named in _hidden_names(here, SCOPES[scope]) for call in calls(named, state)]
    found = await ask(here, scope, *(call for call, _ in asked))
    # Each answer to a name that nobody has is the same for all, so that it is asked for once.
    never: dict[str, str] = {}
    for (call, named), told in zip(asked, found, strict=True):
        nobody = f"{named[0]}{NOBODY}"[: len(named)]
        question = json.dumps(call).replace(named, nobody)
        if question not in never:
            (answer,) = await ask(here, scope, json.loads(question))
            never[question] = json.dumps(answer).replace(nobody, "*")
        assert never[question] == json.dumps(told).replace(named, "*"), call


@pytest.mark.parametrize("scope", SCOPES)
async def test_every_method_tells_the_one_state_of_its_scope(here: World, scope: str) -> None:
    state = (await got(here, scope, "Email/get", ids=[]))["state"]
    calls: list[Call] = [
        *((f"{each}/get", {"ids": []}) for each in ("Mailbox", "Thread")),
        *((f"{each}/changes", {"sinceState": state}) for each in ("Email", "Mailbox", "Thread")),
        *((f"{each}/query", {}) for each in ("Email", "Mailbox")),
        *((f"{each}/queryChanges", {"sinceQueryState": state}) for each in ("Email", "Mailbox")),
    ]
    coverages = []
    for name, answer in await ask(here, scope, *calls):
        assert [state] == [answer[each] for each in STATES if each in answer], name
        coverages += [answer["coverage"]] if "coverage" in answer else []
    assert len(coverages) == 2
    assert coverages[0] == coverages[1]


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_state_of_another_scope_is_none_of_this(here: World, scope: str) -> None:
    others = {each: (await got(here, each, "Email/get", ids=[]))["state"] for each in SCOPES if each != scope}
    for other, state in others.items():
        for name, since in (("Email/changes", "sinceState"), ("Email/queryChanges", "sinceQueryState")):
            ((answered, answer),) = await ask(here, scope, (name, {since: state}))
            assert ("error", "cannotCalculateChanges") == (answered, answer["type"]), other


# As `_told` asks.
GIVEN = (200, 206, 416, 304, 200)
FEW = 4
RANGE, PAST_THE_END = ({"Range": f"bytes={each}"} for each in ("0-9", "999999999-"))


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_blob_is_given_to_who_sees_all_of_its_message_and_is_none_for_others_however_it_is_asked_for(
    here: World, scope: str
) -> None:
    limits = SCOPES[scope]
    # "whole" comes first: each blob was fetched for somebody, so that the cache holds it.
    async with here.client(scope) as client:
        never = await _told(client, f"B{NOBODY}")
        assert [404] * len(never) == [status for status, _, _ in never]
        for letter in here.mail:
            for blob_id in (f"B{letter.id[1:]}", *(letter.part_blobs if letter.attached else ())):
                # Of all messages alike; the other ways by one of each kind.
                ways = len(GIVEN) if letter.attached or letter.number < FEW else 1
                found = await _told(client, blob_id, ways=ways)
                if letter.is_seen(limits) and limits.depth is Depth.FULL:
                    assert GIVEN[:ways] == tuple(status for status, _, _ in found), (letter.number, blob_id)
                else:
                    assert never[:ways] == found, (letter.number, blob_id)


@pytest.mark.statement("177")
async def test_a_blob_of_an_account_outside_is_none_however_it_is_asked_for(here: World) -> None:
    letter = Letter(99, ("INBOX",), attached=True)
    here.put_elsewhere(letter)
    here.tokens["one account"] = here.access.create_token("clerk", scope=Scope(accounts=(ACCOUNT,))).text
    async with here.client("whole") as whole, here.client("one account") as client:
        for blob_id in (f"B{letter.id[1:]}", *letter.part_blobs):
            assert GIVEN == tuple(status for status, _, _ in await _told(whole, blob_id, OTHER_ACCOUNT))
            assert await _told(client, f"B{NOBODY}", OTHER_ACCOUNT) == await _told(client, blob_id, OTHER_ACCOUNT)


async def _told(
    client: httpx.AsyncClient, blob_id: str, account_id: str = ACCOUNT, *, ways: int = 5
) -> list[tuple[int, list[tuple[str, str]], str]]:
    """What is answered to each way to ask for a blob; its id, which each may repeat, aside."""
    found = []
    cached = {"If-None-Match": f'"{blob_id}"'}
    asked: list[tuple[str, dict[str, str]]] = [("GET", {}), ("GET", RANGE), ("GET", PAST_THE_END), ("GET", cached)]
    for http_method, fields in [*asked, ("HEAD", {})][:ways]:
        answer = await client.request(http_method, f"/jmap/download/{account_id}/{blob_id}/x", headers=fields)
        found.append((answer.status_code, answer.headers.multi_items(), answer.text.replace(blob_id, "*")))
    return found
