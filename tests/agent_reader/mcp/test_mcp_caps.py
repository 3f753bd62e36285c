"""Answers about mail without measure: each under its cap, each with a way on, and nothing lost on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from agent_reader.tool_answers.cuts import shown_text
from agent_reader.tool_answers.sheet import MAX_RESULT_CHARACTERS, Sheet, cost
from tests.agent_reader.mcp.desk import Desked, desked, id_of, inside, listed, outside, short
from tests.agent_reader.mcp.mails import attached
from tests.agent_reader.served import octets

if TYPE_CHECKING:
    from pathlib import Path

GOES_ON = re.compile(r'(?:Goes on|More): (?:the same call with cursor="([^"]+)"|.*?offset=(\d+)\)|.*?cursor=(\d+)\))')


def followed(standing: Desked, name: str, **arguments: Any) -> Iterator[str]:
    """The answer to a call and to every call that it names to go on."""
    while True:
        text = standing.text(name, **arguments)
        assert len(text) <= MAX_RESULT_CHARACTERS
        yield text
        found = GOES_ON.search(outside(text))
        if found is None:
            return
        cursor, offset, place = found.groups()
        arguments |= {"offset": int(offset)} if offset else {"cursor": cursor or place}


def bodies(texts: Iterator[str]) -> str:
    """What the windows of one text come to: the first stands after the header."""
    first, *others = [inside(text) for text in texts]
    return first.partition("\n\n")[2] + "".join(others)


def test_the_windows_of_a_25_megabyte_message_are_its_whole_text(tmp_path: Path) -> None:
    paragraph = "Ein Satz über Tee, und noch einer.\nEine Zeile\n\n" + "wörter " * 300 + "\n"
    text = paragraph * (2_000_000 // len(paragraph.encode())) + "Ende."
    large = attached(1, text, "film.mp4", "video/mp4", bytes(17_000_000))
    assert len(large) > 25_000_000
    large_id = id_of(large)
    with desked(tmp_path, (large,)) as standing:
        windows = list(followed(standing, "read_mail", ids=large_id))
        assert shown_text(text) == bodies(iter(windows))
        assert f"totalBytes {len(shown_text(text).encode())}" in outside(windows[5])
        assert "(video/mp4, 17000000 octets)" in inside(windows[0])
        assert "is no text" in outside(standing.text("read_attachment", id=large_id))


def test_the_windows_of_lines_without_number_are_the_whole_text_too(tmp_path: Path) -> None:
    lines = octets(1, "Lines", "a\n" * 30_000)
    words = octets(2, "One line", "x" * 60_000)
    with desked(tmp_path, (lines, words)) as standing:
        assert "a\n" * 29_999 + "a" == bodies(followed(standing, "read_mail", ids=id_of(lines)))
        assert ["[60000 characters of encoded data cut]"] == [bodies(followed(standing, "read_mail", ids=id_of(words)))]


def test_a_header_with_ten_thousand_recipients_is_counted_and_can_be_read_whole(tmp_path: Path) -> None:
    addresses = [f"Person {number} <p{number}@example.org>" for number in range(10_000)]
    crowd = octets(1, "All of you", "Hello", To=",\r\n ".join(addresses))
    with desked(tmp_path, (crowd,)) as standing:
        begin = standing.text("read_mail", ids=id_of(crowd))
        assert "and 9990 more" in begin
        assert len(begin) < 1_500
        whole = "".join(inside(text) for text in followed(standing, "read_mail", ids=id_of(crowd), part="header"))
        assert ", ".join(addresses) in whole


def test_every_one_of_ten_thousand_unread_messages_is_listed_once(tmp_path: Path) -> None:
    messages = tuple(octets(number, f"{number} " + "long " * 40, "Hi") for number in range(10_000))
    with desked(tmp_path, messages) as standing:
        begin = standing.text("search_mail", limit=50)
        assert "of 10000 messages" in begin
        assert len(begin) <= MAX_RESULT_CHARACTERS
        # Five pages of two hundred show that pages join; all of them would take a minute.
        ids = [listed(text) for text, _ in zip(followed(standing, "search_mail", limit=50), range(6), strict=False)]
        flat = [each for page in ids for each in page]
        newest = [short(id_of(message)) for message in reversed(messages)]
        assert newest[: len(flat)] == flat
        assert "of 10000; the others: search_mail(after=" in standing.text("whats_new", limit=40)
        assert len(standing.text("list_mailboxes")) < 500


def test_a_thread_of_three_hundred_messages_is_told_once_each_and_in_order(tmp_path: Path) -> None:
    first = octets(0, "A long talk", "It begins. " * 20)
    later = [
        octets(
            number,
            "Re: A long talk",
            f"Answer {number}. " * (2_000 if number == 150 else 12)
            + f"\r\n\r\nOn Monday Ann wrote:\r\n> Answer {number - 1}.\r\n",
            In_Reply_To="<0@example.org>",
            References="<0@example.org>",
        )
        for number in range(1, 299)
    ]
    twice = octets(299, "Re: A long talk", "It begins. " * 20, References="<0@example.org>")
    messages = (first, *later, twice)
    with desked(tmp_path, messages) as standing:
        texts = list(followed(standing, "read_thread", id=id_of(messages[7])))
        assert 300 == len(
            {each for text in texts for each in re.findall(r"^\d+\. (M\w+)", outside(text), re.MULTILINE)}
        )
        told = "".join(inside(text) for text in texts)
        for number in range(1, 299):
            assert (2_000 if number == 150 else 12) == told.count(f"Answer {number}.")
        assert 20 == told.count("It begins.")
        assert "The same text as number 1." in outside(texts[-1])


def test_many_messages_share_the_room_and_the_rest_is_named(tmp_path: Path) -> None:
    messages = tuple(octets(number, f"Subject {number}", f"{number} says " + "much " * 3_000) for number in range(20))
    with desked(tmp_path, messages) as standing:
        text = standing.text("read_mail", ids=[id_of(message) for message in messages])
        assert len(text) <= MAX_RESULT_CHARACTERS
        shown = re.findall(r"^(M\w{32}) in inbox", outside(text), re.MULTILINE)
        left = re.search(r"No room for the last (\d+) of the messages", outside(text))
        assert 20 == len(shown) + (int(left[1]) if left else 0)
        small = octets(99, "Small", "Short.")
    with desked(tmp_path / "two", (small, messages[0])) as standing:
        text = standing.text("read_mail", ids=[id_of(messages[0]), id_of(small)])
        # Who needs little leaves the rest to the other.
        assert len(text) > 14_000
        assert "Short." in inside(text)


@pytest.mark.parametrize("room", [900, 1_500, 20_000])
@pytest.mark.parametrize("text", ["", "x" * 50_000, "\n" * 50_000, "ab cd\n" * 9_000, "é " * 20_000])
def test_what_a_sheet_writes_is_what_it_counted(room: int, text: str) -> None:
    sheet = Sheet(room)
    start = 0
    window = sheet.window(text, start, before="From: a\n\n")
    assert window.end <= len(text)
    written = sheet.text(lambda octets: b"\x01" * octets)
    assert len(written) <= room
    assert cost("From: a\n\n" + text[: window.end]) <= room
