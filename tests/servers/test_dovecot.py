from __future__ import annotations

import hashlib
import imaplib
import os
import ssl
from datetime import UTC, datetime

import pytest

from tests.servers.dovecot import Dovecot, DovecotUnusableError
from tests.servers.dovecot_config import LOGINS, MAILBOXES, NON_ASCII_MAILBOX

MAIL = b"From: ann@example.org\r\nSubject: an order\r\nMessage-ID: <1@example.org>\r\n\r\nhello\r\n"
WHEN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


OWNER = "lrwstipekxa"


def rights(dovecot: Dovecot, login: str, mailbox: str) -> set[str]:
    """What MYRIGHTS says (RFC 4314 §3.5) but for the virtual `c` and `d`; none where the login may not even ask."""
    with dovecot.connect(login) as client:
        status, answer = client.myrights(mailbox)
    return set() if status == "NO" else set(answer[0].decode().split()[-1]) - {"c", "d"}


def moved_to(client: imaplib.IMAP4, uid: int, mailbox: str) -> int | None:
    """The new uid by COPYUID, or None where the server moved nothing."""
    client.response("COPYUID")
    client.uid("MOVE", str(uid), mailbox)
    (answer,) = client.response("COPYUID")[1]
    return None if answer is None else int(answer.split()[2])


@pytest.mark.parametrize("login", LOGINS)
def test_all_three_logins_see_the_one_mailbox(dovecot: Dovecot, login: str) -> None:
    uid = dovecot.deliver("Incoming", MAIL)
    with dovecot.connect(login) as client:
        client.select("Incoming", readonly=True)
        answer = client.uid("FETCH", str(uid), "(BODY.PEEK[])")[1][0]
    assert isinstance(answer, tuple)
    assert answer[1] == MAIL


def test_the_owner_finds_every_mailbox_of_the_recipe(dovecot: Dovecot) -> None:
    assert set(MAILBOXES) == set(dovecot.snapshot().mailboxes)


def test_a_mailbox_with_a_non_ascii_name_takes_mail(dovecot: Dovecot) -> None:
    uid = dovecot.deliver(NON_ASCII_MAILBOX, MAIL)
    assert uid == dovecot.snapshot()[NON_ASCII_MAILBOX].one().uid


def test_a_delivery_keeps_octets_flags_keywords_and_date(dovecot: Dovecot) -> None:
    dovecot.deliver("Incoming", MAIL, ["\\Flagged", "$label1"], WHEN)
    message = dovecot.snapshot()["Incoming"].one()
    assert hashlib.sha256(MAIL).hexdigest() == message.sha256
    assert (frozenset({"\\Flagged"}), frozenset({"$label1"})) == (message.flags, message.keywords)
    assert message.internaldate == WHEN
    assert message.recent


@pytest.mark.parametrize(
    ("login", "incoming", "destination", "elsewhere"),
    [("owner", OWNER, OWNER, OWNER), ("reader", "lr", "lr", "lr"), ("executor", "lrswite", "lrswite", "")],
)
def test_each_login_has_its_rights_and_no_others(
    dovecot: Dovecot, login: str, incoming: str, destination: str, elsewhere: str
) -> None:
    assert set(incoming) == rights(dovecot, login, "Incoming")
    assert set(destination) == rights(dovecot, login, "Processed") == rights(dovecot, login, "Escalate")
    assert set(elsewhere) == rights(dovecot, login, "Archive") == rights(dovecot, login, "INBOX")


def test_a_narrow_executor_has_its_rights_and_no_others(narrow_dovecot: Dovecot) -> None:
    assert set("lrte") == rights(narrow_dovecot, "executor", "Incoming")
    assert set("lrswi") == rights(narrow_dovecot, "executor", "Processed")
    assert set("lrswi") == rights(narrow_dovecot, "executor", "Escalate")
    assert set() == rights(narrow_dovecot, "executor", "Archive")


