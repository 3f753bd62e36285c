"""Which messages belong together (RFC 8621 §3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_reader.query import thread_get
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, fetched, id_of, letter, mirrored


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Mirrored]:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX", "Archive")
        yield account


def _mail(message_id: str, subject: str, references: str = "", in_reply_to: str = "") -> bytes:
    headers = {"Message-ID": message_id, "References": references, "In-Reply-To": in_reply_to}
    return letter(message_id, subject=subject, headers=headers)


def _threads(account: Mirrored, *letters: bytes) -> list[str]:
    return [str(account.email(id_of(octets), "threadId")["threadId"]) for octets in letters]


def test_an_answer_joins_by_any_reference_where_the_base_subject_agrees(account: Mirrored) -> None:
    first = _mail("<1@x>", "Order  12")
    letters = [
        first,
        _mail("<2@x>", "Re: [Shop] Fwd: order 12", in_reply_to="<1@x>"),
        _mail("<3@x>", "RE: Order 12", references="<0@x> <2@x>"),
    ]
    account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(letters, 1)))
    assert len(set(_threads(account, *letters))) == 1
    with account.store.snapshot(ACCOUNT) as snapshot:
        (thread,) = thread_get(snapshot, _threads(account, first)).list
    assert thread["emailIds"] == [id_of(octets) for octets in letters]


def test_a_changed_subject_splits_and_a_shared_subject_alone_does_not_join(account: Mirrored) -> None:
    letters = [_mail("<1@x>", "Order 12"), _mail("<2@x>", "Order 13", in_reply_to="<1@x>"), _mail("<3@x>", "Order 12")]
    account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(letters, 1)))
    assert len(set(_threads(account, *letters))) == 3


def test_subjects_that_differ_in_normalisation_alone_join(account: Mirrored) -> None:
    letters = [_mail("<1@x>", "Gr\u00fc\u00dfe"), _mail("<2@x>", "Re: Gru\u0308\u00dfe", references="<1@x>")]
    account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(letters, 1)))
    assert len(set(_threads(account, *letters))) == 1


def test_an_older_message_that_comes_in_later_joins_its_answers(account: Mirrored) -> None:
    answer, first = _mail("<2@x>", "Re: S", references="<1@x>"), _mail("<1@x>", "S")
    account.add("INBOX", fetched(2, answer))
    given = _threads(account, answer)
    account.add("INBOX", fetched(1, first))
    assert _threads(account, first, answer) == given * 2


def test_who_belongs_to_two_threads_enters_the_older_and_no_id_changes(account: Mirrored) -> None:
    one, two = _mail("<1@x>", "S"), _mail("<2@x>", "S")
    account.add("INBOX", fetched(1, one))
    account.add("INBOX", fetched(2, two))
    given = _threads(account, one, two)
    bridge = _mail("<3@x>", "Re: S", references="<2@x> <1@x>")
    account.add("INBOX", fetched(3, bridge))
    assert _threads(account, one, two, bridge) == [*given, given[0]]
    late = _mail("<4@x>", "Re: S", in_reply_to="<2@x>")
    account.add("INBOX", fetched(4, late))
    assert _threads(account, late) == [given[1]]


def test_messages_without_a_message_id_are_each_alone(account: Mirrored) -> None:
    letters = [letter("a", subject="S"), letter("b", subject="S")]
    account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(letters, 1)))
    assert len(set(_threads(account, *letters))) == 2


def test_a_thread_whose_last_email_is_gone_is_not_found(account: Mirrored) -> None:
    octets = _mail("<1@x>", "S")
    account.add("INBOX", fetched(1, octets))
    (thread_id,) = _threads(account, octets)
    account.vanish("INBOX", 1)
    account.end_round()
    with account.store.snapshot(ACCOUNT) as snapshot:
        assert thread_get(snapshot, [thread_id, "Tnone"]).not_found == (thread_id, "Tnone")
        assert snapshot.connection.execute("SELECT count(*) FROM thread_links").get == 0
    account.add("INBOX", fetched(2, octets))
    assert _threads(account, octets) == [thread_id]


def test_a_thousand_references_cost_no_more_than_two_hundred(account: Mirrored) -> None:
    octets = _mail("<last@x>", "S", references=" ".join(f"<{number}@x>" for number in range(1000)))
    account.add("INBOX", fetched(1, octets))
    with account.store.snapshot(ACCOUNT) as snapshot:
        assert snapshot.connection.execute("SELECT count(*) FROM thread_links").get == 200
