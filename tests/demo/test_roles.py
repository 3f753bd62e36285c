"""What each login may do, tried through a socket and judged by what the owner finds afterwards."""

from __future__ import annotations

import imaplib
import inspect
from collections.abc import Iterator

import pytest
from pymap.interfaces.session import SessionInterface

from deploy.demo.mailbox import MAILBOXES
from deploy.demo.roles import Role, RoleSession
from tests.demo.conftest import Copy, DemoProcess, running

# What every login may call; whatever else the library's sessions can do is judged by `RoleSession` itself.
LOOKS = {"list_mailboxes", "get_mailbox", "check_mailbox", "search_mailbox", "cleanup"}

LETTER = b"From: a@forger.example\r\nSubject: forged\r\n\r\nforged\r\n"

# Each is sent in a mailbox that holds a message `{uid}`, marked as deleted. An APPEND brings `LETTER`.
WRITES = (
    r"STORE 1 +FLAGS (\Draft)",
    r"STORE 1 +FLAGS ($NotJunk)",
    r"STORE 1 FLAGS ()",
    r"UID STORE {uid} +FLAGS (\Flagged)",
    r"UID STORE {uid} -FLAGS.SILENT (\Deleted)",
    r"UID STORE {uid} FLAGS (\Draft \Seen)",
    "COPY 1 Processed",
    "UID COPY {uid} Escalate",
    "MOVE 1 Trash",
    "UID MOVE {uid} Archive",
    "UID MOVE 1:* Sent",
    r"APPEND Incoming (\Seen)",
    "EXPUNGE",
    "UID EXPUNGE {uid}",
    "CREATE Mine",
    "DELETE Newsletters",
    "RENAME Archive Attic",
    "RENAME INBOX Inbox-2025",
    "SUBSCRIBE Trash",
    "UNSUBSCRIBE Processed",
)
# What the owner changes by these, nobody else does.
CHANGES_FOR_THE_OWNER = ("FETCH 1:* (BODY[])", "UID FETCH 1:* (RFC822)", "CLOSE")
CHANGES_NOTHING = ("UNSELECT", "CHECK", "NOOP", "FETCH 1:* (BODY.PEEK[])", 'LIST "" *', "STATUS Sent (MESSAGES)")
# Written out here, so that a pair added to the code by mistake is found.
MOVES = {("Incoming", "Processed"), ("Incoming", "Escalate"), ("Processed", "Incoming"), ("Escalate", "Incoming")}
HANDS_OFF = (Role.READER, Role.EXECUTOR)
OPENED = ("Incoming", "Processed", "Archive")


def open_mailbox(client: imaplib.IMAP4, name: str, verb: str) -> None:
    """SELECT or EXAMINE although the server may answer READ-ONLY, which imaplib's own method will not have."""
    client.untagged_responses = {}
    client.is_readonly = True
    answer, _ = client._simple_command(verb, name)
    assert answer == "OK"
    client.state = "SELECTED"


def answer_to(client: imaplib.IMAP4, command: str, uid: str) -> str:
    name, *rest = command.format(uid=uid).split(" ", 1)
    if name == "APPEND":
        setattr(client, "literal", LETTER)  # noqa: B010 (its stub calls it text)
    return str(client._simple_command(name, *rest)[0])


def mark_one_deleted(demo: DemoProcess, name: str) -> str:
    with demo.login(Role.OWNER) as owner:
        owner.select(name)
        _, found = owner.uid("SEARCH", "ALL")
        uid: str = found[0].decode().split()[0]
        owner.uid("STORE", uid, "+FLAGS", r"(\Deleted)")
        owner.unselect()
    return uid


class Guarded:
    """A server on which nothing may change, and how it was before."""

    def __init__(self, demo: DemoProcess) -> None:
        self.demo = demo
        self.deleted = {name: mark_one_deleted(demo, name) for name in OPENED}
        self.before = self.seen_by_the_owner()

    def seen_by_the_owner(self) -> tuple[dict[str, list[Copy]], list[bytes]]:
        return self.demo.state(), self.demo.subscribed()

    def try_everywhere(self, role: Role, command: str) -> set[str]:
        answers = set()
        with self.demo.login(role) as client:
            for name in OPENED:
                for verb in ("SELECT", "EXAMINE"):
                    open_mailbox(client, name, verb)
                    answers.add(answer_to(client, command, self.deleted[name]))
        return answers


@pytest.fixture(scope="module")
def guarded(demo: DemoProcess) -> Guarded:
    return Guarded(demo)


@pytest.fixture
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoProcess]:
    """A server of its own, for a test that changes something."""
    yield from running(tmp_path_factory.mktemp("secrets"))


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoProcess]:
    """A server whose owner does it all; each command finds a new message in Incoming, so their order is free."""
    yield from running(tmp_path_factory.mktemp("secrets"))


@pytest.mark.parametrize("role", HANDS_OFF)
@pytest.mark.parametrize("command", WRITES)
def test_a_write_is_refused_and_changes_nothing(guarded: Guarded, role: Role, command: str) -> None:
    assert {"NO"} == guarded.try_everywhere(role, command)
    assert guarded.before == guarded.seen_by_the_owner()


@pytest.mark.parametrize("role", HANDS_OFF)
@pytest.mark.parametrize("command", CHANGES_FOR_THE_OWNER + CHANGES_NOTHING)
def test_looking_and_leaving_pass_and_change_nothing(guarded: Guarded, role: Role, command: str) -> None:
    assert {"OK"} == guarded.try_everywhere(role, command)
    assert guarded.before == guarded.seen_by_the_owner()


