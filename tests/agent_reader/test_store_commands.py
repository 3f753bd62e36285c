"""`agent-reader status` and `agent-reader forget`, as commands beside a reader that runs or does not."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_reader.commands.status_report import account_report, lines
from agent_reader.store import Store
from agent_reader.store.forgetting import accounts_with_files, forget_files
from agent_reader.sync.mirror import SetAside
from tests.agent_reader import synced
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, blank_out, expect, fetched, letter, listed, mirrored
from tests.fakes.reader_process import DEADLINE, REPOSITORY, ReaderFolder

if TYPE_CHECKING:
    from tests.servers.dovecot import Dovecot


@pytest.fixture
def folder(dovecot: Dovecot, tmp_path: Path) -> ReaderFolder:
    return ReaderFolder(tmp_path, dovecot)


def mail(subject: str) -> bytes:
    return f"Subject: {subject}\r\nMessage-ID: <{subject}@x>\r\n\r\nthe secret of {subject}\r\n".encode()


def report_of(account: Mirrored, daily_octets: int | None = None) -> list[str]:
    report = account_report(
        ACCOUNT,
        account.store.status(ACCOUNT),
        account.store.progress(ACCOUNT),
        is_fresh=account.store.account_status(ACCOUNT).fresh,
        daily_octets=daily_octets,
    )
    assert report.model_dump_json(by_alias=True)
    return list(lines(report, account.clock.now))


def test_the_status_of_a_whole_index_is_said_by_mailbox_to_people_and_to_programs(folder: ReaderFolder) -> None:
    for subject in ("one", "two"):
        folder.dovecot.deliver("Incoming", mail(subject))
    assert "shop: never synced" in folder.command("status").stdout
    with folder.serve() as reader:
        reader.await_event("sync:round", whole=True)
        text = folder.command("status").stdout
        (account,) = json.loads(folder.command("status", "--json").stdout)["accounts"]
        assert 0 == reader.end(by_signal=signal.SIGTERM)
    (file,) = folder.folder.rglob("mail-*.db")
    blank_out(file, "copies")
    assert "index_damaged: The file of the index is damaged" in folder.command("status").stdout
    assert "shop: fresh, 2 messages, last whole sync " in text
    assert "  Incoming: 2 of 2, looked at " in text
    assert (account["account"], account["isFresh"], account["isFirstSync"]) == ("shop", True, False)
    assert (account["messages"], account["expected"], account["secondsLeft"], account["failure"]) == (2, 2, 0, None)
    (incoming,) = [each for each in account["mailboxes"] if each["name"] == "Incoming"]
    assert (incoming["messages"], incoming["expected"], incoming["setAside"], incoming["failure"]) == (2, 2, 0, None)
    assert datetime.fromisoformat(incoming["lookedAt"]) <= datetime.now(UTC)


def test_a_first_sync_is_a_bar_with_counts_rate_and_the_time_left_under_the_limit_of_a_day(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        account.expect("INBOX", 100)
        octets = letter("x" * 9_000)
        account.clock.now += timedelta(seconds=10)
        account.add("INBOX", *(fetched(uid, octets + b"%d" % uid) for uid in range(1, 26)))
        # More than a day may have; the other 75 messages are seven days' worth, none of it today.
        account.mirror.received(25 * len(octets))
        text = "\n".join(report_of(account))
        assert "[#######-----------------------] 25%, 25 of 100, 2.5 a second, 30 s left" in text
        text = "\n".join(report_of(account, daily_octets=100_000))
        assert "0 of 0 MB of the day's limit used" in text
        assert "6 days" in text
        account.end_round()
        account.expect("INBOX", 25)
        assert "#" not in "\n".join(report_of(account))


def test_what_failed_and_what_was_set_aside_is_said_with_its_mend(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX", "Bad\x1b[2J")
        account.mirror.failed("unreachable", "Nobody answers.", "Wait for it.")
        account.mirror.mailbox_failed(account.handle("Bad\x1b[2J"), "noperm", "NO [NOPERM]", "Look at the rights.")
        account.mirror.put_aside(account.handle("INBOX"), SetAside(7, "message_refused", "NO", "Look at the message."))
        text = "\n".join(report_of(account))
        for said in (
            "unreachable: Nobody answers.",
            "Wait for it.",
            "noperm: NO [NOPERM]",
            "Look at the rights.",
            "set aside: UID 7 in INBOX: message_refused: NO Look at the message.",
        ):
            assert said in text
        assert "\x1b" not in text


def test_forgetting_is_refused_while_the_reader_runs_and_then_leaves_nothing(folder: ReaderFolder) -> None:
    folder.dovecot.deliver("INBOX", mail("private"))
    with folder.serve() as reader:
        reader.await_event("sync:round", whole=True)
        refused = folder.command("forget", "shop", "--yes")
        assert 2 == refused.returncode
        assert "another agent-reader is running" in refused.stderr
        assert 0 == reader.end(by_signal=signal.SIGTERM)
    store = folder.folder / "store"
    assert accounts_with_files(store) == ["shop"]
    assert 2 == folder.command("forget", "other", "--yes").returncode
    done = folder.command("forget", "shop", "--yes")
    assert (0, True) == (done.returncode, "is gone" in done.stdout), done.stderr
    assert not list(store.glob("mail-shop*"))
    assert b"shop" not in (store / "logins.json").read_bytes()
    assert "there is no index" in folder.command("forget", "shop", "--yes").stderr
    with folder.serve() as reader:
        assert 1 == reader.await_event("sync:round", whole=True)["taken_in"]
        assert 0 == reader.end(by_signal=signal.SIGTERM)


def test_a_second_reader_on_one_store_refuses_and_says_so(folder: ReaderFolder) -> None:
    with folder.serve() as reader:
        reader.address()
        second = folder.command("serve")
        assert 2 == second.returncode
        assert "another agent-reader is running on" in second.stderr
        assert 0 == reader.end(by_signal=signal.SIGTERM)


def test_a_forgotten_file_was_overwritten_and_a_link_is_not_followed(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        account.add("INBOX", fetched(1, letter("unforgettable")))
    path = tmp_path / "store" / f"mail-{ACCOUNT}.db"
    kept = tmp_path / "the same octets"
    kept.hardlink_to(path)
    precious = tmp_path / "precious"
    precious.write_text("of somebody else")
    link = path.with_name(path.name + "-journal")
    link.symlink_to(precious)
    with pytest.raises(OSError):  # noqa: PT011 - ELOOP, whatever the system calls it
        forget_files(tmp_path / "store", ACCOUNT)
    assert precious.read_text() == "of somebody else"
    link.unlink()
    assert set(kept.read_bytes()) == {0}
    assert not path.exists()


def test_a_first_sync_is_followed_until_it_is_whole(dovecot: Dovecot, tmp_path: Path) -> None:
    folder = ReaderFolder(tmp_path, dovecot)
    store = Store(tmp_path / "store", lambda: datetime.now(UTC))
    with contextlib.closing(store):
        mirror = store.account("shop")
        mirror.put_mailboxes([listed("INBOX")])
        (inbox,) = mirror.mailboxes()
        mirror.restart(inbox.id, 1)
        expect(mirror, inbox.id, 2)
        synced.add(mirror, inbox.id, [fetched(1, letter("one"))])
        command = [sys.executable, "-m", "agent_reader", "status", "--follow", "--config", str(folder.config)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as following:
            assert following.stdout is not None
            assert "0 messages" not in following.stdout.readline()
            assert "50%, 1 of 2" in following.stdout.readline()
            synced.add(mirror, inbox.id, [fetched(2, letter("two"))])
            mirror.looked(inbox.id, 3, None)
            mirror.settle()
            rest = following.stdout.read()
            assert 0 == following.wait(DEADLINE)
    assert "INBOX: 2 of 2" in rest.splitlines()[-1]
