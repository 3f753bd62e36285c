"""What was once written of an Email is given again, and never anything that is not so any more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from agent_reader.keep import Keep, Retention
from agent_reader.query import email_get_as_asked, parse_agent_email_get, parse_email_get
from agent_reader.query.agent_email_get import agent_email_get
from agent_reader.query.email_get import _ROW
from agent_reader.query.shown_email import ShownEmail
from agent_reader.scope import WHOLE, Depth, Scope
from agent_reader.store import Store, document
from agent_reader.store.snapshot import Snapshot
from agent_reader.store.written import MOST_OF_ONE, Source, Written, WrittenEmails
from shared.identity import email_id, message_digest
from shared.message import Message, parse
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, fetched, id_of, letter, mirrored, with_attachment
from tests.agent_reader.served import MESSAGES, house

FIRST = with_attachment("Words of the body")
SECOND = letter("Your code is 123456. Do not share it.", subject="Your verification code")
THIRD = letter("x" * MOST_OF_ONE, subject="A large letter")

# All that may be asked of content, so that whatever comes too deep is seen.
EVERYTHING: Final[dict[str, Any]] = {
    "properties": ["subject", "preview", "keywords", "mailboxIds", "bodyValues", "attachments", "headers"],
    "fetchAllBodyValues": True,
}
Given = list[tuple[dict[str, Any], ShownEmail]]


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Mirrored]:
    with mirrored(tmp_path / "store") as made:
        made.begin("INBOX", "Archive")
        made.add("INBOX", *(fetched(uid, each) for uid, each in enumerate((FIRST, SECOND, THIRD), 1)))
        made.end_round()
        yield made


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The documents that were taken apart."""
    noted: list[bytes] = []
    whole = document.unpack

    def unpack(packed: bytes) -> Message:
        noted.append(packed)
        return whole(packed)

    monkeypatch.setattr(document, "unpack", unpack)
    return noted


def look(account: Mirrored, *letters: bytes, scope: Scope = WHOLE, asked: dict[str, Any] | None = None) -> Given:
    with account.store.snapshot(ACCOUNT, scope) as snapshot:
        return look_in(snapshot, *letters, asked=asked)


def look_in(snapshot: Snapshot, *letters: bytes, asked: dict[str, Any] | None = None) -> Given:
    given: Given = []
    parsed = parse_email_get((EVERYTHING if asked is None else asked) | {"ids": [id_of(each) for each in letters]})
    email_get_as_asked(snapshot, parsed, lambda email, shown: given.append((msgspec.json.decode(email), shown)))
    return given


def octets_held(account: Mirrored) -> int:
    return account.store._written.octets


def test_the_second_look_reads_nothing_and_shows_the_same(account: Mirrored, unpacked: list[bytes]) -> None:
    first = look(account, FIRST, SECOND)
    assert len(unpacked) == 2
    assert first == look(account, FIRST, SECOND)
    assert len(unpacked) == 2
    assert first[0][1] == ShownEmail(id_of(FIRST), True, ("header", "preview", "text/1", "structure"))


def test_another_question_reads_again(account: Mirrored, unpacked: list[bytes]) -> None:
    others: list[dict[str, Any]] = [
        EVERYTHING | {"maxBodyValueBytes": 5},
        EVERYTHING | {"bodyProperties": ["partId"]},
        EVERYTHING | {"fetchAllBodyValues": False},
        EVERYTHING | {"properties": ["bodyValues"]},
    ]
    answers = [look(account, FIRST, asked=each)[0][0] for each in (EVERYTHING, *others)]
    assert len(unpacked) == len(answers) == len({msgspec.json.encode(each) for each in answers})


def test_what_may_change_is_said_as_it_is_now_and_as_the_view_has_it(account: Mirrored, unpacked: list[bytes]) -> None:
    look(account, FIRST)
    account.flag("INBOX", 1, "\\Flagged")
    assert look(account, FIRST)[0][0]["keywords"] == {"$flagged": True}
    account.add("Archive", fetched(7, FIRST))
    ((email, _),) = look(account, FIRST)
    assert set(email["mailboxIds"]) == {account.mailbox_id("INBOX"), account.mailbox_id("Archive")}
    assert email["keywords"] == {"$flagged": True}
    # Whoever sees one of the mailboxes hears of that one, whoever asked before.
    ((email, _),) = look(account, FIRST, scope=Scope(mailboxes=("INBOX",), sign_in_mail=True))
    assert set(email["mailboxIds"]) == {account.mailbox_id("INBOX")}
    account.flag("INBOX", 1)
    ((email, _),) = look(account, FIRST)
    assert set(email["mailboxIds"]) == {account.mailbox_id("INBOX"), account.mailbox_id("Archive")}
    assert email["keywords"] == {}
    assert len(unpacked) == 1


