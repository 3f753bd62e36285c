"""The read-only session: signing in, and the mistakes of an operator named one by one."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agent_reader.errors import Refused
from agent_reader.imap.session import ReadOnlySession
from agent_reader.imap.values import Examined
from shared.identity import MAX_MESSAGE_OCTETS
from shared.imap_login import ImapFailure
from shared.settings import ConfigurationError
from tests.fakes.accounts import plain_account, reader_account
from tests.fakes.imap_server import ScriptedImapServer, ScriptedMailbox
from tests.servers.dovecot import Dovecot
from tests.servers.proxy import BreakingProxy, BreakPoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@contextlib.contextmanager
def scripted(
    answer: Callable[[bytes], tuple[list[bytes], bytes] | None], folder: Path, capabilities: bytes
) -> Iterator[tuple[ReadOnlySession, list[bytes]]]:
    with (
        ScriptedImapServer(answer, capabilities) as server,
        contextlib.closing(ReadOnlySession.open(plain_account(server.port, folder))) as session,
    ):
        yield session, server.commands


@pytest.mark.parametrize("security", ["tls", "starttls", "none"])
def test_it_signs_in_by_each_kind_of_security(dovecot: Dovecot, tmp_path: Path, security: str) -> None:
    port = dovecot.tls_port if security == "tls" else dovecot.port
    session = ReadOnlySession.open(reader_account(dovecot, tmp_path, tls=security, port=port))
    assert "INBOX" in {mailbox.name for mailbox in session.list_mailboxes()}
    session.close()


def mistake(dovecot: Dovecot, folder: Path, **changes: Any) -> ImapFailure:
    with pytest.raises(ImapFailure) as failure:
        ReadOnlySession.open(reader_account(dovecot, folder, **changes))
    assert failure.value.detail
    assert failure.value.fix
    return failure.value


def test_a_wrong_password_is_named_and_not_repeated(dovecot: Dovecot, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("not-the-password")
    wrong.chmod(0o600)
    failure = mistake(dovecot, tmp_path, secret_file=wrong)
    assert ("login_refused", False) == (failure.code, failure.retryable)
    assert "reader at 127.0.0.1" in failure.detail
    assert "not-the-password" not in str(failure)


def test_an_unknown_host_a_closed_port_and_a_wrong_port_are_named(dovecot: Dovecot, tmp_path: Path) -> None:
    assert "unreachable" == mistake(dovecot, tmp_path, host="nowhere.invalid").code
    assert "nowhere.invalid" in mistake(dovecot, tmp_path, host="nowhere.invalid").detail
    with BreakingProxy(dovecot.port, b"", BreakPoint.BLACKHOLE) as proxy:
        closed = proxy.port
    assert "unreachable" == mistake(dovecot, tmp_path, port=closed).code
    assert "certificate" == mistake(dovecot, tmp_path, port=dovecot.port).code


def test_a_certificate_of_an_unknown_authority_or_another_name_is_named(dovecot: Dovecot, tmp_path: Path) -> None:
    unknown = mistake(dovecot, tmp_path, ca_file=None)
    assert "certificate" == unknown.code
    assert "ca_file" in unknown.fix
    # It is for localhost and 127.0.0.1; all of 127/8 is this machine.
    with socket.create_server(("127.0.0.2", 0)) as listener:
        other_name = threading.Thread(target=_present_certificate, args=(listener, dovecot), daemon=True)
        other_name.start()
        other = mistake(dovecot, tmp_path, host="127.0.0.2", port=listener.getsockname()[1])
        other_name.join()
    assert "certificate" == other.code
    assert "`host`" in other.fix


def _present_certificate(listener: socket.socket, dovecot: Dovecot) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(dovecot.ca_file.parent / "server.crt", dovecot.ca_file.parent / "server.key")
    client, _ = listener.accept()
    with client, contextlib.suppress(OSError):
        context.wrap_socket(client, server_side=True).close()


def test_a_missing_secret_or_authority_is_the_configuration(dovecot: Dovecot, tmp_path: Path) -> None:
    for changes in ({"secret_file": tmp_path / "none"}, {"ca_file": tmp_path / "none"}):
        with pytest.raises(ConfigurationError) as error:
            ReadOnlySession.open(reader_account(dovecot, tmp_path, **changes))
        assert str(tmp_path / "none") in error.value.what


def test_a_mailbox_that_is_not_there_is_refused_and_the_connection_lives(dovecot: Dovecot, tmp_path: Path) -> None:
    with contextlib.closing(ReadOnlySession.open(reader_account(dovecot, tmp_path))) as session:
        with pytest.raises(Refused) as refusal:
            session.examine("Nowhere")
        assert ("EXAMINE", "NO") == (refusal.value.verb, refusal.value.answer)
        assert session.examine("INBOX").exists == 0


def test_a_mailbox_name_with_hostile_characters_is_only_a_name(dovecot: Dovecot, tmp_path: Path) -> None:
    with contextlib.closing(ReadOnlySession.open(reader_account(dovecot, tmp_path))) as session:
        for name in ('a" (x) "', "a\\", "*", "{3}", "a" * 300, "ä\u2028b", "INBOX (CONDSTORE)"):
            with pytest.raises(Refused):
                session.examine(name)
        assert session.examine("INBOX").exists == 0


def test_examine_tells_uidvalidity_uidnext_count_and_modseq(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.deliver("INBOX", b"Subject: a\r\n\r\nb\r\n")
    state = dovecot.snapshot()["INBOX"]
    with contextlib.closing(ReadOnlySession.open(reader_account(dovecot, tmp_path))) as session:
        examined = session.examine("INBOX")
    assert Examined(state.uidvalidity, 2, 1, state.highestmodseq, None) == examined


def test_a_large_message_comes_whole_in_pieces(dovecot: Dovecot, tmp_path: Path) -> None:
    for octets in (b"Subject: x\r\n\r\n" + b"y" * 3_000_000 + b"\r\n", b"S: x\r\n\r\n".ljust(2 * 1024 * 1024, b"z")):
        uid = dovecot.deliver("INBOX", octets)
        with contextlib.closing(ReadOnlySession.open(reader_account(dovecot, tmp_path))) as session:
            session.examine("INBOX")
            message = session.fetch_large(uid)
            assert message is not None
            assert octets == message.octets
            assert len(octets) == message.size
            assert octets.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" == message.header
            header = session.fetch_header(uid)
        assert header is not None
        assert header.octets is None
        assert message.header == header.header
        assert len(octets) == header.size


def test_a_header_ends_with_the_first_empty_line_however_its_lines_end(tmp_path: Path) -> None:
    ends = {
        1: (b"S: a\r\n\r\n", b"b\n\nc\r\n\r\n"),
        2: (b"S: a\n\n", b"b\r\n\r\nc\n\n"),
        3: (b"S: a\n\r\n\r\n", b"\n\n"),
        4: (b"S: a\n\n", b"b"),
        5: (b"S: a\r\nT: b\n", b""),
        6: (b"S: a\n\n", b""),
    }
    octets = {uid: header + body for uid, (header, body) in ends.items()}
    with scripted(ScriptedMailbox(octets), tmp_path, b"IMAP4rev1 AUTH=PLAIN") as (session, _):
        session.examine("INBOX")
        found = session.fetch_messages(list(octets))
    assert octets == {uid: message.octets for uid, message in found.items()}
    assert {uid: header for uid, (header, _) in ends.items()} == {uid: each.header for uid, each in found.items()}


def test_a_message_that_is_larger_than_it_was_said_to_be_gives_its_header_only(tmp_path: Path) -> None:
    piece = b"x" * (1024 * 1024)

    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        if b"BODY.PEEK[]<" in command:
            offset = command.split(b"<")[1].split(b".")[0]
            return [b"1 FETCH (UID 1 BODY[]<%b> {%d}\r\n" % (offset, len(piece)) + piece + b")"], b"OK done"
        if b"BODY.PEEK[HEADER]<0" in command:
            return [b'1 FETCH (UID 1 BODY[HEADER]<0> "Subject: endless")'], b"OK done"
        return ScriptedMailbox({1: b"Subject: endless\r\n\r\n"})(command)

    with scripted(answer, tmp_path, b"IMAP4rev1 AUTH=PLAIN") as (session, commands):
        session.examine("INBOX")
        message = session.fetch_large(1)
    assert message is not None
    assert (None, b"Subject: endless") == (message.octets, message.header)
    assert MAX_MESSAGE_OCTETS // len(piece) + 1 == sum(b"BODY.PEEK[]<" in command for command in commands)


def test_a_server_without_condstore_or_enabled_has_no_mod_sequences(tmp_path: Path) -> None:
    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        if command.startswith(b"EXAMINE"):
            state = [b"1 EXISTS", b"OK [UIDVALIDITY 7] x", b"OK [UIDNEXT 2] x", b"OK [HIGHESTMODSEQ 5] x"]
            return state, b"OK done"
        return [], b""

    with scripted(answer, tmp_path, b"IMAP4rev1 AUTH=PLAIN ENABLE CONDSTORE QRESYNC") as (session, _):
        assert session.examine("INBOX").highestmodseq is None


def test_uidnext_is_asked_by_status_where_examine_does_not_tell(tmp_path: Path) -> None:
    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        if command.startswith(b"EXAMINE"):
            return [b"1 EXISTS", b"OK [UIDVALIDITY 7] x"], b"OK [READ-ONLY] done"
        if command == b'STATUS "INBOX" (UIDNEXT)':
            return [b"STATUS INBOX (UIDNEXT 12)"], b"OK done"
        return [], b""

    with scripted(answer, tmp_path, b"IMAP4rev1 AUTH=PLAIN") as (session, _):
        assert Examined(7, 12, 1, None, None) == session.examine("INBOX")


def test_mailboxes_of_other_namespaces_are_asked_for_and_subscriptions_by_lsub(tmp_path: Path) -> None:
    answers = {
        b'LIST "" "*"': [b'LIST (\\HasNoChildren) "." INBOX'],
        b"NAMESPACE": [b'NAMESPACE (("INBOX." ".")) NIL (("#shared." "."))'],
        b'LIST "" "INBOX.*"': [],
        b'LIST "" "#shared.*"': [b'LIST (\\HasNoChildren) "." "#shared.shop.Incoming"'],
        b'LSUB "" "*"': [b'LSUB () "." "#shared.shop.Incoming"'],
    }

    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        return (answers[command], b"OK done") if command in answers else ([], b"")

    with scripted(answer, tmp_path, b"IMAP4rev1 AUTH=PLAIN NAMESPACE") as (session, _):
        found = {mailbox.name: mailbox.subscribed for mailbox in session.list_mailboxes()}
    assert {"INBOX": False, "#shared.shop.Incoming": True} == found


def test_many_uids_are_searched_for_in_windows_where_one_line_could_not_hold_them(tmp_path: Path) -> None:
    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        if command.startswith(b"UID SEARCH UID "):
            low, high = map(int, command.rpartition(b" ")[2].split(b":"))
            uids = b" ".join(b"%d" % uid for uid in range(low, min(high, 120_000) + 1))
            return [b"SEARCH " + uids], b"OK done"
        return [], b""

    with scripted(answer, tmp_path, b"IMAP4rev1 AUTH=PLAIN") as (session, commands):
        session._imap.state = "SELECTED"
        assert list(range(1, 120_001)) == session.uids(Examined(7, 120_001, 120_000, None, None))
    assert 3 == sum(command.startswith(b"UID SEARCH") for command in commands)


def test_whoever_waits_for_an_answer_is_interrupted_from_another_thread(dovecot: Dovecot, tmp_path: Path) -> None:
    for changes in ({}, {"tls": "none", "port": dovecot.port}):
        session = ReadOnlySession.open(reader_account(dovecot, tmp_path, **changes))
        dovecot.freeze("reader")
        try:
            interrupting = threading.Timer(0.05, session.interrupt)
            interrupting.start()
            with pytest.raises(ImapFailure):
                session.list_mailboxes()
            interrupting.join()
        finally:
            dovecot.thaw("reader")
        session.close()


def test_a_finished_session_stays_finished(dovecot: Dovecot, tmp_path: Path) -> None:
    session = ReadOnlySession.open(reader_account(dovecot, tmp_path))
    dovecot.kill_session("reader")
    for _ in range(2):
        with pytest.raises(ImapFailure):
            session.list_mailboxes()
    session.close()
