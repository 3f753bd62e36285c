"""Every method of the table, for every scope: what is outside leaves no trace, and what is inside is all there.

The oracle in `scoped_world` knows which message a scope lets through. No answer may hold an id, a word, a blob, a
member of a thread, a count or a state of any other; a new method without a row here fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from agent_reader.jmap.capabilities import AGENT, CORE, KNOWN_CAPABILITIES, MAIL
from agent_reader.jmap.methods import METHODS, Read
from agent_reader.scope import Depth, Scope
from tests.agent_reader.jmap.scoped_asking import ask, got, hidden, seen, traces
from tests.agent_reader.jmap.scoped_world import (
    ACCOUNT,
    MAILBOXES,
    NOW,
    OTHER_ACCOUNT,
    SCOPES,
    World,
    world,
)

pytestmark = pytest.mark.anyio

EVERYTHING = {"fetchAllBodyValues": True, "bodyProperties": ["partId", "blobId", "size", "name", "type", "subParts"]}
SHOWN = [
    *(
        "id",
        "blobId",
        "threadId",
        "mailboxIds",
        "keywords",
        "size",
        "receivedAt",
        "messageId",
        "inReplyTo",
        "references",
    ),
    *("from", "subject", "sentAt", "preview", "bodyStructure", "bodyValues", "textBody", "attachments", "headers"),
    *("hasAttachment", "newText", "flags", "cleaned", "textOfAttachment"),
]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("scoped")) as made:
        yield made


@pytest.fixture(scope="module")
def forbidden_to() -> dict[str, list[str]]:
    """Traces by scope, once they were made: the world of this module stands still."""
    return {}


def without_what_was_asked(answer: dict[str, Any]) -> str:
    """An answer as text, without the ids that it only gives back."""
    return json.dumps({name: value for name, value in answer.items() if name not in {"notFound", "notParsable"}})


Arguments = list[dict[str, Any]]
Row = Callable[[World], Arguments]


def _ids(here: World) -> list[str]:
    return [letter.id for letter in here.mail]


def _filters(here: World) -> Arguments:
    words = [f"{word}{letter.number}word" for letter in here.mail for word in ("heading", "body")]
    return [
        {},
        {"text": "hello"},
        *({"text": word} for word in words),
        *({"header": ["X-Mark", f"header{letter.number}mark"]} for letter in here.mail),
        *({"from": letter.sender} for letter in here.mail),
        {"operator": "NOT", "conditions": [{"text": "nothing"}]},
        {"operator": "OR", "conditions": [{"minSize": 1}, {"body": "hello"}]},
        {"inMailboxOtherThan": []},
        {"hasAttachment": True},
        {"hasKeyword": "$flagged"},
        {"someInThreadHaveKeyword": "$seen"},
        {"noneInThreadHaveKeyword": "$seen"},
        {"before": (NOW - timedelta(days=10)).strftime("%Y-%m-%dT%H:%M:%SZ")},
        *({"inMailbox": mailbox_id} for mailbox_id in here.mailbox_ids().values()),
    ]


def _nothing(_here: World) -> Arguments:
    return [{}]


def _gets(here: World) -> Arguments:
    return [{"ids": _ids(here)}, {"ids": None}]


ROWS: dict[str, Row] = {
    "Core/echo": lambda _here: [{"hello": True}],
    "Blob/copy": lambda here: [{"fromAccountId": ACCOUNT, "blobIds": [f"B{each.id[1:]}" for each in here.mail]}],
    "PushSubscription/get": _nothing,
    "PushSubscription/set": _nothing,
    "Mailbox/get": lambda here: [{"ids": None}, {"ids": list(here.mailbox_ids().values())}],
    "Mailbox/changes": lambda _here: [{"sinceState": "0"}],
    "Mailbox/query": lambda _here: [
        {},
        {"filter": {"name": "e"}},
        {"sort": [{"property": "name"}], "calculateTotal": True},
    ],
    "Mailbox/queryChanges": lambda _here: [{"sinceQueryState": "0"}],
    "Mailbox/set": _nothing,
    "Thread/get": lambda here: [{"ids": sorted(set(here.thread_ids().values()))}, {"ids": None}],
    "Thread/changes": lambda _here: [{"sinceState": "0"}],
    "Email/get": lambda here: [
        {"ids": _ids(here), "properties": SHOWN} | EVERYTHING,
        {"ids": _ids(here)},
        {"ids": None, "properties": ["threadId", "preview", "header:X-Mark"]},
    ],
    "Email/changes": lambda _here: [{"sinceState": "0"}],
    "Email/query": lambda here: [
        *({"filter": each, "calculateTotal": True} for each in _filters(here)),
        {"anchor": here.mail[0].id},
        {"collapseThreads": True, "calculateTotal": True},
        {"sort": [{"property": "from"}, {"property": "size"}], "position": -3, "calculateTotal": True},
        {"sort": [{"property": "allInThreadHaveKeyword", "keyword": "$seen"}]},
    ],
    # With states that were given: `test_scope_changes`. With names of what is hidden: `test_scope_hidden`.
    "Email/queryChanges": lambda _here: [{"sinceQueryState": "0"}],
    "Email/set": lambda here: [{"update": {email_id: {"keywords/$seen": True} for email_id in _ids(here)}}],
    "Email/copy": lambda here: [
        {"fromAccountId": OTHER_ACCOUNT, "create": {"a": {"id": email_id}}} for email_id in _ids(here)
    ],
    "Email/import": lambda here: [{"emails": {"a": {"blobId": f"B{here.mail[0].id[1:]}"}}}],
    "Email/parse": lambda here: [
        {"blobIds": [f"B{letter.id[1:]}", *letter.part_blobs], "properties": ["subject", "bodyValues", "blobId"]}
        | EVERYTHING
        for letter in here.mail
    ],
    "SearchSnippet/get": lambda here: [
        {"emailIds": _ids(here), "filter": {"text": "hello"}},
        *({"emailIds": [each.id], "filter": {"text": f"body{each.number}word"}} for each in here.mail),
    ],
    "Identity/get": _nothing,
    "Identity/changes": lambda _here: [{"sinceState": "0"}],
    "Identity/set": _nothing,
    "EmailSubmission/get": _nothing,
    "EmailSubmission/changes": lambda _here: [{"sinceState": "0"}],
    "EmailSubmission/query": lambda here: [{"filter": {"emailIds": _ids(here)}}],
    "EmailSubmission/queryChanges": lambda _here: [{"sinceQueryState": "0"}],
    "EmailSubmission/set": lambda here: [{"create": {"a": {"emailId": here.mail[0].id}}}],
    "VacationResponse/get": _nothing,
    "VacationResponse/set": _nothing,
}


def test_every_method_of_the_table_has_a_row() -> None:
    assert set(METHODS) == set(ROWS)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", METHODS)
async def test_no_answer_holds_a_trace_of_what_is_hidden(
    here: World, forbidden_to: dict[str, list[str]], name: str, scope: str
) -> None:
    if scope not in forbidden_to:
        forbidden_to[scope] = traces(here, SCOPES[scope])
    forbidden = forbidden_to[scope]
    asked = ROWS[name](here)
    answers = await ask(here, scope, *((name, arguments) for arguments in asked))
    for arguments, (answered, answer) in zip(asked, answers, strict=True):
        assert "serverFail" != answer.get("type"), answer
        # The answer of each that shows mail is an answer, but where the arguments name what is not there.
        if isinstance(METHODS[name], Read) and "sinceState" not in str(arguments).replace(
            "sinceQueryState", "sinceState"
        ):
            assert answered == name or answer["type"] in {"invalidArguments", "anchorNotFound", "unsupportedFilter"}, (
                answer
            )
        text = without_what_was_asked(answer) if answered == name else json.dumps(answer)
        assert [] == [trace for trace in forbidden if trace in text], (arguments, text[:2000])


@pytest.mark.parametrize("scope", SCOPES)
async def test_what_is_inside_is_found_counted_and_read(here: World, scope: str) -> None:
    limits = SCOPES[scope]
    inside = seen(here, limits)
    found = await got(here, scope, "Email/query", calculateTotal=True)
    assert (sorted(each.id for each in inside), len(inside)) == (sorted(found["ids"]), found["total"])
    # The one thing that is told of the rest: how many they are.
    without_sign_in = [each for each in here.mail if each.seen_in(limits) and each.is_seen(_granted(limits))]
    assert {
        "outsideScope": len(here.mail) - len(without_sign_in),
        "signInMail": len(without_sign_in) - len(inside),
    } == found["coverage"]["hidden"]
    read = await got(here, scope, "Email/get", ids=_ids(here), properties=["mailboxIds", "threadId"])
    names = {mailbox_id: name for name, mailbox_id in here.mailbox_ids().items()}
    assert {each.id: set(each.seen_in(limits)) for each in inside} == {
        email["id"]: {names[mailbox_id] for mailbox_id in email["mailboxIds"]} for email in read["list"]
    }
    assert {each.id for each in hidden(here, limits)} == set(read["notFound"])
    threads = await got(here, scope, "Thread/get", ids=sorted(set(here.thread_ids().values())))
    expected: dict[str, set[str]] = {}
    for letter in inside:
        expected.setdefault(here.thread_ids()[letter.number], set()).add(letter.id)
    assert expected == {thread["id"]: set(thread["emailIds"]) for thread in threads["list"]}


def _granted(scope: Scope) -> Scope:
    return Scope(scope.accounts, scope.mailboxes, scope.received_since, scope.senders, scope.depth, sign_in_mail=True)


@pytest.mark.parametrize("scope", SCOPES)
async def test_counts_of_mailboxes_are_those_of_what_is_inside(here: World, scope: str) -> None:
    limits = SCOPES[scope]
    boxes = (await got(here, scope, "Mailbox/get", ids=None))["list"]
    assert [name for name in MAILBOXES if limits.mailboxes is None or name in limits.mailboxes] == sorted(
        (box["name"] for box in boxes), key=MAILBOXES.index
    )
    threads = here.thread_ids()
    for box in boxes:
        inside = [each for each in seen(here, limits) if box["name"] in each.seen_in(limits)]
        unread = [each for each in seen(here, limits) if "\\Seen" not in each.flags]
        assert (
            len(inside),
            len([each for each in inside if each in unread]),
            len({threads[each.number] for each in inside}),
            len({threads[each.number] for each in inside} & {threads[each.number] for each in unread}),
        ) == (box["totalEmails"], box["unreadEmails"], box["totalThreads"], box["unreadThreads"]), box["name"]
        total = (await got(here, scope, "Email/query", filter={"inMailbox": box["id"]}, calculateTotal=True))["total"]
        assert len(inside) == total


@pytest.mark.parametrize("scope", SCOPES)
async def test_each_filter_finds_of_what_is_inside_what_the_whole_would(here: World, scope: str) -> None:
    """Against the unlimited token: the same question finds the same mail, less what is hidden, less bodies unseen."""
    limits = SCOPES[scope]
    inside = {each.id for each in seen(here, limits)}
    shown = {
        mailbox_id
        for name, mailbox_id in here.mailbox_ids().items()
        if limits.mailboxes is None or name in limits.mailboxes
    }
    filters = [
        each
        for each in _filters(here)
        if ("inMailbox" not in each or each["inMailbox"] in shown)
        and "Thread" not in str(each)
        and "body" not in str(each)
    ]
    whole, narrow = [
        await ask(here, who, *(("Email/query", {"filter": each}) for each in filters)) for who in ("whole", scope)
    ]
    for asked, (_, all_of_it), (name, found) in zip(filters, whole, narrow, strict=True):
        assert "Email/query" == name, found
        expected = [email_id for email_id in all_of_it["ids"] if email_id in inside]
        if limits.depth is Depth.HEADERS and asked.get("text") == "hello":
            expected = []
        assert expected == found["ids"], asked
    # From the end: counted before it is known what there is.
    counted = [("Email/query", {"filter": each, "position": -1, "calculateTotal": True}) for each in filters]
    by_thread = [(name, arguments | {"collapseThreads": True}) for name, arguments in counted]
    threads = {letter.id: here.thread_ids()[letter.number] for letter in here.mail}
    totals = [answer["total"] for _, answer in await ask(here, scope, *counted, *by_thread)]
    found_ids = [answer["ids"] for _, answer in narrow]
    assert [*map(len, found_ids), *(len({threads[each] for each in ids}) for ids in found_ids)] == totals


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_thread_is_judged_by_its_members_that_are_seen(here: World, scope: str) -> None:
    inside = seen(here, SCOPES[scope])
    threads = here.thread_ids()
    keywords: dict[str, list[bool]] = {}
    for letter in inside:
        keywords.setdefault(threads[letter.number], []).append("\\Seen" in letter.flags)
    judged = {"someInThreadHaveKeyword": any, "allInThreadHaveKeyword": all}
    judged_ids = {
        name: {each.id for each in inside if judge(keywords[threads[each.number]])} for name, judge in judged.items()
    }
    expected = judged_ids | {"noneInThreadHaveKeyword": {each.id for each in inside} - judged_ids[next(iter(judged))]}
    asked = [("Email/query", {"filter": {name: "$seen"}}) for name in expected]
    answers = await ask(here, scope, *asked)
    assert expected == {name: set(answer["ids"]) for name, (_, answer) in zip(expected, answers, strict=True)}
    for name, ids in judged_ids.items():
        sort = [{"property": name, "keyword": "$seen", "isAscending": False}]
        found = (await got(here, scope, "Email/query", sort=sort))["ids"]
        assert ids == set(found[: len(ids)])


async def test_an_account_outside_is_none(here: World) -> None:
    here.tokens["one account"] = here.access.create_token("clerk", scope=Scope(accounts=(ACCOUNT,))).text
    async with here.client("one account") as client:
        session = (await client.get("/jmap/session")).json()
        assert ([ACCOUNT], ACCOUNT) == (list(session["accounts"]), session["primaryAccounts"][MAIL])
        assert OTHER_ACCOUNT not in json.dumps(session)
        assert [ACCOUNT] == list(await _told_at_once(client))
    async with here.client("whole") as client:
        assert [OTHER_ACCOUNT, ACCOUNT] == sorted(await _told_at_once(client))
    reads = [name for name, method in METHODS.items() if isinstance(method, Read)]
    for answered, answer in await ask(here, "one account", *((name, {"accountId": OTHER_ACCOUNT}) for name in reads)):
        assert ("error", "accountNotFound") == (answered, answer["type"])


@pytest.mark.parametrize("scope", SCOPES)
async def test_the_event_source_tells_the_states_that_the_methods_tell(here: World, scope: str) -> None:
    state = (await got(here, scope, "Email/get", ids=[]))["state"]
    async with here.client(scope) as client:
        told = (await _told_at_once(client))[ACCOUNT]
    # As other states, none of another scope; and what is hidden makes no new one (`test_store_deliveries.py`).
    assert state.partition("-")[0] == told.pop("EmailDelivery").partition("-")[0]
    assert {"Email": state, "Mailbox": state, "Thread": state} == told


async def _told_at_once(client: httpx.AsyncClient) -> dict[str, dict[str, str]]:
    """The states by account that the event source tells to who knows none."""
    path = "/jmap/eventsource?types=*&closeafter=state&ping=0"
    stream = await client.get(path, headers={"Last-Event-ID": "none"})
    data = next(line for line in stream.text.splitlines() if line.startswith("data: "))
    changed: dict[str, dict[str, str]] = json.loads(data.removeprefix("data: "))["changed"]
    return changed


def test_the_capabilities_are_all_asked_for() -> None:
    assert {CORE, MAIL, AGENT} <= set(KNOWN_CAPABILITIES)