def test_a_row_is_another_by_each_of_what_may_change(account: Mirrored) -> None:
    # What the answers say of a row is all there.
    assert _ROW.keys() == {"id", "threadId", "mailboxIds", "keywords", "receivedAt"}
    with account.store.snapshot(ACCOUNT) as snapshot:
        email = snapshot.emails([id_of(FIRST)])[id_of(FIRST)]
    others: dict[str, Any] = {
        "id": "M" + "0" * 32,
        "thread_id": "Tother",
        "mailbox_ids": ("MBother",),
        "keywords": ("$other",),
        "received": email.received + 1,
    }
    for name, other in others.items():
        assert msgspec.structs.replace(email, **{name: other}).row != email.row, name


def test_a_token_of_less_depth_gets_no_more_of_it(account: Mirrored) -> None:
    def of(depth: Depth) -> dict[str, Any]:
        return look(account, FIRST, scope=Scope(depth=depth, sign_in_mail=True))[0][0]

    fresh = {depth: of(depth) for depth in (Depth.HEADERS, Depth.TEXT, Depth.FULL)}
    assert fresh[Depth.HEADERS]["preview"] == ""
    assert b"Words of the body" not in msgspec.json.encode(fresh[Depth.HEADERS])
    assert b"Words of the body" in msgspec.json.encode(fresh[Depth.TEXT])
    # Whoever came first, deep or not.
    assert fresh == {depth: of(depth) for depth in (Depth.FULL, Depth.HEADERS, Depth.TEXT)}
    with mirrored(account.folder.with_name("other")) as other:
        other.begin("INBOX")
        other.add("INBOX", fetched(1, FIRST))
        deep, shallow = (look(other, FIRST, scope=Scope(depth=depth))[0][0] for depth in (Depth.FULL, Depth.HEADERS))
        names = ("subject", "preview", "bodyValues", "attachments", "headers")
        assert [deep[each] for each in names] == [fresh[Depth.FULL][each] for each in names]
        assert [shallow[each] for each in names] == [fresh[Depth.HEADERS][each] for each in names]


def test_what_is_outside_a_scope_stays_outside_though_it_was_written(account: Mirrored) -> None:
    inbox = Scope(mailboxes=("INBOX",), sign_in_mail=True)
    assert len(look(account, FIRST, SECOND, scope=inbox)) == 2
    assert [each["id"] for each, _ in look(account, FIRST, SECOND, scope=Scope())] == [id_of(FIRST)]
    account.vanish("INBOX", 1)
    account.add("Archive", fetched(7, FIRST))
    account.end_round()
    assert [each["id"] for each, _ in look(account, FIRST, SECOND, scope=inbox)] == [id_of(SECOND)]
    assert len(look(account, FIRST)) == 1


@pytest.mark.parametrize("keep", [Keep.METADATA, Keep.TEXT])
def test_what_became_too_old_to_be_kept_is_gone_from_memory_too(account: Mirrored, keep: Keep) -> None:
    account.store.close()
    retention = Retention(keep) if keep is Keep.TEXT else Retention(days=1)
    account.store = Store(account.folder, account.clock, retention={ACCOUNT: retention})
    before = look(account, FIRST)[0][0]
    assert before["preview"] == "Words of the body"
    assert octets_held(account) > 0
    account.clock.now += timedelta(days=2)
    account.end_round()
    assert octets_held(account) == 0
    after = look(account, FIRST)[0][0]
    assert (after["preview"], after["bodyValues"]["1"]["value"]) == (
        ("", "") if keep is Keep.METADATA else ("Words of the body", "Words of the body")
    )


