"""What changed since a state, as an agent finds it out: Email/changes, Mailbox/changes, Thread/changes (RFC 8620 §5.2).

One mailbox for all tests: each begins at the state that it finds.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_reader.imap.values import ListedMailbox, MessageState
from agent_reader.scope import Scope
from shared.identity import email_id, message_digest
from tests.agent_reader import synced
from tests.agent_reader.served import ACCOUNT, NOW, OTHER_ACCOUNT, House, fetched, house, octets

pytestmark = pytest.mark.anyio

TYPES = ("Email", "Mailbox", "Thread")


@dataclass
class Living:
    """A server whose mailbox changes while it is asked."""

    served: House
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(100))

    def handle(self, name: str) -> str:
        return next(each.id for each in self.served.store.account(ACCOUNT).mailboxes() if each.name == name)

    def deliver(self, name: str = "INBOX", *flags: str, **headers: str) -> tuple[int, str]:
        """Put a new message in; returns its UID and the Email's id."""
        uid = next(self.numbers)
        content = octets(uid, f"Subject {headers.pop('subject', uid)}", f"text {uid}", **headers)
        self.put(name, uid, content, *flags)
        return uid, email_id(message_digest(content))

    def put(self, name: str, uid: int, content: bytes, *flags: str) -> None:
        message = fetched(uid, content, NOW + timedelta(seconds=uid), *flags)
        synced.add(self.served.store.account(ACCOUNT), self.handle(name), [message])

    def flag(self, name: str, uid: int, *flags: str) -> None:
        state = MessageState(frozenset(flags), next(self.numbers))
        synced.change(self.served.store.account(ACCOUNT), self.handle(name), {uid: state})

    def vanish(self, name: str, uid: int) -> None:
        synced.vanish(self.served.store.account(ACCOUNT), self.handle(name), [uid])

    def settle(self) -> None:
        mirror = self.served.store.account(ACCOUNT)
        for mailbox in mirror.mailboxes():
            mirror.looked(mailbox.id, max(mirror.states(mailbox.id), default=0) + 1, None)
        mirror.settle()

    def list_mailboxes(self, *names: str) -> None:
        """Have INBOX, Processed and these, all read to their end."""
        mirror = self.served.store.account(ACCOUNT)
        mirror.put_mailboxes(
            [ListedMailbox(name, "/", frozenset(), subscribed=True) for name in ("INBOX", "Processed", *names)]
        )
        for mailbox in mirror.mailboxes():
            if mailbox.uidvalidity is None:
                mirror.restart(mailbox.id, next(self.numbers))
        self.settle()

    async def state(self, kind: str = "Email") -> str:
        _, got = await self.served.one(f"{kind}/get", ids=[])
        return str(got["state"])

    async def changes(self, kind: str, since: str, **arguments: Any) -> dict[str, Any]:
        name, answer = await self.served.one(f"{kind}/changes", sinceState=since, **arguments)
        assert f"{kind}/changes" == name, answer
        changed: dict[str, Any] = answer
        return changed

    async def mailbox_id(self, name: str) -> str:
        _, got = await self.served.one("Mailbox/get", ids=None, properties=["name"])
        return next(str(each["id"]) for each in got["list"] if each["name"] == name)


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Living]:
    with house(tmp_path_factory.mktemp("served")) as served:
        yield Living(served)


def _kinds(changed: dict[str, Any]) -> tuple[list[str], list[str], list[str]]:
    return changed["created"], changed["updated"], changed["destroyed"]


@pytest.mark.statement("59", "185")
@pytest.mark.parametrize("kind", TYPES)
async def test_without_a_change_nothing_changed_and_the_state_stays(living: Living, kind: str) -> None:
    state = await living.state(kind)
    await living.served.one("Email/query", filter={"text": "teapot"})
    assert state == await living.state(kind)
    changed = await living.changes(kind, state)
    assert ([], [], []) == _kinds(changed)
    assert (state, state, False, ACCOUNT) == (
        changed["oldState"],
        changed["newState"],
        changed["hasMoreChanges"],
        changed["accountId"],
    )
    expected = {"accountId", "oldState", "newState", "hasMoreChanges", "created", "updated", "destroyed"}
    assert expected | ({"updatedProperties"} if kind == "Mailbox" else set()) == set(changed)


