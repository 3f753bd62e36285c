"""Servers that answer what Dovecot never does: no reply to a MOVE is believed further than it can be seen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from change_executor.connections import ANSWER_OCTETS, Connections
from change_executor.move_reply import Answer, CopyUid
from change_executor.mover import Mover
from shared.imap_login import ImapFailure, ImapLogin
from tests.fakes.imap_server import HOST, ScriptedImapServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import TypeAlias

    from change_executor.mover import MoveSession

    Script: TypeAlias = Callable[[bytes], tuple[list[bytes], bytes] | None]


def _selected(special: Script) -> Script:
    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        if command.startswith((b"SELECT", b"EXAMINE")):
            return [b"1 EXISTS", b"OK [UIDVALIDITY 7] here", b"OK [UIDNEXT 9] here"], b"OK [READ-WRITE] done"
        return special(command)

    return answer


def _move(tmp_path: Path, untagged: list[bytes], tagged: bytes) -> tuple[Answer, CopyUid | None]:
    def special(command: bytes) -> tuple[list[bytes], bytes] | None:
        return (untagged, tagged) if command.startswith(b"UID MOVE") else ([], b"")

    with ScriptedImapServer(_selected(special)) as server, _session(server, tmp_path) as session:
        session.select("Incoming")
        reply = session.move_one(3, "Processed")
        return reply.answer, reply.copyuid


@pytest.mark.parametrize(
    ("untagged", "tagged", "answer", "copyuid"),
    [
        # RFC 6851 §4.3: untagged; RFC 4315 §3: tagged
        ([b"OK [COPYUID 8 3 12] moved"], b"OK done", Answer.OK, CopyUid(8, 3, 12)),
        ([], b"OK [COPYUID 8 3 12] done", Answer.OK, CopyUid(8, 3, 12)),
        ([b"OK [COPYUID 8 3 12] moved", b"1 EXPUNGE"], b"OK done", Answer.OK, CopyUid(8, 3, 12)),
        # nothing to go by
        ([], b"OK done", Answer.OK, None),
        ([b"OK [COPYUID ] moved"], b"OK done", Answer.OK, None),
        ([b"OK [COPYUID 8 3:4 12:13] moved"], b"OK done", Answer.OK, None),
        ([b"OK [COPYUID 8 3 12] a", b"OK [COPYUID 8 3 13] b"], b"OK done", Answer.OK, None),
        ([b"OK [COPYUID eight 3 12] moved"], b"OK done", Answer.OK, None),
        # refused
        ([], b"NO [NOPERM] no", Answer.REFUSED, None),
        ([], b"NO [TRYCREATE] no", Answer.REFUSED, None),
        ([], b"BAD what", Answer.REFUSED, None),
        # neither
        ([b"BYE gone"], b"OK done", Answer.UNKNOWN, None),
        ([b"\x00\xff rubbish"], b"OK done", Answer.UNKNOWN, None),
    ],
)
def test_the_reply_to_a_move_is_told_as_it_is(
    tmp_path: Path, untagged: list[bytes], tagged: bytes, answer: Answer, copyuid: CopyUid | None
) -> None:
    assert (answer, copyuid) == _move(tmp_path, untagged, tagged)


def test_the_copyuid_of_an_earlier_move_is_not_taken_for_this_ones(tmp_path: Path) -> None:
    answers = iter([b"OK [COPYUID 8 3 12] done", b"OK done"])

    def special(command: bytes) -> tuple[list[bytes], bytes] | None:
        return ([], next(answers)) if command.startswith(b"UID MOVE") else ([], b"")

    with ScriptedImapServer(_selected(special)) as server, _session(server, tmp_path) as session:
        session.select("Incoming")
        assert session.move_one(3, "Processed").copyuid == CopyUid(8, 3, 12)
        assert session.move_one(4, "Processed").copyuid is None


def test_the_copyuid_of_a_refused_move_is_not_taken_for_the_next_ones(tmp_path: Path) -> None:
    # imaplib keeps what an answer held, whether or not the command succeeded.
    answers = iter([([b"OK [COPYUID 8 4 12] moved"], b"NO after all"), ([], b"OK done")])

    def special(command: bytes) -> tuple[list[bytes], bytes] | None:
        return next(answers) if command.startswith(b"UID MOVE") else ([], b"")

    with ScriptedImapServer(_selected(special)) as server, _session(server, tmp_path) as session:
        session.select("Incoming")
        assert session.move_one(4, "Processed").answer is Answer.REFUSED
        assert session.move_one(4, "Processed").copyuid is None


def test_without_the_capability_nothing_is_sent(tmp_path: Path) -> None:
    with (
        ScriptedImapServer(_selected(lambda _: ([], b"")), capabilities=b"IMAP4rev1 AUTH=PLAIN") as server,
        _session(server, tmp_path) as session,
    ):
        session.select("Incoming")
        assert session.move_one(3, "Processed").answer is Answer.NOTHING_SENT
        assert not [command for command in server.commands if b"MOVE" in command]


def test_a_mailbox_that_turned_read_only_gets_no_move(tmp_path: Path) -> None:
    def special(command: bytes) -> tuple[list[bytes], bytes] | None:
        return ([b"OK [READ-ONLY] now"], b"OK done") if command.startswith(b"STATUS") else ([], b"")

    with ScriptedImapServer(_selected(special)) as server, _session(server, tmp_path) as session:
        session.select("Incoming")
        with pytest.raises(ImapFailure):
            session.status("Processed")
        assert session.move_one(3, "Processed").answer is Answer.NOTHING_SENT
        assert not [command for command in server.commands if b"MOVE" in command]


@pytest.mark.parametrize(
    "answer",
    [
        [b"1 FETCH (UID 3 FLAGS () INTERNALDATE nonsense RFC822.SIZE 5 BODY[]<0> {5}\r\nhello)"],
        [b"1 FETCH (UID 3 FLAGS () RFC822.SIZE 5 BODY[]<0> {5}\r\nhello)"],
        [
            b'1 FETCH (UID 3 FLAGS () INTERNALDATE "01-Jan-%d 00:00:00 +0000" RFC822.SIZE 5 BODY[]<0> {5}\r\nhello)'
            % 10**30
        ],
        [b"1 FETCH (UID 3 FLAGS " + b"(" * 50_000 + b")" * 50_000 + b")"],
        [b"1 FETCH (UID 3 BODY[]<0> (1 2))"],
        [b"1 FETCH (UID 3"],
        [
            b'1 FETCH (UID 3 FLAGS () INTERNALDATE "01-Jan-2026 00:00:00 +0000" BODY[]<0> {1048577}\r\n'
            + b"x" * 1048577
            + b")"
        ],
    ],
)
def test_a_message_answered_against_the_protocol_is_a_failure_and_no_absence(
    tmp_path: Path, answer: list[bytes]
) -> None:
    def special(command: bytes) -> tuple[list[bytes], bytes] | None:
        return (answer, b"OK done") if command.startswith(b"UID FETCH") else ([], b"")

    with ScriptedImapServer(_selected(special)) as server, _session(server, tmp_path) as session:
        session.examine("Incoming")
        with pytest.raises(ImapFailure):
            session.fetch(3)


# RFC 9051 §9 (nz-number): nothing can be asked from the UID 0 on, so that a doubt could never be looked into.
@pytest.mark.parametrize("uidnext", [b"4294967297", b"1" + b"0" * 30, b"-1", b"0"])
def test_a_number_that_imap_does_not_have_is_a_failure(tmp_path: Path, uidnext: bytes) -> None:
    # Past 64 bits the journal could not hold it, and the claimed proposal would be tried for ever.
    def special(command: bytes) -> tuple[list[bytes], bytes] | None:
        told = b"STATUS Processed (MESSAGES 1 UIDNEXT " + uidnext + b" UIDVALIDITY 7)"
        return ([told], b"OK done") if command.startswith(b"STATUS") else ([], b"")

    with (
        ScriptedImapServer(_selected(special)) as server,
        _session(server, tmp_path) as session,
        pytest.raises(ImapFailure),
    ):
        session.status("Processed")


def test_an_answer_that_never_ends_is_refused_long_before_it_costs_the_page_its_time(tmp_path: Path) -> None:
    def special(command: bytes) -> tuple[list[bytes], bytes] | None:
        return ([b"1 EXISTS"] * 800_000, b"OK done") if command.startswith(b"UID FETCH") else ([], b"")

    with ScriptedImapServer(_selected(special)) as server, _session(server, tmp_path) as session:
        session.examine("Incoming")
        with pytest.raises(ImapFailure, match=f"an answer of more than {ANSWER_OCTETS} octets"):
            session.has(3)


def test_a_message_that_vanishes_between_its_pieces_is_absent(tmp_path: Path) -> None:
    piece = b"x" * 1048576
    head = (
        b'1 FETCH (UID 3 FLAGS () INTERNALDATE "01-Jan-2026 00:00:00 +0000" RFC822.SIZE 2000000 BODY[]<0> {1048576}\r\n'
    )

    def special(command: bytes) -> tuple[list[bytes], bytes] | None:
        if command.startswith(b"UID FETCH") and b"<0." in command:
            return [head + piece + b")"], b"OK done"
        return [], b"OK done" if command.startswith(b"UID FETCH") else b""

    with ScriptedImapServer(_selected(special)) as server, _session(server, tmp_path) as session:
        session.examine("Incoming")
        assert session.fetch(3) is None


def test_flags_that_come_unasked_are_no_sign_of_a_message(tmp_path: Path) -> None:
    def special(command: bytes) -> tuple[list[bytes], bytes] | None:
        # Of the third message, whatever its UID is.
        return ([b"3 FETCH (FLAGS (\\Seen))"], b"OK done") if command.startswith(b"UID FETCH") else ([], b"")

    with ScriptedImapServer(_selected(special)) as server, _session(server, tmp_path) as session:
        session.examine("Incoming")
        assert not session.has(3)
        assert session.fetch(3) is None


def test_the_last_message_named_by_a_star_is_dropped(tmp_path: Path) -> None:
    def special(command: bytes) -> tuple[list[bytes], bytes] | None:
        return ([b"SEARCH 8"], b"OK done") if command.startswith(b"UID SEARCH") else ([], b"")

    with ScriptedImapServer(_selected(special)) as server, _session(server, tmp_path) as session:
        session.examine("Incoming")
        assert [] == session.uids_from(9)
        assert [8] == session.uids_from(8)
        assert any(re.fullmatch(rb"UID SEARCH UID 9:\*", command) for command in server.commands)


def _session(server: ScriptedImapServer, folder: Path) -> AbstractContextManager[MoveSession]:
    (folder / "secret").write_text("secret")
    (folder / "secret").chmod(0o600)
    (folder / "secret").chmod(0o600)
    login = ImapLogin(
        id="move", host=HOST, port=server.port, tls="none", user="executor", secret_file=folder / "secret"
    )
    return Mover(Connections()).session(login, ["Incoming", "Processed"])
