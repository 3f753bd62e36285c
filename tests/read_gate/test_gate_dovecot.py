"""Behind the gate lies the owner's login, which may do everything; through it nothing is changed, and all is read."""

from __future__ import annotations

import contextlib
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.architecture.test_reader_guard import PERMITTED, REFUSED
from tests.end_to_end.houses import eventually
from tests.fakes.gate_process import LOCAL_SECRET, ByHand, GateFolder
from tests.fakes.reader_process import ReaderFolder, subjects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fakes.gate_process import GateProcess
    from tests.servers.dovecot import Dovecot

_CHANGING = re.compile(
    rb"\b(STORE|MOVE|COPY|EXPUNGE|APPEND|CREATE|DELETE|RENAME|SELECT|CLOSE|SETACL|SUBSCRIBE|UNSUBSCRIBE|REPLACE)\b"
)


SIGN_IN = f'LOGIN "shop" "{LOCAL_SECRET}"'.encode()


def mail(subject: str) -> bytes:
    return f"From: a@example.org\r\nSubject: {subject}\r\nMessage-ID: <{subject}@x>\r\n\r\nbody of it\r\n".encode()


def folder_of(dovecot: Dovecot, at: Path, **gate: object) -> GateFolder:
    settings: dict[str, object] = {
        "host": dovecot.host,
        "port": dovecot.tls_port,
        "user": "owner",
        "ca_file": str(dovecot.ca_file),
    }
    at.mkdir(exist_ok=True)
    return GateFolder(at, settings, dovecot.passwords["owner"], dict(gate))


@pytest.fixture
def gate(dovecot: Dovecot, tmp_path: Path) -> Iterator[GateProcess]:
    with folder_of(dovecot, tmp_path / "gate").serve() as process:
        yield process


def reader_behind(dovecot: Dovecot, port: int, at: Path) -> ReaderFolder:
    at.mkdir(exist_ok=True)
    (at / "secret").write_text(LOCAL_SECRET)
    return ReaderFolder(at, dovecot, {"port": port, "tls": "none", "user": "shop"})


def said_by_owner(dovecot: Dovecot) -> list[bytes]:
    return dovecot.commands("owner")


def test_with_the_owners_login_behind_it_no_hostile_command_changes_anything(
    dovecot: Dovecot, gate: GateProcess
) -> None:
    dovecot.deliver("INBOX", mail("one"))
    before = dovecot.snapshot()
    told = len(said_by_owner(dovecot))
    port = gate.port()
    pipelined = [
        b'A1 EXAMINE "INBOX"\r\nA2 UID STORE 1 +FLAGS (\\Deleted)\r\n',
        b"A1 NOOP\r\nA2 EXPUNGE\r\n",
        b'A1 UID FETCH 1 (BODY.PEEK[])\r\nA2 UID MOVE 1 "Trash"\r\n',
        b"A1 IDLE\r\nDONE\r\nA2 EXPUNGE\r\n",
        b"A1 IDLE\r\nA2 UID STORE 1 +FLAGS (\\Seen)\r\n",
    ]
    for octets in [line + b"\r\n" for line in REFUSED] + pipelined:
        with ByHand(port) as by_hand:
            assert by_hand.sign_in()[-1].startswith(b"t0 OK")
            assert by_hand.ask(b'EXAMINE "INBOX"')[-1].startswith(b"t1 OK")
            by_hand.say(octets)
            assert by_hand.rest().endswith(b"* BYE refused by the gate\r\n") or b"\n" not in octets[:-2], octets
        gate.await_event("gate:refused")
    # A second login after the first would be somebody else's.
    for again in (b'LOGIN "owner" "' + dovecot.passwords["owner"].encode() + b'"', b"AUTHENTICATE PLAIN", b"STARTTLS"):
        with ByHand(port) as by_hand:
            by_hand.sign_in()
            assert by_hand.ask(again)[-1] == b"* BYE refused by the gate\r\n"
    assert before == dovecot.snapshot()
    of_gate = [line for line in said_by_owner(dovecot)[told:] if _CHANGING.search(line)]
    assert [] == of_gate


def test_what_reads_passes_word_by_word(dovecot: Dovecot, gate: GateProcess) -> None:
    dovecot.deliver("INBOX", mail("one"))
    port = gate.port()
    signing_in = re.compile(rb"A1 (LOGIN|AUTHENTICATE|STARTTLS|LOGOUT|IDLE|ENABLE|NOTIFY|ID)")
    with ByHand(port) as by_hand:
        by_hand.sign_in()
        by_hand.ask(b'EXAMINE "INBOX"')
        for line in PERMITTED:
            if not signing_in.match(line):
                assert by_hand.ask(line[3:], b"A1")[-1].startswith((b"A1 OK", b"A1 NO", b"A1 BAD")), line
        whole = b"".join(by_hand.ask(b"UID FETCH 1:* (UID BODY.PEEK[])"))
        # What EXAMINE left closed above is opened again by the last of the table; the body comes octet by octet.
        by_hand.ask(b'EXAMINE "INBOX"')
        whole = b"".join(by_hand.ask(b"UID FETCH 1:* (UID BODY.PEEK[])"))
        assert mail("one") in whole
        assert by_hand.ask(b"LOGOUT")[-1].startswith(b"t1 OK")