@pytest.mark.statement("57", "66", "70")
async def test_whatever_lies_between_the_last_copys_end_destroys_and_each_step_has_a_state(living: Living) -> None:
    start, inbox = await living.state(), await living.mailbox_id("INBOX")
    uid, new = living.deliver()
    came = await living.state()
    living.flag("INBOX", uid, "\\Seen")
    read = await living.state()
    living.vanish("INBOX", uid)
    living.settle()
    assert ([], [], []) == _kinds(await living.changes("Email", start))
    assert ([], [], [new]) == _kinds(await living.changes("Email", came))
    assert ([], [], [new]) == _kinds(await living.changes("Email", read))
    assert 4 == len({start, came, read, await living.state()})
    for since in (start, came, read):
        assert inbox in (await living.changes("Mailbox", since))["updated"]


@pytest.mark.statement("66")
async def test_each_step_is_told_as_what_it_was(living: Living) -> None:
    start = await living.state()
    uid, new = living.deliver()
    assert ([new], [], []) == _kinds(await living.changes("Email", start))
    came = await living.state()
    living.flag("INBOX", uid, "\\Flagged")
    assert ([], [new], []) == _kinds(await living.changes("Email", came))
    living.put("Processed", uid, octets(uid, f"Subject {uid}", f"text {uid}"))
    both = await living.state()
    living.vanish("INBOX", uid)
    living.settle()
    assert ([], [new], []) == _kinds(await living.changes("Email", both))


@pytest.mark.statement("60")
async def test_what_came_and_was_changed_is_created_and_what_came_and_went_is_left_out(living: Living) -> None:
    start = await living.state()
    uid, kept = living.deliver()
    living.flag("INBOX", uid, "\\Seen")
    gone, _ = living.deliver()
    living.vanish("INBOX", gone)
    living.settle()
    assert ([kept], [], []) == _kinds(await living.changes("Email", start))


@pytest.mark.statement("67")
async def test_a_move_is_one_update(living: Living) -> None:
    uid, moved = living.deliver()
    before = await living.state()
    living.vanish("INBOX", uid)
    living.put("Processed", uid, octets(uid, f"Subject {uid}", f"text {uid}"))
    living.settle()
    assert ([], [moved], []) == _kinds(await living.changes("Email", before))
    _, got = await living.served.one("Email/get", ids=[moved], properties=["mailboxIds"])
    assert {await living.mailbox_id("Processed"): True} == got["list"][0]["mailboxIds"]


@pytest.mark.statement("68")
async def test_a_thread_is_created_updated_and_destroyed_with_its_emails(living: Living) -> None:
    start = await living.state("Thread")
    first, first_id = living.deliver(subject="of a thread")
    _, got = await living.served.one("Email/get", ids=[first_id], properties=["threadId"])
    thread = got["list"][0]["threadId"]
    assert ([thread], [], []) == _kinds(await living.changes("Thread", start))
    one = await living.state("Thread")
    second, _ = living.deliver(subject="of a thread", In_Reply_To=f"<{first}@example.org>")
    assert ([], [thread], []) == _kinds(await living.changes("Thread", one))
    two = await living.state("Thread")
    living.vanish("INBOX", first)
    living.vanish("INBOX", second)
    living.settle()
    assert ([], [], [thread]) == _kinds(await living.changes("Thread", two))


@pytest.mark.statement("68")
async def test_a_thread_that_is_gone_is_told_so_whatever_came_after_it(living: Living) -> None:
    start = await living.state("Thread")
    uid, gone_email = living.deliver()
    _, got = await living.served.one("Email/get", ids=[gone_email], properties=["threadId"])
    gone, there = got["list"][0]["threadId"], await living.state("Thread")
    living.vanish("INBOX", uid)
    living.settle()
    _, new_email = living.deliver()
    _, got = await living.served.one("Email/get", ids=[new_email], properties=["threadId"])
    new = got["list"][0]["threadId"]
    assert ([new], [], [gone]) == _kinds(await living.changes("Thread", there))
    assert ([new], [], []) == _kinds(await living.changes("Thread", start))


@pytest.mark.statement("68")
async def test_an_email_that_comes_back_into_another_thread_leaves_the_former_one(living: Living) -> None:
    first, _ = living.deliver(subject="to and fro")
    answer = {"subject": "to and fro", "In_Reply_To": f"<{first}@example.org>"}
    second, back = living.deliver(**answer)
    _, got = await living.served.one("Email/get", ids=[back], properties=["threadId"])
    former, there = got["list"][0]["threadId"], await living.state("Thread")
    for uid in (first, second):
        living.vanish("INBOX", uid)
    living.settle()
    between = await living.state("Thread")
    living.put(
        "INBOX", second, octets(second, "Subject to and fro", f"text {second}", In_Reply_To=answer["In_Reply_To"])
    )
    _, got = await living.served.one("Email/get", ids=[back], properties=["threadId"])
    new = got["list"][0]["threadId"]
    assert former != new
    assert ([new], [], []) == _kinds(await living.changes("Thread", between))
    assert ([new], [], [former]) == _kinds(await living.changes("Thread", there))


