from __future__ import annotations

import imaplib
from typing import TYPE_CHECKING

import pytest

from tests.servers.proxy import BreakingProxy, BreakPoint

if TYPE_CHECKING:
    from tests.servers.dovecot import Dovecot

MAIL = b"Subject: an order\r\n\r\nhello\r\n"

STAYS = [BreakPoint.BEFORE_COMMAND, BreakPoint.INSIDE_COMMAND]
# Dovecot runs a command as soon as its arguments are complete, so the missing CR LF does not hold it back.
MOVES = [
    BreakPoint.BEFORE_CRLF,
    BreakPoint.AFTER_COMMAND_RST,
    BreakPoint.AFTER_COMMAND_FIN,
    BreakPoint.RESPONSE_DROPPED,
]


@pytest.mark.parametrize("at", [*STAYS, *MOVES])
def test_the_connection_breaks_at_the_chosen_point_of_a_move(dovecot: Dovecot, at: BreakPoint) -> None:
    uid = dovecot.deliver("Incoming", MAIL)
    with BreakingProxy(dovecot.port, b"uid move", at) as proxy:
        client = dovecot.connect("executor", port=proxy.port)
        client.select("Incoming")
        with pytest.raises((ConnectionResetError, imaplib.IMAP4.abort)):
            client.uid("MOVE", str(uid), '"Processed"')
        client.shutdown()
        assert proxy.broken.wait(20)
    dovecot.await_no_session("executor")
    after = dovecot.snapshot()
    assert (at in STAYS, at in MOVES) == (len(after["Incoming"].messages) == 1, len(after["Processed"].messages) == 1)
    assert (at is BreakPoint.RESPONSE_DROPPED) == (b"COPYUID" in proxy.dropped)
    assert (at is BreakPoint.BEFORE_COMMAND) == (not any(b"MOVE" in line for line in dovecot.commands("executor")))


def test_after_the_break_the_next_connection_is_served(dovecot: Dovecot) -> None:
    uid = dovecot.deliver("Incoming", MAIL)
    with BreakingProxy(dovecot.port, b"UID MOVE", BreakPoint.BEFORE_COMMAND) as proxy:
        client = dovecot.connect("executor", port=proxy.port)
        client.select("Incoming")
        with pytest.raises((ConnectionResetError, imaplib.IMAP4.abort)):
            client.uid("MOVE", str(uid), "Processed")
        client.shutdown()
        with dovecot.connect("executor", port=proxy.port) as again:
            again.select("Incoming")
            assert again.uid("MOVE", str(uid), "Processed")[0] == "OK"


def test_a_black_hole_swallows_the_command_and_answers_nothing(dovecot: Dovecot) -> None:
    uid = dovecot.deliver("Incoming", MAIL)
    with BreakingProxy(dovecot.port, b"UID MOVE", BreakPoint.BLACKHOLE) as proxy:
        client = dovecot.connect("executor", port=proxy.port)
        client.select("Incoming")
        client.sock.settimeout(0.05)
        with pytest.raises((TimeoutError, imaplib.IMAP4.abort)):
            client.uid("MOVE", str(uid), "Processed")
        assert proxy.broken.wait(20)
        client.shutdown()
    assert uid == dovecot.snapshot()["Incoming"].one().uid


def test_a_black_hole_without_a_matcher_does_not_even_greet(dovecot: Dovecot) -> None:
    with (
        BreakingProxy(dovecot.port, b"", BreakPoint.BLACKHOLE) as proxy,
        pytest.raises(TimeoutError),
    ):
        imaplib.IMAP4("127.0.0.1", proxy.port, timeout=0.05)


def test_a_command_sent_in_pieces_is_still_recognised(dovecot: Dovecot) -> None:
    uid = dovecot.deliver("Incoming", MAIL)
    with BreakingProxy(dovecot.port, b"UID MOVE", BreakPoint.BEFORE_COMMAND) as proxy:
        client = dovecot.connect("executor", port=proxy.port)
        client.select("Incoming")
        for piece in (b"x1 UID", b" mo", f've {uid} "Processed"\r'.encode(), b"\n"):
            client.send(piece)
        assert proxy.broken.wait(20)
        client.shutdown()
    assert uid == dovecot.snapshot()["Incoming"].one().uid