def test_the_reader_can_neither_move_nor_flag(dovecot: Dovecot) -> None:
    uid = dovecot.deliver("Incoming", MAIL)
    with dovecot.connect() as owner:
        # A SELECT, even the reader's, takes \Recent away; this one takes it before the first look.
        owner.select("Incoming")
    before = dovecot.snapshot()
    with dovecot.connect("reader") as client:
        # imaplib would give up on the READ-ONLY that the server answers here.
        client._simple_command("SELECT", "Incoming")
        client.state = "SELECTED"
        client.is_readonly = True
        assert client.uid("MOVE", str(uid), "Processed")[0] == "NO"
        # Dovecot answers OK to these and does nothing.
        client.uid("STORE", str(uid), "+FLAGS", "(\\Deleted \\Seen $label1)")
        client.uid("EXPUNGE", str(uid))
    assert before == dovecot.snapshot()


def test_a_wide_executor_moves_there_and_back_and_loses_nothing(dovecot: Dovecot) -> None:
    uid = dovecot.deliver("Incoming", MAIL, ["\\Seen", "\\Flagged", "\\Answered", "$label1"], WHEN)
    before = dovecot.snapshot()["Incoming"].one()
    with dovecot.connect("executor") as client:
        client.select("Incoming")
        there = moved_to(client, uid, "Processed")
        assert there is not None
        client.select("Processed")
        assert moved_to(client, there, "Incoming") == uid + 1
    after = dovecot.snapshot()
    assert after["Processed"].messages == {}
    message = after["Incoming"].one()
    assert (before.flags, before.keywords, before.internaldate, before.sha256) == (
        message.flags,
        message.keywords,
        message.internaldate,
        message.sha256,
    )


def test_a_narrow_executor_moves_there_with_all_flags_and_not_back(narrow_dovecot: Dovecot) -> None:
    uid = narrow_dovecot.deliver("Incoming", MAIL, ["\\Seen", "\\Flagged", "$label1"])
    with narrow_dovecot.connect("executor") as client:
        client.select("Incoming")
        there = moved_to(client, uid, "Processed")
        assert there is not None
        client.select("Processed")
        assert client.uid("MOVE", str(there), "Incoming")[0] == "NO"
    after = narrow_dovecot.snapshot()
    assert after["Incoming"].messages == {}
    assert frozenset({"\\Seen", "\\Flagged"}) == after["Processed"].one().flags
    assert frozenset({"$label1"}) == after["Processed"].one().keywords


def test_an_executor_cannot_move_outside_its_queue(dovecot: Dovecot) -> None:
    uid = dovecot.deliver("Incoming", MAIL)
    with dovecot.connect("executor") as client:
        client.select("Incoming")
        assert client.uid("MOVE", str(uid), "Archive")[0] == "NO"
    assert uid == dovecot.snapshot()["Incoming"].one().uid


def test_a_snapshot_changes_nothing_that_a_snapshot_sees(dovecot: Dovecot) -> None:
    dovecot.deliver("Incoming", MAIL, ["$label1"])
    dovecot.deliver("INBOX", MAIL)
    assert dovecot.snapshot() == dovecot.snapshot()


@pytest.mark.parametrize("change", ["flag", "seen", "recent", "subscription"])
def test_a_snapshot_sees_each_kind_of_change(dovecot: Dovecot, change: str) -> None:
    uid = dovecot.deliver("Incoming", MAIL)
    before = dovecot.snapshot()
    with dovecot.connect() as client:
        if change == "subscription":
            client.subscribe("Incoming")
        else:
            client.select("Incoming")
        if change == "flag":
            client.uid("STORE", str(uid), "+FLAGS", "($label2)")
        elif change == "seen":
            client.uid("FETCH", str(uid), "(BODY[])")
    assert before != dovecot.snapshot()


def test_the_command_log_holds_what_one_login_sent_and_only_that(dovecot: Dovecot) -> None:
    with dovecot.connect("reader") as reader, dovecot.connect("executor") as executor:
        reader.select("Incoming", readonly=True)
        executor.select("Processed")
        seen = [line.split(b" ", 1)[1] for line in dovecot.commands("reader")]
    login = f'LOGIN reader "{dovecot.passwords["reader"]}"'.encode()
    assert seen == [b"CAPABILITY", login, b"EXAMINE Incoming"]
    assert any(b"SELECT Processed" in line for line in dovecot.commands("executor"))


