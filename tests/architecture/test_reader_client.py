"""Nothing that the IMAP library can write leaves for a mail server: each of its methods, over a socket."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from imapclient.exceptions import IMAPClientError

from shared.imap_guard import GuardRefusal
from shared.imap_login import GuardedClient, ImapLogin
from shared.imap_stream import AnswerLimits
from shared.reader_verbs import READER_TABLE
from tests.fakes.imap_server import HOST, ScriptedImapServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def server() -> Iterator[ScriptedImapServer]:
    with ScriptedImapServer() as running:
        yield running


def _client(server: ScriptedImapServer, tmp_path: Path) -> GuardedClient:
    login = ImapLogin(
        id="a", host=HOST, port=server.port, tls="none", user="reader", secret_file=tmp_path / "never-read"
    )
    client = GuardedClient(READER_TABLE, login, ssl.create_default_context(), AnswerLimits(20.0))
    client.plain_login("reader", "secret")
    client._imap.state = "SELECTED"
    client._imap.is_readonly = True
    client.capabilities()
    return client


_NOW = datetime(2026, 11, 29, tzinfo=UTC)
_WRITES: dict[str, Callable[[Any], object]] = {
    "select_folder": lambda client: client.select_folder("INBOX"),
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
    "add_gmail_labels": lambda client: client.add_gmail_labels([1], ["x"]),
    "remove_gmail_labels": lambda client: client.remove_gmail_labels([1], ["x"]),
    "set_gmail_labels": lambda client: client.set_gmail_labels([1], ["x"]),
    "append": lambda client: client.append("INBOX", b"Subject: forged\r\n\r\n", msg_time=_NOW),
    "multiappend": lambda client: client.multiappend("INBOX", [b"Subject: forged\r\n\r\n"]),
    "copy": lambda client: client.copy([1], "Trash"),
    "move": lambda client: client.move([1], "Trash"),
    "expunge": lambda client: client.expunge(),
    "expunge of a message": lambda client: client.expunge([1]),
    "uid_expunge": lambda client: client.uid_expunge([1]),
    "setacl": lambda client: client.setacl("INBOX", "anyone", "lr"),
    "fetch that marks": lambda client: client.fetch([1], ["BODY[]"]),
    "fetch of RFC822": lambda client: client.fetch([1], ["RFC822"]),
    "fetch by sequence number": lambda client: client._imap.fetch("1", "(FLAGS)"),
    "search for words": lambda client: client.search(["TEXT", "x"]),
    "search with 8 bits": lambda client: client.search(["TEXT", "ä"], "UTF-8"),
    "gmail_search": lambda client: client.gmail_search("x"),
    "sort": lambda client: client.sort("ARRIVAL"),
    "thread": lambda client: client.thread(),
    "getacl": lambda client: client.getacl("INBOX"),
    "get_quota_root": lambda client: client.get_quota_root("INBOX"),
    "xlist_folders": lambda client: client.xlist_folders(),
    "login with a line end": lambda client: client._imap.send(b'X1 LOGIN a "b\r\nX EXPUNGE"\r\n'),
    "fetch item with a line end": lambda client: client.fetch([1], ["FLAGS)\r\nX EXPUNGE\r\nY NOOP ("]),
    "search with a line end": lambda client: client.search("ALL\r\nX EXPUNGE"),
    "flag with a line end": lambda client: client.add_flags([1], ["x)\r\nX EXPUNGE"]),
    "uid with a line end": lambda client: client._imap.uid("FETCH", "1\r\nX EXPUNGE", "(FLAGS)"),
    "id with a line end": lambda client: client.id_({"name": "mailwarrant\r\nX EXPUNGE"}),
    "a line": lambda client: client.say(b"X1 EXPUNGE\r\n"),
    "raw octets": lambda client: client._imap.send(b"X1 EXPUNGE\r\n"),
    "done outside idle": lambda client: client._imap.send(b"DONE\r\n"),
}


@pytest.mark.parametrize("name", _WRITES)
def test_no_write_of_the_library_reaches_the_server(server: ScriptedImapServer, tmp_path: Path, name: str) -> None:
    client = _client(server, tmp_path)
    with pytest.raises(GuardRefusal):
        _WRITES[name](client)
    # Nor does anything after it.
    with pytest.raises(GuardRefusal):
        client.noop()
    client.close_connection()
    # A line that is permitted may leave before the one that was hidden behind it.
    assert set(server.commands) <= {b"CAPABILITY", b"AUTHENTICATE PLAIN", b"UID SEARCH ALL"}
    assert b"EXPUNGE" not in server.received


def test_every_method_of_the_library_that_can_write_is_tried() -> None:
    # A new release may bring a new one: this list is what 4.1 has, and names what is read-only or needs no server.
    reads = {
        "capabilities", "enable", "fetch", "find_special_folder", "folder_exists", "folder_status", "get_flags",
        "get_gmail_labels", "get_quota", "get_quota_root", "getacl", "gmail_search", "has_capability", "id_", "idle",
        "idle_check", "idle_done", "list_folders", "list_sub_folders", "login", "logout", "namespace", "noop",
        "oauth2_login", "oauthbearer_login", "plain_login", "sasl_login", "search", "shutdown", "socket", "sort",
        "starttls", "thread", "unselect_folder", "welcome", "xlist_folders",
        "answers", "break_off", "close_connection", "octets_passed", "octets_received", "wait",
        # Tried above as "a line".
        "say",
        "AbortError", "Error", "ReadOnlyError",
    }  # fmt: skip
    public = {name for name in dir(GuardedClient) if not name.startswith("_")}
    writes = {name.split()[0] for name in _WRITES} | {"set_quota"}
    assert set() == public - reads - writes


def test_a_mailbox_name_with_a_line_end_travels_as_a_name(server: ScriptedImapServer, tmp_path: Path) -> None:
    client = _client(server, tmp_path)
    with pytest.raises((IMAPClientError, KeyError, ValueError, IndexError, GuardRefusal)):
        client.folder_status("a\r\nX EXPUNGE", ["UIDNEXT"])
    client.close_connection()
    assert server.commands[-1].startswith(b'STATUS "a&AA0ACg-X EXPUNGE"')
