"""The tools as a model uses them: what it may write, what it is told, and what is new."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_reader.access import Agent
from agent_reader.mcp import tools as table
from agent_reader.mcp.cursors import Cursors
from agent_reader.mcp.server import make_server
from agent_reader.mcp.tools import TOOLS
from agent_reader.relay.endpoint import Endpoint
from agent_reader.relay.proposals import ProposalTools
from agent_reader.scope import Depth, Scope
from agent_reader.sync.mirror import ListedMailbox
from tests.agent_reader import synced
from tests.agent_reader.mcp.desk import Desked, desked, id_of, inside, listed, make_desk, outside, short
from tests.agent_reader.mcp.mails import attached
from tests.agent_reader.served import ACCOUNT, MESSAGES, NOW, OTHER_ACCOUNT, fetched, octets

GOLDEN = Path(__file__).with_name("tools.json")
FIRST, SECOND, RECEIPT = map(id_of, MESSAGES)
CSV = attached(7, "The list", "list.csv", "text/csv", b"a,b\r\n1,2\r\n")
PDF = attached(8, "The paper", "paper.pdf", "application/pdf", b"%PDF-1.4")


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desked]:
    with desked(tmp_path_factory.mktemp("tools"), (*MESSAGES, CSV, PDF)) as found:
        yield found


def with_scope(standing: Desked, scope: Scope, name: str = "clerk") -> Desked:
    token = standing.house.access.create_token(name, scope=scope).text
    agent = standing.house.access.authenticate(f"Bearer {token}")
    assert isinstance(agent, Agent)
    return Desked(standing.desk, standing.house, agent)


def described(desk: Desked) -> list[dict[str, Any]]:
    return [
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": desk.desk.schema(desk.agent, tool),
            "annotations": table.annotations(tool),
        }
        for tool in desk.desk.tools(desk.agent)
    ]


def test_what_clients_are_told_of_the_tools_is_what_it_was(standing: Desked) -> None:
    """A change here is one for every client: look at it, then write the file anew from the failure."""
    own = ProposalTools(
        Endpoint("executor", "http://127.0.0.1:9", ""), bytes, Endpoint("reader", "http://127.0.0.1:9", "")
    ).descriptions()
    told = [*described(standing), *own]
    assert json.loads(GOLDEN.read_text(encoding="utf-8")) == told, json.dumps(told, indent=1, ensure_ascii=False)
    # It is sent with every conversation: some 1,600 tokens.
    assert len(json.dumps(told)) < 7_000


def test_tools_that_a_token_may_not_use_are_not_listed_and_not_answered(standing: Desked) -> None:
    headers = with_scope(standing, Scope(depth=Depth.HEADERS))
    names = [tool["name"] for tool in described(headers)]
    assert ["whats_new", "search_mail", "read_mail", "list_mailboxes"] == names
    assert "unknown_tool" == headers.error("read_thread", id=FIRST)
    assert "teapot" not in headers.text("read_mail", ids=FIRST)
    assert "bad_argument" == headers.error("read_mail", ids=FIRST, part="new")
    assert "Not every text was searched" in headers.text("search_mail", text="teapot")
    assert "Not every text" not in standing.text("search_mail", text="teapot") + headers.text("search_mail")
    text = with_scope(standing, Scope(depth=Depth.TEXT))
    assert "read_attachment" not in [tool["name"] for tool in described(text)]
    assert "teapot" in text.text("read_thread", id=FIRST)


def test_what_is_outside_a_tokens_scope_is_not_there_and_counted(standing: Desked) -> None:
    narrow = with_scope(standing, Scope(senders=("person3@example.org",)))
    assert [short(RECEIPT)] == listed(narrow.text("search_mail"))
    for hidden in (FIRST, SECOND):
        assert short(hidden) not in narrow.text("search_mail") + narrow.text("whats_new", peek=True)
        assert "unknown_email" == narrow.error("read_mail", ids=hidden)
        assert "unknown_thread" == narrow.error("read_thread", id=hidden)
        assert "unknown_thread" == narrow.error("read_thread", id="T" + hidden[1:])
    assert "Not shown to this token: 4 messages" in narrow.text("list_mailboxes")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search_mail", {"limit": "2", "unread": "false", "text": "receipt"}),
        ("search_mail", {"limit": 2.0, "has_attachment": "no", "text": "receipt", "from": None, "to": ""}),
        ("read_mail", {"ids": RECEIPT, "part": "NEW"}),
        ("read_mail", {"ids": f'["{RECEIPT}"]'}),
        ("read_mail", {"ids": f"{RECEIPT}, {FIRST}"}),
        ("read_mail", {"ids": [RECEIPT], "offset": "0"}),
        (
            "search_mail",
            {"after": "2026-11-29", "before": "2026-11-30T00:00:00+01:00", "mailbox": "INBOX", "text": "12"},
        ),
        ("search_mail", {"mailbox": "inbox", "text": 12}),
    ],
)
def test_arguments_are_taken_as_models_write_them(standing: Desked, name: str, arguments: dict[str, Any]) -> None:
    answer = standing.desk.call(standing.agent, name, arguments)
    assert not answer.is_error, answer.text
    assert short(RECEIPT) in answer.text


@pytest.mark.parametrize(
    ("code", "name", "arguments"),
    [
        ("bad_argument", "search_mail", {"limit": -1}),
        ("bad_argument", "search_mail", {"limit": "many"}),
        ("bad_argument", "search_mail", {"limit": True}),
        ("bad_argument", "search_mail", {"after": "2026-6-1"}),
        ("bad_argument", "search_mail", {"unread": "perhaps"}),
        ("bad_argument", "search_mail", {"text": "x" * 1_001}),
        ("bad_search", "search_mail", {"text": "!!!"}),
        ("stale_cursor", "search_mail", {"cursor": "Mgone"}),
        ("unknown_mailbox", "search_mail", {"mailbox": "Nowhere"}),
        ("unknown_argument", "search_mail", {"query": "x"}),
        ("missing_argument", "read_mail", {}),
        ("bad_argument", "read_mail", {"ids": []}),
        ("bad_argument", "read_mail", {"ids": [str(number) for number in range(21)]}),
        ("bad_argument", "read_mail", {"ids": "[1"}),
        ("bad_argument", "read_mail", {"ids": [FIRST, SECOND], "offset": 3}),
        ("past_the_end", "read_mail", {"ids": FIRST, "offset": 4_000}),
        ("unknown_email", "read_mail", {"ids": "M" + "0" * 32}),
        ("unknown_thread", "read_thread", {"id": "T" + "0" * 32}),
        ("stale_cursor", "read_thread", {"id": FIRST, "cursor": "Mgone.5"}),
        ("stale_cursor", "read_thread", {"id": FIRST, "cursor": "5"}),
        ("unknown_attachment", "read_attachment", {"id": FIRST}),
        ("unknown_attachment", "read_attachment", {"id": id_of(CSV), "number": 2}),
        ("unknown_tool", "send_mail", {"to": "x"}),
        ("unknown_argument", "whats_new", {"account": "shop"}),
    ],
)
def test_each_refusal_has_its_code_and_says_what_to_do_next(
    standing: Desked, code: str, name: str, arguments: dict[str, Any]
) -> None:
    answer = standing.desk.call(standing.agent, name, arguments)
    assert answer.is_error
    assert answer.text.startswith(f"{code}: ")
    assert answer.text.count(". ") >= 1


def test_an_attachment_is_read_as_text_or_said_to_be_none(standing: Desked) -> None:
    assert "1 | 2" in inside(standing.text("read_attachment", id=id_of(CSV)))
    assert "Attachment 1: list.csv (text/csv, 10 octets)" in inside(standing.text("read_mail", ids=id_of(CSV)))
    assert "not read yet" in outside(standing.text("read_attachment", id=id_of(PDF), number="1"))


def test_a_line_tells_what_a_message_says_itself_also_where_the_word_is_in_what_it_quotes(tmp_path: Path) -> None:
    quoting = octets(80, "Re: Plans", "I come on Sunday.\r\n\r\nOn Monday Ann wrote:\r\n> Who is at the regatta?\r\n")
    signed = octets(
        81, "Keys", "They are in the drawer of the regatta office." + " Really." * 40 + "\r\n-- \r\nTom, 0900 18"
    )
    with desked(tmp_path, (quoting, signed)) as standing:
        signature, quoted = inside(standing.text("search_mail", text="regatta")).split("\n")
        assert quoted.endswith("| Re: Plans | I come on Sunday. … Who is at the regatta?")
        assert "| Keys | They are in the drawer of the regatta office. Really." in signature
        assert inside(standing.text("search_mail", text="0900")).endswith(" Really. … -- Tom, 0900 18")


def test_a_short_signature_is_read_with_the_text_and_a_disclaimer_under_it_is_left_out(tmp_path: Path) -> None:
    signed = octets(82, "Keys", "In the drawer.\r\n\r\n-- \r\nTom\r\n0900 18\r\n\r\n" + "Confidential. " * 30)
    long = octets(83, "Keys", "In the drawer.\r\n\r\n-- \r\n" + "Confidential. " * 30)
    with desked(tmp_path, (signed, long)) as standing:
        text = standing.text("read_mail", ids=id_of(signed))
        assert inside(text).endswith("In the drawer.\nTom / 0900 18")
        assert "Confidential" not in text + standing.text("read_mail", ids=id_of(long))
        assert re.search(r"^Left out: 4\d\d of signature \(part=whole\)", outside(text), re.MULTILINE)


def test_a_senders_own_date_is_in_the_whole_header_alone(tmp_path: Path) -> None:
    dated = b"Date: Sun, 1 Nov 2026 11:00:00 +0000\r\n" + octets(85, "Keys", "In the drawer.")
    with desked(tmp_path, (dated,)) as standing:
        assert "Date: " not in inside(standing.text("read_mail", ids=id_of(dated)))
        assert "Date: " in inside(standing.text("read_mail", ids=id_of(dated), part="header"))


def test_a_signature_under_what_is_quoted_is_not_taken_for_the_senders(tmp_path: Path) -> None:
    under = "I come on Sunday.\r\n\r\nOn Monday Ann wrote:\r\n> Who comes?\r\n\r\n-- \r\nAnn\r\n0900 19\r\n"
    message = octets(84, "Re: Plans", under)
    with desked(tmp_path, (message,)) as standing:
        assert "0900 19" not in inside(standing.text("read_mail", ids=id_of(message)))
        assert "0900 19" in inside(standing.text("read_mail", ids=id_of(message), part="whole"))


def test_what_an_answer_showed_is_on_record_with_its_parts_before_it_leaves(standing: Desked) -> None:
    standing.text("read_mail", ids=[FIRST, SECOND])
    standing.text("search_mail", text="receipt")
    search, read = standing.house.access.lines(agent="clerk", since=None, email_id=None, limit=2)[::-1]
    assert ("mcp/read_mail", (FIRST, SECOND), ["header", "text/new"]) == (
        read.method,
        read.email_ids,
        read.parts[FIRST],
    )
    assert ("mcp/search_mail", (RECEIPT,)) == (search.method, search.email_ids)
    assert ["header", "snippet of preview"] == search.parts[RECEIPT]
    assert standing.house.access.opened("clerk", ACCOUNT, FIRST).at is not None


def test_with_several_accounts_one_is_named(tmp_path: Path) -> None:
    with desked(tmp_path, accounts=(ACCOUNT, OTHER_ACCOUNT)) as two:
        assert "missing_argument" == two.error("search_mail")
        assert "unknown_account" == two.error("search_mail", account="nobody's")
        assert short(RECEIPT) in two.text("search_mail", account=ACCOUNT)
        assert short(RECEIPT) not in two.text("search_mail", account=OTHER_ACCOUNT)
        schema = two.desk.schema(two.agent, TOOLS[0])
        assert [ACCOUNT, OTHER_ACCOUNT] == schema["properties"]["account"]["enum"]
        assert "account" in schema["required"]


def deliver(
    standing: Desked, uid: int, message: bytes, mailbox: str = "INBOX", minutes: int = 0, account: str = ACCOUNT
) -> str:
    mirror = standing.house.store.account(account)
    handle = next(each.id for each in mirror.mailboxes() if each.name == mailbox)
    synced.add(mirror, handle, [fetched(uid, message, standing.house.clock() + timedelta(minutes=minutes))])
    return id_of(message)


def test_news_are_told_once_peeked_at_will_and_remembered_across_a_restart(tmp_path: Path) -> None:
    with desked(tmp_path) as standing:
        assert [short(each) for each in (FIRST, SECOND, RECEIPT)] == listed(standing.text("whats_new"))
        assert [] == listed(standing.text("whats_new"))
        new = [deliver(standing, 10 + number, octets(50 + number, f"New {number}", "x")) for number in range(5)]
        peeked = standing.text("whats_new", peek=True, limit=2)
        assert 2 == len(listed(peeked))
        cursor = re.search(r'cursor="([^"]+)"', outside(peeked))
        assert cursor is not None
        further = standing.text("whats_new", peek=True, limit=2, cursor=cursor[1])
        assert set(listed(further)).isdisjoint(listed(peeked))
        taken = standing.text("whats_new", limit=3)
        assert listed(peeked) == listed(taken)[:2]
        assert "More: whats_new() again." in outside(taken)
        # Another agent's place is its own.
        other = with_scope(standing, Scope(), "other")
        assert 8 == len(listed(other.text("whats_new", limit=40)))
        standing.desk.cursors.close()
        cursors = Cursors(tmp_path)
        try:
            again = Desked(make_desk(standing.house, cursors), standing.house, standing.agent)
            left = listed(again.text("whats_new"))
            assert sorted(map(short, new)) == sorted(listed(taken) + left)
            assert [] == listed(again.text("whats_new"))
        finally:
            cursors.close()


def test_news_hold_the_beginning_of_a_text_where_it_is_asked_for_and_the_read_log_says_so(tmp_path: Path) -> None:
    with desked(tmp_path) as standing:
        new = deliver(standing, 10, octets(50, "Kiln", "The oven is warm."))
        short = standing.text("whats_new", peek=True)
        long = standing.text("whats_new", peek=True, previews=True)
        assert ("Kiln" in short, "The oven is warm." in short) == (True, False)
        assert "The oven is warm." in long
        earlier, later = standing.house.access.lines(agent="clerk", since=None, email_id=None, limit=2)
        assert (["header"], ["header", "preview"]) == (earlier.parts[new], later.parts[new])


def test_old_mail_own_mail_and_moves_are_no_news_and_late_mail_is(tmp_path: Path) -> None:
    with desked(tmp_path) as standing:
        standing.text("whats_new")
        mirror = standing.house.store.account(ACCOUNT)
        mirror.put_mailboxes(
            [
                ListedMailbox("INBOX", "/", frozenset(), subscribed=True),
                ListedMailbox("Processed", "/", frozenset(), subscribed=True),
                ListedMailbox("Sent", "/", frozenset({"\\Sent"}), subscribed=True),
            ]
        )
        for mailbox in mirror.mailboxes():
            if mailbox.name == "Sent":
                mirror.restart(mailbox.id, 9)
        deliver(standing, 10, octets(60, "From before", "x"), minutes=-60 * 24 * 400)
        deliver(standing, 1, octets(61, "By myself", "x"), "Sent")
        deliver(standing, 2, MESSAGES[0], "Processed")
        # Received while the reader was down, taken in now.
        late = deliver(standing, 11, octets(62, "Late", "x"), minutes=-30)
        text = standing.text("whats_new")
        assert [short(late)] == listed(text)
        assert "1 in Sent, Drafts, Junk or Trash passed over" in outside(text)


def test_after_the_index_was_made_anew_nothing_is_lost(tmp_path: Path) -> None:
    with desked(tmp_path / "first") as standing:
        standing.text("whats_new")
        place = standing.desk.cursors.read("clerk", ACCOUNT)
        assert place is not None
    fresh = (*MESSAGES, octets(70, "In between", "x"))
    with desked(tmp_path / "second", fresh) as standing:
        standing.desk.cursors.write("clerk", ACCOUNT, type(place)("ffff-7", place.floor))
        text = standing.text("whats_new")
        assert short(id_of(fresh[-1])) in listed(text)
        assert "made anew" in outside(text)
        assert [] == listed(standing.text("whats_new"))


def test_an_index_that_is_not_whole_or_not_fresh_says_so_in_every_answer(tmp_path: Path) -> None:
    with desked(tmp_path) as standing:
        assert [] == standing.desk.standing(standing.agent)
        standing.house.clock.forward(timedelta(hours=1))
        assert f"index is of {NOW:%Y-%m-%d %H:%M} UTC" in standing.text("search_mail")
        assert "Not fresh" in standing.desk.instructions(standing.agent)
        unsynced = make_desk(standing.house, standing.desk.cursors, ("never",))
        assert "first sync is running" in unsynced.instructions(standing.agent)
        assert "first sync is running" in unsynced.call(standing.agent, "search_mail", {}).text


def test_the_server_has_tools_and_prompts_and_no_other_capability(standing: Desked) -> None:
    capabilities = make_server(standing.desk).get_capabilities()
    assert {"tools", "prompts"} == set(capabilities.model_dump(exclude_none=True))