def test_a_destroyed_email_is_gone_from_memory_and_the_others_stay(account: Mirrored, unpacked: list[bytes]) -> None:
    look(account, FIRST)
    alone = octets_held(account)
    before = look(account, SECOND)
    with account.store.snapshot(ACCOUNT) as earlier:
        earlier.mailboxes()
        account.vanish("INBOX", 2)
        account.end_round()
        assert octets_held(account) == alone
        # A view from before sees what it saw, and leaves none of it behind.
        assert look_in(earlier, SECOND) == before
        assert octets_held(account) == alone
    assert look(account, SECOND) == []
    look(account, FIRST)
    assert len(unpacked) == 3
    # It comes back, and is read again.
    account.add("INBOX", fetched(9, SECOND))
    assert len(look(account, SECOND)) == 1
    assert len(unpacked) == 4


def test_a_large_message_is_read_each_time(account: Mirrored, unpacked: list[bytes]) -> None:
    look(account, THIRD)
    assert octets_held(account) == 0
    look(account, THIRD)
    assert len(unpacked) == 2


def test_an_end_in_the_middle_leaves_no_old_state_behind(account: Mirrored) -> None:
    """A statement that was left open would show the next view what this one saw."""

    def is_gone() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError) as held, account.store.snapshot(ACCOUNT) as snapshot:
        email_get_as_asked(snapshot, parse_email_get({"ids": [id_of(FIRST), id_of(SECOND)]}), lambda *_: None, is_gone)
    account.flag("INBOX", 1, "\\Answered")
    assert look(account, FIRST)[0][0]["keywords"] == {"$answered": True}
    # Until here the error kept every frame that it passed.
    assert held.type is TimeoutError


# The extension for agents

AGENT_ASKED: Final[dict[str, Any]] = {
    "properties": ["subject", "newText", "flags", "cleaned", "textOfAttachment", "bodyValues"],
    "fetchTextBodyValues": True,
    "maxBodyValueBytes": 8,
}


def agent_look(account: Mirrored, fetch: Any, *letters: bytes, **more: Any) -> tuple[Given, Any]:
    given: Given = []
    asked = parse_agent_email_get(AGENT_ASKED | {"ids": [id_of(each) for each in letters]} | more)
    with account.store.snapshot(ACCOUNT) as snapshot:
        found = agent_email_get(
            snapshot, asked, fetch, lambda email, shown: given.append((msgspec.json.decode(email), shown))
        )
    return given, msgspec.json.decode(msgspec.json.encode(found.left_out))


def no_server(_: object) -> str:
    raise AssertionError("nothing is to be fetched")


def test_the_extension_says_again_what_it_left_out(account: Mirrored, unpacked: list[bytes]) -> None:
    first = agent_look(account, no_server, SECOND)
    assert [each["property"] for each in first[1]["texts"]] == ["bodyValues", "newText"]
    assert first == agent_look(account, no_server, SECOND)
    assert len(unpacked) == 1
    # Another window is another answer.
    assert first != agent_look(account, no_server, SECOND, windowStart=4)


def test_a_budget_shortens_what_is_given_and_not_what_is_kept(account: Mirrored) -> None:
    whole: dict[str, Any] = {"maxBodyValueBytes": 0, "properties": ["newText", "bodyValues"]}
    long = letter(" ".join(f"word{number}" for number in range(500)))
    account.add("INBOX", fetched(20, long), fetched(21, SECOND))
    tight = whole | {"maxTotalBytes": 1_500}
    shortened = agent_look(account, no_server, long, SECOND, **tight)
    assert shortened[1]["ids"] == [id_of(SECOND)]
    full = agent_look(account, no_server, long, SECOND, **whole)
    assert full[1] == {"ids": [], "texts": []}
    # Once in the order of the one and once in the other, each answer is its own.
    assert shortened == agent_look(account, no_server, long, SECOND, **tight)
    assert full == agent_look(account, no_server, long, SECOND, **whole)
    roomy = agent_look(account, no_server, SECOND, long, **whole, maxTotalBytes=100_000)
    assert [each["id"] for each, _ in roomy[0]] == [id_of(SECOND), id_of(long)]


def test_what_the_mail_server_gave_or_did_not_give_is_asked_for_again(account: Mirrored) -> None:
    attached = with_attachment("See the list", file="list.csv").replace(b"application/pdf", b"text/csv")
    account.store.close()
    account.store = Store(account.folder, account.clock, retention={ACCOUNT: Retention(Keep.TEXT)})
    account.add("INBOX", fetched(20, attached))
    outcomes = iter(["unavailable", parse(attached), "notFetched"])

    def said() -> str:
        ((email, _),), _ = agent_look(account, lambda _: next(outcomes), attached, maxBodyValueBytes=0)
        return str(email["textOfAttachment"]["2"]["outcome"])

    assert [said(), said(), said()] == ["unavailable", "text", "notFetched"]


