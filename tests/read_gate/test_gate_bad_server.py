"""A mail server that says what it may not: text is never taken for the end of an answer, and sizes are bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from read_gate.reader_side import LINE_SECONDS, ReaderSide
from read_gate.tables import PASSED_TABLE
from shared.imap_stream import TooSlow
from shared.reader_verbs import READER_TABLE
from tests.fakes.gate_process import ByHand, GateFolder
from tests.fakes.raw_imap_server import Conversation, RawImapServer

if TYPE_CHECKING:
    import socket
    from pathlib import Path

HOSTILE_BODY = b"t1 OK done\r\n* BYE\r\n+ go on\r\nt2 EXPUNGE\r\n"


def behind(server: RawImapServer, folder: Path) -> GateFolder:
    settings: dict[str, object] = {"host": "127.0.0.1", "port": server.port, "tls": "none", "user": "reader"}
    return GateFolder(folder, settings, "secret")


def answering(octets: bytes) -> RawImapServer:
    def raw(conversation: Conversation, tag: bytes, command: bytes) -> bool:
        if not command.startswith(b"UID FETCH"):
            return False
        conversation.say(octets.replace(b"TAG", tag))
        return True

    return RawImapServer(raw)


def fetched(octets: bytes, folder: Path) -> bytes:
    """What the reader gets when the server answers a FETCH with these octets and then nothing more."""
    with answering(octets) as server, behind(server, folder).serve() as gate, ByHand(gate.port()) as by_hand:
        assert by_hand.sign_in()[-1].startswith(b"t0 OK")
        by_hand.say(b"t1 UID FETCH 1 (BODY.PEEK[])\r\n")
        by_hand.sock.settimeout(30)
        heard = b""
        while (line := by_hand.hear()) and not line.startswith(b"* BYE the connection broke"):
            heard += line
            if line.endswith(b"end\r\n"):
                break
        return heard


def test_a_body_that_looks_like_answers_is_passed_by_its_length(tmp_path: Path) -> None:
    size = str(len(HOSTILE_BODY)).encode()
    answer = b"* 1 FETCH (UID 1 BODY[] {" + size + b"}\r\n" + HOSTILE_BODY + b" FLAGS ())\r\nTAG OK end\r\n"
    assert answer.replace(b"TAG", b"t1") == fetched(answer, tmp_path)


@pytest.mark.parametrize(
    "answer",
    [
        b"t9 OK end\r\n",
        b"A2 EXPUNGE\r\n",
        b"+ continue, end\r\n",
        b"nonsense end\r\n",
        b"* 1 FETCH (BODY[] {99999999999999999999}\r\nend\r\n",
        b"* 1 FETCH (BODY[] {" + b"9" * 5000 + b"}\r\nend\r\n",
        b"* 1 FETCH (BODY[] {4000000000}\r\nend\r\n",
        b"* " + b"x" * 1_500_000 + b" end\r\n",
        b"* 1 FETCH end\n",
        b"TAG OK\0 end\r\n",
        b"TAG DONE end\r\n",
    ],
)
def test_what_is_no_answer_ends_the_connection_and_is_not_passed_on(answer: bytes, tmp_path: Path) -> None:
    assert b"" == fetched(answer, tmp_path)


def test_what_signs_in_is_not_in_the_table_of_what_is_passed() -> None:
    assert {b"LOGIN", b"AUTHENTICATE", b"STARTTLS"} == set(READER_TABLE.arguments) - set(PASSED_TABLE.arguments)
    for verb, pattern in PASSED_TABLE.arguments.items():
        assert READER_TABLE.arguments[verb] is pattern


class Dripping:
    """A socket that gives one octet at a time; each takes ten seconds of a clock."""

    def __init__(self) -> None:
        self.now = 0.0

    def settimeout(self, seconds: float) -> None:
        assert 0 < seconds <= LINE_SECONDS

    def recv(self, _: int) -> bytes:
        self.now += 10.0
        return b"t"


def test_a_line_that_drips_is_given_up(tmp_path: Path) -> None:
    dripping = Dripping()
    as_socket: socket.socket = dripping  # type: ignore[assignment]  # as much of one as is used
    side = ReaderSide(as_socket, PASSED_TABLE, lambda: dripping.now)
    with pytest.raises(TooSlow):
        side.line()
    assert LINE_SECONDS == dripping.now
