"""What no search token says: keywords of whole threads, header fields, and the time that a question may take."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_reader.query import QueryRefused, email_query, parse_email_query
from shared.message import JSON
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, fetched, id_of, letter, mirrored

LETTERS = {
    name: letter(name, subject=f"Thread {name[0]}", headers={"Message-ID": f"<{name}@x>", **headers})
    for name, headers in {
        "a1": {"X-Topic": "Grüße aus Köln", "List-Id": "<tea.example.org>"},
        "a2": {"References": "<a1@x>", "X-Topic": "=?utf-8?q?caf=C3=A9?= au lait"},
        "b1": {"x-topic": "first", "X-Topic": "second"},
        "c1": {},
    }.items()
}
IDS = {id_of(octets): name for name, octets in LETTERS.items()}


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirrored]:
    """a1 is read in INBOX, a2 unread in Archive; b1 is read and flagged; c1 is unread."""
    with mirrored(tmp_path_factory.mktemp("store")) as account:
        account.begin("INBOX", "Archive")
        account.add(
            "INBOX",
            fetched(1, LETTERS["a1"], flags=["\\Seen"]),
            fetched(3, LETTERS["b1"], flags=["\\Seen", "\\Flagged", "$seenish"]),
            fetched(4, LETTERS["c1"]),
        )
        account.add("Archive", fetched(2, LETTERS["a2"], flags=["Odd.[key"]))
        yield account


def _names(account: Mirrored, **arguments: JSON) -> str:
    return " ".join(IDS[each] for each in account.query(**arguments).ids)


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ({"allInThreadHaveKeyword": "$seen"}, "b1"),
        ({"someInThreadHaveKeyword": "$SEEN"}, "b1 a2 a1"),
        ({"noneInThreadHaveKeyword": "$seen"}, "c1"),
        ({"someInThreadHaveKeyword": "$see"}, ""),
        ({"noneInThreadHaveKeyword": "$see"}, "c1 b1 a2 a1"),
        ({"someInThreadHaveKeyword": "odd.[key"}, "a2 a1"),
        ({"someInThreadHaveKeyword": "$seen", "text": "a2"}, "a2"),
        ({"header": ["X-Topic"]}, "b1 a2 a1"),
        ({"header": ["x-TOPIC"]}, "b1 a2 a1"),
        ({"header": ["X-Topic", ""]}, "b1 a2 a1"),
        ({"header": ["X-Topic", "GRUSSE  AUS"]}, "a1"),
        ({"header": ["X-Topic", "rüße aus K"]}, "a1"),
        ({"header": ["X-Topic", "café au"]}, "a2"),
        ({"header": ["X-Topic", "first"]}, "b1"),
        ({"header": ["X-Topic", "second"]}, "b1"),
        ({"header": ["X-Topic", "nowhere"]}, ""),
        ({"header": ["Message-ID", "<a2@x>"]}, "a2"),
        ({"header": ["References", "a1@x"]}, "a2"),
        ({"header": ["List-Id", "tea.example"], "hasKeyword": "$seen"}, "a1"),
        ({"header": ["message-id", "<A2@X>"]}, "a2"),
        ({"header": ["Message-ID", "<2@x>"]}, ""),
        ({"header": ["Message-ID", " <a2@x> "]}, "a2"),
        ({"header": ["Message-ID", "<a2@x> <a2@x>"]}, ""),
        ({"header": ["References", "<a1@x>"]}, "a2"),
        ({"header": ["References", "<a2@x>"]}, ""),
        ({"header": ["In-Reply-To"]}, ""),
        ({"header": ["References"]}, "a2"),
        ({"operator": "NOT", "conditions": [{"header": ["References", ""]}]}, "c1 b1 a1"),
        ({"operator": "NOT", "conditions": [{"header": ["Message-ID", "<a1@x>"]}]}, "c1 b1 a2"),
        ({"operator": "NOT", "conditions": [{"header": ["Message-ID", "<a1@x>"]}, {"text": "b1"}]}, "c1 a2"),
        ({"operator": "OR", "conditions": [{"header": ["References"]}, {"header": ["X-Topic", "first"]}]}, "b1 a2"),
        ({"header": ["List-Id", "<tea.example.org>"]}, "a1"),
        ({"header": ["X-None"]}, ""),
        ({"header": ["X-Topic", "%"]}, ""),
        ({"header": ["X-Topic", "' OR 1=1 --"]}, ""),
    ],
)
@pytest.mark.statement("155", "161")
def test_a_condition_on_threads_or_header_fields_finds_what_it_says(
    account: Mirrored, condition: dict[str, JSON], names: str
) -> None:
    assert names == _names(account, filter=condition)
    assert len(names.split()) == account.query(filter=condition, calculateTotal=True).total


@pytest.mark.statement("94", "155")
def test_an_email_that_is_deleted_counts_in_no_thread(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        account.add("INBOX", fetched(1, LETTERS["a1"], flags=["\\Seen", "\\Deleted"]), fetched(2, LETTERS["a2"]))
        assert "" == _names(account, filter={"someInThreadHaveKeyword": "$seen"})
        assert "a2" == _names(account, filter={"noneInThreadHaveKeyword": "$seen"})
        account.flag("INBOX", 1, "\\Seen")
        assert "a2 a1" == _names(account, filter={"someInThreadHaveKeyword": "$seen"})
        assert "" == _names(account, filter={"allInThreadHaveKeyword": "$seen"})
        account.flag("INBOX", 2, "\\Deleted")
        assert "a1" == _names(account, filter={"allInThreadHaveKeyword": "$seen"})


def test_these_conditions_stand_under_operators_and_collapse(account: Mirrored) -> None:
    some: JSON = {"someInThreadHaveKeyword": "$seen"}
    assert "c1" == _names(account, filter={"operator": "NOT", "conditions": [some]})
    assert "c1 b1" == _names(
        account, filter={"operator": "OR", "conditions": [{"text": "c1"}, {"header": ["X-Topic", "first"]}]}
    )
    assert "b1 a2" == _names(account, filter=some, collapseThreads=True)
    assert "b1" == _names(account, filter={"operator": "AND", "conditions": [some, {"header": ["X-Topic", "second"]}]})


@pytest.mark.parametrize(
    ("comparators", "names"),
    [
        ([{"property": "hasKeyword", "keyword": "$seen"}], "c1 a2 b1 a1"),
        ([{"property": "hasKeyword", "keyword": "$Seen", "isAscending": False}], "b1 a1 c1 a2"),
        ([{"property": "allInThreadHaveKeyword", "keyword": "$seen", "isAscending": False}], "b1 c1 a2 a1"),
        ([{"property": "someInThreadHaveKeyword", "keyword": "$seen"}], "c1 b1 a2 a1"),
        (
            [
                {"property": "hasKeyword", "keyword": "$flagged", "isAscending": False},
                {"property": "someInThreadHaveKeyword", "keyword": "$seen", "isAscending": False},
                {"property": "receivedAt"},
            ],
            "b1 a1 a2 c1",
        ),
    ],
)
@pytest.mark.statement("165")
def test_sorted_by_a_keyword_false_comes_before_true(account: Mirrored, comparators: list[JSON], names: str) -> None:
    assert names == _names(account, sort=comparators)
    assert names == _names(account, sort=comparators, filter={"text": "thread", "minSize": 1})


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"filter": {"text": "a1"}},
        {"filter": {"header": ["X-None"]}},
        {"collapseThreads": True},
        {"position": -1},
        {"sort": [{"property": "subject"}]},
    ],
)
def test_a_question_whose_time_is_up_is_refused_with_a_code_and_the_snapshot_lives_on(
    account: Mirrored, asked: dict[str, JSON], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_reader.store.snapshot._STEPS_BETWEEN_LOOKS", 1)
    with account.store.snapshot(ACCOUNT) as snapshot:
        with pytest.raises(QueryRefused) as refused:
            email_query(snapshot, parse_email_query(asked), is_over=lambda: True)
        assert ("unsupportedFilter", "timeLimit") == (refused.value.type, refused.value.code)
        email_query(snapshot, parse_email_query(asked))


def test_a_total_that_takes_too_long_is_left_out_and_said_so(
    account: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_reader.store.snapshot._STEPS_BETWEEN_LOOKS", 1)
    with account.store.snapshot(ACCOUNT) as snapshot:
        # A page that holds all there is would tell the total without another look.
        whole = email_query(snapshot, parse_email_query({"calculateTotal": True, "limit": 2}))
        looks = itertools.count()
        email_query(snapshot, parse_email_query({"limit": 2}), is_over=lambda: next(looks) < 0)
        for_the_ids, again = next(looks), itertools.count()
        late = email_query(
            snapshot,
            parse_email_query({"calculateTotal": True, "limit": 2}),
            is_over=lambda: next(again) >= for_the_ids,
        )
    assert (whole.ids, None, True) == (late.ids, late.total, late.total_not_computed)
    assert (4, False) == (whole.total, whole.total_not_computed)
