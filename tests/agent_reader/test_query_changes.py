"""Email/queryChanges: a list that is kept by its answers is always the list that a fresh query gives."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_reader.keep import Retention
from agent_reader.query import (
    QueryRefused,
    QueryResult,
    email_query,
    email_query_changes,
    mailbox_query,
    mailbox_query_changes,
    parse_email_query,
    parse_email_query_changes,
    parse_mailbox_query,
    parse_mailbox_query_changes,
)
from agent_reader.query.changes import QueryChanges
from agent_reader.scope import WHOLE, Scope
from agent_reader.store import DataType, Store, search
from agent_reader.store.database import account_file, connect
from shared.message import JSON
from tests.agent_reader.mirrored import ACCOUNT, START, Mirrored, fetched, id_of, letter, listed, mirrored

LETTERS = [
    letter(
        f"text{number} {'even' if number % 2 == 0 else 'odd'}",
        subject=f"S{number % 4}",
        headers={"Message-ID": f"<{number}@x>", "References": f"<{number % 4}@x>"},
    )
    for number in range(24)
]
QUERIES: list[dict[str, JSON]] = [
    {},
    {"filter": {"text": "even"}},
    {"filter": {"inMailbox": "INBOX"}},
    {"filter": {"inMailboxOtherThan": ["INBOX"]}},
    {"filter": {"notKeyword": "$seen"}},
    {"filter": {"operator": "NOT", "conditions": [{"hasKeyword": "$flagged"}, {"text": "text3"}]}},
    {"collapseThreads": True},
    {"filter": {"inMailbox": "Archive"}, "collapseThreads": True},
    {"filter": {"someInThreadHaveKeyword": "$flagged"}},
    {"filter": {"operator": "OR", "conditions": [{"allInThreadHaveKeyword": "$seen"}, {"text": "text5"}]}},
    {"filter": {"noneInThreadHaveKeyword": "$seen"}, "collapseThreads": True},
    {"sort": [{"property": "hasKeyword", "keyword": "$seen"}, {"property": "receivedAt"}]},
    {"sort": [{"property": "someInThreadHaveKeyword", "keyword": "$flagged", "isAscending": False}]},
    {"sort": [{"property": "subject"}], "filter": {"header": ["Message-ID", "1"]}},
]


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Mirrored]:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX", "Archive")
        yield account


def _changes(account: Mirrored, since: str, query: Mapping[str, JSON], **arguments: JSON) -> QueryChanges:
    with account.store.snapshot(ACCOUNT) as snapshot:
        return email_query_changes(
            snapshot, parse_email_query_changes({**query, "sinceQueryState": since, **arguments})
        )


def _applied(cached: tuple[str, ...], changes: QueryChanges) -> tuple[str, ...]:
    """RFC 8620 §5.6: take out what is removed, then put in what is added, lowest index first."""
    removed = set(changes.removed)
    kept = [each for each in cached if each not in removed]
    for email_id, index in changes.added:
        kept.insert(index, email_id)
    return tuple(kept)


def _named(account: Mirrored, query: dict[str, JSON]) -> dict[str, JSON]:
    """The query with mailboxes by their ids."""
    names = {name: account.mailbox_id(name) for name in ("INBOX", "Archive")}

    def replaced(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: replaced(each) for key, each in value.items()}
        if isinstance(value, list):
            return [replaced(each) for each in value]
        return names.get(value, value) if isinstance(value, str) else value

    named: dict[str, JSON] = replaced(query)
    return named


class _Life:
    """What happens to a mailbox: mail comes, is read, is flagged, moves and goes."""

    def __init__(self, account: Mirrored, seed: int) -> None:
        self.account, self.chance = account, random.Random(seed)
        self.placed: dict[tuple[str, int], int] = {}
        self.uid = 0

    def step(self) -> None:
        what = self.chance.choice(("come", "come", "flag", "flag", "move", "go", "settle"))
        if what == "come" or not self.placed:
            self._put(self.chance.choice(("INBOX", "Archive")), self.chance.randrange(len(LETTERS)))
            return
        (name, uid), number = self.chance.choice(sorted(self.placed.items()))
        match what:
            case "flag":
                flags = ("\\Seen", "\\Flagged", "\\Deleted", "Label")
                self.account.flag(name, uid, *self.chance.sample(flags, self.chance.randrange(3)))
            case "move":
                self._take(name, uid)
                self._put("Archive" if name == "INBOX" else "INBOX", number)
                self.account.end_round()
            case "go":
                self._take(name, uid)
            case _:
                self.account.end_round()

    def _put(self, name: str, number: int) -> None:
        self.uid += 1
        self.placed[name, self.uid] = number
        self.account.add(name, fetched(self.uid, LETTERS[number], at=START.replace(minute=number)))

    def _take(self, name: str, uid: int) -> None:
        del self.placed[name, uid]
        self.account.vanish(name, uid)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.statement("83", "85")
def test_a_list_kept_by_changes_is_the_list_of_a_fresh_query(account: Mirrored, seed: int) -> None:
    life = _Life(account, seed)
    queries = [_named(account, query) for query in QUERIES]
    kept = [(account.query(**query).query_state, account.query(**query).ids) for query in queries]
    seen_changes = 0
    for _ in range(25):
        for _ in range(life.chance.randrange(1, 4)):
            life.step()
        for number, query in enumerate(queries):
            state, ids = kept[number]
            fresh = account.query(**query, calculateTotal=True)
            changes = _changes(account, state, query, calculateTotal=True)
            assert fresh.ids == _applied(ids, changes), query
            assert (state, fresh.query_state, fresh.total) == (
                changes.old_query_state,
                changes.new_query_state,
                changes.total,
            )
            assert [index for _, index in changes.added] == sorted(index for _, index in changes.added)
            seen_changes += len(changes.added)
            # Some lists are brought up to date each time, others after many changes at once.
            if number % 2 or life.chance.random() < 0.3:
                kept[number] = fresh.query_state, fresh.ids
    assert seen_changes > 50


def test_without_a_change_there_is_none_and_a_foreign_state_is_refused(account: Mirrored) -> None:
    account.add("INBOX", fetched(1, LETTERS[0]))
    state = account.query().query_state
    unchanged = _changes(account, state, {})
    assert ((), (), None) == (unchanged.removed, unchanged.added, unchanged.total)
    for foreign in ("", "x", "0000-1", state + "9", f"{state}.Email.1"):
        with pytest.raises(QueryRefused, match="cannotCalculateChanges"):
            _changes(account, foreign, {})
    wrongs: list[dict[str, JSON]] = [
        {"sinceQueryState": 1},
        {"maxChanges": -1},
        {"upToId": 3},
        {"position": 1},
        {"filter": []},
    ]
    for wrong in wrongs:
        with pytest.raises(QueryRefused, match="invalidArguments"):
            _changes(account, state, {}, **wrong)


@pytest.mark.statement("85")
def test_what_is_new_is_not_told_to_be_gone_and_the_first_of_its_thread_before_is(account: Mirrored) -> None:
    account.add("INBOX", fetched(4, LETTERS[4]))
    state = account.query().query_state
    account.add("INBOX", fetched(8, LETTERS[8]))
    new, before = id_of(LETTERS[8]), id_of(LETTERS[4])
    plain, collapsed = _changes(account, state, {}), _changes(account, state, {"collapseThreads": True})
    assert ((), ((new, 0),)) == (plain.removed, plain.added)
    assert ((before,), ((new, 0),)) == (collapsed.removed, collapsed.added)
    state = account.query().query_state
    account.vanish("INBOX", 8)
    account.end_round()
    collapsed = _changes(account, state, {"collapseThreads": True})
    assert ({new, before}, ((before, 0),)) == (set(collapsed.removed), collapsed.added)


@pytest.mark.statement("85")
def test_more_changes_than_asked_for_are_too_many(account: Mirrored) -> None:
    state = account.query().query_state
    account.add("INBOX", *(fetched(uid, LETTERS[uid]) for uid in range(1, 4)))
    assert 3 == len(_changes(account, state, {}, maxChanges=3).added)
    with pytest.raises(QueryRefused, match="tooManyChanges"):
        _changes(account, state, {}, maxChanges=2)
    # What is taken out counts, and so does what is put in (RFC 8620 §5.6).
    state = account.query().query_state
    account.flag("INBOX", 1, "\\Seen")
    account.vanish("INBOX", 2)
    account.end_round()
    changes = _changes(account, state, {}, maxChanges=3)
    assert (2, 1) == (len(changes.removed), len(changes.added))
    with pytest.raises(QueryRefused, match="tooManyChanges"):
        _changes(account, state, {}, maxChanges=2)


@pytest.mark.statement("85")
def test_up_to_id_ends_what_is_added_where_nothing_can_move_and_is_ignored_elsewhere(account: Mirrored) -> None:
    account.add("INBOX", *(fetched(uid, LETTERS[uid], at=START.replace(minute=uid)) for uid in (4, 8)))
    before = account.query()
    account.add("INBOX", *(fetched(uid, LETTERS[uid], at=START.replace(minute=uid)) for uid in (2, 10)))
    newest, oldest = (id_of(LETTERS[10]), 0), (id_of(LETTERS[2]), 3)
    up_to = before.ids[0]
    assert (newest,) == _changes(account, before.query_state, {}, upToId=up_to).added
    assert (newest, oldest) == _changes(account, before.query_state, {}, upToId="Mnowhere").added
    mutable: list[dict[str, JSON]] = [
        {"filter": {"notKeyword": "$seen"}},
        {"filter": {"inMailbox": "INBOX"}},
        {"filter": {"inMailboxOtherThan": ["Archive"]}},
        {"filter": {"noneInThreadHaveKeyword": "$seen"}},
        {"filter": {"operator": "OR", "conditions": [{}, {"operator": "NOT", "conditions": [{"hasKeyword": "x"}]}]}},
        {"sort": [{"property": "hasKeyword", "keyword": "$seen"}, {"property": "receivedAt", "isAscending": False}]},
    ]
    for query in mutable:
        assert (newest, oldest) == _changes(account, before.query_state, _named(account, query), upToId=up_to).added


@pytest.mark.statement("85")
def test_up_to_id_is_ignored_where_an_email_may_stand_for_its_thread(account: Mirrored) -> None:
    account.add("INBOX", *(fetched(uid, LETTERS[uid], at=START.replace(minute=uid)) for uid in (5, 8)))
    before = account.query(collapseThreads=True)
    # Of the thread of 8, and older: after it is gone, the one that stands for the thread.
    account.add("INBOX", fetched(4, LETTERS[4], at=START.replace(minute=4)))
    account.vanish("INBOX", 8)
    account.end_round()
    changes = _changes(account, before.query_state, {"collapseThreads": True}, upToId=before.ids[-1])
    assert account.query(collapseThreads=True).ids == _applied(before.ids, changes)


@pytest.mark.statement("85")
def test_an_up_to_id_that_went_and_came_back_elsewhere_ends_nothing(account: Mirrored) -> None:
    account.add("INBOX", *(fetched(uid, LETTERS[uid], at=START.replace(minute=uid)) for uid in (4, 8)))
    before = account.query()
    account.vanish("INBOX", 4)
    account.end_round()
    again, between = (START.replace(minute=minute) for minute in (20, 6))
    account.add("INBOX", fetched(10, LETTERS[4], at=again), fetched(11, LETTERS[6], at=between))
    changes = _changes(account, before.query_state, {}, upToId=before.ids[-1])
    assert account.query().ids == _applied(before.ids, changes)


def test_a_list_too_long_to_be_gone_through_in_time_is_asked_anew(
    account: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_reader.store.snapshot._STEPS_BETWEEN_LOOKS", 1)
    state = account.query().query_state
    account.add("INBOX", fetched(1, LETTERS[1]))
    with account.store.snapshot(ACCOUNT) as snapshot, pytest.raises(QueryRefused, match="cannotCalculateChanges"):
        email_query_changes(snapshot, parse_email_query_changes({"sinceQueryState": state}), lambda: True)


@pytest.mark.statement("83")
def test_after_the_search_table_was_made_in_another_shape_no_older_state_is_answered(account: Mirrored) -> None:
    account.add("INBOX", fetched(1, LETTERS[1]))
    before = account.query().query_state
    account.store.close()
    with contextlib.closing(connect(account_file(account.folder, ACCOUNT))) as connection:
        connection.execute("UPDATE account SET search_shape = ?", (search.SHAPE + 1,))
    account.reopen()
    now = account.query().query_state
    assert before != now
    with pytest.raises(QueryRefused, match="cannotCalculateChanges"):
        _changes(account, before, {})
    assert () == _changes(account, now, {}).added
    account.add("INBOX", fetched(2, LETTERS[2]))
    assert 1 == len(_changes(account, now, {}).added)


@pytest.mark.statement("83", "85")
@pytest.mark.parametrize("scope", [WHOLE, Scope(mailboxes=("INBOX",))], ids=["whole", "narrow"])
def test_a_text_that_is_forgotten_takes_its_email_out_of_the_lists_that_it_was_found_for(
    account: Mirrored, scope: Scope
) -> None:
    account.add("INBOX", *(fetched(uid, LETTERS[uid], at=START + timedelta(days=20 * uid)) for uid in (0, 2)))
    query: dict[str, JSON] = {"filter": {"body": "even"}}
    with account.store.snapshot(ACCOUNT, scope) as snapshot:
        before = email_query(snapshot, parse_email_query(query))
    account.store.close()
    account.clock.now = START + timedelta(days=45)
    account.store = Store(account.folder, account.clock, retention={ACCOUNT: Retention(days=30)})
    account.end_round()
    with account.store.snapshot(ACCOUNT, scope) as snapshot:
        now = email_query(snapshot, parse_email_query(query))
        asked = parse_email_query_changes({**query, "sinceQueryState": before.query_state})
        changes = email_query_changes(snapshot, asked)
        told = snapshot.changes(DataType.EMAIL, before.query_state, 10)
    assert (id_of(LETTERS[2]), id_of(LETTERS[0])) == before.ids
    assert (id_of(LETTERS[2]),) == now.ids == _applied(before.ids, changes)
    assert before.query_state != now.query_state == changes.new_query_state
    assert ((id_of(LETTERS[0]),), (), ()) == (told.updated, told.created, told.destroyed)


def _mailbox_changes(account: Mirrored, since: str, **query: JSON) -> QueryChanges:
    with account.store.snapshot(ACCOUNT) as snapshot:
        asked = parse_mailbox_query_changes({**query, "sinceQueryState": since, "calculateTotal": True})
        return mailbox_query_changes(snapshot, asked)


def _mailboxes(account: Mirrored, **query: JSON) -> QueryResult:
    with account.store.snapshot(ACCOUNT) as snapshot:
        return mailbox_query(snapshot, parse_mailbox_query(query))


@pytest.mark.statement("99")
def test_mailboxes_are_told_unchanged_while_only_counts_are_different(account: Mirrored) -> None:
    before = _mailboxes(account).query_state
    account.add("INBOX", fetched(1, LETTERS[1]))
    found = _mailbox_changes(account, before)
    assert ((), (), 2) == (found.removed, found.added, found.total)
    with pytest.raises(QueryRefused, match="cannotCalculateChanges"):
        _mailbox_changes(account, "nonsense")


@pytest.mark.statement("99")
@pytest.mark.parametrize(
    "query", [{}, {"filter": {"name": "e"}}, {"sort": [{"property": "name", "isAscending": False}]}]
)
def test_a_list_of_mailboxes_becomes_the_new_one_whatever_came_went_or_moved(
    account: Mirrored, query: dict[str, JSON]
) -> None:
    account.put_listing(listed("INBOX"), listed("Archive"), listed("New"), listed("New/Below"), listed("Sent"))
    account.end_round()
    before = _mailboxes(account, **query)
    account.put_listing(listed("INBOX"), listed("Archive/New"), listed("Archive"), listed("Sent", "\\Sent"))
    account.end_round()
    _assert_kept_up(account, before, query)
    changes = _mailbox_changes(account, before.query_state, **query)
    number = len(changes.removed) + len(changes.added)
    assert changes == _mailbox_changes(account, before.query_state, **query, maxChanges=number)
    with pytest.raises(QueryRefused, match="tooManyChanges"):
        _mailbox_changes(account, before.query_state, **query, maxChanges=number - 1)


@pytest.mark.statement("99")
def test_a_mailbox_that_is_only_changed_comes_into_a_list_and_leaves_it(account: Mirrored) -> None:
    query: dict[str, JSON] = {"filter": {"role": "trash"}}
    for attributes in (("\\Trash",), ()):
        before = _mailboxes(account, **query)
        account.put_listing(listed("INBOX"), listed("Archive", *attributes))
        assert len(attributes) == len(_mailboxes(account, **query).ids)
        _assert_kept_up(account, before, query)


@pytest.mark.statement("99")
def test_a_list_of_mailboxes_loses_one_that_is_gone_and_nothing_else(account: Mirrored) -> None:
    account.put_listing(listed("INBOX"), listed("Archive"), listed("Zebra"))
    account.end_round()
    before = _mailboxes(account)
    account.put_listing(listed("INBOX"), listed("Archive"))
    account.end_round()
    assert [*before.ids[:2]] == _assert_kept_up(account, before, {})


def _assert_kept_up(account: Mirrored, before: QueryResult, query: Mapping[str, JSON]) -> list[str]:
    """What a client has who had the list before, and asks what changed."""
    found = _mailbox_changes(account, before.query_state, **query)
    kept = [each for each in before.ids if each not in found.removed]
    for mailbox_id, index in found.added:
        kept.insert(index, mailbox_id)
    now = _mailboxes(account, **query)
    assert (list(now.ids), len(now.ids), now.query_state) == (kept, found.total, found.new_query_state)
    assert before.ids != now.ids
    return kept
