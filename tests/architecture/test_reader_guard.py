"""Nothing but the reader's table can leave for a mail server through the guard; the client: `test_reader_client.py`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.imap_guard import MAX_LINE_OCTETS, Guard, GuardRefusal
from shared.reader_verbs import READER_TABLE

if TYPE_CHECKING:
    pass

PERMITTED = [
    b"A1 CAPABILITY",
    b"A1 NOOP",
    b"A1 LOGOUT",
    b"A1 STARTTLS",
    b"A1 NAMESPACE",
    b"A1 UNSELECT",
    b"A1 IDLE",
    b"A1 ID NIL",
    b'A1 ID ("name" "mailwarrant")',
    b"A1 AUTHENTICATE PLAIN",
    b"A1 AUTHENTICATE XOAUTH2",
    b"A1 AUTHENTICATE OAUTHBEARER",
    b'A1 LOGIN reader "pass word"',
    b'A1 LOGIN reader@example.org "a\\"b\\\\c"',
    b"A1 ENABLE CONDSTORE",
    b"A1 ENABLE QRESYNC",
    b'A1 LIST "" "*"',
    b'A1 LIST "" "#shared.*" RETURN (SUBSCRIBED)',
    b'A1 LIST "" "*" RETURN (SUBSCRIBED SPECIAL-USE)',
    b'A1 LIST "" "*" RETURN (SUBSCRIBED SPECIAL-USE STATUS (MESSAGES UIDNEXT UIDVALIDITY HIGHESTMODSEQ))',
    b'A1 LIST "" "*" RETURN (SUBSCRIBED STATUS (MESSAGES UIDNEXT UIDVALIDITY HIGHESTMODSEQ))',
    b'A1 LSUB "" "*"',
    b'A1 STATUS "INBOX" (UIDNEXT UIDVALIDITY MESSAGES HIGHESTMODSEQ)',
    b'A1 EXAMINE "B&APw-cher &- L&APY-hne"',
    b'A1 EXAMINE "INBOX" (CONDSTORE)',
    b'A1 EXAMINE "INBOX" (QRESYNC (1 99999999999))',
    b"A1 UID FETCH 1:* (FLAGS MODSEQ) (CHANGEDSINCE 0)",
    b"A1 UID FETCH 1:* (FLAGS) (CHANGEDSINCE 12 VANISHED)",
    b"A1 UID FETCH 1,3:5 (FLAGS INTERNALDATE RFC822.SIZE MODSEQ BODY.PEEK[])",
    b"A1 UID FETCH 1 (BODY.PEEK[]<0.1048576>)",
    b"A1 UID FETCH 1 (BODY.PEEK[HEADER]<0.1048576>)",
    b"A1 UID FETCH 1:9 (RFC822.SIZE INTERNALDATE X-GM-MSGID)",
    b"A1 UID FETCH 1:9 (RFC822.SIZE INTERNALDATE EMAILID)",
    b"A1 NOTIFY SET (personal (MessageNew MessageExpunge FlagChange))",
    b"A1 UID SEARCH RETURN (ALL) ALL",
    b"A1 UID SEARCH ALL",
    b"A1 UID SEARCH UID 1:50000",
]

REFUSED = [
    # What changes a mailbox.
    b'A1 SELECT "INBOX"',
    b"A1 STORE 1 +FLAGS (\\Seen)",
    b"A1 UID STORE 1 +FLAGS (\\Seen)",
    b'A1 MOVE 1 "Trash"',
    b'A1 UID MOVE 1 "Trash"',
    b'A1 COPY 1 "Trash"',
    b'A1 UID COPY 1 "Trash"',
    b"A1 EXPUNGE",
    b"A1 UID EXPUNGE 1",
    b"A1 CLOSE",
    b"A1 CHECK",
    b'A1 APPEND "INBOX" {3}',
    b'A1 APPEND "INBOX" {3+}',
    b'A1 CREATE "x"',
    b'A1 DELETE "x"',
    b'A1 RENAME "x" "y"',
    b'A1 SUBSCRIBE "x"',
    b'A1 UNSUBSCRIBE "x"',
    b'A1 SETACL "INBOX" anyone lr',
    b'A1 SETMETADATA "" (/private/x "y")',
    b"A1 COMPRESS DEFLATE",
    b"A1 NOTIFY NONE",
    b"A1 NOTIFY SET (selected (MessageNew (FLAGS BODY[]) MessageExpunge))",
    b"A1 NOTIFY SET (mailboxes INBOX (MessageNew MessageExpunge FlagChange))",
    b"A1 NOTIFY SET STATUS (personal (MessageNew MessageExpunge FlagChange))",
    b"A1 UID FETCH 1 (X-GM-LABELS BODY[])",
    # What reads and marks as read.
    b"A1 UID FETCH 1 (BODY[])",
    b"A1 UID FETCH 1 (RFC822)",
    b"A1 UID FETCH 1 (RFC822.TEXT)",
    b"A1 UID FETCH 1 (FLAGS BODY[TEXT])",
    b"A1 UID FETCH 1 (BODY.PEEK[] BODY[])",
    b"A1 UID FETCH 1 BODY.PEEK[]",
    b"A1 UID FETCH 1 (BINARY[1])",
    b"A1 UID FETCH 1 (FLAGS) (VANISHED)",
    b"A1 UID FETCH $ (FLAGS)",
    b"A1 UID FETCH 0 (FLAGS)",
    b"A1 FETCH 1 (FLAGS)",
    # Words in a question.
    b'A1 UID SEARCH TEXT "x"',
    b"A1 UID SEARCH HEADER Message-ID x",
    b"A1 UID SEARCH CHARSET UTF-8 ALL",
    b"A1 UID SEARCH RETURN (SAVE) ALL",
    b"A1 SEARCH ALL",
    # Odd spelling.
    b'a1 select "INBOX"',
    b"A1 noop",
    b"A1 Uid Fetch 1 (FLAGS)",
    b"A1 uid store 1 +FLAGS (\\Seen)",
    b"A1  NOOP",
    b" A1 NOOP",
    b"A1\tNOOP",
    b"A1 NOOP x",
    b"* NOOP",
    b"+ NOOP",
    b"NOOP",
    b"",
    b"DONE",
    b"A1 DONE",
    b"c2VjcmV0",
    b"*",
    # Arguments that would be more than arguments.
    b"A1 AUTHENTICATE PLAIN c2VjcmV0",
    b"A1 AUTHENTICATE CRAM-MD5",
    b'A1 LOGIN reader "x" "y"',
    b"A1 LOGIN {6}",
    b"A1 LOGIN {6+}",
    b'A1 LOGIN "a\xc3\xa4" "b"',
    b'A1 LIST "" "*" RETURN (CHILDREN)',
    b'A1 LIST "" "*" RETURN (SUBSCRIBED STATUS (MESSAGES))',
    b'A1 LIST "" "*" RETURN (STATUS (MESSAGES UIDNEXT UIDVALIDITY HIGHESTMODSEQ))',
    b'A1 LIST "" "*" RETURN (SUBSCRIBED STATUS (MESSAGES UIDNEXT UIDVALIDITY HIGHESTMODSEQ) X)',
    b'A1 LIST (SPECIAL-USE) "" "*"',
    b'A1 LIST "" {1}',
    b'A1 EXAMINE "INBOX" (ANNOTATE)',
    b'A1 EXAMINE "IN"BOX"',
    b'A1 EXAMINE INBOX" "x',
    b"A1 ENABLE UTF8=ACCEPT",
    b"A1 ID ()",
    b'A1 ID ("name" "x")',
    b'A1 STATUS "INBOX" (DELETED)',
    b'A1 STATUS "INBOX" ()',
    # NUL, CR and LF inside a line.
    b"A1 NO\0OP",
    b"A1 NOOP\0",
    b'A1 EXAMINE "IN\0BOX"',
    b'A1 EXAMINE "IN\rBOX"',
    b'A1 EXAMINE "IN\nBOX"',
    b"A1 NOOP\n",
    b"A1 NOOP\r",
    b"\r",
    b"\n",
]


@pytest.mark.parametrize("line", PERMITTED)
def test_a_line_of_the_table_leaves_whole_however_it_came_in_pieces(line: bytes) -> None:
    octets = line + b"\r\n"
    assert octets == Guard(READER_TABLE).pass_on(octets)
    one_by_one = Guard(READER_TABLE)
    left = [one_by_one.pass_on(octets[at : at + 1]) for at in range(len(octets))]
    assert [b""] * (len(octets) - 1) + [octets] == left


@pytest.mark.parametrize("line", REFUSED)
@pytest.mark.statement("44")
def test_any_other_line_is_refused_and_nothing_leaves_afterwards(line: bytes) -> None:
    for pieces in ([line + b"\r\n"], [bytes([octet]) for octet in line + b"\r\n"]):
        guard = Guard(READER_TABLE)
        left: list[bytes] = []
        with pytest.raises(GuardRefusal):
            left.extend(guard.pass_on(piece) for piece in pieces)
        assert b"" == b"".join(left)
        with pytest.raises(GuardRefusal):
            guard.pass_on(b"A2 NOOP\r\n")


@pytest.mark.parametrize(
    "octets",
    [
        b"A1 NOOP\r\nA2 NOOP\r\n",
        b"A1 NOOP\r\nA2 EXPUNGE\r\n",
        b"A1 NOOP\r\n\r\n",
        b"A1 NOOP\nA2 EXPUNGE\r\n",
        b'A1 LOGIN a "b\r\nA2 EXPUNGE\r\n',
    ],
)
def test_several_commands_in_one_piece_are_refused_whole(octets: bytes) -> None:
    guard = Guard(READER_TABLE)
    with pytest.raises(GuardRefusal):
        guard.pass_on(octets)


def test_an_injected_line_never_leaves_with_the_command_that_carried_it() -> None:
    guard = Guard(READER_TABLE)
    assert guard.pass_on(b'A1 EXAMINE "INBOX"\r\nA2 UID STORE 1 +FLAGS (\\Del') == b'A1 EXAMINE "INBOX"\r\n'
    with pytest.raises(GuardRefusal):
        guard.pass_on(b"eted)\r\n")


def test_a_base64_line_leaves_only_inside_authenticate_and_only_twice() -> None:
    guard = Guard(READER_TABLE)
    guard.pass_on(b"A1 AUTHENTICATE PLAIN\r\n")
    assert guard.pass_on(b"AHJlYWRlcgBzZWNyZXQ=\r\n") == b"AHJlYWRlcgBzZWNyZXQ=\r\n"
    assert guard.pass_on(b"\r\n") == b"\r\n"
    with pytest.raises(GuardRefusal):
        guard.pass_on(b"AHJlYWRlcgBzZWNyZXQ=\r\n")


def test_after_authenticate_a_command_ends_the_time_of_base64_lines() -> None:
    guard = Guard(READER_TABLE)
    guard.pass_on(b"A1 AUTHENTICATE PLAIN\r\n")
    guard.pass_on(b"A2 NOOP\r\n")
    with pytest.raises(GuardRefusal):
        guard.pass_on(b"AHJlYWRlcgBzZWNyZXQ=\r\n")


@pytest.mark.parametrize("line", [b"not base64!", b"AHJl", b"A2 EXPUNGE", b"A2 SELECT INBOX"])
def test_inside_authenticate_nothing_else_leaves(line: bytes) -> None:
    guard = Guard(READER_TABLE)
    guard.pass_on(b"A1 AUTHENTICATE PLAIN\r\n")
    if line == b"AHJl":
        assert guard.pass_on(line + b"\r\n") == line + b"\r\n"
    else:
        with pytest.raises(GuardRefusal):
            guard.pass_on(line + b"\r\n")


@pytest.mark.parametrize("line", [b"A2 NOOP", b"A2 DONE", b"done", b"DONE ", b"", b'A2 EXAMINE "INBOX"'])
def test_during_idle_only_done_leaves(line: bytes) -> None:
    guard = Guard(READER_TABLE)
    guard.pass_on(b"A1 IDLE\r\n")
    with pytest.raises(GuardRefusal):
        guard.pass_on(line + b"\r\n")


def test_done_ends_idle_once() -> None:
    guard = Guard(READER_TABLE)
    guard.pass_on(b"A1 IDLE\r\n")
    assert guard.pass_on(b"DONE\r\n") == b"DONE\r\n"
    with pytest.raises(GuardRefusal):
        guard.pass_on(b"DONE\r\n")


def test_a_line_without_end_is_refused_before_it_fills_the_memory() -> None:
    guard = Guard(READER_TABLE)
    with pytest.raises(GuardRefusal):
        guard.pass_on(b"A1 UID FETCH " + b"1," * MAX_LINE_OCTETS)


def test_a_refusal_says_whose_table_and_no_argument() -> None:
    with pytest.raises(GuardRefusal) as refusal:
        Guard(READER_TABLE).pass_on(b'A1 LOGIN reader "secret" "more"\r\n')
    assert "secret" not in str(refusal.value)
    assert str(refusal.value).startswith("reader:")


_WORDS = [*PERMITTED, *REFUSED, b"\r\n", b"\n", b"\r", b"\0", b"DONE\r\n", b"AAAA\r\n", b"A9 IDLE\r\n"]


def _allowed(line: bytes) -> bool:
    """The table again, from its words: what a tagged line may be."""
    tagged = re.fullmatch(rb"[A-Za-z0-9]{1,32} (UID [A-Z]+|[A-Z]+)(?: (.*))?", line, re.DOTALL)
    return tagged is not None and READER_TABLE.permits(tagged[1], tagged[2] or b"")


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=40), st.sampled_from([word + b"\r\n" for word in _WORDS] + _WORDS))))
def test_whatever_comes_in_whatever_pieces_only_whole_permitted_lines_leave(pieces: list[bytes]) -> None:
    guard = Guard(READER_TABLE)
    left = bytearray()
    try:
        for piece in pieces:
            left += guard.pass_on(piece)
    except GuardRefusal:
        pass
    lines = bytes(left).split(b"\r\n")
    assert lines.pop() == b""
    sasl, idle = 0, False
    for line in lines:
        assert not re.search(rb"[\r\n\0]", line)
        if idle:
            assert line == b"DONE"
            idle = False
        elif sasl and b" " not in line:
            assert re.fullmatch(rb"[A-Za-z0-9+/]*={0,2}|\*", line)
            sasl -= 1
        else:
            assert _allowed(line)
            sasl, idle = 2 if b" AUTHENTICATE " in line else 0, line.endswith(b" IDLE")
    # And all of it came in, in this order.
    assert b"".join(pieces).startswith(bytes(left))
