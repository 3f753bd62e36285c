"""The state of EmailDelivery: another one when mail came in, as far as it is seen, and only then (RFC 8621 §1.5)."""

from __future__ import annotations

from pathlib import Path

from agent_reader.imap.values import MessageState
from agent_reader.scope import ORDINARY, WHOLE, Scope
from agent_reader.store.mirror import AccountMirror
from tests.agent_reader import synced
from tests.agent_reader.served import ACCOUNT, House, fetched, house, octets


def test_mail_that_comes_in_makes_a_state_and_what_becomes_of_it_makes_none(tmp_path: Path) -> None:
    with house(tmp_path) as served:
        mirror = served.store.account(ACCOUNT)
        inbox, processed = _mailboxes(mirror)
        for scope in (WHOLE, ORDINARY):
            before = _state(served, scope)
            synced.change(mirror, inbox, {1: MessageState(frozenset({"\\Flagged"}), 9)})
            synced.vanish(mirror, inbox, [2])
            assert before == _state(served, scope)
            uid = 10 if scope is WHOLE else 11
            synced.add(mirror, inbox, [fetched(uid, octets(uid, "New", "Here."), served.clock())])
            after = _state(served, scope)
            assert before != after
            # In another mailbox it is the same one.
            synced.add(mirror, processed, [fetched(uid, octets(uid, "New", "Here."), served.clock())])
            assert after == _state(served, scope)


def test_what_is_not_seen_does_not_come_in_and_what_is_moved_to_where_it_is_seen_does(tmp_path: Path) -> None:
    with house(tmp_path) as served:
        mirror = served.store.account(ACCOUNT)
        inbox, processed = _mailboxes(mirror)
        scope = Scope(mailboxes=("Processed",))
        first = _state(served, scope)
        assert first.endswith("-0")
        synced.add(mirror, inbox, [fetched(10, octets(10, "New", "Here."), served.clock())])
        code = octets(11, "Your sign-in code", "Your one-time code is 123456. It expires in ten minutes.")
        synced.add(mirror, processed, [fetched(11, code, served.clock())])
        assert first == _state(served, scope)
        synced.add(mirror, processed, [fetched(12, octets(10, "New", "Here."), served.clock())])
        assert first != _state(served, scope)


def test_an_older_view_keeps_its_state_whatever_a_newer_one_found(tmp_path: Path) -> None:
    with house(tmp_path) as served:
        mirror = served.store.account(ACCOUNT)
        inbox, _ = _mailboxes(mirror)
        with served.store.snapshot(ACCOUNT, ORDINARY) as older:
            synced.add(mirror, inbox, [fetched(10, octets(10, "New", "Here."), served.clock())])
            newer = _state(served, ORDINARY)
            assert older.delivery_state() == older.state
        assert newer == _state(served, ORDINARY)


def _state(served: House, scope: Scope) -> str:
    with served.store.snapshot(ACCOUNT, scope) as snapshot:
        return snapshot.delivery_state()


def _mailboxes(mirror: AccountMirror) -> tuple[str, str]:
    by_name = {mailbox.name: mailbox.id for mailbox in mirror.mailboxes()}
    return by_name["INBOX"], by_name["Processed"]
