"""What changed since a state (RFC 8620 §5.2), and which states can be answered."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from agent_reader.store import CannotCalculateChanges, ChangeList, DataType, Store
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, fetched, id_of, letter, listed, mirrored


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Mirrored]:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX", "Archive")
        yield account


def _letters(number: int) -> list[bytes]:
    return [letter(f"letter {each}", headers={"Message-ID": f"<{each}@x>"}) for each in range(number)]


def _pages(account: Mirrored, data_type: DataType, state: str, limit: int) -> list[ChangeList]:
    pages = [account.changes(data_type, state, limit)]
    while pages[-1].has_more:
        pages.append(account.changes(data_type, pages[-1].new_state, limit))
    return pages


@pytest.mark.statement("59")
def test_without_a_change_the_state_stays_and_nothing_is_listed(account: Mirrored) -> None:
    state = account.state()
    found = account.changes(DataType.EMAIL, state)
    assert found == ChangeList(state, state, has_more=False, created=(), updated=(), destroyed=(), counts_only=False)


def test_what_did_not_change_is_not_listed_and_the_new_state_is_the_present_one(account: Mirrored) -> None:
    state = account.state()
    account.put_listing(*map(listed, ["INBOX", "Archive", "Later"]))
    found = account.changes(DataType.EMAIL, state)
    assert (found.new_state, found.created, found.has_more) == (account.state(), (), False)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50])
@pytest.mark.statement("61", "62")
def test_pages_of_any_size_lead_to_the_present_state(account: Mirrored, limit: int) -> None:
    before = account.state()
    letters = _letters(10)
    account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(letters[:7], 1)))
    account.vanish("INBOX", 1)
    account.end_round()
    account.flag("INBOX", 2, "\\Seen")
    account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(letters[7:], 8)))
    pages = _pages(account, DataType.EMAIL, before, limit)
    assert pages[-1].new_state == account.state()
    there: set[str] = set()
    for page in pages:
        assert len(page.created) + len(page.updated) + len(page.destroyed) <= limit
        assert there.isdisjoint(page.created)
        assert there.issuperset((*page.updated, *page.destroyed))
        there |= set(page.created)
        there -= set(page.destroyed)
    assert there == set(map(id_of, letters[1:]))


def test_a_state_inside_a_large_transaction_outlives_a_restart(account: Mirrored) -> None:
    before = account.state()
    account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(_letters(5), 1)))
    first = account.changes(DataType.EMAIL, before, 2)
    assert first.has_more
    account.reopen()
    rest = account.changes(DataType.EMAIL, first.new_state, 3)
    assert not rest.has_more
    assert len({*first.created, *rest.created}) == 5
    for other in (DataType.THREAD, DataType.MAILBOX):
        with pytest.raises(CannotCalculateChanges):
            account.changes(other, first.new_state)


@pytest.mark.statement("60")
def test_what_came_and_went_in_between_is_not_listed(account: Mirrored) -> None:
    (octets,) = _letters(1)
    before = account.state()
    account.add("INBOX", fetched(1, octets))
    between = account.state()
    account.vanish("INBOX", 1)
    account.end_round()
    found = account.changes(DataType.EMAIL, before)
    assert (found.created, found.updated, found.destroyed) == ((), (), ())
    assert account.changes(DataType.EMAIL, between).destroyed == (id_of(octets),)
    account.add("INBOX", fetched(2, octets))
    assert account.changes(DataType.EMAIL, between).updated == (id_of(octets),)
    assert account.changes(DataType.EMAIL, before).created == (id_of(octets),)


@pytest.mark.statement("68")
def test_a_thread_is_updated_by_a_new_email_and_destroyed_with_its_last(account: Mirrored) -> None:
    one = letter("one", headers={"Message-ID": "<1@x>"})
    two = letter("two", headers={"Message-ID": "<2@x>", "In-Reply-To": "<1@x>"})
    account.add("INBOX", fetched(1, one))
    thread_id = str(account.email(id_of(one), "threadId")["threadId"])
    before = account.state()
    account.add("INBOX", fetched(2, two))
    assert account.changes(DataType.THREAD, before).updated == (thread_id,)
    account.vanish("INBOX", 1, 2)
    account.end_round()
    assert account.changes(DataType.THREAD, before).destroyed == (thread_id,)


@pytest.mark.statement("69")
def test_counts_alone_are_told_from_a_rename(account: Mirrored) -> None:
    before = account.state()
    account.add("INBOX", fetched(1, letter()))
    found = account.changes(DataType.MAILBOX, before)
    assert (found.updated, found.counts_only) == ((account.mailbox_id("INBOX"),), True)
    archive = account.mailbox_id("Archive")
    account.end_round()
    account.put_listing(*map(listed, ["INBOX", "Renamed"]))
    account.mirror.restart(account.handle("Renamed"), 1001)
    account.end_round()
    found = account.changes(DataType.MAILBOX, before)
    assert (set(found.updated), found.counts_only) == ({account.mailbox_id("INBOX"), archive}, False)
    assert account.mailbox_id("Renamed") == archive


def test_a_parent_that_goes_changes_the_names_of_its_children(account: Mirrored) -> None:
    account.put_listing(*map(listed, ["INBOX", "Work", "Work/Old", "Work/Old/2020", "Workshop"]))
    account.end_round()
    places = {name: account.mailbox_id(name) for name in ("Old", "2020", "Workshop", "INBOX")}
    before = account.state()
    account.put_listing(*map(listed, ["INBOX", "Work/Old", "Work/Old/2020", "Workshop"]))
    account.end_round()
    found = account.changes(DataType.MAILBOX, before)
    assert account.mailbox_id("Work/Old") == places["Old"]
    assert set(found.updated) == {places["Old"], places["2020"]}
    assert len(found.destroyed) == 1
    assert not found.counts_only


def test_a_role_that_moves_changes_every_mailbox_since_counts_depend_on_the_trash(account: Mirrored) -> None:
    account.put_listing(listed("INBOX"), listed("Archive", "\\HasNoChildren"))
    before = account.state()
    account.put_listing(listed("INBOX"), listed("Archive", "\\Marked", "\\HasChildren"))
    assert account.state() == before
    account.put_listing(listed("INBOX"), listed("Archive", "\\Trash"))
    ids = {account.mailbox_id("INBOX"), account.mailbox_id("Archive")}
    assert set(account.changes(DataType.MAILBOX, before).updated) == ids


@pytest.mark.parametrize(
    "state",
    [
        "",
        "x",
        "1",
        "{epoch}-",
        "{epoch}-9",
        "other-0",
        "{epoch}-1.Email.1x",
        "{epoch}-1.Email.9",
        "{epoch}-00" + "1" * 30,
    ],
)
@pytest.mark.statement("63")
def test_a_state_that_was_never_given_out_cannot_be_answered(account: Mirrored, state: str) -> None:
    epoch = account.state().partition("-")[0]
    with pytest.raises(CannotCalculateChanges):
        account.changes(DataType.EMAIL, state.replace("{epoch}", epoch))


def test_a_state_of_a_mirror_that_was_deleted_cannot_be_answered(account: Mirrored, tmp_path: Path) -> None:
    state = account.state()
    with mirrored(tmp_path / "other") as other:
        other.begin("INBOX", "Archive")
        with pytest.raises(CannotCalculateChanges):
            other.changes(DataType.EMAIL, state)


@pytest.mark.statement("64")
def test_a_state_is_answered_for_thirty_days_across_restarts_and_then_refused(account: Mirrored) -> None:
    states = {}
    for day in range(0, 80, 10):
        states[day] = account.state()
        account.add("INBOX", fetched(day + 1, letter(f"day {day}")))
        account.clock.now += timedelta(days=10)
        account.end_round()
        account.reopen()
    for day, state in states.items():
        if day >= 50:
            assert len(account.changes(DataType.EMAIL, state).created) == (80 - day) / 10
        elif day < 40:
            with pytest.raises(CannotCalculateChanges):
                account.changes(DataType.EMAIL, state)
    assert not account.changes(DataType.EMAIL, account.state()).created


def test_states_that_a_power_cut_took_back_are_refused_and_older_ones_answered(tmp_path: Path) -> None:
    boot = "first"
    with mirrored(tmp_path / "store") as account:
        account.store.close()
        account.store = Store(account.folder, account.clock, boot=lambda: boot)
        account.begin("INBOX")
        kept = account.state()
        account.store.close()
        shutil.copytree(account.folder, tmp_path / "as it was on the disk")
        account.store = Store(account.folder, account.clock, boot=lambda: boot)
        lost = []
        for uid, octets in enumerate(_letters(3), 1):
            account.add("INBOX", fetched(uid, octets))
            lost.append(account.state())
        account.store.close()
        shutil.rmtree(account.folder)
        (tmp_path / "as it was on the disk").rename(account.folder)
        boot = "second"
        account.store = Store(account.folder, account.clock, boot=lambda: boot)
        assert account.state() == kept
        for uid, octets in enumerate(reversed(_letters(4)), 1):
            account.add("INBOX", fetched(uid, octets))
        assert len(account.changes(DataType.EMAIL, kept).created) == 4
        assert [len(page.created) for page in _pages(account, DataType.EMAIL, kept, 3)] == [3, 1]
        for state in lost:
            with pytest.raises(CannotCalculateChanges):
                account.changes(DataType.EMAIL, state)


def test_an_email_is_held_for_an_hour_while_a_mailbox_cannot_be_looked_at_and_no_longer(account: Mirrored) -> None:
    octets, other = _letters(2)
    account.add("INBOX", fetched(1, octets))
    account.add("Archive", fetched(1, other))
    account.end_round()
    before = account.state()
    account.vanish("INBOX", 1)
    for minutes in (0, 30, 29):
        account.clock.now += timedelta(minutes=minutes)
        account.mirror.looked(account.handle("INBOX"), 2, None)
        account.mirror.release_overdue()
        assert set(account.query().ids) == {id_of(octets), id_of(other)}
    account.clock.now += timedelta(minutes=2)
    account.mirror.release_overdue()
    assert account.query().ids == (id_of(other),)
    assert account.changes(DataType.EMAIL, before).destroyed == (id_of(octets),)
    with account.store.snapshot(ACCOUNT) as snapshot:
        assert snapshot.connection.execute("SELECT count(*) FROM emails").get == 1