@pytest.mark.parametrize("way", ["tls", "starttls"])
def test_the_command_log_reads_through_tls(dovecot: Dovecot, way: str) -> None:
    trust = ssl.create_default_context(cafile=dovecot.ca_file)
    client: imaplib.IMAP4
    if way == "tls":
        client = imaplib.IMAP4_SSL("localhost", dovecot.tls_port, ssl_context=trust, timeout=30)
    else:
        client = imaplib.IMAP4("localhost", dovecot.port, timeout=30)
        client.starttls(trust)
    with client:
        client.authenticate("PLAIN", lambda _: f"\0reader\0{dovecot.passwords['reader']}".encode())
        client.select("Incoming", readonly=True)
        seen = dovecot.commands("reader")
    assert sum(b"EXAMINE Incoming" in line for line in seen) == 1


def test_a_restart_keeps_mail_ports_and_uidvalidity(dovecot: Dovecot) -> None:
    dovecot.deliver("Incoming", MAIL, ["$label1"])
    before = dovecot.snapshot()
    dovecot.stop()
    with pytest.raises(ConnectionRefusedError):
        dovecot.connect()
    dovecot.start()
    assert before == dovecot.snapshot()


def test_a_killed_session_ends_and_the_others_live_on(dovecot: Dovecot) -> None:
    with dovecot.connect("reader") as reader:
        executor = dovecot.connect("executor")
        assert len(dovecot.kill_session("executor")) == 1
        with pytest.raises((imaplib.IMAP4.abort, ConnectionResetError)):
            executor.noop()
        executor.shutdown()
        assert reader.noop()[0] == "OK"
        assert dovecot.session_pids("executor") == []


def test_a_log_of_an_earlier_process_of_the_same_pid_names_no_session(dovecot: Dovecot) -> None:
    with dovecot.connect("reader"):
        (pid,) = dovecot.session_pids("reader")
        earlier = dovecot.layout.rawlog("executor") / f"20260101-000000.{pid}.1.in"
        earlier.touch()
        os.utime(earlier, (1, 1))
        assert dovecot.session_pids("executor") == []
        earlier.unlink()


def test_a_lock_of_a_killed_process_holds_nobody_up_once_it_is_overridden(dovecot: Dovecot) -> None:
    dovecot.deliver("Incoming", MAIL)
    # As a process leaves it that is killed before it has written whose lock it is.
    lock = dovecot.layout.mail / "shop" / "Maildir" / ".Incoming" / "dovecot-uidlist.lock"
    lock.touch()
    dovecot.override_stale_locks()
    assert dovecot.deliver("Incoming", MAIL)


def test_a_frozen_session_runs_its_orphaned_command_when_it_thaws(dovecot: Dovecot) -> None:
    uid = dovecot.deliver("Incoming", MAIL)
    executor = dovecot.connect("executor")
    executor.select("Incoming")
    assert len(dovecot.freeze("executor")) == 1
    executor.send(f"x1 UID MOVE {uid} Processed\r\n".encode())
    executor.shutdown()
    assert uid == dovecot.snapshot()["Incoming"].one().uid
    dovecot.thaw("executor")
    dovecot.await_no_session("executor")
    assert len(dovecot.snapshot()["Processed"].messages) == 1


def test_a_server_with_a_frozen_session_still_stops(dovecot: Dovecot) -> None:
    executor = dovecot.connect("executor")
    dovecot.freeze("executor")
    dovecot.stop()
    executor.shutdown()
    dovecot.start()
    assert dovecot.session_pids("executor") == []


def test_a_machine_without_dovecot_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.servers.dovecot.shutil.which", lambda *_, **__: None)
    with pytest.raises(DovecotUnusableError, match="apt-get install -y dovecot-imapd"):
        Dovecot()


def test_no_other_user_reads_the_passwords_the_logs_or_the_mail(dovecot: Dovecot) -> None:
    at = dovecot.layout
    secret = (at.users, at.rawlog("reader").parent, at.mail, at.tls / "server.key")
    assert [0, 0, 0, 0] == [path.stat().st_mode & 0o077 for path in secret]
    assert dovecot.ca_file.stat().st_mode & 0o004
