"""Short answers are worked out in the event loop; whatever takes long, or waits, gets a thread and holds up nobody."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from agent_reader.jmap import attempts
from agent_reader.jmap.attempts import Attempts
from agent_reader.jmap.methods import METHODS, Method, Read
from agent_reader.query import EmailQueryArguments, email_query
from agent_reader.query.patience import Abandoned
from agent_reader.scope import ORDINARY, WHOLE, Scope
from agent_reader.store import snapshot
from tests.agent_reader.served import ACCOUNT, house, octets

pytestmark = pytest.mark.anyio

_SECONDS = 20
# A message of some 130 KiB, which is long; and one that is none.
LONG = octets(7, "A long story", "And then they went on.\r\n" * 6_000)
SHORT = octets(8, "A short one", "And they went on.")


@dataclass
class Hands:
    """A clock that is moved by hand."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_takes_longer_than_an_attempt_is_left_to_a_thread_and_so_is_what_its_agent_asks_next() -> None:
    clock = Hands()
    tried = Attempts(clock, 0.02)

    def short(is_over: Callable[[], bool]) -> str:
        assert not is_over()
        return "found"

    def long(is_over: Callable[[], bool]) -> str:
        clock.now += 0.02
        assert is_over()
        raise Abandoned

    def waits(_: Callable[[], bool]) -> str:
        raise Abandoned

    assert "found" == tried.answer("clerk", short)
    # What would have to wait says so at once, and took no time of anybody.
    assert tried.answer("clerk", waits) is None
    assert "found" == tried.answer("clerk", short)
    assert tried.answer("clerk", long) is None
    assert tried.answer("clerk", short) is None
    assert "found" == tried.answer("other", short)
    clock.now += attempts._REST_SECONDS
    assert "found" == tried.answer("clerk", short)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts that no clock ends: the machine may be busy."""
    monkeypatch.setattr("agent_reader.jmap.http.Attempts", lambda _: Attempts(lambda: 0.0))


@dataclass
class Noted:
    """Methods that note which thread answers."""

    threads: list[tuple[str, int]] = field(default_factory=list)

    def methods(self) -> dict[str, Method]:
        return {name: self._noting(name, method) for name, method in METHODS.items()}

    def _noting(self, name: str, method: Method) -> Method:
        if not isinstance(method, Read):
            return method

        def function(asking: Any, arguments: Any) -> Any:
            self.threads.append((name, threading.get_ident()))
            return method.function(asking, arguments)

        return replace(method, function=function)


@pytest.mark.usefixtures("patient")
async def test_a_search_and_what_it_found_are_worked_out_where_they_come_in_and_put_on_record(tmp_path: Path) -> None:
    noted = Noted()
    with house(tmp_path, methods=noted.methods()) as served:
        found = await served.one("Email/query")
        await served.one(
            "Email/get", ids=found[1]["ids"], properties=["subject", "bodyValues"], fetchTextBodyValues=True
        )
        await served.one("Thread/get", ids=[])
        # Of which reading alone takes its time.
        await served.one("Thread/get", ids=["T" * 100] * 200)
        # What may look long at something without looking at the clock.
        await served.one("Mailbox/get")
        assert [True, True, True, False, False] == [thread == threading.get_ident() for _, thread in noted.threads]
        on_record = served.access.lines(agent=None, since=None, email_id=None, limit=9)
    assert ["Email/query", "Email/get", "Thread/get", "Thread/get", "Mailbox/get"] == [
        line.method for line in on_record
    ]
    assert tuple(found[1]["ids"]) == on_record[1].email_ids
    assert on_record[1].has_bodies


@pytest.mark.usefixtures("patient")
async def test_a_long_message_is_read_in_a_thread(tmp_path: Path) -> None:
    noted = Noted()
    with house(tmp_path, (SHORT, LONG), methods=noted.methods()) as served:
        long, short = (await served.one("Email/query"))[1]["ids"]
        # Which has the message taken apart.
        texts = {"properties": ["bodyStructure", "bodyValues"], "fetchTextBodyValues": True}
        _, first = await served.one("Email/get", ids=[short, long], **texts)
    here = threading.get_ident()
    # The attempt begins with the short one, and what it wrote is taken back.
    assert ["Email/query", "Email/get", "Email/get"] == [name for name, _ in noted.threads]
    assert [True, True, False] == [thread == here for _, thread in noted.threads]
    assert "And they went on.\n" == _text(first["list"][0])
    assert 6_000 == _text(first["list"][1]).count("And then")


def _text(email: dict[str, Any]) -> str:
    (value,) = email["bodyValues"].values()
    return str(value["value"])


class GivenUp:
    """An attempt that is over after so many looks at the clock."""

    def __init__(self, most: int) -> None:
        self._most, self.looks = most, 0

    def answer(self, _agent: str, work: Callable[[Callable[[], bool]], Any]) -> Any:
        try:
            return work(self._is_over)
        except Abandoned:
            return None

    def _is_over(self) -> bool:
        self.looks += 1
        return self.looks > self._most


async def test_an_answer_is_the_same_wherever_its_attempt_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, within a search, before its total, between messages, between calls, and when all is written."""
    monkeypatch.setattr(snapshot, "_STEPS_BETWEEN_LOOKS", 10)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("Email/query", {"accountId": ACCOUNT, "filter": {"text": "order"}, "calculateTotal": True, "limit": 1}),
        (
            "Email/get",
            {
                "accountId": ACCOUNT,
                "#ids": {"resultOf": "0", "name": "Email/query", "path": "/ids"},
                "properties": ["subject", "bodyValues"],
                "fetchTextBodyValues": True,
            },
        ),
        ("Email/query", {"accountId": ACCOUNT, "calculateTotal": True, "collapseThreads": True}),
    ]
    with house(tmp_path) as served:
        wanted = await served.call(*calls)
        assert [2, 2] == [wanted[0][1]["total"], wanted[2][1]["total"]]
        most, at_last = 0, False
        while not at_last:
            attempt = GivenUp(most)
            monkeypatch.setattr(Attempts, "answer", lambda _, *given, attempt=attempt: attempt.answer(*given))
            assert wanted == await served.call(*calls), most
            at_last = attempt.looks <= most
            most += 1
        on_record = served.access.lines(agent=None, since=None, email_id=None, limit=10_000)
    assert most > 10
    assert ["Email/query", "Email/get", "Email/query"] * (most + 1) == [line.method for line in on_record]


