"""Mailbox/query: filters, sorts, trees and pages (RFC 8621 §2.3)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent_reader.query import QueryRefused, QueryResult, mailbox_get, mailbox_query, parse_mailbox_query
from agent_reader.query.arguments import MAX_INT
from agent_reader.sync.mirror import ListedMailbox
from shared.message import JSON
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, fetched, letter, listed, mirrored


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirrored]:
    with mirrored(tmp_path_factory.mktemp("store")) as account:
        account.put_listing(
            listed("INBOX"),
            listed("Trash", "\\Trash"),
            listed("zebra"),
            ListedMailbox("Äpfel", "/", frozenset(), subscribed=False),
            listed("Äpfel/Süß"),
            listed("Äpfel/Bitter"),
            listed("Äpfel/Bitter/Deep"),
            listed("mail"),
        )
        for number, mailbox in enumerate(account.mirror.mailboxes()):
            account.mirror.restart(mailbox.id, 1000 + number)
        account.add(
            "INBOX", *(fetched(uid, letter(str(uid), headers={"Message-ID": f"<{uid % 2}@x>"})) for uid in (1, 2, 3))
        )
        account.end_round()
        yield account


def _query(account: Mirrored, **arguments: JSON) -> QueryResult:
    with account.store.snapshot(ACCOUNT) as snapshot:
        return mailbox_query(snapshot, parse_mailbox_query(arguments), max_limit=100)


def _names(account: Mirrored, **arguments: JSON) -> str:
    with account.store.snapshot(ACCOUNT) as snapshot:
        names = {mailbox.id: mailbox.name.rpartition("/")[2] for mailbox in snapshot.mailboxes()}
    return " ".join(names[each] for each in _query(account, **arguments).ids)


BY_NAME: JSON = [{"property": "name"}]


@pytest.mark.statement("97")
@pytest.mark.parametrize(
    ("condition", "names"),
    [
        (None, "Äpfel Bitter Deep INBOX mail Süß Trash zebra"),
        ({}, "Äpfel Bitter Deep INBOX mail Süß Trash zebra"),
        ({"parentId": None}, "Äpfel INBOX mail Trash zebra"),
        ({"parentId": "Äpfel"}, "Bitter Süß"),
        ({"parentId": "Fnone"}, ""),
        ({"name": "APF"}, "Äpfel"),
        ({"name": "süss"}, "Süß"),
        ({"name": "%"}, ""),
        ({"role": "trash"}, "Trash"),
        ({"role": None}, "Äpfel Bitter Deep mail Süß zebra"),
        ({"role": "TRASH"}, ""),
        ({"hasAnyRole": True}, "INBOX Trash"),
        ({"hasAnyRole": False, "parentId": None}, "Äpfel mail zebra"),
        ({"isSubscribed": False}, "Äpfel"),
        ({"operator": "NOT", "conditions": [{"hasAnyRole": True}, {"name": "e"}]}, "mail Süß"),
        ({"operator": "OR", "conditions": [{"role": "inbox"}, {"name": "zeb"}]}, "INBOX zebra"),
        ({"operator": "AND", "conditions": []}, "Äpfel Bitter Deep INBOX mail Süß Trash zebra"),
        ({"operator": "OR", "conditions": []}, ""),
    ],
)
def test_a_condition_finds_what_it_says(account: Mirrored, condition: JSON, names: str) -> None:
    if isinstance(condition, dict) and condition.get("parentId") == "Äpfel":
        condition = {"parentId": account.mailbox_id("Äpfel")}
    assert names == _names(account, filter=condition, sort=BY_NAME)


@pytest.mark.statement("97", "98")
def test_orders_and_trees(account: Mirrored) -> None:
    assert "INBOX Trash Äpfel Bitter Deep mail Süß zebra" == _names(account)
    assert "zebra Trash Süß mail INBOX Deep Bitter Äpfel" == _names(
        account, sort=[{"property": "name", "isAscending": False, "collation": "i;unicode-casemap"}]
    )
    assert "zebra Süß mail Deep Bitter Äpfel Trash INBOX" == _names(
        account, sort=[{"property": "sortOrder", "isAscending": False}, {"property": "name", "isAscending": False}]
    )
    assert "Äpfel Bitter Deep Süß INBOX mail Trash zebra" == _names(account, sort=BY_NAME, sortAsTree=True)
    assert "INBOX Trash Äpfel Bitter Deep Süß mail zebra" == _names(account, sortAsTree=True)


@pytest.mark.statement("82", "97")
def test_without_a_sort_mailboxes_come_as_mailbox_get_lists_them(account: Mirrored) -> None:
    with account.store.snapshot(ACCOUNT) as snapshot:
        listed_by_get = tuple(mailbox["id"] for mailbox in mailbox_get(snapshot, properties=["id"]).list)
    assert listed_by_get == _query(account).ids == _query(account, sort=[]).ids
    with_a_role = set(_query(account, filter={"hasAnyRole": True}).ids)
    ties: JSON = [{"property": "sortOrder", "isAscending": False}]
    assert [*listed_by_get[2:], *listed_by_get[1::-1]] == list(_query(account, sort=ties).ids)
    assert with_a_role == set(listed_by_get[:2])


@pytest.mark.statement("98")
def test_filtered_as_a_tree_children_of_what_is_left_out_are_left_out(account: Mirrored) -> None:
    no_bitter: JSON = {"operator": "NOT", "conditions": [{"name": "bitter"}]}
    assert "Äpfel Deep INBOX mail Süß Trash zebra" == _names(account, filter=no_bitter, sort=BY_NAME)
    assert "Äpfel INBOX mail Süß Trash zebra" == _names(account, filter=no_bitter, sort=BY_NAME, filterAsTree=True)
    # Not the parent alone counts, but all above it.
    no_apples: JSON = {"operator": "NOT", "conditions": [{"name": "äpfel"}]}
    assert "INBOX mail Trash zebra" == _names(account, filter=no_apples, sort=BY_NAME, filterAsTree=True)


@pytest.mark.statement("98")
def test_sorted_as_a_tree_what_the_filter_leaves_keeps_its_place_in_the_whole_tree(account: Mirrored) -> None:
    no_bitter: JSON = {"operator": "NOT", "conditions": [{"name": "bitter"}]}
    found = _names(account, filter=no_bitter, sort=BY_NAME, sortAsTree=True)
    assert "Äpfel Deep Süß INBOX mail Trash zebra" == found


@pytest.mark.statement("71", "72", "74", "75", "76")
def test_positions_anchors_and_limits(account: Mirrored) -> None:
    whole = _query(account, calculateTotal=True)
    assert (8, 8, 100) == (whole.total, len(whole.ids), whole.limit)
    assert _query(account, limit=2).total is None
    cases: list[tuple[dict[str, JSON], int, tuple[str, ...]]] = [
        ({"position": 1, "limit": 2}, 1, whole.ids[1:3]),
        ({"position": -2}, 6, whole.ids[6:]),
        ({"position": -20}, 0, whole.ids),
        ({"position": 20}, 20, ()),
        ({"anchor": whole.ids[2], "anchorOffset": -1, "limit": 1}, 1, whole.ids[1:2]),
        ({"anchor": whole.ids[2], "anchorOffset": -9}, 0, whole.ids),
        ({"anchor": whole.ids[2], "anchorOffset": MAX_INT}, MAX_INT, ()),
        ({"anchor": whole.ids[2], "position": 3}, 2, whole.ids[2:]),
        ({"anchorOffset": 3}, 0, whole.ids),
        ({"position": 1, "anchorOffset": 2}, 1, whole.ids[1:]),
        ({"limit": 0}, 0, ()),
    ]
    for asked, position, ids in cases:
        found = _query(account, **asked)
        assert (position, ids) == (found.position, found.ids), asked
    with pytest.raises(QueryRefused, match="anchorNotFound"):
        _query(account, anchor="Fnone")


@pytest.mark.statement("79", "80", "81")
@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"filter": []}, "invalidArguments"),
        ({"filter": {"shoeSize": 1}}, "unsupportedFilter"),
        ({"filter": {"name": 1}}, "invalidArguments"),
        ({"filter": {"parentId": "no id"}}, "invalidArguments"),
        ({"filter": {"role": 1}}, "invalidArguments"),
        ({"filter": {"hasAnyRole": "yes"}}, "invalidArguments"),
        ({"filter": {"isSubscribed": None}}, "invalidArguments"),
        ({"filter": {"operator": "XOR", "conditions": []}}, "invalidArguments"),
        ({"filter": {"operator": "AND", "conditions": [], "name": "x"}}, "invalidArguments"),
        ({"filter": {"operator": "OR", "conditions": [{"name": "x"}] * 201}}, "unsupportedFilter"),
        ({"sort": [{"property": "shoeSize"}]}, "unsupportedSort"),
        ({"sort": [{"property": "name", "collation": "i;octet"}]}, "unsupportedSort"),
        ({"sort": [{}]}, "invalidArguments"),
        ({"sort": [{"property": "name"}] * 5}, "unsupportedSort"),
        ({"sortAsTree": 1}, "invalidArguments"),
        ({"limit": -1}, "invalidArguments"),
        ({"collapseThreads": True}, "invalidArguments"),
    ],
)
def test_what_cannot_be_answered_is_refused(account: Mirrored, asked: dict[str, JSON], error: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        _query(account, **asked)
    assert error == refused.value.type


@pytest.mark.statement("90")
def test_the_counts_of_a_mailbox_are_the_totals_of_a_query_in_it(account: Mirrored) -> None:
    for name in ("INBOX", "Trash"):
        mailbox = account.mailbox(name)
        inside: JSON = {"inMailbox": mailbox["id"]}
        assert mailbox["totalEmails"] == account.query(filter=inside, calculateTotal=True).total
        collapsed = account.query(filter=inside, calculateTotal=True, collapseThreads=True)
        assert mailbox["totalThreads"] == collapsed.total == len(collapsed.ids)
    assert (3, 2) == (account.mailbox("INBOX")["totalEmails"], account.mailbox("INBOX")["totalThreads"])
