"""What the reader and the executor meet on the demo's server, through the library that they use; and its process."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from imapclient import IMAPClient

from deploy.demo.mailbox import MAILBOXES, messages
from deploy.demo.roles import Role
from tests.demo.conftest import DEADLINE_SECONDS, NOW, DemoProcess, password, running, started, write_secrets

SAMPLE = messages(NOW)
INCOMING = [message for message in SAMPLE if message.mailbox == "Incoming"]


@pytest.fixture
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoProcess]:
    yield from running(tmp_path_factory.mktemp("secrets"))


def client_of(demo: DemoProcess, role: Role) -> IMAPClient:
    client = IMAPClient("127.0.0.1", demo.port, ssl=False, timeout=DEADLINE_SECONDS)
    client.login(role.value, password(role))
    return client


@pytest.fixture
def reader(demo: DemoProcess) -> Iterator[IMAPClient]:
    with client_of(demo, Role.READER) as client:
        yield client


def test_the_capabilities_that_clients_choose_by(reader: IMAPClient) -> None:
    offered = set(reader.capabilities())
    assert offered >= {b"MOVE", b"UIDPLUS", b"IDLE", b"UNSELECT", b"OBJECTID"}
    assert not offered & {b"CONDSTORE", b"QRESYNC", b"ENABLE", b"ESEARCH", b"ACL", b"STARTTLS"}


def test_the_mailboxes_are_listed(reader: IMAPClient) -> None:
    assert set(MAILBOXES) == {name for _, _, name in reader.list_folders()}


def test_special_uses_are_shown(reader: IMAPClient) -> None:
    uses = {name: set(flags) & {rb"\Archive", rb"\Sent", rb"\Trash"} for flags, _, name in reader.list_folders()}
    assert {name: use for name, use in uses.items() if use} == {
        "Archive": {rb"\Archive"},
        "Sent": {rb"\Sent"},
        "Trash": {rb"\Trash"},
    }


def test_status_and_examine_agree(reader: IMAPClient) -> None:
    status = reader.folder_status("Incoming", ["MESSAGES", "UIDNEXT", "UIDVALIDITY"])
    examined = reader.select_folder("Incoming", readonly=True)
    assert len(INCOMING) == status[b"MESSAGES"] == examined[b"EXISTS"]
    assert status[b"UIDNEXT"] == examined[b"UIDNEXT"]
    assert status[b"UIDVALIDITY"] == examined[b"UIDVALIDITY"]
    assert examined[b"READ-ONLY"]
    assert examined[b"PERMANENTFLAGS"] == ()


def test_no_two_mailboxes_share_a_uidvalidity(reader: IMAPClient) -> None:
    found = {reader.folder_status(name, ["UIDVALIDITY"])[b"UIDVALIDITY"] for name in MAILBOXES}
    assert len(MAILBOXES) == len(found)


def test_uids_are_the_same_for_every_login_and_connection(demo: DemoProcess) -> None:
    found = []
    for role in (*Role, Role.READER):
        with client_of(demo, role) as client:
            client.select_folder("Incoming", readonly=True)
            found.append(client.search("ALL"))
    assert found[0]
    assert all(found[0] == uids for uids in found)


def test_octets_flags_and_dates_are_those_of_the_sample(reader: IMAPClient) -> None:
    for name in MAILBOXES:
        reader.select_folder(name, readonly=True)
        uids = reader.search("ALL")
        found = reader.fetch(uids, ["FLAGS", "INTERNALDATE", "RFC822.SIZE", "BODY.PEEK[]"])
        expected = [message for message in SAMPLE if message.mailbox == name]
        assert [message.octets for message in expected] == [found[uid][b"BODY[]"] for uid in uids]
        assert [len(message.octets) for message in expected] == [found[uid][b"RFC822.SIZE"] for uid in uids]
        flags = [{flag.decode() for flag in found[uid][b"FLAGS"]} - {r"\Recent"} for uid in uids]
        assert [set(message.flags) for message in expected] == flags
        # imapclient gives the local time without its offset.
        dates = [found[uid][b"INTERNALDATE"].astimezone() for uid in uids]
        assert [message.received for message in expected] == dates


def test_a_search_from_a_uid_upwards_finds_the_last_message_even_past_the_end(reader: IMAPClient) -> None:
    reader.select_folder("Incoming", readonly=True)
    uids = reader.search("ALL")
    assert uids[-3:] == reader.search(["UID", f"{uids[-3]}:*"])
    assert uids[-1:] == reader.search(["UID", f"{uids[-1] + 1000}:*"])


def test_a_part_of_a_message_can_be_fetched_by_offset(reader: IMAPClient) -> None:
    reader.select_folder("Incoming", readonly=True)
    uid = reader.search("ALL")[0]
    octets = INCOMING[0].octets
    assert octets == reader.fetch(uid, ["BODY.PEEK[]<0.1048576>"])[uid][b"BODY[]<0>"]
    assert octets[100:150] == reader.fetch(uid, ["BODY.PEEK[]<100.50>"])[uid][b"BODY[]<100>"]
    assert b"" == reader.fetch(uid, ["BODY.PEEK[]<1048576.1048576>"])[uid][b"BODY[]<1048576>"]


def test_a_uid_that_is_not_there_gives_nothing(reader: IMAPClient) -> None:
    reader.select_folder("Incoming", readonly=True)
    assert {} == reader.fetch(999_999, ["FLAGS"])


def test_unselect_close_id_and_noop_pass(reader: IMAPClient) -> None:
    reader.select_folder("Incoming", readonly=True)
    reader.unselect_folder()
    reader.select_folder("Incoming", readonly=True)
    reader.close_folder()
    reader.id_({"name": "mailwarrant"})
    reader.noop()


def test_a_move_answers_copyuid_and_keeps_the_emailid(scratch: DemoProcess) -> None:
    with client_of(scratch, Role.EXECUTOR) as executor:
        target = executor.folder_status("Processed", ["UIDNEXT", "UIDVALIDITY"])
        executor.select_folder("Incoming")
        uid = executor.search("ALL")[0]
        email_id = executor.fetch(uid, ["EMAILID"])[uid][b"EMAILID"]
        executor.move(uid, "Processed")
        _, copied = executor._imap.response("COPYUID")
        assert copied == [f"{target[b'UIDVALIDITY']} {uid} {target[b'UIDNEXT']}".encode()]
        executor.select_folder("Processed")
        new_uid = target[b"UIDNEXT"]
        assert email_id == executor.fetch(new_uid, ["EMAILID"])[new_uid][b"EMAILID"]


def test_a_move_of_a_uid_that_is_gone_is_ok_without_copyuid(scratch: DemoProcess) -> None:
    with client_of(scratch, Role.EXECUTOR) as executor:
        executor.select_folder("Incoming")
        executor.move(999_999, "Processed")
        assert executor._imap.response("COPYUID") == ("COPYUID", [None])


def test_an_idling_reader_is_told_of_a_move(scratch: DemoProcess) -> None:
    with client_of(scratch, Role.READER) as idling, client_of(scratch, Role.EXECUTOR) as executor:
        idling.select_folder("Incoming", readonly=True)
        idling.idle()
        executor.select_folder("Incoming")
        executor.move(executor.search("ALL")[0], "Processed")
        assert (1, b"EXPUNGE") in idling.idle_check(timeout=DEADLINE_SECONDS)
        idling.idle_done()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_although_a_client_idles(scratch: DemoProcess, number: signal.Signals) -> None:
    client = client_of(scratch, Role.READER)
    client.select_folder("INBOX", readonly=True)
    client.idle()
    scratch.process.send_signal(number)
    assert scratch.process.wait(DEADLINE_SECONDS) == 0
    assert scratch.process.stderr is not None
    assert scratch.process.stderr.read() == b""
    client.shutdown()


def test_ready_is_one_line_of_json_without_a_secret(tmp_path: Path) -> None:
    process = started(write_secrets(tmp_path))
    assert process.stdout is not None
    line = process.stdout.readline()
    process.terminate()
    rest, complaints = process.communicate(timeout=DEADLINE_SECONDS)
    assert (b"", b"") == (rest, complaints)
    assert {"host", "port", "messages"} == set(json.loads(line))
    assert b"pass-phrase" not in line


def failed(folder: Path, *arguments: str) -> tuple[int, str]:
    process: subprocess.Popen[bytes] = started(folder, *arguments)
    _, complaints = process.communicate(timeout=DEADLINE_SECONDS)
    return process.returncode, complaints.decode()


def test_a_missing_secret_is_named(tmp_path: Path) -> None:
    write_secrets(tmp_path)
    (tmp_path / "reader").unlink()
    status, complaint = failed(tmp_path)
    assert status == 2
    assert str(tmp_path / "reader") in complaint


def test_an_empty_secret_is_named(tmp_path: Path) -> None:
    write_secrets(tmp_path)
    (tmp_path / "executor").write_text("\n")
    status, complaint = failed(tmp_path)
    assert status == 2
    assert "executor is empty" in complaint


def test_a_taken_port_is_refused(demo: DemoProcess, tmp_path: Path) -> None:
    status, complaint = failed(write_secrets(tmp_path), "--port", str(demo.port))
    assert status == 2
    assert str(demo.port) in complaint


def test_a_present_without_an_offset_is_refused(tmp_path: Path) -> None:
    status, complaint = failed(write_secrets(tmp_path), "--now", "2026-11-29T10:00:00")
    assert status == 2
    assert "+00:00" in complaint
