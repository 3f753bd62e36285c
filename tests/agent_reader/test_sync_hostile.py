"""Servers that count wrong, say things twice or out of order, hide what is old, and show one message in many places."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

import pytest
import structlog

from agent_reader.imap.session import ReadOnlySession
from agent_reader.sync.run import Round, Sync
from agent_reader.sync.terms import Terms
from shared.imap_login import ImapFailure
from tests.fakes.accounts import plain_account
from tests.fakes.imap_server import ScriptedImapServer, ScriptedMailbox
from tests.fakes.mirror import FakeMirror

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CAPABILITIES = b"IMAP4rev1 AUTH=PLAIN"
OK = b"OK done"

Answered = "tuple[list[bytes], bytes] | None"


def mails(*uids: int) -> dict[int, bytes]:
    return {uid: b"Subject: %d\r\n\r\nbody\r\n" % uid for uid in uids}


@contextlib.contextmanager
def connected(
    answer: Callable[[bytes], tuple[list[bytes], bytes] | None], folder: Path, capabilities: bytes = CAPABILITIES
) -> Iterator[tuple[ScriptedImapServer, Callable[[Sync], Round]]]:
    """Gives the server, and what makes a round on a new connection."""
    with ScriptedImapServer(answer, capabilities) as server:

        def one_round(sync: Sync) -> Round:
            with contextlib.closing(ReadOnlySession.open(plain_account(server.port, folder))) as session:
                return sync.round(session)

        yield server, one_round


def new_sync(mirror: FakeMirror, terms: Terms | None = None) -> Sync:
    return Sync(mirror, None, structlog.get_logger(), terms=terms)


class OddMailbox(ScriptedMailbox):
    """Says what it says twice, backwards, and with other things between."""

    def __call__(self, command: bytes) -> tuple[list[bytes], bytes] | None:
        answered = super().__call__(command)
        if answered is None or not answered[0]:
            return answered
        untagged, tagged = answered
        noise = [b"1 RECENT", b"OK [ALERT] the house is on fire", b"1 FETCH (FLAGS (\\Deleted))", b"FLAGS (\\Seen)"]
        if command.startswith(b"UID SEARCH"):
            return [*untagged, b"SEARCH " + b" ".join(reversed(untagged[0].split()[1:])) + b" ", *noise], tagged
        if command.startswith(b"UID FETCH"):
            other = b"7 FETCH (UID 4000000000 FLAGS (\\Seen))"
            return [line for each in reversed(untagged) for line in (*noise, each, other, each)], tagged
        return [*noise, *reversed(untagged)], tagged


def test_answers_in_any_order_twice_and_with_others_between_are_read_as_what_they_say(tmp_path: Path) -> None:
    mailbox = OddMailbox(mails(1, 2, 5))
    mirror = FakeMirror()
    with connected(mailbox, tmp_path) as (_, one_round):
        assert one_round(new_sync(mirror)).whole
        assert mails(1, 2, 5) == mirror.octets("INBOX")
        mailbox.messages = mails(2, 5, 9)
        mailbox.flags = b"\\Flagged"
        done = one_round(new_sync(mirror))
    assert (True, 1, 2, 1) == (done.whole, done.taken_in, done.changed, done.vanished)
    assert mails(2, 5, 9) == mirror.octets("INBOX")
    assert {frozenset({"\\Flagged"})} == {each.state.flags for each in mirror.named("INBOX").messages.values()}


def altered_examine(
    mailbox: ScriptedMailbox, pattern: bytes, by: Callable[[int], int]
) -> Callable[[bytes], tuple[list[bytes], bytes] | None]:
    """Answers as the mailbox does, with one number of EXAMINE made another."""

    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        answered = mailbox(command)
        if answered is None or not command.startswith(b"EXAMINE"):
            return answered
        made = [re.sub(pattern, lambda found: b"%d" % by(int(found[0])), line) for line in answered[0]]
        return made, answered[1]

    return answer


@pytest.mark.parametrize("by", [lambda count: count + 3, lambda _: 2**32 - 1])
def test_a_count_that_is_too_high_loses_nothing_and_settles_nothing(tmp_path: Path, by: Callable[[int], int]) -> None:
    mailbox = ScriptedMailbox(mails(1, 2, 3))
    mirror = FakeMirror()
    with connected(mailbox, tmp_path) as (_, one_round):
        assert one_round(new_sync(mirror)).whole
    with connected(altered_examine(mailbox, rb"\d+(?= EXISTS)", by), tmp_path) as (_, one_round):
        assert not one_round(new_sync(mirror)).whole
    assert mails(1, 2, 3) == mirror.octets("INBOX")
    assert 1 == mirror.settled


def test_a_count_that_is_too_low_hides_nothing(tmp_path: Path) -> None:
    mirror = FakeMirror()
    answer = altered_examine(ScriptedMailbox(mails(1, 2, 3)), rb"\d+(?= EXISTS)", lambda _: 1)
    with connected(answer, tmp_path) as (_, one_round):
        assert one_round(new_sync(mirror)).whole
    assert mails(1, 2, 3) == mirror.octets("INBOX")


def test_a_uidnext_that_goes_back_changes_nothing(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(1, 2, 3))
    mirror = FakeMirror()
    with connected(mailbox, tmp_path) as (_, one_round):
        one_round(new_sync(mirror))
    with connected(altered_examine(mailbox, rb"(?<=UIDNEXT )\d+", lambda _: 2), tmp_path) as (server, one_round):
        done = one_round(new_sync(mirror))
        assert Round(whole=True, taken_in=0, changed=0, vanished=0, set_aside=0, missing=()) == done
        mailbox.messages |= mails(4)
        assert 1 == one_round(new_sync(mirror)).taken_in
    assert not any(b"BODY" in line and line.startswith((b"UID FETCH 1", b"UID FETCH 2")) for line in server.commands)


def test_a_goodbye_in_the_middle_of_a_fetch_loses_nothing_that_was_stored(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(*range(1, 301)))
    mirror = FakeMirror()
    says_goodbye = True

    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        if b"BODY" in command and mirror.added and says_goodbye:
            return [b"1 FETCH (UID 1 FLAGS () BODY[] {3}\r\nabc)", b"BYE Session expired, please login again."], b"OK"
        return mailbox(command)

    with connected(answer, tmp_path) as (_, one_round):
        sync = new_sync(mirror)
        with pytest.raises(ImapFailure):
            one_round(sync)
        assert 200 == len(mirror.added)
        says_goodbye = False
        assert one_round(sync).whole
    assert mails(*range(1, 301)) == mirror.octets("INBOX")


def test_what_a_provider_hides_because_it_is_old_is_not_gone(tmp_path: Path) -> None:
    mailbox = ScriptedMailbox(mails(*range(1, 11)))
    mirror = FakeMirror()
    terms = Terms(window=10)
    with connected(mailbox, tmp_path) as (_, one_round):
        one_round(new_sync(mirror, terms))
        # Two come in, and the two oldest slide out of sight; one of the others is deleted, one more comes into sight.
        mailbox.messages = mails(*range(3, 13))
        assert 0 == one_round(new_sync(mirror, terms)).vanished
        assert mails(*range(1, 13)) == mirror.octets("INBOX")
        mailbox.messages = mails(2, 3, 4, 5, 7, 8, 9, 10, 11, 12)
        assert 1 == one_round(new_sync(mirror, terms)).vanished
        assert 6 not in mirror.octets("INBOX")
        # Fewer than it would show: now all there is, is seen.
        mailbox.messages = mails(11, 12)
        assert one_round(new_sync(mirror, terms)).whole
    assert mails(11, 12) == mirror.octets("INBOX")


class LyingMailbox(ScriptedMailbox):
    """States ten octets for whatever it has, and gives pieces when asked for them."""

    def _response(self, uid: int, items: bytes, *, with_body: bool) -> bytes:
        octets = self.messages[uid]
        if piece := re.search(rb"BODY\.PEEK\[\]<(\d+)\.(\d+)>", items):
            begin, size = int(piece[1]), int(piece[2])
            part = octets[begin : begin + size]
            return b"1 FETCH (UID %d BODY[]<%d> {%d}\r\n" % (uid, begin, len(part)) + part + b")"
        return re.sub(rb"RFC822.SIZE \d+", b"RFC822.SIZE 10", super()._response(uid, items, with_body=with_body))


def test_a_message_that_is_much_larger_than_stated_ends_the_connection_and_then_comes_in_pieces(
    tmp_path: Path,
) -> None:
    mailbox = LyingMailbox(mails(1) | {2: b"Subject: large\r\n\r\n" + b"x" * 9_000_000} | mails(3))
    mirror = FakeMirror()
    sync = new_sync(mirror)
    results: list[str | bool] = []
    with connected(mailbox, tmp_path) as (_, one_round):
        while not results or results[-1] is not True:
            try:
                results.append(one_round(sync).whole)
            except ImapFailure as failure:
                results.append(failure.code)
            assert len(results) < 8
    assert "too_large" in results
    assert mailbox.messages == mirror.octets("INBOX")
    assert {} == mirror.named("INBOX").aside


class ScriptedGmail:
    """Mailboxes by name; each message is named by what X-GM-MSGID is, and by a UID of its own in each mailbox."""

    def __init__(self, mailboxes: dict[bytes, dict[int, int]]) -> None:
        self.mailboxes = {name: GmailMailbox(messages) for name, messages in mailboxes.items()}
        self._open = b""

    def __call__(self, command: bytes) -> tuple[list[bytes], bytes] | None:
        if command.startswith(b"LIST"):
            attributes = {b"[Gmail]/All Mail": b"\\All", b"[Gmail]/Starred": b"\\Flagged"}
            return [b'LIST (%s) "/" "%s"' % (attributes.get(name, b""), name) for name in self.mailboxes], OK
        if command.startswith(b"EXAMINE"):
            self._open = command.split(b'"')[1]
        return self.mailboxes[self._open](command) if self._open else ([], b"")


class GmailMailbox(ScriptedMailbox):
    def __init__(self, messages: dict[int, int]) -> None:
        super().__init__({uid: b"Subject: %d\r\n\r\nbody\r\n" % same for uid, same in messages.items()})
        self.same = messages

    def _response(self, uid: int, items: bytes, *, with_body: bool) -> bytes:
        response = super()._response(uid, items, with_body=with_body)
        return response[:-1] + b" X-GM-MSGID %d)" % (10**18 + self.same[uid]) if b"X-GM-MSGID" in items else response


GMAIL = CAPABILITIES + b" X-GM-EXT-1"
EVERYTHING = {uid: uid for uid in range(1, 151)}


def gmail() -> ScriptedGmail:
    return ScriptedGmail(
        {
            b"INBOX": {uid: uid + 100 for uid in range(1, 51)},
            b"[Gmail]/All Mail": EVERYTHING,
            b"[Gmail]/Starred": {3: 150},
            b"Receipts": {9: 7, 10: 149},
        }
    )


def test_a_message_under_several_labels_is_fetched_once(tmp_path: Path) -> None:
    server, mirror = gmail(), FakeMirror()
    with connected(server, tmp_path, GMAIL) as (recorded, one_round):
        assert one_round(new_sync(mirror)).whole
    for name, mailbox in server.mailboxes.items():
        assert mailbox.messages == mirror.octets(name.decode())
    assert 150 == len(mirror.added)
    assert 50 + 150 + 1 + 2 - 150 == len(mirror.copied)
    assert not any(b"X-GM-MSGID" in line and b"BODY" in line for line in recorded.commands)


def test_after_a_restart_what_is_stored_under_another_label_is_not_fetched_again(tmp_path: Path) -> None:
    server, mirror = gmail(), FakeMirror()
    everything = server.mailboxes.pop(b"[Gmail]/All Mail")
    with connected(server, tmp_path, GMAIL) as (_, one_round):
        one_round(new_sync(mirror))
        fetched = len(mirror.added)
        server.mailboxes[b"[Gmail]/All Mail"] = everything
        assert one_round(new_sync(mirror)).whole
    assert 150 == len(mirror.added)
    assert fetched == 51
    assert everything.messages == mirror.octets("[Gmail]/All Mail")


def test_a_message_that_the_mirror_has_no_more_elsewhere_is_fetched(tmp_path: Path) -> None:
    server, mirror = gmail(), FakeMirror()
    sync = new_sync(mirror)
    with connected(server, tmp_path, GMAIL) as (_, one_round):
        one_round(sync)
        # Gone under every label, and then there again under a new one: the same to Gmail, and not here.
        for mailbox in server.mailboxes.values():
            mailbox.messages = {uid: octets for uid, octets in mailbox.messages.items() if b": 149" not in octets}
        one_round(sync)
        returned = server.mailboxes[b"Receipts"]
        returned.messages[11], returned.same[11] = b"Subject: 149\r\n\r\nbody\r\n", 149
        assert one_round(sync).whole
    assert b"Subject: 149\r\n\r\nbody\r\n" == mirror.octets("Receipts")[11]
