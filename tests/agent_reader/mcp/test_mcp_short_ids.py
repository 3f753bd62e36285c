"""The beginnings of ids that lists show: what they are taken for, and what nobody can make them be taken for.

`TWINS` are two messages whose ids begin alike, as anybody makes them in half a minute who writes both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_reader.mcp.short_ids import SHORT_CHARACTERS
from agent_reader.relay.endpoint import Reply, Unreachable
from agent_reader.scope import Depth, Scope
from tests.agent_reader import synced
from tests.agent_reader.mcp.desk import Desked, desked, id_of, inside, listed, outside, short
from tests.agent_reader.mcp.mails import attached
from tests.agent_reader.mcp.test_mcp_sequences import AtDesk, World, tools_of
from tests.agent_reader.mcp.test_mcp_tools import deliver, with_scope
from tests.agent_reader.served import ACCOUNT, MESSAGES, OTHER_ACCOUNT, octets
from tests.change_executor.intake.desk import Desk as Intake
from tests.change_executor.journal.clock import MovableClock
from tests.change_executor.journal.empty import empty_journal
from tests.change_executor.settings import settings_in

TWIN_NUMBERS = (20_071_452, 54_342_959)
TWINS = tuple(octets(90, "Twins", str(number)) for number in TWIN_NUMBERS)
FIRST, SECOND = map(id_of, TWINS)
START = short(FIRST)
RECEIPT = id_of(MESSAGES[2])


@contextmanager
def both_houses(folder: Path, messages: tuple[bytes, ...], accounts: tuple[str, ...] = (ACCOUNT,)) -> Iterator[World]:
    journal = empty_journal(settings_in(folder, max_pending_per_agent=9).journal.url, MovableClock())
    try:
        with desked(folder / "reader-side", messages, accounts=accounts) as standing:
            intake = Intake(journal, settings_in(folder, max_pending_per_agent=9))
            yield World(standing, intake, tools_of(standing, intake))
    finally:
        journal.close()


@pytest.fixture
def both(tmp_path: Path) -> Iterator[World]:
    """Both houses, with the first of the twins in incoming."""
    with both_houses(tmp_path, (*MESSAGES, TWINS[0])) as found:
        yield found


def take_away(standing: Desked, uid: int, account: str = ACCOUNT) -> None:
    """The owner deletes a message of INBOX for good, and the mirror has seen it everywhere."""
    mirror = standing.house.store.account(account)
    synced.vanish(mirror, next(each.id for each in mirror.mailboxes() if each.name == "INBOX"), [uid])
    for mailbox in mirror.mailboxes():
        mirror.looked(mailbox.id, 30, None)
    mirror.settle()


def proposed(world: World) -> list[str]:
    return [each["emailId"] for each in world.intake.ask("GET", "/v1/proposals").json()["proposals"]]


def propose(world: World, email_id: str) -> str:
    return world.call("propose_move", {"id": email_id, "to": "processed"})


def code(text: str) -> str:
    return text.partition(":")[0]


def test_the_twins_are_two_messages_whose_ids_begin_alike() -> None:
    assert FIRST != SECOND
    assert FIRST[:SHORT_CHARACTERS] == SECOND[:SHORT_CHARACTERS]


def test_what_a_list_shows_of_an_id_does_for_the_whole_in_every_tool(tmp_path: Path) -> None:
    csv = attached(7, "The list", "list.csv", "text/csv", b"a,b\r\n1,2\r\n")
    with desked(tmp_path, (*MESSAGES, csv)) as standing:
        shown = listed(standing.text("search_mail", text="list.csv")) or listed(standing.text("search_mail"))[:1]
        assert [short(id_of(csv))] == shown
        assert f"{id_of(csv)} in inbox" in outside(standing.text("read_mail", ids=shown))
        assert "1 | 2" in inside(standing.text("read_attachment", id=shown[0]))
        assert "The list" in inside(standing.text("read_thread", id=shown[0]))
        page = standing.text("search_mail", limit=1)
        assert f'cursor="{shown[0]}"' in outside(page)
        assert [short(RECEIPT)] == listed(standing.text("search_mail", limit=1, cursor=shown[0]))
        # What is on record is the whole.
        (line,) = standing.house.access.lines(agent="clerk", since=None, email_id=id_of(csv), limit=1)
        assert id_of(csv) in line.email_ids
        assert "unknown_email" == standing.error("read_mail", ids=shown[0][:-1])
        assert "unknown_email" == standing.error("read_mail", ids=f"{shown[0]}{'0' * 21}")


def test_ids_that_begin_alike_are_shown_whole_and_their_beginning_is_refused_with_both(both: World) -> None:
    assert START in listed(both.call("search_mail", {"text": "Twins"}))
    deliver(both.standing, 20, TWINS[1])
    assert {FIRST, SECOND} == set(listed(both.call("search_mail", {"text": "Twins"})))
    for name, arguments in (
        ("read_mail", {"ids": START}),
        ("read_mail", {"ids": [RECEIPT, START]}),
        ("read_thread", {"id": START}),
        ("read_attachment", {"id": START}),
        ("search_mail", {"cursor": START}),
    ):
        refused = both.call(name, arguments)
        assert "ambiguous_id" == code(refused)
        assert FIRST in refused
        assert SECOND in refused
    assert f"{SECOND} in inbox" in both.call("read_mail", {"ids": SECOND})


def test_a_proposal_names_the_one_message_there_is_or_none(both: World) -> None:
    assert propose(both, START).startswith("Proposed: ")
    assert [FIRST] == proposed(both)
    # A twin that comes later makes it no other message's.
    deliver(both.standing, 20, TWINS[1])
    refused = propose(both, START)
    assert "ambiguous_id" == code(refused)
    assert refused.endswith("Nothing was proposed.")
    assert [FIRST] == proposed(both)
    assert propose(both, SECOND).startswith("Proposed: ")
    assert {FIRST, SECOND} == set(proposed(both))


def test_a_message_that_the_token_does_not_show_makes_nothing_ambiguous_and_is_never_meant(both: World) -> None:
    # All but the second of the twins was received before what this token shows.
    late = with_scope(both.standing, Scope(received_since=both.standing.house.clock()), "late")
    assert "unknown_email" == late.error("read_mail", ids=START)
    deliver(both.standing, 20, TWINS[1], minutes=5)
    assert f"{SECOND} in inbox" in outside(late.text("read_mail", ids=START))
    assert [START] == listed(late.text("search_mail"))
    assert "ambiguous_id" == both.standing.error("read_mail", ids=START)
    tools = tools_of(late, both.intake)
    assert tools.call("propose_move", {"id": START, "to": "processed"})[0].startswith("Proposed: ")
    assert [SECOND] == proposed(both)


def test_a_message_that_is_gone_is_not_proposed_under_its_beginning(both: World) -> None:
    take_away(both.standing, len(MESSAGES) + 1)
    assert "unknown_email" == code(propose(both, START))
    assert [] == proposed(both)


def test_whatever_takes_the_place_of_a_message_that_is_gone_is_never_read_or_proposed_as_that_one(both: World) -> None:
    assert START in listed(both.call("search_mail", {"text": "Twins"}))
    assert propose(both, START).startswith("Proposed: ")
    take_away(both.standing, len(MESSAGES) + 1)
    # Any other message in its place: what the agent holds leads nowhere.
    deliver(both.standing, 20, octets(91, "Twins", "Not one of them."))
    for name in ("read_mail", "read_thread", "read_attachment"):
        refused = code(both.call(name, {"ids" if name == "read_mail" else "id": START}))
        assert refused in {"unknown_email", "unknown_thread"}
    assert "unknown_email" == code(propose(both, START))
    # Its twin: it is read and proposed as itself, by its whole id, and nothing is said of the first any more.
    deliver(both.standing, 21, TWINS[1])
    read = both.call("read_mail", {"ids": START})
    assert f"{SECOND} in inbox" in outside(read)
    assert str(TWIN_NUMBERS[1]) in inside(read)
    assert str(TWIN_NUMBERS[0]) not in inside(read)
    assert "unknown_email" == code(both.call("read_mail", {"ids": FIRST}))
    assert propose(both, START).startswith("Proposed: ")
    # What was proposed of the first is still of the first, and waits for a person by itself.
    assert {FIRST, SECOND} == set(proposed(both))
    (line,) = both.standing.house.access.lines(agent="clerk", since=None, email_id=SECOND, limit=5)
    assert (SECOND,) == line.email_ids


def test_twins_in_two_accounts_are_each_read_in_their_own_and_proposed_by_their_whole_id_alone(tmp_path: Path) -> None:
    with both_houses(tmp_path, (TWINS[0],), (ACCOUNT, OTHER_ACCOUNT)) as both:
        take_away(both.standing, 1, OTHER_ACCOUNT)
        deliver(both.standing, 20, TWINS[1], account=OTHER_ACCOUNT)
        for account, email_id in ((ACCOUNT, FIRST), (OTHER_ACCOUNT, SECOND)):
            # Within an account there is no other.
            assert [START] == listed(both.call("search_mail", {"account": account}))
            assert f"{email_id} in inbox" in outside(both.call("read_mail", {"account": account, "ids": START}))
        refused = propose(both, START)
        assert "ambiguous_id" == code(refused)
        assert FIRST in refused
        assert SECOND in refused
        assert [] == proposed(both)
        assert propose(both, SECOND).startswith("Proposed: ")
        assert [SECOND] == proposed(both)
        # Who may see one of the accounts is told nothing of the other.
        one = with_scope(both.standing, Scope(accounts=(ACCOUNT,)), "one")
        assert (
            tools_of(one, both.intake).call("propose_move", {"id": START, "to": "processed"})[0].startswith("Proposed")
        )
        assert {FIRST, SECOND} == set(proposed(both))


def test_the_same_beginning_in_two_accounts_is_one_message_only_if_it_is_the_same(tmp_path: Path) -> None:
    with desked(tmp_path, (TWINS[0],), accounts=(ACCOUNT, OTHER_ACCOUNT)) as standing:
        assert FIRST == standing.desk.email_id(standing.agent, START)
        reader = AtDesk("reader", "http://localhost", "", standing=standing)
        assert (
            "unknown_email" == reader.request("POST", "/agent/email-id", {"beginsWith": "M" + "0" * 12}).content["code"]
        )


def test_a_token_for_headers_can_name_messages_so_too(both: World) -> None:
    headers = with_scope(both.standing, Scope(depth=Depth.HEADERS))
    assert FIRST in headers.text("read_mail", ids=START)


class Away(AtDesk):
    """A reader that does not answer."""

    def request(self, method: str, path: str, content: Any = None, headers: Any = None) -> Reply:  # noqa: ARG002 - the endpoint's signature
        raise Unreachable("reader", "TimeoutError")


def test_where_the_reader_cannot_be_asked_nothing_is_proposed_and_the_whole_id_still_works(both: World) -> None:
    both.tools = type(both.tools)(
        both.tools.intake, bytes, Away("reader", "http://localhost", "", standing=both.standing)
    )
    refused = propose(both, START)
    assert "reader_unreachable" == code(refused)
    assert "the whole id" in refused
    assert [] == proposed(both)
    assert propose(both, FIRST).startswith("Proposed: ")