async def test_an_answer_that_takes_long_holds_up_no_other(tmp_path: Path) -> None:
    """One waits, as for a mail server, until the other has been answered."""
    is_in, may_go_on = threading.Event(), threading.Event()
    method = METHODS["Mailbox/get"]
    assert isinstance(method, Read)

    def slow(asking: Any, arguments: Any) -> dict[str, Any]:
        is_in.set()
        assert may_go_on.wait(_SECONDS)
        return method.function(asking, arguments)

    with house(tmp_path, methods=dict(METHODS) | {"Mailbox/get": replace(method, function=slow)}) as served:
        first = asyncio.create_task(served.one("Mailbox/get"))
        assert await asyncio.to_thread(is_in.wait, _SECONDS)
        assert "Email/query" == (await asyncio.wait_for(served.one("Email/query"), _SECONDS))[0]
        assert not first.done()
        may_go_on.set()
        assert "Mailbox/get" == (await asyncio.wait_for(first, _SECONDS))[0]


@pytest.mark.usefixtures("patient")
async def test_while_an_answer_waits_for_its_record_others_are_worked_out_and_share_the_next_one(
    tmp_path: Path,
) -> None:
    is_in, may_go_on, commits = threading.Event(), threading.Event(), list[None]()

    def slow() -> bool:
        is_in.set()
        assert may_go_on.wait(_SECONDS)
        commits.append(None)
        return False

    worked_out = asyncio.Semaphore(0)
    method = METHODS["Email/query"]
    assert isinstance(method, Read)

    def noted(asking: Any, arguments: Any) -> Any:
        worked_out.release()
        return method.function(asking, arguments)

    with house(tmp_path, methods=dict(METHODS) | {"Email/query": replace(method, function=noted)}) as served:
        served.access._writer.set_commit_hook(slow)
        asking = [asyncio.create_task(served.one("Email/query"))]
        assert await asyncio.to_thread(is_in.wait, _SECONDS)
        asking += [asyncio.create_task(served.one("Email/query")) for _ in range(5)]
        for _ in asking:
            await asyncio.wait_for(worked_out.acquire(), _SECONDS)
        assert not any(each.done() for each in asking)
        may_go_on.set()
        assert ["Email/query"] * 6 == [name for name, _ in await asyncio.wait_for(asyncio.gather(*asking), _SECONDS)]
        assert 6 == served.access.recorded()
    assert 2 == len(commits)


@pytest.mark.parametrize("scope", [WHOLE, ORDINARY], ids=["all of it", "narrowed"])
def test_a_view_ends_wherever_it_is_asked_and_the_next_one_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: Scope
) -> None:
    monkeypatch.setattr(snapshot, "_STEPS_BETWEEN_LOOKS", 1)
    is_over = False
    with house(tmp_path) as served:
        with pytest.raises(apsw.InterruptError), served.store.snapshot(ACCOUNT, scope, lambda: True):
            pass
        with served.store.snapshot(ACCOUNT, scope, lambda: is_over) as view:
            assert 2 == len(view.mailboxes())
            is_over = True
            with pytest.raises(apsw.InterruptError):
                view.mailbox_key("nowhere")
        with served.store.snapshot(ACCOUNT, scope) as view:
            assert 3 == len(email_query(view, EmailQueryArguments()).ids)


async def test_an_attempt_ends_in_the_middle_of_whatever_the_index_is_asked(tmp_path: Path) -> None:
    method, here = METHODS["Thread/get"], threading.get_ident()
    assert isinstance(method, Read)

    def long_here(asking: Any, arguments: Any) -> Any:
        if threading.get_ident() == here:
            # Some seconds, unless it is ended.
            numbers = (
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000000) SELECT max(i) FROM n"
            )
            with pytest.raises(apsw.InterruptError):
                asking.snapshot.connection.execute(numbers).fetchall()
            raise apsw.InterruptError
        return method.function(asking, arguments)

    with house(tmp_path, methods=dict(METHODS) | {"Thread/get": replace(method, function=long_here)}) as served:
        name, found = await served.one("Thread/get", ids=[])
        # Nor is it taken for a fault.
        assert ("Thread/get", [], 0) == (name, found["list"], len(served.log.calls))
