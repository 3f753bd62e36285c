"""Every tool and route of the MCP door, for every scope: what is hidden leaves no trace, what is inside is all there.

The world and its oracle are those of the JMAP door's matrix. A new tool without a row here fails.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import structlog
from structlog.testing import CapturingLogger

from agent_reader.access import Agent
from agent_reader.door.faults import Faults
from agent_reader.mcp.cursors import Cursor, Cursors
from agent_reader.mcp.desk import Desk, ToolAnswer
from agent_reader.mcp.tools import TOOLS
from agent_reader.mcp.views import Part
from agent_reader.query import BlobReader
from agent_reader.query.blob_cache import BlobCache
from agent_reader.scope import WHOLE, Depth, Scope
from agent_reader.tool_answers.refusals import ToolRefused
from shared.identity import email_id, message_digest
from tests.agent_reader.jmap.scoped_asking import hidden, seen, traces
from tests.agent_reader.jmap.scoped_world import ACCOUNT, MAILBOXES, NOW, OTHER_ACCOUNT, SCOPES, Letter, World, world
from tests.agent_reader.mcp.desk import id_of, inside, listed, outside, short

# Lists show so many characters of an id: they are a trace too.
_SHORT_DIGEST = 10
LONG_AGO = NOW - timedelta(days=3_000)


@dataclass
class Here:
    """The world with a desk in it."""

    world: World
    desk: Desk

    def agent(self, scope: str) -> Agent:
        found = self.world.access.authenticate(f"Bearer {self.world.tokens[scope]}")
        assert isinstance(found, Agent)
        return found

    def call(self, scope: str, tool: str, **arguments: Any) -> ToolAnswer:
        return self.desk.call(self.agent(scope), tool, {"account": ACCOUNT} | arguments)

    def begin(self, scope: str) -> str:
        """Have the agent's last look lie before all mail; return the state that it stood at."""
        agent = self.agent(scope)
        with self.world.store.snapshot(ACCOUNT, agent.scope) as snapshot:
            state = f"{snapshot.state.partition('-')[0]}-0"
        self.desk.cursors.write(agent.name, ACCOUNT, Cursor(state, LONG_AGO))
        return state


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    folder = tmp_path_factory.mktemp("desk")
    with world(tmp_path_factory.mktemp("scoped")) as made:
        cache, cursors, marks = BlobCache(folder / "blobs", 1024 * 1024), Cursors(folder), itertools.count(0xA000)
        desk = Desk(
            index=made.store,
            access=made.access,
            cursors=cursors,
            account_ids=(ACCOUNT, OTHER_ACCOUNT),
            faults=Faults(structlog.wrap_logger(CapturingLogger()), bytes),
            clock=lambda: NOW,
            random_octets=lambda octets: next(marks).to_bytes(octets),
            blobs=BlobReader({ACCOUNT: made, OTHER_ACCOUNT: made}, cache, 8 * 1024 * 1024),
        )
        try:
            yield Here(made, desk)
        finally:
            cursors.close()
            cache.close()


Row = Callable[[Here, str], list[dict[str, Any]]]


def _ids(here: Here) -> list[str]:
    return [letter.id for letter in here.world.mail]


ROWS: dict[str, Row] = {
    "whats_new": lambda here, scope: [
        {"peek": True, "limit": 40},
        {"peek": True, "limit": 40, "previews": True, "cursor": here.begin(scope)},
    ],
    "search_mail": lambda here, _: [
        {"limit": 50},
        {"limit": 50, "text": "hello", "order": "oldest"},
        *({"text": f"body{each.number}word"} for each in here.world.mail),
        *({"mailbox": each} for each in MAILBOXES),
        {"cursor": _ids(here)[0]},
    ],
    "read_mail": lambda here, _: [
        {"ids": _ids(here)},
        *({"ids": [each], "part": part.value} for each in _ids(here)[:3] for part in Part),
        *({"ids": [each]} for each in _ids(here)),
    ],
    "read_thread": lambda here, _: [{"id": each} for each in (*_ids(here), *set(here.world.thread_ids().values()))],
    "read_attachment": lambda here, _: [{"id": each, "number": number} for each in _ids(here) for number in (1, 2)],
    "list_mailboxes": lambda _here, _scope: [{}, {"cursor": 1}],
}


def shown_traces(here: Here, scope: Scope) -> list[str]:
    """Whatever may be in no answer, the beginnings of ids too."""
    return [*traces(here.world, scope), *(each.id[1:][:_SHORT_DIGEST] for each in hidden(here.world, scope))]


def test_every_tool_has_a_row() -> None:
    assert {tool.name for tool in TOOLS} == set(ROWS)


@pytest.mark.parametrize("scope", SCOPES)
def test_no_tool_tells_anything_of_what_is_hidden(here: Here, scope: str) -> None:
    forbidden = shown_traces(here, SCOPES[scope])
    names = {tool.name for tool in here.desk.tools(here.agent(scope))}
    for name, row in ROWS.items():
        here.begin(scope)
        for arguments in row(here, scope):
            answer = here.call(scope, name, **arguments)
            assert answer.is_error or name in names
            assert "server_fault" not in answer.text
            assert [] == [trace for trace in forbidden if trace in answer.text], (name, arguments, answer.text)


