"""Which messages belong together (RFC 8621 §3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_reader.query import thread_get
from agent_reader.sync.mirror import ThreadHeader
from tests.agent_reader import synced
from tests.agent_reader.mirrored import ACCOUNT, START, Mirrored, fetched, id_of, letter, mirrored


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


@pytest.mark.statement("101")
def test_an_answer_joins_by_any_reference_where_the_base_subject_agrees(account: Mirrored) -> None:
    first = _mail("<1@x>", "Order  12")
    letters = [
        first,
        _mail("<2@x>", "Re: [Shop] Fwd: order 12", in_reply_to="<1@x>"),
        _mail("<3@x>", "RE: Or der12", references="<0@x> <2@x>"),
    ]
    account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(letters, 1)))
    assert len(set(_threads(account, *letters))) == 1
    with account.store.snapshot(ACCOUNT) as snapshot:
        (thread,) = thread_get(snapshot, _threads(account, first)).list
    assert thread["emailIds"] == [id_of(octets) for octets in letters]


@pytest.mark.statement("101")
def test_a_changed_subject_splits_and_a_shared_subject_alone_does_not_join(account: Mirrored) -> None:
    letters = [_mail("<1@x>", "Order 12"), _mail("<2@x>", "Order 13", in_reply_to="<1@x>"), _mail("<3@x>", "Order 12")]
    account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(letters, 1)))
    assert len(set(_threads(account, *letters))) == 3


@pytest.mark.statement("100")
def test_in_one_second_an_answer_stands_after_what_it_answers_whichever_came_first(account: Mirrored) -> None:
    talks = [
        [
            _mail(f"<{talk}.1@x>", f"Talk {talk}"),
            _mail(f"<{talk}.2@x>", f"Re: Talk {talk}", in_reply_to=f"<{talk}.1@x>"),
            _mail(f"<{talk}.3@x>", f"Re: Talk {talk}", references=f"<{talk}.1@x> <{talk}.2@x>"),
        ]
        for talk in range(6)
    ]
    for number, letters in enumerate(talks):
        arrived = letters if number % 2 else letters[::-1]
        account.add("INBOX", *(fetched(10 * number + at, octets, at=START) for at, octets in enumerate(arrived, 1)))
    with account.store.snapshot(ACCOUNT) as snapshot:
        for letters in talks:
            (thread,) = thread_get(snapshot, _threads(account, letters[0])).list
            assert [id_of(octets) for octets in letters] == thread["emailIds"]


@pytest.mark.statement("100")
def test_a_thread_of_one_second_that_a_machine_made_is_shown_whole_and_the_same_each_time(account: Mirrored) -> None:
    letters = [_mail(f"<{number}@x>", "Alarm", references="<0@x>") for number in range(60)]
    account.add("INBOX", *(fetched(uid, octets, at=START) for uid, octets in enumerate(letters, 1)))
    with account.store.snapshot(ACCOUNT) as snapshot:
        first, again = (snapshot.thread_emails(_threads(account, letters[0])) for _ in range(2))
    assert first == again
    (email_ids,) = first.values()
    assert sorted(id_of(octets) for octets in letters) == sorted(email_ids)


@pytest.mark.statement("102")
@pytest.mark.parametrize(("first", "named"), [("1@x", "<1@x>"), ("<1@x>", "1@x"), ("1@x", "1@x")])
def test_a_message_id_without_angle_brackets_is_the_same_one(account: Mirrored, first: str, named: str) -> None:
    for letters in (
        [_mail(first, "Order"), _mail("<2@x>", "Re: Order", references=named)],
        [_mail(first, "Other"), _mail("<3@x>", "Re: Other", in_reply_to=named)],
    ):
        account.add("INBOX", *(fetched(len(each), each) for each in letters))
        assert len(set(_threads(account, *letters))) == 1


@pytest.mark.statement("102")
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


@pytest.mark.statement("103")
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


@pytest.mark.parametrize(
    "subject",
    [
        "AW: Order 12",
        "Antw: Re: order 12",
        "SV: VS: Order 12",
        "RE : Order 12",
        "R: I: Order 12",
        "RES: ENC: Order 12",
        "RV: Order 12",
        "Odp: PD: Order 12",
        "Vá: Továbbítás: Order 12",
        "İLT: YNT: Order 12",
        "ΑΠ: Order 12",
        "Отв: Order 12",
        "השב: Order 12",
        "رد: Order 12",
        "回复：转发：Order 12",
        "회신: Order 12",
        "Trả lời: Order 12",
        "ตอบกลับ: Order 12",
        "Re[2]: [shop-list] AW(3): Re^2: Order  12",
        "[shop-list] WG: [Extern] Order 12",
        "Fwd: [Fwd: TR: Order 12 (fwd)]",
    ],
)
def test_what_programs_of_any_language_put_before_a_subject_parts_nothing(account: Mirrored, subject: str) -> None:
    letters = [_mail("<1@x>", "Order 12"), _mail("<2@x>", subject, in_reply_to="<1@x>")]
    account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(letters, 1)))
    assert len(set(_threads(account, *letters))) == 1


def test_message_ids_that_look_alike_are_not_the_same(account: Mirrored) -> None:
    first = _mail("<a.b@x>", "S")
    alike = ["<A.b@x>", "<a.b@x.>", "<a.b@X>", "<a_b@x>", "<\u0430.b@x>", "<a.b@x.x>", "<xa.b@x>"]
    others = [letter(each, subject="S", headers={"References": each}) for each in alike]
    account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate([first, *others], 1)))
    assert len(set(_threads(account, first, *others))) == 1 + len(alike)


def test_answers_to_a_message_that_is_missing_are_together(account: Mirrored) -> None:
    letters = [_mail("<2@x>", "Re: S", "<0@x> <1@x>"), _mail("<3@x>", "Re: S", in_reply_to="<0@x>")]
    account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(letters, 1)))
    assert len(set(_threads(account, *letters))) == 1


def _header(uid: int, octets: bytes) -> ThreadHeader:
    message = fetched(uid, octets)
    return ThreadHeader(uid, message.internaldate, message.header)


def test_after_the_first_look_a_bridge_that_comes_first_or_last_makes_one_thread(account: Mirrored) -> None:
    letters = [_mail("<1@x>", "S"), _mail("<2@x>", "S"), _mail("<3@x>", "Re: S", references="<2@x> <1@x>")]
    assert not account.mirror.is_threaded()
    synced.put_headers(account.mirror, account.handle("INBOX"), 1000, [_header(uid, letters[uid]) for uid in (1, 2)])
    synced.put_headers(account.mirror, account.handle("Archive"), 1001, [_header(0, letters[0])])
    assert set(account.mirror.headers_known(account.handle("INBOX"), 1000)) == {1, 2}
    assert set(account.mirror.headers_known(account.handle("INBOX"), 1001)) == set()
    account.reopen()
    account.mirror.thread()
    assert account.mirror.is_threaded()
    account.add("INBOX", fetched(1, letters[1]))
    given = _threads(account, letters[1])
    account.add("Archive", fetched(0, letters[0]))
    account.add("INBOX", fetched(2, letters[2]))
    assert _threads(account, *letters) == given * 3
    with account.store.snapshot(ACCOUNT) as snapshot:
        assert snapshot.connection.execute("SELECT count(*) FROM first_headers").get == 0


def test_a_header_whose_message_never_comes_leaves_no_thread_behind(account: Mirrored) -> None:
    letters = [_mail("<1@x>", "S"), _mail("<2@x>", "S", references="<0@x>"), letter("no id", subject="S")]
    synced.put_headers(
        account.mirror, account.handle("INBOX"), 1000, [_header(uid, each) for uid, each in enumerate(letters)]
    )
    account.mirror.thread()
    account.add("INBOX", fetched(1, letters[0]))
    account.vanish("INBOX", 1)
    account.add("INBOX", fetched(2, letters[0]), fetched(3, letters[2]))
    account.end_round()
    with account.store.snapshot(ACCOUNT) as snapshot:
        assert snapshot.connection.execute("SELECT count(*) FROM threads").get == 2
        assert snapshot.connection.execute("SELECT count(*) FROM thread_links").get == 1


def test_a_mirror_that_gave_ids_is_not_threaded_anew(account: Mirrored) -> None:
    one, two = _mail("<1@x>", "S"), _mail("<2@x>", "S")
    account.add("INBOX", fetched(1, one), fetched(2, two))
    given = _threads(account, one, two)
    bridge = _mail("<3@x>", "S", references="<1@x> <2@x>")
    synced.put_headers(account.mirror, account.handle("INBOX"), 1000, [_header(3, bridge)])
    account.mirror.thread()
    account.add("INBOX", fetched(3, bridge))
    assert _threads(account, one, two, bridge) == [*given, given[0]]


def test_a_header_that_cannot_be_read_holds_up_no_other(account: Mirrored) -> None:
    hostile = [b"", b"\0\xff", b"References: " + b"<" * 10_000, b"Message-ID: <1@x>\r\n" * 500, b"Subject: =?x?q?" * 99]
    headers = [ThreadHeader(uid, START, header) for uid, header in enumerate(hostile, 1)]
    synced.put_headers(account.mirror, account.handle("INBOX"), 1000, headers)
    account.mirror.thread()
    octets = _mail("<2@x>", "S")
    account.add("INBOX", fetched(9, octets))
    assert len(_threads(account, octets)) == 1
