"""What happened in a mailbox lands in one transaction, and a message known from elsewhere needs no octets."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agent_reader.imap.uid_ranges import UidRanges
from agent_reader.store.store import Store
from agent_reader.sync.mirror import Examined, FetchedMessage, KnownCopy, ListedMailbox, MessageState
from shared.identity import email_id, message_digest
from tests.agent_reader import synced

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_reader.store.mirror import AccountMirror

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SEEN, NEW = MessageState(frozenset({"\\Seen"}), 9), MessageState(frozenset(), 5)


def message(uid: int, subject: str) -> FetchedMessage:
    octets = f"Subject: {subject}\r\n\r\nbody\r\n".encode()
    return FetchedMessage(uid, NEW, NOW, len(octets), octets, octets[:-6])


def examined(exists: int, highestmodseq: int | None = 9, uidnext: int = 10) -> Examined:
    return Examined(7, uidnext, exists, highestmodseq, None)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with contextlib.closing(Store(tmp_path, lambda: NOW)) as opened:
        yield opened


@pytest.fixture
def mirror(store: Store) -> AccountMirror:
    """INBOX with the messages 1, 2 and 4, and an empty Archive."""
    mirror = store.account("shop")
    mirror.put_mailboxes([ListedMailbox(name, "/", frozenset(), subscribed=True) for name in ("INBOX", "Archive")])
    for mailbox in mirror.mailboxes():
        mirror.restart(mailbox.id, 7)
    synced.add(mirror, mirror.mailboxes()[0].id, [message(1, "a"), message(2, "b"), message(4, "d")])
    return mirror


def test_states_and_counts_are_asked_of_some_messages_or_of_all(mirror: AccountMirror) -> None:
    inbox, archive = mirror.mailboxes()
    assert {1, 2, 4} == mirror.states(inbox.id).keys()
    assert {2, 4} == mirror.states(inbox.id, UidRanges.parsed([b"2:3,4:4000000000"])).keys()
    assert {} == mirror.states(inbox.id, UidRanges())
    assert (3, 0) == (mirror.count(inbox.id), mirror.count(archive.id))


def test_flags_losses_and_the_mod_sequence_land_together_and_make_one_state(
    store: Store, mirror: AccountMirror
) -> None:
    inbox = mirror.mailboxes()[0]
    with store.snapshot("shop") as before:
        mirror.caught_up(inbox.id, {2: SEEN}, [1], examined(2), whole=True)
        with store.snapshot("shop") as after:
            assert int(before.state.rpartition("-")[2]) + 1 == int(after.state.rpartition("-")[2])
    assert {2: SEEN, 4: NEW} == mirror.states(inbox.id)
    inbox = mirror.mailboxes()[0]
    assert (10, 9) == (inbox.uidnext, inbox.highestmodseq)


def test_while_messages_are_missing_only_the_mod_sequence_is_remembered(mirror: AccountMirror) -> None:
    inbox = mirror.mailboxes()[0]
    mirror.caught_up(inbox.id, {}, [], examined(30), whole=False)
    inbox = mirror.mailboxes()[0]
    assert (0, 9, None) == (inbox.uidnext, inbox.highestmodseq, inbox.whole_at)


def test_nothing_of_it_lands_where_a_part_fails(mirror: AccountMirror) -> None:
    inbox = mirror.mailboxes()[0]
    with pytest.raises(TypeError):
        mirror.caught_up(inbox.id, {2: SEEN}, [1, object()], examined(2), whole=True)  # type: ignore[list-item]  # fails in the middle
    assert {1: NEW, 2: NEW, 4: NEW} == mirror.states(inbox.id)
    assert mirror.mailboxes()[0].highestmodseq is None


def test_a_copy_of_what_is_here_makes_one_email_in_two_mailboxes(store: Store, mirror: AccountMirror) -> None:
    inbox, archive = mirror.mailboxes()
    copies = [KnownCopy(70, SEEN, inbox.id, 2), KnownCopy(71, NEW, inbox.id, 3)]
    assert [70] == list(mirror.add_copies(archive.id, copies))
    assert {70: SEEN} == mirror.states(archive.id)
    octets = message(2, "b").octets
    assert octets is not None
    located = store.locate("shop", email_id(message_digest(octets)))
    assert {(7, 2), (7, 70)} == set(located.copies)
    assert 3 == store.status("shop").messages
