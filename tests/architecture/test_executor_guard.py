"""Nothing but the executor's tables can leave for a mail server, and the mover can name its queue's mailboxes only."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from change_executor.connections import Connections
from change_executor.imap_verbs import LOOK_TABLE, MOVE_TABLE, move_table_for, wire_name
from change_executor.mover import Mover
from shared.imap_guard import Guard, GuardRefusal, VerbTable
from shared.imap_login import GuardedClient, ImapLogin
from shared.imap_stream import AnswerLimits
from tests.fakes.imap_server import HOST, ScriptedImapServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

QUEUE = ("Incoming", "Processed", "Bücher & Löhne", 'a"b\\c')
NARROWED = move_table_for(QUEUE)

BOTH = [
    b"A1 CAPABILITY",
    b"A1 NOOP",
    b"A1 LOGOUT",
    b"A1 STARTTLS",
    b"A1 UNSELECT",
    b"A1 AUTHENTICATE PLAIN",
    b"A1 AUTHENTICATE XOAUTH2",
    b"A1 AUTHENTICATE OAUTHBEARER",
    b'A1 LOGIN executor "pass word"',
    b'A1 LIST "" "*"',
    b'A1 STATUS "Processed" (MESSAGES UIDNEXT UIDVALIDITY)',
    b'A1 EXAMINE "Anywhere"',
    b'A1 MYRIGHTS "Processed"',
    b"A1 UID FETCH 4294967295 (FLAGS INTERNALDATE RFC822.SIZE BODY.PEEK[]<0.1048576>)",
    b"A1 UID FETCH 1 (BODY.PEEK[]<1048576.1048576>)",
    b"A1 UID FETCH 1 (UID)",
    b"A1 UID SEARCH UID 5:*",
]
ONLY_MOVING = [b'A1 SELECT "Incoming"', b'A1 UID MOVE 7 "Processed"', b'A1 UID MOVE 7 "B&APw-cher &- L&APY-hne"']

REFUSED = [
    # more than one message, or none
    b'A1 UID MOVE 1,2 "Processed"',
    b'A1 UID MOVE 1:2 "Processed"',
    b'A1 UID MOVE 1:* "Processed"',
    b'A1 UID MOVE * "Processed"',
    b'A1 UID MOVE 0 "Processed"',
    b'A1 UID MOVE 01 "Processed"',
    b'A1 UID MOVE $ "Processed"',
    b'A1 UID MOVE 12345678901 "Processed"',
    b'A1 UID MOVE  7 "Processed"',
    b'A1 UID MOVE 7 "Processed" "Escalate"',
    b"A1 UID MOVE 7 {9}",
    b"A1 UID MOVE 7",
    b'A1 MOVE 7 "Processed"',
    b'A1 uid move 7 "Processed"',
    # every other way to change a mailbox
    b'A1 UID COPY 7 "Processed"',
    b"A1 UID STORE 7 +FLAGS (\\Deleted)",
    b"A1 STORE 7 +FLAGS (\\Seen)",
    b"A1 EXPUNGE",
    b"A1 UID EXPUNGE 7",
    b"A1 CLOSE",
    b'A1 APPEND "Processed" {3}',
    b'A1 CREATE "x"',
    b'A1 DELETE "Processed"',
    b'A1 RENAME "Processed" "y"',
    b'A1 SUBSCRIBE "x"',
    b'A1 SETACL "Processed" anyone lr',
    b'A1 GETACL "Processed"',
    b'A1 SETMETADATA "" (/private/x "y")',
    b"A1 ENABLE QRESYNC",
    b"A1 IDLE",
    b"A1 COMPRESS DEFLATE",
    # what marks as read, or fetches many
    b"A1 UID FETCH 7 (BODY[])",
    b"A1 UID FETCH 7 (RFC822)",
    b"A1 UID FETCH 1:* (FLAGS)",
    b"A1 UID FETCH 1,2 (FLAGS)",
    b"A1 FETCH 7 (FLAGS)",
    # words that a sender chose
    b'A1 UID SEARCH HEADER Message-ID "x"',
    b'A1 UID SEARCH TEXT "x"',
    b"A1 UID SEARCH ALL",
    b"A1 UID SEARCH CHARSET UTF-8 UID 5:*",
    # odd shapes
    b"DONE",
    b"AAAA",
    b"",
    b'A1 SELECT "In\rcoming"',
    b'A1 SELECT "In\0coming"',
    b'A1 SELECT "In\ncoming"',
]


@pytest.mark.parametrize("table", [LOOK_TABLE, MOVE_TABLE, NARROWED], ids=["look", "move", "narrowed"])
@pytest.mark.parametrize("line", BOTH)
def test_looking_is_permitted_in_every_table(table: VerbTable, line: bytes) -> None:
    assert line + b"\r\n" == Guard(table).pass_on(line + b"\r\n")


@pytest.mark.parametrize("line", ONLY_MOVING)
def test_moving_is_permitted_to_the_mover_alone(line: bytes) -> None:
    for table in (MOVE_TABLE, NARROWED):
        assert line + b"\r\n" == Guard(table).pass_on(line + b"\r\n")
    with pytest.raises(GuardRefusal):
        Guard(LOOK_TABLE).pass_on(line + b"\r\n")


@pytest.mark.parametrize("table", [LOOK_TABLE, MOVE_TABLE, NARROWED], ids=["look", "move", "narrowed"])
@pytest.mark.parametrize("line", REFUSED)
def test_any_other_line_is_refused_and_nothing_leaves_afterwards(table: VerbTable, line: bytes) -> None:
    guard = Guard(table)
    left: list[bytes] = []
    with pytest.raises(GuardRefusal):
        left.extend(guard.pass_on(bytes([octet])) for octet in line + b"\r\n")
    assert b"" == b"".join(left)
    with pytest.raises(GuardRefusal):
        guard.pass_on(b"A2 NOOP\r\n")


@pytest.mark.parametrize(
    "line",
    [
        b'A1 UID MOVE 7 "Trash"',
        b'A1 UID MOVE 7 "processed"',
        b'A1 UID MOVE 7 "Processed/x"',
        b"A1 UID MOVE 7 Trash",
        b"A1 UID MOVE 7 Processed",
        b'A1 SELECT "INBOX"',
        b'A1 SELECT "Archive"',
    ],
)
def test_the_narrowed_table_knows_no_mailbox_but_the_queues(line: bytes) -> None:
    assert Guard(MOVE_TABLE).pass_on(line + b"\r\n")
    with pytest.raises(GuardRefusal):
        Guard(NARROWED).pass_on(line + b"\r\n")


COPYING = move_table_for(QUEUE, copying=True)
ONLY_COPYING = [
    b'A1 UID COPY 7 "Processed"',
    b"A1 UID STORE 7 +FLAGS.SILENT (\\Deleted)",
    b"A1 UID EXPUNGE 7",
]
REFUSED_COPYING = [
    b'A1 UID COPY 7 "Trash"',
    b'A1 UID COPY 7,8 "Processed"',
    b'A1 UID COPY 1:* "Processed"',
    b"A1 UID STORE 7 +FLAGS (\\Deleted)",
    b"A1 UID STORE 7 -FLAGS.SILENT (\\Deleted)",
    b"A1 UID STORE 7 FLAGS.SILENT (\\Deleted)",
    b"A1 UID STORE 7 +FLAGS.SILENT (\\Deleted \\Seen)",
    b"A1 UID STORE 7 +FLAGS.SILENT (\\Seen)",
    b"A1 UID STORE 1:* +FLAGS.SILENT (\\Deleted)",
    b"A1 UID EXPUNGE 1:*",
    b"A1 UID EXPUNGE 7,8",
    b"A1 UID EXPUNGE",
]


@pytest.mark.parametrize("line", ONLY_COPYING)
def test_copying_is_permitted_where_the_queue_allows_it_alone(line: bytes) -> None:
    assert line + b"\r\n" == Guard(COPYING).pass_on(line + b"\r\n")
    for table in (LOOK_TABLE, MOVE_TABLE, NARROWED):
        with pytest.raises(GuardRefusal):
            Guard(table).pass_on(line + b"\r\n")


@pytest.mark.parametrize("line", [*REFUSED_COPYING, *(line for line in REFUSED if line not in ONLY_COPYING)])
def test_where_copying_is_allowed_every_other_line_is_refused_all_the_same(line: bytes) -> None:
    with pytest.raises(GuardRefusal):
        Guard(COPYING).pass_on(line + b"\r\n")


@pytest.mark.parametrize("mailbox", QUEUE)
def test_every_mailbox_of_the_queue_can_be_named_as_it_travels(mailbox: str) -> None:
    line = b"A1 UID MOVE 7 " + wire_name(mailbox) + b"\r\n"
    assert line == Guard(NARROWED).pass_on(line)


def test_two_commands_in_one_piece_are_refused_whole() -> None:
    with pytest.raises(GuardRefusal):
        Guard(NARROWED).pass_on(b'A1 UID MOVE 7 "Processed"\r\nA2 EXPUNGE\r\n')


# The real mover's client, over a socket.

WRITES: dict[str, Callable[[Any], object]] = {
    "select of another": lambda client: client.select_folder("INBOX"),
    "create_folder": lambda client: client.create_folder("x"),
    "rename_folder": lambda client: client.rename_folder("x", "y"),
    "delete_folder": lambda client: client.delete_folder("x"),
    "subscribe_folder": lambda client: client.subscribe_folder("x"),
    "unsubscribe_folder": lambda client: client.unsubscribe_folder("x"),
    "close_folder": lambda client: client.close_folder(),
    "add_flags": lambda client: client.add_flags([1], [b"\\Seen"]),
    "remove_flags": lambda client: client.remove_flags([1], [b"\\Seen"]),
    "set_flags": lambda client: client.set_flags([1], [b"\\Seen"], silent=True),
    "delete_messages": lambda client: client.delete_messages([1]),
    "append": lambda client: client.append("Processed", b"x", msg_time=datetime(2026, 1, 1, tzinfo=UTC)),
    "multiappend": lambda client: client.multiappend("Processed", [b"x"]),
    "copy": lambda client: client.copy([1], "Processed"),
    "move of two": lambda client: client.move([1, 2], "Processed"),
    "move of a range": lambda client: client.move("1:*", "Processed"),
    "move elsewhere": lambda client: client.move([1], "Trash"),
    "expunge": lambda client: client.expunge(),
    "uid_expunge": lambda client: client.uid_expunge([1]),
    "setacl": lambda client: client.setacl("Processed", "anyone", "lr"),
    "fetch that marks": lambda client: client.fetch([1], ["BODY[]"]),
    "search for words": lambda client: client.search(["HEADER", "Message-ID", "x"]),
    "enable": lambda client: client.enable("UTF8=ACCEPT"),
    "idle": lambda client: client.idle(),
    "uid with a line end": lambda client: client._imap.uid("MOVE", "1\r\nX EXPUNGE", '"Processed"'),
    "raw octets": lambda client: client._imap.send(b"X1 EXPUNGE\r\n"),
}


@pytest.fixture
def server() -> Iterator[ScriptedImapServer]:
    with ScriptedImapServer() as running:
        yield running


@pytest.mark.parametrize("name", WRITES)
def test_no_other_write_of_the_library_reaches_the_server(
    server: ScriptedImapServer, tmp_path: Path, name: str
) -> None:
    login = _login(server, tmp_path)
    client = GuardedClient(NARROWED, login, ssl.create_default_context(), AnswerLimits(20.0))
    client.plain_login("executor", "secret")
    client._imap.state = "AUTH" if name == "enable" else "SELECTED"
    client.capabilities()
    with pytest.raises(GuardRefusal):
        WRITES[name](client)
    client.close_connection()
    assert {b"CAPABILITY", b"AUTHENTICATE PLAIN"} >= set(server.commands)


def test_a_move_to_a_mailbox_of_no_queue_is_refused_before_an_octet_leaves(
    server: ScriptedImapServer, tmp_path: Path
) -> None:
    with Mover(Connections()).session(_login(server, tmp_path), ["Incoming", "Processed"]) as session:
        session._client._imap.state = "SELECTED"
        with pytest.raises(GuardRefusal):
            session.move_one(7, "Trash")
    assert not [command for command in server.commands if b"MOVE" in command]


def _login(server: ScriptedImapServer, folder: Path) -> ImapLogin:
    (folder / "secret").write_text("secret")
    (folder / "secret").chmod(0o600)
    return ImapLogin(id="move", host=HOST, port=server.port, tls="none", user="executor", secret_file=folder / "secret")
