"""What sync writes and what JMAP then shows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from agent_reader.store import Store
from agent_reader.store.database import connect
from agent_reader.store.threads import id_begun_by
from agent_reader.sync.mirror import FetchedMessage, MessageState, SetAside
from shared.identity import MAX_MESSAGE_OCTETS
from tests.agent_reader import synced
from tests.agent_reader.mirrored import ACCOUNT, START, Mirrored, fetched, id_of, letter, listed, mirrored


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Mirrored]:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX", "Archive", "Sent")
        yield account


@pytest.mark.statement("105")
def test_the_same_octets_in_two_mailboxes_are_one_email_with_two_mailboxes(account: Mirrored) -> None:
    octets = letter("once")
    account.add("INBOX", fetched(1, octets))
    account.add("Archive", fetched(9, octets))
    assert account.query(calculateTotal=True).total == 1
    assert account.mailbox_names(id_of(octets)) == {"INBOX", "Archive"}
    assert set(account.store.locate(ACCOUNT, id_of(octets)).copies) == {(1000, 1), (1001, 9)}


def test_the_same_octets_twice_in_one_mailbox_are_one_email(account: Mirrored) -> None:
    octets = letter("twice")
    account.add("INBOX", fetched(1, octets), fetched(2, octets))
    assert account.mailbox("INBOX")["totalEmails"] == 1
    account.vanish("INBOX", 1)
    account.end_round()
    assert account.mailbox("INBOX")["totalEmails"] == 1
    account.vanish("INBOX", 2)
    account.end_round()
    assert account.mailbox("INBOX")["totalEmails"] == 0


@pytest.mark.statement("107")
def test_keywords_are_those_that_any_copy_has(account: Mirrored) -> None:
    octets = letter("kept twice")
    account.add("INBOX", fetched(1, octets, flags=["\\Seen", "\\Recent", "Urgent"]))
    account.add("Archive", fetched(1, octets, flags=["\\Flagged", "$Forwarded"]))
    assert account.keywords(id_of(octets)) == {"$seen", "$flagged", "urgent", "$forwarded"}
    account.flag("INBOX", 1)
    assert account.keywords(id_of(octets)) == {"$flagged", "$forwarded"}


@pytest.mark.statement("106")
def test_system_flags_have_the_keywords_of_the_rfc_and_recent_and_deleted_none(account: Mirrored) -> None:
    octets = letter()
    account.add("INBOX", fetched(1, octets, flags=["\\SEEN", "\\answered", "\\Draft", "\\Flagged", "\\Recent", "\\X"]))
    assert account.keywords(id_of(octets)) == {"$seen", "$answered", "$draft", "$flagged"}


@pytest.mark.statement("94")
def test_a_deleted_message_is_invisible_and_uncounted_until_the_flag_is_gone(account: Mirrored) -> None:
    octets = letter("on its way out", headers={"Message-ID": "<1@x>"})
    account.add("INBOX", fetched(1, octets))
    account.flag("INBOX", 1, "\\Deleted")
    assert account.mailbox("INBOX")["totalEmails"] == 0
    assert account.query(calculateTotal=True).total == 0
    assert account.found(text="way") == set()
    account.end_round()
    account.flag("INBOX", 1)
    assert account.mailbox("INBOX")["totalEmails"] == 1
    assert account.found(text="way") == {id_of(octets)}


def test_a_deleted_copy_takes_its_mailbox_and_keywords_away_and_leaves_the_other(account: Mirrored) -> None:
    octets = letter()
    account.add("INBOX", fetched(1, octets, flags=["\\Flagged"]))
    account.add("Archive", fetched(1, octets))
    account.flag("INBOX", 1, "\\Deleted", "\\Flagged")
    assert account.mailbox_names(id_of(octets)) == {"Archive"}
    assert account.keywords(id_of(octets)) == set()


@pytest.mark.parametrize("target_first", [True, False])
@pytest.mark.statement("67")
def test_a_move_is_an_update_and_never_destroyed_and_created(account: Mirrored, target_first: bool) -> None:
    octets = letter("moving")
    account.add("INBOX", fetched(1, octets))
    account.end_round()
    before = account.state()
    for step in ("arrive", "vanish") if target_first else ("vanish", "arrive"):
        if step == "arrive":
            account.add("Archive", fetched(1, octets))
        else:
            account.vanish("INBOX", 1)
        assert account.query(calculateTotal=True).total == 1
    account.end_round()
    kinds = account.changes_since(before)
    assert set(kinds["Email", id_of(octets)]) == {"updated"}
    assert kinds["Email", id_of(octets)] == ["updated"] * (2 if target_first else 1)
    assert account.mailbox_names(id_of(octets)) == {"Archive"}
    assert not [key for key in kinds if key[0] == "Thread"]


def test_an_email_without_a_copy_keeps_its_mailbox_until_the_round_is_whole(account: Mirrored) -> None:
    octets = letter("held")
    account.add("INBOX", fetched(1, octets))
    account.vanish("INBOX", 1)
    assert account.mailbox_names(id_of(octets)) == {"INBOX"}
    assert account.mailbox("INBOX")["totalEmails"] == 1
    account.end_round()
    assert account.query(calculateTotal=True).total == 0


def test_a_held_email_waits_until_every_mailbox_was_looked_at_after_its_loss(account: Mirrored) -> None:
    octets = letter("held")
    account.add("INBOX", fetched(1, octets))
    account.end_round()
    account.mirror.looked(account.handle("Archive"), 1, None)
    account.vanish("INBOX", 1)
    account.mirror.looked(account.handle("INBOX"), 2, None)
    account.mirror.looked(account.handle("Sent"), 1, None)
    account.mirror.settle()
    assert account.query().ids == (id_of(octets),)
    account.mirror.looked(account.handle("Archive"), 1, None)
    account.mirror.settle()
    assert account.query().ids == ()


def test_a_mailbox_that_rounds_pass_over_holds_nothing_back_for_ever(account: Mirrored) -> None:
    octets = letter("held")
    account.add("INBOX", fetched(1, octets))
    account.put_listing(*map(listed, ["INBOX", "Archive", "Sent", "Unreadable"]))
    account.vanish("INBOX", 1)
    for _ in range(2):
        for name in ("INBOX", "Archive", "Sent"):
            account.mirror.looked(account.handle(name), 2, None)
        account.mirror.settle()
    assert account.query().ids == ()


@pytest.mark.statement("65")
def test_a_new_uidvalidity_loses_nothing_and_brings_nothing_new_twice(account: Mirrored) -> None:
    messages = [letter(f"number {number}") for number in range(5)]
    account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(messages, 1)))
    account.end_round()
    before = account.state()
    account.mirror.restart(account.handle("INBOX"), 77)
    assert account.mirror.states(account.handle("INBOX")) == {}
    assert account.query(calculateTotal=True).total == 5
    account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(reversed(messages), 100)))
    account.end_round()
    assert account.changes_since(before) == {}
    assert account.state() == before
    assert set(account.query().ids) == set(map(id_of, messages))
    assert account.store.locate(ACCOUNT, id_of(messages[0])).copies == ((77, 104),)


@pytest.mark.statement("65")
def test_what_a_new_uidvalidity_does_not_bring_back_is_destroyed_with_the_round(account: Mirrored) -> None:
    kept, lost = letter("kept"), letter("lost")
    account.add("INBOX", fetched(1, kept), fetched(2, lost))
    account.end_round()
    account.mirror.restart(account.handle("INBOX"), 77)
    account.add("INBOX", fetched(1, kept))
    before = account.state()
    account.end_round()
    assert account.query().ids == (id_of(kept),)
    assert account.changes_since(before)["Email", id_of(lost)] == ["destroyed"]


def test_a_message_above_the_largest_size_has_headers_an_unprovable_id_and_no_text(account: Mirrored) -> None:
    octets = letter("never fetched", subject="Enormous")
    header = octets.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    size = MAX_MESSAGE_OCTETS + 1
    account.add("INBOX", FetchedMessage(1, MessageState(frozenset(), 1), START, size, None, header))
    (email_id,) = account.query().ids
    assert email_id.startswith("X")
    shown = account.email(email_id, "subject", "size", "preview", "bodyValues", "hasAttachment")
    assert (shown["subject"], shown["size"], shown["preview"]) == ("Enormous", size, "")
    assert account.found(subject="enormous") == {email_id}
    account.end_round()
    account.vanish("INBOX", 1)
    account.end_round()
    assert account.query().ids == ()


def test_one_bad_message_is_set_aside_alone_and_the_others_come_in(account: Mirrored) -> None:
    good = letter("good")
    bad = FetchedMessage(2, MessageState(frozenset(), 1), None, 1, b"x", b"")  # type: ignore[arg-type]  # what no server sends
    account.add("INBOX", fetched(1, good), bad, fetched(3, letter("good too")))
    assert account.query(calculateTotal=True).total == 2
    aside = account.mirror.set_aside(account.handle("INBOX"))
    assert [(2, "message_unreadable", "AttributeError")] == [
        (uid, each.code, each.cause) for uid, each in aside.items()
    ]
    assert aside[2].fix
    assert account.store.status(ACCOUNT).set_aside == (("INBOX", aside[2]),)
    account.add("INBOX", fetched(2, letter("mended")))
    assert account.mirror.set_aside(account.handle("INBOX")) == {}


def test_a_message_put_aside_is_remembered_until_it_is_gone(account: Mirrored) -> None:
    account.mirror.put_aside(account.handle("INBOX"), SetAside(4, "notFetched", "NO", "Ask the server's keeper."))
    account.reopen()
    assert account.mirror.set_aside(account.handle("INBOX"))[4].code == "notFetched"
    account.vanish("INBOX", 4)
    assert account.mirror.set_aside(account.handle("INBOX")) == {}


def test_states_give_back_the_flags_as_the_server_spelled_them(account: Mirrored) -> None:
    account.add("INBOX", fetched(3, letter(), flags=["\\Seen", "MixedCase", "\\Recent"], modseq=7))
    assert account.mirror.states(account.handle("INBOX")) == {3: MessageState(frozenset({"\\Seen", "MixedCase"}), 7)}
    account.flag("INBOX", 3, "\\Answered")
    account.flag("INBOX", 99, "\\Answered")
    assert account.mirror.states(account.handle("INBOX")) == {3: MessageState(frozenset({"\\Answered"}), 2)}


def test_a_modseq_alone_changes_no_state(account: Mirrored) -> None:
    account.add("INBOX", fetched(3, letter(), flags=["\\Seen"]))
    account.end_round()
    before = account.state()
    account.flag("INBOX", 3, "\\Seen")
    account.mirror.looked(account.handle("INBOX"), 4, 12)
    account.mirror.settle()
    assert account.state() == before
    (inbox, *_) = account.mirror.mailboxes()
    assert (inbox.name, inbox.uidnext, inbox.highestmodseq) == ("INBOX", 4, 12)


def test_adding_the_same_uid_again_changes_nothing(account: Mirrored) -> None:
    account.add("INBOX", fetched(1, letter()))
    before = account.state()
    account.add("INBOX", fetched(1, letter()))
    assert account.state() == before


@pytest.mark.statement("57")
def test_a_state_is_that_of_every_type_and_grows_with_what_changes(account: Mirrored) -> None:
    before = account.state()
    octets = letter()
    account.add("INBOX", fetched(1, octets))
    kinds = account.changes_since(before)
    assert kinds == {
        ("Email", id_of(octets)): ["created"],
        ("Thread", id_begun_by(id_of(octets))): ["created"],
        ("Mailbox", account.mailbox_id("INBOX")): ["counted"],
    }
    before = account.state()
    account.flag("INBOX", 1, "Important")
    assert account.changes_since(before) == {("Email", id_of(octets)): ["updated"]}
    before = account.state()
    account.flag("INBOX", 1, "Important", "\\Seen")
    assert account.changes_since(before)["Mailbox", account.mailbox_id("INBOX")] == ["counted"]
    account.vanish("INBOX", 1)
    before = account.state()
    account.end_round()
    assert account.changes_since(before)["Thread", id_begun_by(id_of(octets))] == ["destroyed"]


def test_changes_are_forgotten_after_35_days_and_not_before(account: Mirrored) -> None:
    first = account.state()
    account.add("INBOX", fetched(1, letter()))
    account.clock.now += timedelta(days=34)
    account.end_round()
    assert account.changes_since(first)
    account.clock.now += timedelta(days=2)
    account.end_round()
    assert account.changes_since(first) == {}
    with account.store.snapshot(ACCOUNT) as snapshot:
        changes_from = snapshot.connection.execute("SELECT changes_from FROM account").get
        assert snapshot.state.endswith(f"-{changes_from}")


def test_status_tells_the_last_whole_round_and_what_failed_since(account: Mirrored) -> None:
    octets = letter()
    account.add("INBOX", fetched(1, octets))
    assert account.store.account_status(ACCOUNT).fresh is False
    account.end_round()
    status = account.store.account_status(ACCOUNT)
    assert (status.messages, status.fresh, status.last_sync_at, status.error) == (1, True, START, None)
    assert account.store.locate(ACCOUNT, id_of(octets)).fresh is True
    account.mirror.failed("refused", "The server said NO.", "Check the password.")
    status = account.store.account_status(ACCOUNT)
    assert (status.fresh, status.error) == (False, "refused: The server said NO. Check the password.")
    account.end_round()
    assert account.store.account_status(ACCOUNT).fresh is True
    account.clock.now += timedelta(minutes=11)
    assert account.store.locate(ACCOUNT, id_of(octets)).fresh is False


def test_everything_is_there_after_a_restart(account: Mirrored) -> None:
    octets = letter("before the restart")
    account.add("INBOX", fetched(1, octets, flags=["\\Seen"]))
    account.end_round()
    before = (account.state(), account.mailbox("INBOX"), account.email(id_of(octets)), account.mirror.mailboxes())
    account.reopen()
    assert before == (
        account.state(),
        account.mailbox("INBOX"),
        account.email(id_of(octets)),
        account.mirror.mailboxes(),
    )
    assert account.found(text="restart") == {id_of(octets)}


def test_two_accounts_know_nothing_of_each_other(account: Mirrored) -> None:
    account.add("INBOX", fetched(1, letter()))
    account.store.account("other").put_mailboxes([listed("INBOX")])
    with account.store.snapshot("other") as snapshot:
        assert snapshot.state != account.state()
        assert snapshot.key_of(id_of(letter())) is None
    assert account.store.status("other").messages == 0


def test_a_mailbox_sync_does_not_know_is_a_bug_that_changes_nothing(account: Mirrored) -> None:
    before = account.state()
    with pytest.raises(LookupError):
        synced.add(account.mirror, "Fnone", [fetched(1, letter())])
    assert account.state() == before


@pytest.mark.statement("87")
def test_a_view_over_everything_counts_only_for_what_has_no_other_mailbox(tmp_path: Path) -> None:
    with mirrored(tmp_path / "gmail") as account:
        account.put_listing(listed("INBOX"), listed("[Gmail]/All Mail", "\\All"))
        for name in ("INBOX", "[Gmail]/All Mail"):
            account.mirror.restart(account.handle(name), 5)
        both, archived = letter("in both"), letter("archived")
        account.add("[Gmail]/All Mail", fetched(1, both), fetched(2, archived))
        account.add("INBOX", fetched(1, both))
        assert account.mailbox_names(id_of(both)) == {"INBOX"}
        assert account.mailbox_names(id_of(archived)) == {"[Gmail]/All Mail"}
        account.put_listing(listed("INBOX"), listed("[Gmail]/All Mail"))
        assert account.mailbox_names(id_of(both)) == {"INBOX", "[Gmail]/All Mail"}


@pytest.mark.statement("82")
def test_many_messages_of_one_second_keep_one_order(tmp_path: Path) -> None:
    letters = [letter(f"number {number}") for number in range(60)]
    orders = []
    for name, ordered in (("one", letters), ("two", letters[::-1])):
        with mirrored(tmp_path / name) as account:
            account.begin("INBOX")
            account.add("INBOX", *(fetched(uid, octets, at=START) for uid, octets in enumerate(ordered, 1)))
            orders.append(account.query().ids)
    assert orders[0] == orders[1]
    assert len(set(orders[0])) == 60


def test_the_store_is_closed_for_good(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", lambda: START)
    store.account(ACCOUNT)
    store.close()
    with pytest.raises(AssertionError):
        store.account(ACCOUNT)


def test_what_an_older_reading_set_aside_is_tried_again_after_an_upgrade(account: Mirrored) -> None:
    account.mirror.put_aside(account.handle("INBOX"), SetAside(4, "message_unreadable", "ValueError", "Look at it."))
    account.reopen()
    assert set(account.mirror.set_aside(account.handle("INBOX"))) == {4}
    account.store.close()
    with contextlib.closing(connect(account.folder / f"mail-{ACCOUNT}.db")) as connection:
        connection.execute("UPDATE set_aside SET version = '0.0.9/1'")
    account.reopen()
    assert account.mirror.set_aside(account.handle("INBOX")) == {}
