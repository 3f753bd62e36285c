"""The lines of a list: what its messages share is said once, and in brief there is little but the hit."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_reader.mcp.lines import day_or_minute
from tests.agent_reader.mcp.desk import Desked, desked, id_of, inside, listed, outside, short
from tests.agent_reader.served import octets

ASKED = octets(91, "Choosing a packaging supplier", "Which packaging is best?")
ANSWERED = octets(92, "Re: Choosing a packaging supplier", "Kestrel's packaging.", In_Reply_To="<91@example.org>")
OTHER = octets(93, "Another talk about the supplier", "Their packaging broke.", From="Person 91 <p@zanzibar.example>")
# The three above, newest first, then others.
ALL = (*(octets(number, f"Number {number}", "Nothing.") for number in range(1, 7)), ASKED, ANSWERED, OTHER)
FOUND = [short(id_of(each)) for each in (OTHER, ANSWERED, ASKED)]


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desked]:
    with desked(tmp_path_factory.mktemp("lists"), ALL) as found:
        yield found


def test_what_a_conversation_is_called_stands_whole_on_its_first_line_alone(standing: Desked) -> None:
    text = standing.text("search_mail", text="packaging")
    assert FOUND == listed(text)
    other, later, earlier = inside(text).split("\n")
    assert "Person 91 <p@zanzibar.example> | Another talk about the supplier | Their packaging broke." == other
    assert later.endswith(" | Re: Choosing a packaging supplier | Kestrel's packaging.")
    assert earlier.endswith(" | Choosing a… | Which packaging is best?")


def test_a_subject_that_says_more_than_the_first_one_stands_whole(tmp_path: Path) -> None:
    subject = "[packaging-suppliers] Choosing a packaging supplier"
    tagged = octets(92, subject, "Kestrel.", In_Reply_To="<91@example.org>")
    with desked(tmp_path, (ASKED, tagged)) as found:
        text = found.text("search_mail", text="packaging")
    assert [short(id_of(tagged)), short(id_of(ASKED))] == listed(text)
    later, earlier = inside(text).split("\n")
    assert f" | {subject} | " in later
    assert " | Choosing a packaging supplier | " in earlier


def test_in_brief_a_line_holds_the_senders_name_and_the_hit_or_else_the_subject(standing: Desked) -> None:
    text = standing.text("search_mail", text="packaging", brief="true")
    assert FOUND == listed(text)
    assert [
        "Person 91 | Their packaging broke.",
        "Person 92 | Kestrel's packaging.",
        # Somebody else goes by that name.
        "Person 91 <person91@example.org> | Which packaging is best?",
    ] == inside(text).split("\n")
    assert "Person 91 | Another talk about the supplier" == inside(standing.text("search_mail", brief=True, limit=1))
    named = inside(standing.text("search_mail", text="talk", brief=True))
    assert "Person 91 | Another talk about the supplier" == named
    news = inside(standing.text("whats_new", peek=True, brief=True))
    assert "Person 1 | Number 1" == news.split("\n")[0]


def test_what_a_brief_line_does_not_show_is_not_on_record_as_shown(standing: Desked) -> None:
    standing.text("search_mail", brief=True, limit=1)
    standing.text("search_mail", limit=1)
    brief, whole = standing.house.access.lines(agent="clerk", since=None, email_id=None, limit=2)
    other = id_of(OTHER)
    assert (["header"], ["header", "preview"]) == (brief.parts[other], whole.parts[other])


def test_a_list_is_counted_where_it_is_long_or_not_whole_and_else_not(standing: Desked) -> None:
    assert "messages" not in outside(standing.text("search_mail", text="packaging"))
    assert "6 messages." in outside(standing.text("search_mail", subject="Number"))
    assert "2 of 3 messages." in outside(standing.text("search_mail", text="packaging", limit=2))
    assert "1 of 3 messages, from number 3." in outside(standing.text("search_mail", text="packaging", cursor=FOUND[1]))
    assert outside(standing.text("search_mail", text="nowhere")).startswith("Nothing found.")


def test_a_date_has_no_year_where_only_one_can_be_meant() -> None:
    now = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)

    def shown(**ago: int) -> str:
        return day_or_minute(now - timedelta(**ago), now)

    assert "Jan 5 08:30" == shown(hours=1)
    assert "Dec 30 09:30" == shown(days=6)
    assert "Dec 28" == shown(days=8)
    assert "Feb 6" == shown(days=333)
    assert "2025-01-05" == shown(days=365)
    # A clock that is ahead.
    assert "2026-01-06" == shown(days=-1)
