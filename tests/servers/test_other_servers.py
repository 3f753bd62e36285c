from __future__ import annotations

import imaplib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tests.servers import unpacked
from tests.servers.courier import Courier
from tests.servers.cyrus import Cyrus
from tests.servers.dovecot import quoted
from tests.servers.dovecot_config import ExecutorRights
from tests.servers.unpacked import ServerUnusableError, Unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.other_server import OtherServer

MAIL = b"From: ann@example.org\r\nSubject: an order\r\nMessage-ID: <1@example.org>\r\n\r\nhello\r\n"
WHEN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.fixture(params=[Cyrus, Courier])
def server(request: pytest.FixtureRequest) -> Iterator[OtherServer]:
    with request.param(ExecutorRights.NARROW) as running:
        yield running


def open_mailbox(server: OtherServer, client: imaplib.IMAP4, login: str, mailbox: str) -> bool:
    """SELECT; gives whether the server says that this login may change things (RFC 9051 §6.3.2)."""
    try:
        status, answer = client.select(quoted(server.named(login, mailbox)))
    except imaplib.IMAP4.readonly:
        # imaplib would raise this again at the next command.
        client.is_readonly = True
        return False
    assert status == "OK", answer
    return True


def test_what_the_owner_delivers_is_there_whole_for_every_login_that_may_look(server: OtherServer) -> None:
    uid = server.deliver("Incoming", MAIL, ["\\Flagged", "$label1"], WHEN)
    for login in ("owner", "reader", "executor"):
        with server.connect(login) as client:
            open_mailbox(server, client, login, "Incoming")
            answer = client.uid("FETCH", str(uid), "(BODY.PEEK[])")[1][0]
        assert isinstance(answer, tuple)
        assert MAIL == answer[1]
    message = server.snapshot()[server.named("owner", "Incoming")].one()
    assert (frozenset({"\\Flagged"}), frozenset({"$label1"}), WHEN) == (
        message.flags,
        message.keywords,
        message.internaldate,
    )


def test_two_snapshots_in_a_row_are_equal_for_every_login(server: OtherServer) -> None:
    server.deliver("Incoming", MAIL)
    for login in ("owner", "reader"):
        assert server.snapshot(login) == server.snapshot(login)
        assert server.named(login, "Incoming") in server.snapshot(login).mailboxes


def test_the_reader_may_change_nothing(server: OtherServer) -> None:
    server.deliver("Incoming", MAIL)
    before = server.snapshot()
    with server.connect("reader") as client:
        assert not open_mailbox(server, client, "reader", "Incoming")
        client.store("1", "+FLAGS", "(\\Seen \\Deleted)")
        client.expunge()
        assert client.copy("1", quoted(server.named("reader", "Processed")))[0] == "NO"
    assert before == server.snapshot()


def test_the_executor_may_take_from_incoming_and_put_into_a_destination_only(server: OtherServer) -> None:
    server.deliver("Incoming", MAIL)
    with server.connect("executor") as client:
        assert open_mailbox(server, client, "executor", "Incoming")
        assert client.uid("COPY", "1", quoted(server.named("executor", "Archive")))[0] == "NO"
        assert client.uid("COPY", "1", quoted(server.named("executor", "Processed")))[0] == "OK"
        client.uid("STORE", "1", "+FLAGS", "(\\Deleted)")
        client.uid("EXPUNGE", "1")
    after = server.snapshot()
    assert {} == after[server.named("owner", "Incoming")].messages
    assert 1 == after[server.named("owner", "Processed")].one().uid


def test_what_a_login_sent_can_be_read_afterwards(server: OtherServer) -> None:
    with server.connect("reader") as client:
        open_mailbox(server, client, "reader", "Incoming")
        client.noop()
    server.await_no_session("reader")
    sent = server.commands("reader")
    assert any(b"SELECT" in line and server.named("reader", "Incoming").encode() in line for line in sent), sent
    assert any(line.endswith(b"NOOP") for line in sent)
    assert [] == server.commands("executor")


def test_killing_the_sessions_of_one_login_leaves_the_others(server: OtherServer) -> None:
    reader, executor = server.connect("reader"), server.connect("executor")
    with executor:
        assert 1 == len(server.kill_session("reader"))
        assert executor.noop()[0] == "OK"
    with pytest.raises((imaplib.IMAP4.abort, OSError)):
        reader.noop()
    reader.shutdown()


def test_mail_and_port_outlive_a_restart(server: OtherServer) -> None:
    server.deliver("Incoming", MAIL)
    before = server.snapshot()
    server.stop()
    server.start()
    assert before == server.snapshot()


def test_what_is_not_unpacked_says_what_to_type(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(unpacked, "ROOTS", (tmp_path,))
    with pytest.raises(ServerUnusableError, match="deploy/test_servers"):
        Unpacked()
    (tmp_path / ".unpacked-1").touch()
    with pytest.raises(ServerUnusableError, match="deploy/test_servers"):
        Unpacked().file("/usr/bin/imapd")