@pytest.mark.statement("69", "70")
async def test_counts_alone_are_named_and_with_a_new_name_nothing_is(living: Living) -> None:
    mirror, before, inbox = (
        living.served.store.account(ACCOUNT),
        await living.state("Mailbox"),
        await living.mailbox_id("INBOX"),
    )
    uid, _ = living.deliver()
    counted = await living.changes("Mailbox", before)
    assert ([], [inbox], []) == _kinds(counted)
    assert {"totalEmails", "unreadEmails", "totalThreads", "unreadThreads"} == set(counted["updatedProperties"])
    names = [mailbox.name for mailbox in mirror.mailboxes()]
    mirror.put_mailboxes([ListedMailbox(name, "/", frozenset(), subscribed=name == "INBOX") for name in names])
    living.flag("INBOX", uid, "\\Seen")
    mixed = await living.changes("Mailbox", before)
    assert mixed["updatedProperties"] is None
    assert 2 == len(mixed["updated"])
    # Null by reference asks for every property (RFC 8621 §2.2).
    reference = {"resultOf": "0", "name": "Mailbox/changes"}
    responses = await living.served.call(
        ("Mailbox/changes", {"accountId": ACCOUNT, "sinceState": before}),
        (
            "Mailbox/get",
            {
                "accountId": ACCOUNT,
                "#ids": {**reference, "path": "/updated"},
                "#properties": {**reference, "path": "/updatedProperties"},
            },
        ),
    )
    assert [11, 11] == [len(mailbox) for mailbox in responses[1][1]["list"]]


@pytest.mark.statement("61", "62")
@pytest.mark.parametrize("kind", ["Email", "Thread"])
async def test_pages_of_one_end_at_the_present_state_with_every_id_and_none_destroyed_before_it_came(
    living: Living, kind: str
) -> None:
    start = await living.state(kind)
    for _ in range(3):
        living.deliver()
    gone, _ = living.deliver()
    living.vanish("INBOX", gone)
    living.settle()
    whole = await living.changes(kind, start)
    created, destroyed, state, more = list[str](), list[str](), start, True
    while more:
        page = await living.changes(kind, state, maxChanges=1)
        assert sum(map(len, _kinds(page))) <= 1
        created += page["created"]
        # Everything is new since the start, so whatever is told to be gone was told to have come.
        assert set(page["destroyed"]) <= set(created)
        destroyed += page["destroyed"]
        state, more = page["newState"], page["hasMoreChanges"]
    assert await living.state(kind) == state == whole["newState"]
    assert len(created) == len(set(created))
    assert set(whole["created"]) == set(created) - set(destroyed)


@pytest.mark.statement("62")
async def test_no_mailbox_is_updated_before_it_is_created(living: Living) -> None:
    start = await living.state("Mailbox")
    living.list_mailboxes("Passing")
    first, _ = living.deliver("Passing", subject="in many places")
    between = await living.state("Mailbox")
    living.deliver("INBOX", subject="in many places", In_Reply_To=f"<{first}@example.org>")
    living.list_mailboxes()
    living.list_mailboxes("New")
    living.deliver("New", subject="in many places", In_Reply_To=f"<{first}@example.org>")
    new, passing = await living.mailbox_id("New"), set[str]()
    for since in (start, between):
        seen, state, more = list[tuple[str, str]](), since, True
        while more:
            page = await living.changes("Mailbox", state, maxChanges=1)
            seen += [(kind, each) for kind in ("created", "updated", "destroyed") for each in page[kind]]
            state, more = page["newState"], page["hasMoreChanges"]
        assert "created" == next(kind for kind, each in seen if each == new)
        assert not [each for kind, each in seen if each == new and kind == "destroyed"]
        passing |= {each for kind, each in seen if kind == "destroyed"}
    assert 1 == len(passing)
    living.list_mailboxes()


