"""Scopes of some mailboxes, and what becomes of mailboxes: renamed into them and out, seen or hidden."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_reader.scope import Scope
from agent_reader.store import DataType
from agent_reader.store.selection import All
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, fetched, id_of, letter, listed, mirrored


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Mirrored]:
    with mirrored(tmp_path) as made:
        made.begin("INBOX", "Secret")
        made.add("INBOX", fetched(1, letter("one")))
        made.add("Secret", fetched(1, letter("two")))
        made.end_round()
        yield made


def test_a_mailbox_is_named_as_it_is_called_now(account: Mirrored) -> None:
    with account.store.snapshot(ACCOUNT, Scope(mailboxes=("Open",))) as snapshot:
        assert (0, ()) == (snapshot.count(All(())), snapshot.mailboxes())
        before = snapshot.state
    account.begin("INBOX", "Secret", "Open")
    account.add("Open", fetched(9, letter("nine")))
    with account.store.snapshot(ACCOUNT, Scope(mailboxes=("Open",))) as snapshot:
        assert (1, "Open") == (snapshot.count(All(())), snapshot.mailboxes()[0].name)
        assert before.partition("-")[0] != snapshot.state.partition("-")[0]


def test_a_mailbox_that_may_be_a_renamed_one_is_in_no_scope_before_that_is_known(account: Mirrored) -> None:
    scope = Scope(mailboxes=("Open",))
    with account.store.snapshot(ACCOUNT, scope) as snapshot:
        before = snapshot.state
    account.put_listing(listed("INBOX"), listed("Open"))
    with account.store.snapshot(ACCOUNT, scope) as snapshot:
        assert (before, ()) == (snapshot.state, snapshot.mailboxes())


def test_the_state_of_fewer_mailboxes_is_one_of_theirs(account: Mirrored) -> None:
    scope = Scope(mailboxes=("INBOX", "Secret"))
    with account.store.snapshot(ACCOUNT, scope) as snapshot:
        assert 2 == snapshot.count(All(()))
    account.put_listing(listed("INBOX"))
    account.end_round()
    with account.store.snapshot(ACCOUNT, scope) as snapshot:
        state = snapshot.state
    account.add("INBOX", fetched(71, letter("seventy-one")))
    with account.store.snapshot(ACCOUNT, scope) as snapshot:
        assert 1 == len(snapshot.changes(DataType.EMAIL, state, 9).created)


def test_mailboxes_that_are_hidden_come_go_and_change_unseen(account: Mirrored) -> None:
    """Where a Mailbox that is seen stands may follow from their names and roles: not for who sees it alone."""
    scope = Scope(mailboxes=("INBOX", "Deep/Sub"), sign_in_mail=True)
    inbox, below = listed("INBOX"), listed("Deep/Sub")
    account.put_listing(inbox, below, listed("Secret"))

    def look() -> str:
        with account.store.snapshot(ACCOUNT, scope) as snapshot:
            return snapshot.state

    def changed(since: str) -> tuple[int, bool]:
        with account.store.snapshot(ACCOUNT, scope) as snapshot:
            found = snapshot.changes(DataType.MAILBOX, since, 100)
        assert not (*found.created, *found.destroyed)
        return len(found.updated), found.counts_only

    state = look()
    whole = account.state()
    for hidden in (
        [listed("Secret"), listed("Deep")],
        [listed("Secret", "\\Trash"), listed("Deep", "\\Archive")],
        [listed("Secret")],
        [listed("Secret renamed")],
        [],
        [listed("Deep", "\\Trash")],
    ):
        account.put_listing(inbox, below, *hidden)
        account.end_round()
        assert (state, (0, False)) == (look(), changed(state)), hidden
        assert whole != (whole := account.state())
    account.put_listing(inbox, listed("Deep/Sub", "\\Trash"), listed("Deep"))
    assert state != look()
    # It became another by itself, and so the other one may have.
    assert (2, False) == changed(state)
    state = look()
    account.put_listing(inbox, listed("Deep/Sub", "\\Trash"), listed("Deep", "\\Archive"))
    account.add("INBOX", fetched(50, letter("fifty")))
    assert (1, True) == changed(state)


def test_what_another_mailbox_brings_about_is_counted_though_that_one_is_hidden(account: Mirrored) -> None:
    content = letter("in both")
    account.put_listing(listed("INBOX"), listed("Secret"), listed("Everything", "\\All"))
    account.mirror.restart(account.handle("Everything"), 77)
    account.add("Everything", fetched(1, content))
    account.add("Secret", fetched(60, content))
    with account.store.snapshot(ACCOUNT, Scope(mailboxes=("Everything",))) as snapshot:
        assert 0 == snapshot.count(All(()))
        before = snapshot.state
    # A view as well now: what lies in views alone is shown in each.
    account.put_listing(listed("INBOX"), listed("Secret", "\\Flagged"), listed("Everything", "\\All"))
    with account.store.snapshot(ACCOUNT, Scope(mailboxes=("Everything",))) as snapshot:
        assert (id_of(content),) == snapshot.changes(DataType.EMAIL, before, 9).created
        found = snapshot.changes(DataType.MAILBOX, before, 9)
        assert (1, True) == (len(found.updated), found.counts_only)


def test_a_page_of_one_change_is_followed_by_the_next_though_a_mailbox_went_between_them(account: Mirrored) -> None:
    # Whoever sees a part is told of counts wherever a Thread is now, and that is fewer mailboxes in the next answer.
    scope = Scope(received_since=datetime(2000, 1, 1, tzinfo=UTC))
    names = ("INBOX", "Secret")
    for name in names:
        account.add(name, fetched(70, letter("in both")))
    with account.store.snapshot(ACCOUNT, scope) as snapshot:
        state = snapshot.state
    for name in names:
        account.flag(name, 70, "\\Seen")
    ids = {account.mailbox_id(name): name for name in names}
    with account.store.snapshot(ACCOUNT, scope) as snapshot:
        first = snapshot.changes(DataType.MAILBOX, state, 1)
    assert first.has_more
    del ids[first.updated[0]]
    account.put_listing(*map(listed, ids.values()))
    account.end_round()
    with account.store.snapshot(ACCOUNT, scope) as snapshot:
        rest = snapshot.changes(DataType.MAILBOX, first.new_state, 9)
    assert (first.updated, tuple(ids)) == (rest.destroyed, rest.updated)