@pytest.mark.parametrize("command", WRITES + CHANGES_FOR_THE_OWNER)
def test_the_same_command_by_the_owner_has_an_effect(control: DemoProcess, command: str) -> None:
    with control.login(Role.OWNER) as owner:
        owner.append("Incoming", "", "", LETTER)
    uid = mark_one_deleted(control, "Incoming")
    before = control.state(), control.subscribed()
    with control.login(Role.OWNER) as owner:
        open_mailbox(owner, "Incoming", "SELECT")
        assert answer_to(owner, command, uid) == "OK"
    assert before != (control.state(), control.subscribed())


@pytest.mark.parametrize("role", HANDS_OFF)
@pytest.mark.parametrize("source", MAILBOXES)
def test_every_move_outside_the_list_is_refused(guarded: Guarded, role: Role, source: str) -> None:
    allowed = MOVES if role is Role.EXECUTOR else set()
    refused = [target for target in (*MAILBOXES, "Nowhere") if (source, target) not in allowed]
    with guarded.demo.login(role) as client:
        open_mailbox(client, source, "SELECT")
        answers = {client.uid("MOVE", "1:*", target)[0] for target in refused}
    assert answers == {"NO"}
    assert guarded.before == guarded.seen_by_the_owner()


@pytest.mark.parametrize(("source", "target"), sorted(MOVES))
def test_the_executor_moves_nothing_out_of_an_examined_mailbox(guarded: Guarded, source: str, target: str) -> None:
    with guarded.demo.login(Role.EXECUTOR) as client:
        open_mailbox(client, source, "EXAMINE")
        answer, _ = client.uid("MOVE", "1:*", target)
    assert answer == "NO"
    assert guarded.before == guarded.seen_by_the_owner()


def test_the_readers_select_is_read_only_and_the_executors_only_outside_its_queue(guarded: Guarded) -> None:
    found = {}
    for role in Role:
        with guarded.demo.login(role) as client:
            for name in MAILBOXES:
                open_mailbox(client, name, "SELECT")
                found[role, name] = "READ-ONLY" in client.untagged_responses
    queue = {"Incoming", "Processed", "Escalate"}
    expected = {(Role.READER, name): True for name in MAILBOXES}
    expected |= {(Role.EXECUTOR, name): name not in queue for name in MAILBOXES}
    expected |= {(Role.OWNER, name): False for name in MAILBOXES}
    assert expected == found


@pytest.mark.parametrize(("source", "target"), sorted(MOVES))
def test_the_executor_moves_along_the_list(scratch: DemoProcess, source: str, target: str) -> None:
    before = scratch.state()
    with scratch.login(Role.EXECUTOR) as executor:
        executor.select(source)
        assert executor.uid("MOVE", str(before[source][0].uid), target)[0] == "OK"
    after = scratch.state()
    assert before[source][1:] == after[source]
    assert len(before[target]) + 1 == len(after[target])


def test_the_executors_move_keeps_octets_flags_and_date_and_can_be_undone(scratch: DemoProcess) -> None:
    before = scratch.state()
    flagged = [copy for copy in before["Incoming"] if "$Important" in copy.flags]
    assert flagged
    chosen = flagged[0]
    with scratch.login(Role.EXECUTOR) as executor:
        executor.select("Incoming")
        answer, _ = executor.uid("MOVE", str(chosen.uid), "Escalate")
        _, copied = executor.response("COPYUID")
        assert answer == "OK"
        _, source_uid, new_uid = copied[0].decode().split()
        executor.select("Escalate")
        moved = {copy.uid: copy for copy in scratch.mailbox("Escalate")}[int(new_uid)]
        assert (chosen.octets, chosen.flags, chosen.received) == (moved.octets, moved.flags, moved.received)
        assert str(chosen.uid) == source_uid
        assert chosen not in scratch.mailbox("Incoming")
        executor.uid("MOVE", new_uid, "Incoming")
    after = scratch.state()
    assert before["Escalate"] == after["Escalate"]
    assert _without_uids(before["Incoming"]) == _without_uids(after["Incoming"])
    assert {copy.uid for copy in before["Incoming"]} - {chosen.uid} < {copy.uid for copy in after["Incoming"]}


def _without_uids(copies: list[Copy]) -> list[tuple[bytes, tuple[str, ...], str]]:
    return sorted((copy.octets, copy.flags, copy.received) for copy in copies)


@pytest.mark.parametrize(("role", "secret"), [(Role.READER, "executor has a pass-phrase"), (Role.OWNER, "")])
def test_a_login_opens_with_its_own_password_only(demo: DemoProcess, role: Role, secret: str) -> None:
    client = imaplib.IMAP4("127.0.0.1", demo.port)
    with client, pytest.raises(imaplib.IMAP4.error):
        client.login(role.value, f'"{secret}"')


def test_no_login_acts_for_another(demo: DemoProcess) -> None:
    client = imaplib.IMAP4("127.0.0.1", demo.port)
    with client, pytest.raises(imaplib.IMAP4.error):
        client.authenticate("PLAIN", lambda _: b"owner\0reader\0reader has a pass-phrase")


def test_everything_that_a_session_can_do_is_judged() -> None:
    offered = {name for name, _ in inspect.getmembers(SessionInterface, inspect.iscoroutinefunction)}
    judged = {name for name in vars(RoleSession) if inspect.iscoroutinefunction(vars(RoleSession)[name])}
    assert offered == LOOKS | judged