@pytest.mark.statement("63")
async def test_a_mailbox_of_a_former_name_is_not_taken_for_the_one_that_a_token_saw(tmp_path: Path) -> None:
    with house(tmp_path) as served:
        living = Living(served)
        living.list_mailboxes("Passing")
        served.token = served.access.create_token("narrow", scope=Scope(mailboxes=("INBOX", "Passing"))).text
        living.deliver()
        before, former = await living.state("Mailbox"), await living.mailbox_id("Passing")
        living.list_mailboxes()
        living.list_mailboxes("Passing")
        now = await living.mailbox_id("Passing")
        _, told = await served.one("Mailbox/changes", sinceState=before)
        assert former != now
        assert "cannotCalculateChanges" == told.get("type"), told


@pytest.mark.statement("61", "63")
@pytest.mark.parametrize("kind", TYPES)
async def test_a_state_that_is_none_and_an_argument_that_is_wrong_are_refused(living: Living, kind: str) -> None:
    state = await living.state(kind)
    ((_, other, _),) = await living.served.call((f"{kind}/get", {"accountId": OTHER_ACCOUNT, "ids": []}))
    for foreign in ("", "nonsense", state + "0", other["state"], "-1", "\u0660"):
        _, refused = await living.served.one(f"{kind}/changes", sinceState=foreign)
        assert "cannotCalculateChanges" == refused["type"], foreign
    wrongs: list[dict[str, Any]] = [
        {},
        {"sinceState": 1},
        {"sinceState": None},
        {"sinceState": state, "maxChanges": 0},
        {"sinceState": state, "maxChanges": -1},
        {"sinceState": state, "maxChanges": "1"},
        {"sinceState": state, "ids": []},
    ]
    for wrong in wrongs:
        _, refused = await living.served.one(f"{kind}/changes", **wrong)
        assert "invalidArguments" == refused["type"], wrong


@pytest.mark.statement("83", "85")
async def test_query_changes_tell_what_came_and_where_it_stands(living: Living) -> None:
    _, before = await living.served.one("Email/query", filter={"text": "text"})
    assert before["canCalculateChanges"] is True
    _, new = living.deliver()
    name, changed = await living.served.one(
        "Email/queryChanges", filter={"text": "text"}, sinceQueryState=before["queryState"], calculateTotal=True
    )
    assert ("Email/queryChanges", [], [{"id": new, "index": 0}]) == (name, changed["removed"], changed["added"])
    _, after = await living.served.one("Email/query", filter={"text": "text"}, calculateTotal=True)
    assert (after["queryState"], after["total"]) == (changed["newQueryState"], changed["total"])
    assert before["queryState"] == changed["oldQueryState"]
    _, refused = await living.served.one("Email/queryChanges", sinceQueryState="nonsense")
    assert "cannotCalculateChanges" == refused["type"]


@pytest.mark.statement("99")
async def test_mailbox_query_changes_answer_or_say_that_they_cannot(living: Living) -> None:
    _, before = await living.served.one("Mailbox/query")
    living.deliver()
    name, changed = await living.served.one(
        "Mailbox/queryChanges", sinceQueryState=before["queryState"], calculateTotal=True
    )
    assert ("Mailbox/queryChanges", [], [], 2) == (name, changed["removed"], changed["added"], changed["total"])
    _, refused = await living.served.one("Mailbox/queryChanges", sinceQueryState="nonsense")
    assert "cannotCalculateChanges" == refused["type"]


@pytest.mark.statement("183")
async def test_what_was_told_to_have_changed_is_on_record(living: Living) -> None:
    before = await living.state()
    _, new = living.deliver()
    await living.changes("Email", before)
    _, line = living.served.access.reads("clerk")[-1]
    assert ("Email/changes", [new]) == (line.method, list(line.email_ids))
    await living.served.one("Email/queryChanges", sinceQueryState=before)
    _, line = living.served.access.reads("clerk")[-1]
    assert ("Email/queryChanges", [new]) == (line.method, list(line.email_ids))


async def test_an_index_that_is_not_whole_says_so_in_each_answer(living: Living) -> None:
    mirror = living.served.store.account(ACCOUNT)
    _, whole = await living.served.one("Email/query")
    assert "coverage" not in whole
    names = [mailbox.name for mailbox in mirror.mailboxes()]
    mirror.put_mailboxes([ListedMailbox(name, "/", frozenset(), subscribed=True) for name in (*names, "Unread")])
    _, partial = await living.served.one("Email/query")
    unread = await living.mailbox_id("Unread")
    assert (False, [unread]) == (partial["coverage"]["isComplete"], partial["coverage"]["unreadMailboxIds"])
    mirror.restart(living.handle("Unread"), 9)
    living.settle()
    _, whole = await living.served.one("Email/query")
    assert "coverage" not in whole
