"""Whole results of Email/query: orders, threads, states, and that nothing is missing among many."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_reader.query import QueryRefused
from agent_reader.store.fold import fold
from shared.message import JSON, HeaderForm, parse
from tests.agent_reader.mirrored import (
    START,
    fetched,
    id_of,
    letter,
    mirrored,
)


@pytest.mark.statement("82", "166", "168")
def test_the_default_order_is_newest_received_first_whatever_the_uids(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        letters = [letter(f"number {number}", headers={"Date": "rubbish"}) for number in range(20)]
        messages = [fetched(uid, octets, at=START - timedelta(hours=uid)) for uid, octets in enumerate(letters, 1)]
        account.add("INBOX", *messages[::2])
        account.add("INBOX", *messages[1::2])
        newest_first = tuple(map(id_of, letters))
        assert account.query().ids == newest_first
        assert account.query(filter={"text": "number"}).ids == newest_first
        assert account.query(filter={"inMailbox": account.mailbox_id("INBOX")}).ids == newest_first
        assert account.query(sort=[{"property": "receivedAt"}]).ids == newest_first[::-1]
        assert account.query(sort=[{"property": "receivedAt", "isAscending": False}]).ids == newest_first
        assert account.query(sort=[{"property": "sentAt", "isAscending": False}]).ids == newest_first
        # One that says when it was sent stands among those that do not, by when they were received.
        dated = letter("number dated", headers={"Date": "Thu, 1 Jan 2026 06:30:00 +0000"})
        account.add("INBOX", fetched(30, dated, at=START))
        for is_ascending in (True, False):
            by_date = account.query(sort=[{"property": "sentAt", "isAscending": is_ascending}]).ids
            expected = (*newest_first[:5], id_of(dated), *newest_first[5:])
            assert by_date == (expected[::-1] if is_ascending else expected)


@pytest.mark.statement("84", "164", "166")
def test_orders_by_other_properties(tmp_path: Path) -> None:
    letters = {
        "b": letter(
            "xx" * 9, subject="Re: Beta", sender="Änne <z@x>", to="b@x", headers={"Date": "1 Jan 2020 00:00 +0000"}
        ),
        "a": letter(
            "xxxx", subject="[list] alpha", sender="zoe@x", to="a@x", headers={"Date": "1 Jan 2019 00:00 +0000"}
        ),
        "c": letter("x", subject="gamma", sender="Bob <a@x>", to="c@x", headers={"Date": "1 Jan 2021 00:00 +0000"}),
    }
    names = {id_of(octets): name for name, octets in letters.items()}
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        account.add("INBOX", *(fetched(uid, octets, at=START) for uid, octets in enumerate(letters.values(), 1)))

        def order(*comparators: JSON) -> str:
            return "".join(names[each] for each in account.query(sort=list(comparators)).ids)

        # In the order of octets "Beta" would come before "alpha", and "Änne" last.
        assert order({"property": "subject"}) == "abc"
        assert order({"property": "subject", "isAscending": False, "collation": "i;unicode-casemap"}) == "cba"
        assert order({"property": "from"}) == "bca"
        assert order({"property": "to"}) == "abc"
        assert order({"property": "sentAt"}) == "abc"
        by_size = "".join(sorted(letters, key=lambda name: len(letters[name])))
        assert order({"property": "size"}) == by_size
        assert order({"property": "receivedAt"}, {"property": "subject"}) == "abc"
        assert order({"property": "receivedAt"}, {"property": "subject", "isAscending": False}) == "cba"
        # The second one counts where the first says nothing, and nowhere else.
        assert order({"property": "from"}, {"property": "subject"}) == "bca"


# What jmapc 0.4.0 adds to every comparator.
IDLE: dict[str, JSON] = {"anchor": None, "anchorOffset": 0, "position": 0, "calculateTotal": False}
NOT_IDLE: tuple[tuple[str, JSON], ...] = (
    *(("anchorOffset", 1), ("position", False), ("calculateTotal", 0), ("anchor", "M1"), ("limit", None)),
)


def test_a_comparator_may_repeat_what_the_query_takes_for_left_out_and_nothing_that_would_mean_something(
    tmp_path: Path,
) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        account.add("INBOX", *(fetched(uid, letter(str(uid)), at=START) for uid in (1, 2)))
        for by in ("receivedAt", "size"):
            assert account.query(sort=[{"property": by}]).ids == account.query(sort=[{"property": by, **IDLE}]).ids
        for name, value in NOT_IDLE:
            with pytest.raises(QueryRefused, match="nothing else"):
                account.query(sort=[{"property": "receivedAt", name: value}])


@pytest.mark.statement("75", "167")
def test_collapsed_threads_show_their_first_email_and_count_once(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        letters = [
            letter(f"{thread} {number}", subject=f"S{thread}", headers={"Message-ID": f"<{thread}@x>"})
            for number in range(3)
            for thread in range(4)
        ]
        account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(letters, 1)))
        newest = tuple(id_of(octets) for octets in reversed(letters[-4:]))
        for condition in (None, {"inMailbox": account.mailbox_id("INBOX")}, {"minSize": 1}):
            result = account.query(filter=condition, collapseThreads=True, calculateTotal=True)
            assert (result.ids, result.total) == (newest, 4)
        oldest_first = account.query(collapseThreads=True, sort=[{"property": "receivedAt"}], position=-1)
        assert (oldest_first.position, oldest_first.ids) == (3, (id_of(letters[3]),))
        page = account.query(collapseThreads=True, anchor=newest[1], anchorOffset=1, limit=1)
        assert (page.position, page.ids) == (2, newest[2:3])
        with pytest.raises(QueryRefused, match="anchorNotFound"):
            account.query(collapseThreads=True, anchor=id_of(letters[0]))
        assert account.query(filter={"text": '"1 1"'}, collapseThreads=True).ids == (id_of(letters[5]),)
        assert account.mailbox("INBOX")["totalThreads"] == 4


def test_dates_before_1970_and_far_ahead_are_in_order(tmp_path: Path) -> None:
    moments = [datetime(1969, 7, 20, tzinfo=UTC), START, datetime(9999, 12, 31, tzinfo=UTC)]
    letters = [letter(str(moment.year)) for moment in moments]
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        account.add("INBOX", *(fetched(uid, letters[uid], at=moments[uid]) for uid in range(3)))
        assert account.query().ids == tuple(map(id_of, reversed(letters)))
        assert account.found(before="1970-01-01T00:00:00Z") == {id_of(letters[0])}
        assert account.found(after="2100-01-01T00:00:00Z", text="9999") == {id_of(letters[2])}
        assert account.email(id_of(letters[0]), "receivedAt")["receivedAt"] == "1969-07-20T00:00:00Z"


@pytest.mark.statement("83")
def test_the_query_state_is_that_of_the_snapshot_and_changes_with_the_mail(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        before = account.query()
        assert before.query_state == account.state() == account.query().query_state
        assert before.can_calculate_changes is True
        account.add("INBOX", fetched(1, letter()))
        assert account.query().query_state != before.query_state


def test_every_word_of_every_golden_subject_is_found_where_a_scan_finds_it(tmp_path: Path) -> None:
    octets = [path.read_bytes() for path in sorted(Path(__file__).parent.parent.glob("golden/*.eml"))]
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        account.add("INBOX", *(fetched(uid, each) for uid, each in enumerate(octets, 1)))
        subjects = {id_of(each): str(parse(each).header("Subject", HeaderForm.TEXT) or "") for each in octets}
        words = {word for subject in subjects.values() for word in subject.split() if fold(word)}
        assert len(words) > 50
        assert any(not word.isascii() for word in words)
        for word in words:
            scanned = {each for each, subject in subjects.items() if f" {fold(word)} " in f" {fold(subject)} "}
            assert account.found(subject=f'"{_escaped(word)}"') == scanned, word


def _escaped(word: str) -> str:
    return "".join(f"\\{character}" if character in "\"'\\" else character for character in word)


@pytest.mark.statement("82")
def test_ten_thousand_messages_are_all_there(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX", "Archive")
        for start in range(0, 10_000, 1_000):
            name = "INBOX" if start < 5_000 else "Archive"
            account.add(
                name,
                *(
                    fetched(
                        uid,
                        letter(f"word{uid % 100} every", headers={"Message-ID": f"<{uid % 4000}@x>"}),
                        flags=["\\Seen"] if uid % 2 else [],
                        at=START + timedelta(seconds=uid // 50),
                    )
                    for uid in range(start + 1, start + 1_001)
                ),
            )
        account.end_round()
        total = {name: account.mailbox(name)["totalEmails"] for name in ("INBOX", "Archive")}
        distinct = len({(uid % 100, uid % 4000) for uid in range(1, 10_001)})
        assert account.query(calculateTotal=True).total == distinct
        assert total["INBOX"] == len({uid % 4000 for uid in range(1, 5_001)})
        assert account.query(filter={"text": "every"}, calculateTotal=True).total == distinct
        pages = [
            account.query(filter={"text": "every"}, position=position, limit=500).ids
            for position in range(0, distinct, 500)
        ]
        assert len({email_id for page in pages for email_id in page}) == distinct


@pytest.mark.statement("164")
def test_orders_by_addresses_go_by_the_first_one_by_its_name_else_its_email_else_nothing(tmp_path: Path) -> None:
    senders = {
        "email": "cara@x",
        "none": "",
        "first": "Bob <z@x>, Zoe <a@x>",
        "name": "Dora <aa@x>",
        "group": "Friends: Aaron <a@x>;",
    }
    letters = {name: letter(name, sender=sender, to=sender) for name, sender in senders.items()}
    names = {id_of(octets): name for name, octets in letters.items()}
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(letters.values(), 1)))
        for name in ("from", "to"):
            found = [names[each] for each in account.query(sort=[{"property": name}]).ids]
            # "" before Aaron (of the group), Bob, cara@x and Dora.
            assert ["none", "group", "first", "email", "name"] == found
