"""The read log: appended before an answer leaves, paged, and never lost."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_reader.access import Access, Agent, Shown
from agent_reader.errors import AccessUnavailable
from shared.link import MAX_ANSWER_OCTETS, OpenedState
from tests.agent_reader.empty import empty_access

START = datetime(2026, 11, 29, 12, tzinfo=UTC)
CLERK = Agent("clerk", "aaaaaaaa")
OTHER = Agent("other", "bbbbbbbb")


class Clock:
    now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def access(tmp_path: Path, clock: Clock) -> Iterator[Access]:
    empty_access(tmp_path)
    with Access(tmp_path, clock, secrets.token_bytes) as opened:
        yield opened


def test_lines_come_back_in_order_and_only_to_their_agent(access: Access) -> None:
    access.record(CLERK, [Shown("Email/query", "shop", ("M1", "M2")), Shown("Email/get", "shop", ("M1",), ("M1",))])
    access.record(OTHER, [Shown("Mailbox/get", "shop")])
    assert [("Email/query", ["M1", "M2"]), ("Email/get", ["M1"])] == [
        (line.method, line.email_ids) for _, line in access.reads("clerk")
    ]
    assert [("Mailbox/get", [])] == [(line.method, line.email_ids) for _, line in access.reads("other")]
    assert [] == access.reads("nobody")


def test_pages_by_cursor_and_by_time(access: Access, clock: Clock) -> None:
    for number in range(5):
        clock.now = START + timedelta(seconds=number)
        access.record(CLERK, [Shown("Email/get", "shop", (f"M{number}",))])
    first = access.reads("clerk", limit=2)
    second = access.reads("clerk", cursor=first[-1][0], limit=2)
    assert [["M0"], ["M1"], ["M2"], ["M3"]] == [line.email_ids for _, line in first + second]
    since = access.reads("clerk", since=START + timedelta(seconds=3))
    assert [["M3"], ["M4"]] == [line.email_ids for _, line in since]
    assert START + timedelta(seconds=3) == since[0][1].at


def test_opened_means_that_body_text_was_shown_to_this_agent_in_this_account(access: Access, clock: Clock) -> None:
    access.create_token("clerk")
    access.create_token("other")
    access.record(CLERK, [Shown("Email/get", "shop", ("M1", "M2"), ("M1",))])
    clock.now = START + timedelta(hours=1)
    access.record(CLERK, [Shown("Email/get", "shop", ("M1",), ("M1",))])
    found = access.opened("clerk", "shop", "M1")
    assert (OpenedState.OPENED, START + timedelta(hours=1)) == (found.state, found.at)
    for agent, account, email_id in (("clerk", "shop", "M2"), ("clerk", "archive", "M1"), ("other", "shop", "M1")):
        assert OpenedState.NOT_OPENED is access.opened(agent, account, email_id).state
    assert OpenedState.UNKNOWN is access.opened("stranger", "shop", "M1").state


def test_the_latest_time_stays_though_the_clock_goes_back(access: Access, clock: Clock) -> None:
    for minutes in (5, 3):
        clock.now = START + timedelta(minutes=minutes)
        access.record(CLERK, [Shown("Email/get", "shop", ("M1",), ("M1",))])
    assert START + timedelta(minutes=5) == access.opened("clerk", "shop", "M1").at


def test_a_line_has_bodies_where_texts_were_shown_and_belongs_to_one_agent(access: Access) -> None:
    parts = (("M1", ("header",)),)
    access.record(CLERK, [Shown("Email/get", "shop", ("M1",), (), 5, parts)])
    access.record(Agent("clerk-2", "cccccccc"), [Shown("Email/get", "shop", ("M1",), ("M1",), 5, parts)])
    for agent, expected in (("clerk", [False]), ("clerk-2", [True]), ("cl", []), (None, [False, True])):
        lines = access.lines(agent=agent, since=None, email_id=None, limit=9)
        assert expected == [line.has_bodies for line in lines]


def test_a_last_use_is_the_latest_and_on_disk_with_the_next_answer_or_a_minute_later(
    access: Access, tmp_path: Path, clock: Clock
) -> None:
    token = access.create_token("clerk")

    def used() -> tuple[datetime | None, str]:
        (known,) = access.tokens()
        return known.used_at, known.used_from

    def use(opened: Access, seconds: int, peer: str) -> Agent:
        clock.now = START + timedelta(seconds=seconds)
        agent = opened.authenticate(f"Bearer {token.text}", peer)
        assert isinstance(agent, Agent)
        return agent

    use(access, 1, "first")
    agent = use(access, 2, "second")
    access.record(agent, [Shown("Email/get", "shop", ("M1",))])
    assert (START + timedelta(seconds=2), "second") == used()
    # An answer that shows no mail takes a commit for it once a minute has gone by.
    agent = use(access, 3, "third")
    clock.now = START + timedelta(seconds=62)
    access.record(agent, [])
    assert (START + timedelta(seconds=2), "second") == used()
    clock.now = START + timedelta(seconds=63)
    access.record(agent, [])
    assert (START + timedelta(seconds=3), "third") == used()
    # What was put down once is not put down again over what another process saw since.
    with Access(tmp_path, clock, secrets.token_bytes) as other:
        use(other, 90, "elsewhere")
    access.record(agent, [Shown("Email/get", "shop", ("M1",))])
    assert (START + timedelta(seconds=90), "elsewhere") == used()


def test_a_long_list_takes_several_rows_that_each_fit_an_answer_of_the_private_socket(access: Access) -> None:
    ids = tuple(f"M{number:032d}" for number in range(1_201))
    access.record(CLERK, [Shown("Email/query", "shop", ids, octets=9)])
    # The octets of the answer are counted once.
    assert [9, 0, 0] == [each.octets for each in access.lines(agent=None, since=None, email_id=None, limit=9)]
    lines = [line for _, line in access.reads("clerk")]
    assert [500, 500, 201] == [len(line.email_ids) for line in lines]
    assert list(ids) == [email_id for line in lines for email_id in line.email_ids]
    assert all(MAX_ANSWER_OCTETS > 4 * len(line.model_dump_json()) for line in lines)


def test_a_line_is_found_by_the_ids_in_it_and_not_by_their_beginnings(access: Access) -> None:
    access.record(CLERK, [Shown("Email/get", "shop", ("M11", "M2")), Shown("Email/get", "shop", ("M3", "M1"))])
    for email_id, expected in (("M1", ("M3", "M1")), ("M2", ("M11", "M2")), ("M11", ("M11", "M2"))):
        (line,) = access.lines(agent=None, since=None, email_id=email_id, limit=9)
        assert expected == line.email_ids
    assert [] == access.lines(agent=None, since=None, email_id="M", limit=9)


def test_nothing_of_a_record_that_fails_is_kept(access: Access) -> None:
    access._writer.execute("CREATE TRIGGER refuse BEFORE INSERT ON opened BEGIN SELECT RAISE(ABORT, 'no'); END")
    with pytest.raises(AccessUnavailable):
        access.record(CLERK, [Shown("Email/get", "shop", ("M1",), ("M1",))])
    assert [] == access.reads("clerk")
    access._writer.execute("DROP TRIGGER refuse")
    access.record(CLERK, [Shown("Email/get", "shop", ("M1",), ("M1",))])
    assert 1 == len(access.reads("clerk"))


def test_agents_are_those_whose_token_opens_now(access: Access) -> None:
    access.create_token("b")
    access.create_token("a")
    access.create_token("a")
    gone = access.create_token("c")
    access.revoke(gone.id)
    assert ["a", "b"] == access.agents()


def test_what_was_recorded_survives_a_kill(tmp_path: Path, clock: Clock) -> None:
    script = f"""
import secrets, sys, time
from datetime import datetime, UTC
from pathlib import Path
from agent_reader.access import Access, Agent, Shown
access = Access(Path({str(tmp_path)!r}), lambda: datetime(2026, 11, 29, tzinfo=UTC), secrets.token_bytes)
access.record(Agent("clerk", "aaaaaaaa"), [Shown("Email/get", "shop", ("M1",), ("M1",))])
print("recorded", flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "recorded\n" == process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    with Access(tmp_path, clock, secrets.token_bytes) as access:
        assert [["M1"]] == [line.email_ids for _, line in access.reads("clerk")]