@pytest.mark.anyio
async def test_each_look_is_on_record_alike(tmp_path: Path) -> None:
    with house(tmp_path) as served:
        ids = [email_id(message_digest(each)) for each in MESSAGES]
        answers = [await served.one("Email/get", ids=ids, fetchTextBodyValues=True) for _ in range(2)]
        assert answers[0] == answers[1]
        first, second = served.access.lines(agent=None, since=None, email_id=None, limit=10)
    assert (first.email_ids, first.parts, first.octets) == (second.email_ids, second.parts, second.octets)
    assert first.has_bodies
    assert second.has_bodies
    assert set(first.parts) == set(ids)


# The table itself


SOURCE: Final[Source] = (b"summary", b"document")


def test_only_what_was_made_from_the_same_octets_is_found() -> None:
    written = WrittenEmails()
    view = written.seen_by("main", Depth.FULL)
    view.keep("M1", b"question", SOURCE, Written(b'"a":1'))
    assert view.find("M1", b"question", SOURCE) == Written(b'"a":1')
    for source in ((b"other", b"document"), (b"summary", b"other"), (b"summary", None)):
        assert view.find("M1", b"question", source) is None
    assert view.find("M2", b"question", SOURCE) is None
    assert view.find("M1", b"other", SOURCE) is None
    assert written.seen_by("main", Depth.TEXT).find("M1", b"question", SOURCE) is None
    assert written.seen_by("other", Depth.FULL).find("M1", b"question", SOURCE) is None
    # Nor is less given to whoever sees more.
    written.seen_by("main", Depth.HEADERS).keep("M3", b"question", SOURCE, Written(b'"a":1'))
    assert view.find("M3", b"question", SOURCE) is None


def test_what_was_made_of_an_email_is_given_again_for_the_same_row_alone() -> None:
    made = iter(range(9))
    written = Written(b'"subject":"Tea"')
    unread, read = ("M1", ("MB1",), ()), ("M1", ("MB1",), ("$seen",))
    rows = (unread, unread, read, read, unread)
    assert [0, 0, 1, 1, 2] == [written.with_row(row, lambda: next(made)) for row in rows]


def test_what_was_not_asked_for_longest_goes_first_and_the_bound_holds() -> None:
    # Kept by itself and as the end of the whole Email.
    one = Written(b"x" * 5_000)
    written = WrittenEmails(50_000)
    view = written.seen_by("main", Depth.FULL)
    for number in range(4):
        view.keep(f"M{number}", b"", SOURCE, one)
    assert view.find("M0", b"", SOURCE) == one
    for number in range(4, 6):
        view.keep(f"M{number}", b"", SOURCE, one)
        assert written.octets <= 50_000
    found = [number for number in range(6) if view.find(f"M{number}", b"", SOURCE)]
    assert found == [0, 3, 4, 5]
    # Again at the same place: counted once.
    before = written.octets
    view.keep("M5", b"", SOURCE, one)
    assert written.octets == before
    # What is larger than all, or than one may be, pushes nothing out.
    view.keep("M9", b"", SOURCE, Written(b"x" * 30_000))
    WrittenEmails().seen_by("main", Depth.FULL).keep("M9", b"", SOURCE, Written(b"x" * (MOST_OF_ONE // 2)))
    assert found == [number for number in range(10) if view.find(f"M{number}", b"", SOURCE)]
    written.forget("main", ["M0", "M3"])
    written.forget("other", ["M4"])
    assert [number for number in range(6) if view.find(f"M{number}", b"", SOURCE)] == [4, 5]
    written.clear()
    assert written.octets == 0


def test_a_view_from_before_something_was_forgotten_keeps_nothing() -> None:
    written = WrittenEmails()
    before, elsewhere = written.seen_by("main", Depth.FULL), written.seen_by("other", Depth.FULL)
    written.forget("main", ["M1"])
    before.keep("M1", b"", SOURCE, Written(b'"a":1'))
    assert written.octets == 0
    elsewhere.keep("M1", b"", SOURCE, Written(b'"a":1'))
    assert written.octets > 0
    written.seen_by("main", Depth.FULL).keep("M1", b"", SOURCE, Written(b'"a":1'))
    assert written.seen_by("main", Depth.FULL).find("M1", b"", SOURCE) is not None