@pytest.mark.parametrize("scope", SCOPES)
def test_what_is_inside_is_listed_counted_and_read(here: Here, scope: str) -> None:
    limits = SCOPES[scope]
    mail = seen(here.world, limits)
    expected = sorted(short(each.id) for each in mail)
    here.begin(scope)
    assert expected == sorted(listed(here.call(scope, "search_mail", limit=50).text))
    assert expected == sorted(listed(here.call(scope, "whats_new", peek=True, limit=40, previews=True).text))
    for box in outside(here.call(scope, "list_mailboxes").text).splitlines():
        mailbox_id, *_, counted = f"{box} ".strip().split(" ")
        name = next((name for name, each in here.world.mailbox_ids().items() if each == mailbox_id), None)
        if name is not None:
            lie_there = [each for each in mail if name in each.seen_in(limits)]
            unread = [each for each in lie_there if "\\Seen" not in each.flags]
            assert f"{len(lie_there)}/{len(unread)}" == counted
    if limits.depth is Depth.HEADERS:
        # A line has room for a preview that this token does not get, and so it is on no record.
        (line,) = here.world.access.lines(agent="clerk", since=None, email_id=mail[0].id, limit=1)
        assert ("mcp/whats_new", {("header",)}) == (line.method, {tuple(parts) for parts in line.parts.values()})
    for letter in mail:
        read = here.call(scope, "read_mail", ids=[letter.id])
        assert (limits.depth is not Depth.HEADERS) == (f"body{letter.number}word" in inside(read.text))
        if letter.attached:
            assert (limits.depth is Depth.FULL) == (
                f"cell{letter.number}word" in here.call(scope, "read_attachment", id=letter.id).text
            )
    threads = here.world.thread_ids()
    for thread in {threads[each.number] for each in mail} if limits.depth is not Depth.HEADERS else ():
        members = [short(each.id) for each in mail if threads[each.number] == thread]
        read = here.call(scope, "read_thread", id=thread)
        assert all(each in read.text for each in members)
        assert f"{len(members)} messages" in outside(read.text)


@pytest.mark.parametrize("scope", SCOPES)
def test_what_is_hidden_is_refused_in_the_words_for_what_was_never_there(here: Here, scope: str) -> None:
    nobody = email_id(message_digest(b"nobody"))
    for letter in hidden(here.world, SCOPES[scope]):
        for tool, argument in (("read_mail", "ids"), ("read_thread", "id"), ("read_attachment", "id")):
            asked, never = (here.call(scope, tool, **{argument: each}) for each in (letter.id, nobody))
            assert (True, never.text) == (asked.is_error, asked.text), tool
        asked, never = (here.call(scope, "search_mail", cursor=each) for each in (letter.id, nobody))
        assert (True, never.text) == (asked.is_error, asked.text)
        with pytest.raises(ToolRefused) as refused:
            here.desk.email_id(here.agent(scope), short(letter.id))
        assert "unknown_email" == refused.value.code
    for letter in seen(here.world, SCOPES[scope]):
        assert letter.id == here.desk.email_id(here.agent(scope), short(letter.id))
    limits = SCOPES[scope].mailboxes
    for name, mailbox_id in here.world.mailbox_ids().items():
        if limits is not None and name not in limits:
            for spelled in (name, mailbox_id):
                asked, never = (here.call(scope, "search_mail", mailbox=each) for each in (spelled, "Nowhere"))
                assert (True, never.text) == (asked.is_error, asked.text)


@pytest.mark.parametrize("scope", SCOPES)
def test_the_digest_tells_of_what_is_inside_alone(here: Here, scope: str) -> None:
    here.begin(scope)
    told = here.desk.digest(here.agent(scope), peek=True).decode()
    assert [] == [trace for trace in traces(here.world, SCOPES[scope]) if trace in told]
    found = next(each for each in json.loads(told)["accounts"] if each["account"] == ACCOUNT)
    news = [message["id"] for each in found["threads"] for who in each["senders"] for message in who["messages"]]
    assert sorted(each.id for each in seen(here.world, SCOPES[scope])) == sorted(news)
    assert len(news) == found["newMessages"]


def test_an_account_outside_is_none_for_any_tool(here: Here) -> None:
    here.world.tokens["one account"] = here.world.access.create_token("one", scope=Scope(accounts=(ACCOUNT,))).text
    agent = here.agent("one account")
    for tool in here.desk.tools(agent):
        assert "account" not in here.desk.schema(agent, tool)["properties"]
        for arguments in ({"account": OTHER_ACCOUNT}, {"id": here.world.mail[0].id}, {}):
            answer = here.desk.call(agent, tool.name, arguments)
            assert "account" not in arguments or answer.text.startswith("unknown_argument")
            assert OTHER_ACCOUNT not in answer.text
    assert [ACCOUNT] == [each["account"] for each in json.loads(here.desk.digest(agent, peek=True))["accounts"]]
    assert OTHER_ACCOUNT not in here.desk.instructions(agent)
    elsewhere = Letter(99, ("INBOX",))
    here.world.put_elsewhere(elsewhere)
    assert elsewhere.id == here.desk.email_id(here.agent("whole"), short(elsewhere.id))
    with pytest.raises(ToolRefused):
        here.desk.email_id(agent, short(elsewhere.id))


def test_the_oracle_sees_everything_where_nothing_is_hidden(here: Here) -> None:
    assert [] == hidden(here.world, WHOLE)
    assert id_of(here.world.mail[0].octets) == here.world.mail[0].id
