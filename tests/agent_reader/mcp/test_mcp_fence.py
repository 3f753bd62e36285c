"""No word of mail outside the fence: over every string of every answer, refusal and line of the log."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reader.mcp.tools import TOOLS
from agent_reader.mcp.views import Part
from agent_reader.sync.mirror import ListedMailbox
from agent_reader.tool_answers.sheet import MAX_RESULT_CHARACTERS, Sheet
from shared.fence import clean
from tests.agent_reader.mcp.desk import MARK, Desked, desked, id_of, inside, outside
from tests.agent_reader.mcp.mails import CANARY, HOSTILE
from tests.agent_reader.served import ACCOUNT

IDS = [id_of(octets) for octets in HOSTILE]
# What an agent may say that does as a mail told it.
OBEDIENT: list[Any] = [CANARY, [CANARY], {CANARY: CANARY}, f"{IDS[0]} {CANARY}", CANARY * 500, -1, True, None]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desked]:
    with desked(tmp_path_factory.mktemp("hostile"), HOSTILE) as standing:
        mirror = standing.house.store.account(ACCOUNT)
        mirror.put_mailboxes(
            [
                ListedMailbox("INBOX", "/", frozenset(), subscribed=True),
                ListedMailbox(f"{CANARY}\n{CANARY}", "/", frozenset(), subscribed=True),
            ]
        )
        for mailbox in mirror.mailboxes():
            mirror.looked(mailbox.id, len(HOSTILE) + 1, None)
        mirror.settle()
        yield standing


def calls() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every tool, rightly and with an attacker's words in every argument."""
    for part in Part:
        yield "read_mail", {"ids": IDS, "part": part.value}
        yield from (("read_mail", {"ids": each, "part": part.value, "offset": 5}) for each in IDS)
    for each in IDS:
        yield "read_thread", {"id": each}
        yield from (("read_attachment", {"id": each, "number": number}) for number in (1, 2))
    yield "whats_new", {"peek": True}
    yield "whats_new", {}
    yield "list_mailboxes", {}
    yield from (("search_mail", {name: CANARY}) for name in ("text", "from", "to", "subject", "body"))
    yield from (("search_mail", {name: CANARY, "brief": True}) for name in ("text", "subject"))
    yield "whats_new", {"peek": True, "brief": True, "previews": True}
    yield "search_mail", {}
    for tool in TOOLS:
        yield from ((tool.name, {name: value}) for name in tool.properties for value in OBEDIENT)
        yield tool.name, {CANARY: 1}
    yield CANARY, {}


def test_no_word_of_mail_stands_outside_the_fence(hostile: Desked) -> None:
    seen = 0
    for name, arguments in calls():
        answer = hostile.call(name, **arguments)
        assert CANARY not in outside(answer.text), (name, arguments, answer.text)
        assert len(answer.text) <= MAX_RESULT_CHARACTERS
        assert answer.text == clean(answer.text).text
        seen += CANARY in inside(answer.text)
    # The words do come through, where they belong.
    assert seen > 40
    assert CANARY in inside(hostile.text("list_mailboxes"))
    assert not hostile.house.log.calls


def test_what_cannot_be_answered_leaves_no_word_in_the_log_either(
    hostile: Desked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError(CANARY)

    monkeypatch.setattr("agent_reader.mcp.views.look", broken)
    hostile.desk.views._kept.clear()
    answer = hostile.call("read_mail", ids=IDS[0])
    assert answer.is_error
    assert answer.text.startswith("server_fault: ")
    assert CANARY not in answer.text
    (logged,) = hostile.house.log.calls
    assert CANARY not in str(logged)
    hostile.house.log.calls.clear()


def test_the_rule_stands_in_every_answer_with_mail_in_it_and_names_its_mark(hostile: Desked) -> None:
    for name, arguments in (("search_mail", {}), ("read_mail", {"ids": IDS[0]}), ("read_thread", {"id": IDS[0]})):
        first, *lines = hostile.text(name, **arguments).split("\n")
        rule = MARK.fullmatch(first)
        assert rule is not None
        assert any(f"{rule[1]}| " in line for line in lines)


def test_a_mark_that_a_mail_holds_is_not_drawn_again() -> None:
    sheet = Sheet()
    sheet.fenced("aaaa| said before")
    sheet.listed("Mbbbb", "Hello")
    draws = iter([b"\xaa" * 2, b"\xaa" * 2, b"\xbb" * 2, b"\xcc" * 2])
    text = sheet.text(lambda _: next(draws))
    assert text.startswith("cccc| marks mail:")


def test_the_longest_answer_cannot_hold_so_many_marks_that_none_is_left() -> None:
    """Every four hex digits that fit into an answer, one after the other: most are still free."""
    sheet = Sheet()
    window = sheet.window("".join(f"{number:04x}" for number in range(65_536)), 0)
    assert window.end < MAX_RESULT_CHARACTERS
    chance = random.Random(1)
    mark = MARK.match(sheet.text(chance.randbytes))
    assert mark is not None
    assert mark[1] not in "".join(f"{number:04x}" for number in range(65_536))[: window.end]


def test_what_stands_before_the_mark_on_a_line_is_ours_and_what_follows_it_is_mail() -> None:
    sheet = Sheet()
    assert sheet.listed("M1 unread", "Ann | Hello")
    text = sheet.text(lambda octets: b"\x01" * octets)
    assert ("M1 unread", "Ann | Hello") == (outside(text).split("\n")[-1], inside(text))
    assert not Sheet(700).listed("M1", "x" * 300)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=80), max_size=5), st.integers(0, 10))
def test_whatever_is_fenced_each_line_is_ours_or_bears_the_mark(texts: list[str], own: int) -> None:
    sheet = Sheet()
    for text in texts:
        sheet.ours("ours" * own)
        sheet.fenced(clean(text).text)
    numbers = itertools.count(0x3030)
    written = sheet.text(lambda octets: next(numbers).to_bytes(octets)).split("\n")
    mark = written[0][:4]
    bare = [line for line in written[1:] if not line.startswith((f"{mark}|", f"{mark}<", f"{mark}>"))]
    assert ["ours" * own] * len(texts) == bare or not texts
