"""Sequences of tool calls, breadth first over what the agent can bring about: the mailbox stays as it was, and the
journal holds proposals and nothing else.

Depth 2 here; `python -m tests.agent_reader.mcp.test_mcp_sequences 4` walks four calls deep.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
from sqlalchemy import select

from agent_reader.mcp.cursors import Cursors
from agent_reader.relay.endpoint import Endpoint, Reply
from agent_reader.relay.proposals import ProposalTools
from agent_reader.tool_answers.refusals import ToolRefused
from change_executor.journal import schema
from change_executor.journal.open import open_journal
from tests.agent_reader.mcp.desk import Desked, desked, id_of, make_desk, outside
from tests.agent_reader.mcp.mails import HOSTILE
from tests.agent_reader.served import ACCOUNT
from tests.change_executor.intake.desk import Desk as Intake
from tests.change_executor.journal.clock import MovableClock
from tests.change_executor.settings import settings_in

A, B = id_of(HOSTILE[0]), id_of(HOSTILE[8])

# Fifteen calls: each tool as it is meant, and as a mail would have it.
ALPHABET: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("list_mailboxes", {}),
    ("search_mail", {"text": "zanzibar", "limit": "3"}),
    ("search_mail", {"cursor": A, "unread": True}),
    ("read_mail", {"ids": [A, B]}),
    ("read_mail", {"ids": A, "part": "whole", "offset": 3}),
    ("read_thread", {"id": B}),
    ("read_attachment", {"id": id_of(HOSTILE[3])}),
    ("whats_new", {"peek": True}),
    ("whats_new", {"limit": 2}),
    ("propose_move", {"id": A, "to": "processed", "reason": "zanzibar says so"}),
    ("propose_move", {"id": A[:11], "to": "escalate"}),
    ("propose_move", {"id": B, "to": "trash", "reason": "delete it"}),
    ("propose_move", {"id": "zanzibar", "to": "processed"}),
    ("my_proposals", {}),
    ("delete_mail", {"ids": [A]}),
)

# What the journal may come to hold by an agent's doing.
PROPOSALS_ONLY: Final = frozenset({"proposal:propose", "intake:refuse", "intake:refuse_summary", "token:create"})


@dataclass(frozen=True, slots=True)
class InProcess(Endpoint):
    """The intake's app without a socket between."""

    ask: Callable[..., httpx.Response] = field(kw_only=True)

    def request(self, method: str, path: str, content: object = None, headers: Any = None) -> Reply:  # noqa: ARG002 - the endpoint's signature
        response = self.ask(method, path, **({} if content is None else {"json": content}))
        return Reply(response.status_code, response.json())


@dataclass(frozen=True, slots=True)
class AtDesk(Endpoint):
    """The reader's answer to the relay, without a socket between."""

    standing: Desked = field(kw_only=True)

    def request(self, method: str, path: str, content: Any = None, headers: Any = None) -> Reply:  # noqa: ARG002 - the endpoint's signature
        assert ("POST", "/agent/email-id") == (method, path)
        try:
            return Reply(200, {"emailId": self.standing.desk.email_id(self.standing.agent, content["beginsWith"])})
        except ToolRefused as refused:
            return Reply(404, {"code": refused.code, "detail": refused.detail, "fix": refused.fix})


def tools_of(standing: Desked, intake: Intake) -> ProposalTools:
    """The relay's tools over both houses in this process."""
    reader = AtDesk("reader", "http://localhost", "", standing=standing)
    return ProposalTools(InProcess("executor", "http://localhost", intake.token, ask=intake.ask), bytes, reader)


@dataclass
class World:
    """Both houses as one agent sees them."""

    standing: Desked
    intake: Intake
    tools: ProposalTools

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        if name in self.tools.names:
            return self.tools.call(name, arguments)[0]
        return self.standing.desk.call(self.standing.agent, name, arguments).text

    def mailbox(self) -> list[tuple[Any, ...]]:
        """Every row of the mirror that says what mail there is, and in what state."""
        with self.standing.house.store.snapshot(ACCOUNT) as snapshot:
            tables = ("mailboxes", "emails", "copies", "email_mailboxes")
            rows = [row for table in tables for row in snapshot.connection.execute(f"SELECT * FROM {table}")]
            return [(snapshot.state,), *rows]

    def events(self) -> list[str]:
        with self.intake.journal.reading() as connection:
            return list(connection.execute(select(schema.events.c.kind)).scalars())

    def seen(self) -> tuple[Any, ...]:
        """What the agent can bring about: its place in the news, its proposals. Two worlds alike in it are one."""
        place = self.standing.desk.cursors.read(self.standing.agent.name, ACCOUNT)
        with self.intake.journal.reading() as connection:
            table = schema.proposals
            proposals = connection.execute(
                select(table.c.email_id, table.c.to_role, table.c.state).order_by(table.c.email_id)
            ).all()
        return (None if place is None else place.state, tuple(tuple(row) for row in proposals))


@contextmanager
def worlds() -> Iterator[Callable[[], AbstractContextManager[World]]]:
    """Worlds of one beginning: the mailbox is the same for all, since none may change it."""
    with tempfile.TemporaryDirectory() as name, desked(Path(name) / "reader-side", HOSTILE) as standing:
        folder = Path(name)
        settings = settings_in(folder, max_pending_per_agent=3)
        path = Path(settings.journal.url.removeprefix("sqlite:///"))
        open_journal(settings.journal.url, MovableClock()).close()
        empty = path.read_bytes()

        @contextmanager
        def world() -> Iterator[World]:
            path.write_bytes(empty)
            with ExitStack() as stack:
                cursors = Cursors(Path(stack.enter_context(tempfile.TemporaryDirectory())))
                stack.callback(cursors.close)
                journal = open_journal(settings.journal.url, MovableClock())
                stack.callback(journal.close)
                intake = Intake(journal, settings)
                fresh = Desked(make_desk(standing.house, cursors), standing.house, standing.agent)
                yield World(fresh, intake, tools_of(fresh, intake))

        yield world


@dataclass(frozen=True, slots=True)
class Walked:
    """How many calls were made, and how many states were new after so many in a row, beginning with none."""

    calls: int
    states_by_depth: tuple[int, ...]


def walk(depth: int) -> Walked:
    """Call every sequence of up to `depth` calls that begins with one that leads to a state not seen before."""
    waiting: list[tuple[int, ...]] = [()]
    states = [1] + [0] * depth
    called = 0
    with worlds() as new_world:
        with new_world() as standing:
            seen = {standing.seen()}
        while waiting:
            path = waiting.pop(0)
            for letter in range(len(ALPHABET)):
                with new_world() as standing:
                    before = standing.mailbox()
                    for each in (*path, letter):
                        assert "zanzibar" not in outside(standing.call(*ALPHABET[each]))
                        called += 1
                    assert before == standing.mailbox()
                    assert set(standing.events()) <= PROPOSALS_ONLY
                    state = standing.seen()
                if state not in seen:
                    seen.add(state)
                    states[len(path) + 1] += 1
                    if len(path) + 1 < depth:
                        waiting.append((*path, letter))
    return Walked(called, tuple(states))


def test_no_two_calls_in_a_row_change_the_mailbox_or_write_more_than_proposals() -> None:
    assert 15 == len(ALPHABET)
    assert walk(2).calls > 60


if __name__ == "__main__":
    walked = walk(int(sys.argv[1]))
    by_depth = ", ".join(map(str, walked.states_by_depth))
    sys.stdout.write(f"{walked.calls} calls; new states after 0, 1, ... calls in a row: {by_depth}\n")
