"""Mailbox ids and what a change of the listing does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent_reader.mirrored import Mirrored, fetched, id_of, letter, listed, mirrored

LETTERS = [letter(f"number {number}") for number in range(3)]


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Mirrored]:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX", "Old")
        account.add("Old", *(fetched(uid, octets) for uid, octets in enumerate(LETTERS, 1)))
        account.end_round()
        yield account


def _come_in(account: Mirrored, name: str, uidvalidity: int, first_uid: int = 1) -> None:
    account.mirror.restart(account.handle(name), uidvalidity)
    account.add(name, *(fetched(uid, octets) for uid, octets in enumerate(LETTERS, first_uid)))


@pytest.mark.statement("96")
def test_a_renamed_mailbox_keeps_its_id_and_its_emails_do_not_change(account: Mirrored) -> None:
    old_id, before = account.mailbox_id("Old"), account.state()
    account.put_listing(listed("INBOX"), listed("New"))
    _come_in(account, "New", 1001)
    account.end_round()
    assert account.mailbox_id("New") == old_id
    assert account.changes_since(before) == {("Mailbox", old_id): ["updated"]}
    assert account.mailbox("New")["totalEmails"] == 3
    account.reopen()
    assert account.mailbox_id("New") == old_id


def test_while_it_is_undecided_the_old_mailbox_is_shown_and_the_new_is_not(account: Mirrored) -> None:
    account.put_listing(listed("INBOX"), listed("New"))
    with account.store.snapshot("main") as snapshot:
        assert [mailbox.name for mailbox in snapshot.mailboxes()] == ["INBOX", "Old"]
    assert account.mailbox("Old")["totalEmails"] == 3
    assert {mailbox.name for mailbox in account.mirror.mailboxes()} == {"INBOX", "New"}


@pytest.mark.parametrize(("uidvalidity", "first_uid"), [(2000, 1), (1001, 5)])
def test_another_uidvalidity_or_other_uids_are_another_mailbox(
    account: Mirrored, uidvalidity: int, first_uid: int
) -> None:
    old_id, before = account.mailbox_id("Old"), account.state()
    account.put_listing(listed("INBOX"), listed("New"))
    _come_in(account, "New", uidvalidity, first_uid)
    account.end_round()
    assert account.mailbox_id("New") != old_id
    kinds = account.changes_since(before)
    assert kinds["Mailbox", old_id][-1] == "destroyed"
    assert set(kinds["Email", id_of(LETTERS[0])]) == {"updated"}
    assert account.query(calculateTotal=True).total == 3


def test_the_same_uids_with_other_content_are_another_mailbox(account: Mirrored) -> None:
    old_id = account.mailbox_id("Old")
    account.put_listing(listed("INBOX"), listed("New"))
    account.mirror.restart(account.handle("New"), 1001)
    account.add("New", fetched(1, letter("something else")))
    account.end_round()
    assert account.mailbox_id("New") != old_id
    assert account.query(calculateTotal=True).total == 1


def test_one_message_in_common_is_no_rename(account: Mirrored) -> None:
    old_id = account.mailbox_id("Old")
    account.put_listing(listed("INBOX"), listed("New"))
    account.mirror.restart(account.handle("New"), 1001)
    account.add("New", fetched(1, LETTERS[0]), fetched(2, letter("something else")))
    assert account.mailbox_id("New") != old_id


def test_a_mailbox_that_can_no_longer_be_selected_and_then_is_gone_keeps_its_emails_until_settled(
    account: Mirrored,
) -> None:
    account.put_listing(listed("INBOX"), listed("Old", "\\Noselect"))
    account.put_listing(listed("INBOX"))
    assert account.mailbox_names(id_of(LETTERS[0])) == {"Old"}
    account.end_round()
    assert account.query().ids == ()


def test_an_empty_mailbox_is_known_again_by_uidvalidity_and_uidnext(account: Mirrored) -> None:
    account.vanish("Old", 1, 2, 3)
    account.mirror.looked(account.handle("Old"), 4, None)
    account.mirror.settle()
    old_id = account.mailbox_id("Old")
    account.put_listing(listed("INBOX"), listed("New"), listed("Newer"))
    for name, uidnext in (("Newer", 9), ("New", 4)):
        account.mirror.restart(account.handle(name), 1001)
        account.mirror.looked(account.handle(name), uidnext, None)
    assert account.mailbox_id("New") == old_id
    assert account.mailbox_id("Newer") != old_id


def test_messages_set_aside_in_it_do_not_hide_a_rename(account: Mirrored) -> None:
    old_id = account.mailbox_id("Old")
    account.put_listing(listed("INBOX"), listed("New"))
    account.mirror.restart(account.handle("New"), 1001)
    account.add("New", fetched(2, LETTERS[1]))
    assert account.mailbox_id("New") == old_id


def test_a_mailbox_that_is_gone_takes_its_emails_with_it_when_the_round_is_whole(account: Mirrored) -> None:
    old_id, before = account.mailbox_id("Old"), account.state()
    account.put_listing(listed("INBOX"))
    assert account.mailbox("Old")["totalEmails"] == 3
    account.end_round()
    assert account.query(calculateTotal=True).total == 0
    assert account.changes_since(before)["Mailbox", old_id][-1] == "destroyed"


def test_an_email_elsewhere_too_outlives_a_mailbox_that_is_gone(account: Mirrored) -> None:
    account.add("INBOX", fetched(1, LETTERS[0]))
    account.put_listing(listed("INBOX"))
    assert account.mailbox_names(id_of(LETTERS[0])) == {"INBOX"}
    account.end_round()
    assert account.query().ids == (id_of(LETTERS[0]),)


def test_a_mailbox_that_comes_back_under_its_name_has_its_id_and_is_fetched_anew(account: Mirrored) -> None:
    old_id = account.mailbox_id("Old")
    account.put_listing(listed("INBOX"))
    account.put_listing(listed("INBOX"), listed("Old"))
    assert account.mailbox_id("Old") == old_id
    known = next(mailbox for mailbox in account.mirror.mailboxes() if mailbox.name == "Old")
    assert (known.uidvalidity, known.uidnext) == (None, 1)
    _come_in(account, "Old", 1001)
    account.end_round()
    assert account.mailbox("Old")["totalEmails"] == 3


def test_a_mailbox_that_can_no_longer_be_selected_loses_its_copies(account: Mirrored) -> None:
    account.put_listing(listed("INBOX"), listed("Old", "\\Noselect"))
    account.end_round()
    assert account.mailbox("Old")["totalEmails"] == 0
    assert account.query().ids == ()


def test_the_same_listing_again_changes_nothing(account: Mirrored) -> None:
    before = account.state()
    account.put_listing(listed("inbox"), listed("Old"))
    assert account.state() == before
    account.put_listing(listed("INBOX"), listed("Old", "\\Archive"))
    assert list(account.changes_since(before).values()) == [["updated"]]