def test_a_whole_reader_syncs_listens_and_comes_back_through_it(
    dovecot: Dovecot, gate: GateProcess, tmp_path: Path
) -> None:
    dovecot.deliver("INBOX", mail("hello"))
    folder = reader_behind(dovecot, gate.port(), tmp_path / "reader")
    token = folder.token()
    before = dovecot.snapshot()
    told = len(said_by_owner(dovecot))
    with folder.serve() as reader:
        address = reader.address()
        reader.await_event("sync:round", whole=True)
        assert {"hello"} == subjects(address, token)
        dovecot.deliver("Incoming", mail("news"))
        reader.await_event("sync:round", taken_in=1)
        # The connection behind the gate dies; the reader makes another.
        gate_sessions = dovecot.kill_session("owner")
        assert gate_sessions
        dovecot.deliver("Archive", mail("after the accident"))
        reader.await_event("sync:round", taken_in=1)
        assert {"hello", "news", "after the accident"} == subjects(address, token)
        assert 0 == reader.end(by_signal=signal.SIGTERM)
    # Started again it asks for what changed since.
    dovecot.deliver("INBOX", mail("while it was away"))
    with folder.serve() as reader:
        address = reader.address()
        reader.await_event("sync:round", taken_in=1)
        assert 4 == len(subjects(address, token))
        assert 0 == reader.end(by_signal=signal.SIGTERM)
    after = dovecot.snapshot()
    assert before["Trash"] == after["Trash"]
    said = said_by_owner(dovecot)[told:]
    for verb in (
        rb"ENABLE QRESYNC",
        rb"EXAMINE .*\(QRESYNC",
        rb"IDLE$",
        rb"NOTIFY SET",
        rb"UID FETCH .*BODY\.PEEK\[\]",
    ):
        assert any(re.search(verb, line) for line in said), verb
    assert not [line for line in said if _CHANGING.search(line) and b"APPEND" not in line and b"LOGIN" not in line]
    for secret in (dovecot.passwords["owner"], LOCAL_SECRET, "hello", "body of it"):
        assert secret not in gate.text


def test_the_real_secret_is_nowhere_at_the_readers(dovecot: Dovecot, gate: GateProcess, tmp_path: Path) -> None:
    folder = reader_behind(dovecot, gate.port(), tmp_path / "reader")
    with folder.serve() as reader:
        reader.address()
        environment = f"/proc/{reader.process.pid}/environ"
        with Path(environment).open("rb") as told:
            assert dovecot.passwords["owner"].encode() not in told.read()
        assert 0 == reader.end(by_signal=signal.SIGTERM)
    for path in (tmp_path / "reader").rglob("*"):
        if path.is_file():
            assert dovecot.passwords["owner"].encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    ("user", "secret"), [("shop", "x" * 46), ("other", LOCAL_SECRET), ("owner", LOCAL_SECRET), ("shop", "")]
)
def test_a_wrong_local_secret_opens_nothing(dovecot: Dovecot, gate: GateProcess, user: str, secret: str) -> None:
    told = len(said_by_owner(dovecot))
    with ByHand(gate.port()) as by_hand:
        assert by_hand.sign_in(user, secret) == [
            b"t0 NO [AUTHENTICATIONFAILED] not the gate's secret for this account\r\n"
        ]
        assert by_hand.rest() == b""
    with ByHand(gate.log[-1]["port"]) as by_hand:
        by_hand.hear()
        assert by_hand.ask(b'EXAMINE "INBOX"')[-1].startswith(b"* BYE refused")
    assert told == len(said_by_owner(dovecot))


def test_a_wrong_login_behind_the_gate_is_told_as_the_gates(dovecot: Dovecot, tmp_path: Path) -> None:
    behind = folder_of(dovecot, tmp_path / "gate")
    behind.password = "not the password"
    with behind.serve() as gate, ByHand(gate.port()) as by_hand:
        assert by_hand.sign_in()[-1] == b"t0 NO [AUTHENTICATIONFAILED] the gate's own login: login_refused\r\n"
        gate.await_event("gate:login_failed", code="login_refused")
        assert "not the password" not in gate.text


def test_all_places_taken_by_those_who_say_nothing_are_told_and_given_back(dovecot: Dovecot, tmp_path: Path) -> None:
    with folder_of(dovecot, tmp_path / "gate", max_connections=12).serve() as gate:
        port = gate.port()
        with contextlib.ExitStack() as held:
            silent = [held.enter_context(ByHand(port)) for _ in range(11)]
            for each in silent:
                assert each.hear().startswith(b"* OK")
                each.say(b"t")
            # Who is slow holds up nobody.
            with ByHand(port) as by_hand:
                assert by_hand.sign_in()[-1].startswith(b"t0 OK")
                with ByHand(port) as one_too_many:
                    assert one_too_many.hear() == b"* BYE [UNAVAILABLE] too many connections\r\n"
                assert by_hand.ask(b"NOOP")[-1].startswith(b"t1 OK")
        gate.await_event("gate:not_signed_in")
        for _ in range(3 * 12):
            # A place is free when its thread has seen the end, which nobody hears of.
            eventually(lambda: is_let_in(port), "a place to be given back")
        assert 0 == gate.end(by_signal=signal.SIGTERM)


def is_let_in(port: int) -> bool:
    with ByHand(port) as by_hand:
        return by_hand.hear().startswith(b"* OK") and by_hand.ask(SIGN_IN)[-1].startswith(b"t1 OK")


def test_it_ends_when_told_with_connections_open(dovecot: Dovecot, gate: GateProcess) -> None:
    with ByHand(gate.port()) as by_hand:
        by_hand.sign_in()
        by_hand.ask(b'EXAMINE "INBOX"')
        by_hand.say(b"t2 IDLE\r\n")
        assert by_hand.hear().startswith(b"+")
        assert 0 == gate.end(by_signal=signal.SIGTERM)
        assert "gate:ended" in gate.text
        assert b"refused" not in by_hand.rest()
